// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"errors"
	"testing"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/pool/directory"
)

// TestHere: a daemon of this machine is where its files say, and what is another's or in
// no file is left to collectors.
func TestHere(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"/l/startd": "<192.0.2.1:1>\n$CondorVersion: 25 $\n", "/l/super": "<192.0.2.1:2>\n",
		"/l/ad": "MyType = \"Scheduler\"\nMyAddress = \"<192.0.2.1:3>\"\n", "/l/bad": "nothing\n", "/l/none": "<192.0.2.1:0>\n", "/s/.schedd_address": "<192.0.2.1:4>\n",
	}
	read := func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, errors.New("no such file")
	}
	const host = "FULL_HOSTNAME = node7.example\nHOSTNAME = node7\n"
	for _, tt := range []struct {
		name, config string
		root         bool
		kind         directory.Kind
		asked        string
		at, to       string
	}{
		{"by no name", "STARTD_ADDRESS_FILE = /l/startd\n", false, directory.ExecutionPoint, "", "<192.0.2.1:1>", "node7.example"},
		{"by the machine's short name", "STARTD_ADDRESS_FILE = /l/startd\n", false, directory.ExecutionPoint, "NODE7", "<192.0.2.1:1>", "NODE7"},
		{"by its configured name", "STARTD_ADDRESS_FILE = /l/startd\nSTARTD_NAME = two\n", false, directory.ExecutionPoint, "two@node7.example", "<192.0.2.1:1>", "two@node7.example"},
		{"one that is not this machine's", "STARTD_ADDRESS_FILE = /l/startd\n", false, directory.ExecutionPoint, "node8", "", "node8"},
		{"a second one of this machine", "STARTD_ADDRESS_FILE = /l/startd\n", false, directory.ExecutionPoint, "two", "", "two"},
		{"root's port", "STARTD_ADDRESS_FILE = /l/startd\nSTARTD_SUPER_ADDRESS_FILE = /l/super\n", true, directory.ExecutionPoint, "", "<192.0.2.1:2>", "node7.example"},
		{"root's port for others", "STARTD_ADDRESS_FILE = /l/startd\nSTARTD_SUPER_ADDRESS_FILE = /l/super\nUSE_SUPER_PORT = true\n", false, directory.ExecutionPoint, "", "<192.0.2.1:2>", "node7.example"},
		{"not root's port", "STARTD_ADDRESS_FILE = /l/startd\nSTARTD_SUPER_ADDRESS_FILE = /l/super\n", false, directory.ExecutionPoint, "", "<192.0.2.1:1>", "node7.example"},
		{"the copy of its ad", "SCHEDD_ADDRESS_FILE = /l/startd\nSCHEDD_DAEMON_AD_FILE = /l/ad\n", false, directory.AccessPoint, "", "<192.0.2.1:3>", "node7.example"},
		{"a schedd where it is by default", "SPOOL = /s\nSCHEDD_NAME = ap@\n", false, directory.AccessPoint, "", "<192.0.2.1:4>", "node7.example"},
		{"files that say nothing", "MASTER_DAEMON_AD_FILE = /l/bad\nMASTER_ADDRESS_FILE = /l/none\n", false, directory.Master, "", "", "node7.example"},
		{"a file that is gone", "MASTER_ADDRESS_FILE = /l/gone\n", false, directory.Master, "", "", "node7.example"},
		{"the host that is configured", "STARTD_ADDRESS_FILE = /l/startd\nSTARTD_HOST = node9\n", false, directory.ExecutionPoint, "", "", "node9"},
		{"this host as the one that is configured", "STARTD_ADDRESS_FILE = /l/startd\nSTARTD_HOST = node7\n", false, directory.ExecutionPoint, "", "<192.0.2.1:1>", "node7"},
	} {
		snap, err := config.Parse("c", host+tt.config, config.Options{Subsystem: "TOOL"})
		if err != nil {
			t.Fatal(err)
		}
		at, asked, ok := Here{Config: snap, Read: read, Root: tt.root}.Find(tt.kind, tt.asked)
		got := ""
		if ok {
			got = at.String()
		}
		if got != tt.at || asked != tt.to {
			t.Errorf("%s: %q, to be asked for %q; want %q and %q", tt.name, got, asked, tt.at, tt.to)
		}
	}
}
