// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/integration/realpool"
)

// An Execution Point with the configuration that docs/security.md recommends
// joins a pool and runs its jobs, and refuses who is not named.
func TestHardened(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## A hardened configuration\n")
	if !ok {
		t.Fatal("docs/security.md recommends no configuration any more")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var conf strings.Builder
	for line := range strings.Lines(section) {
		if code, ok := strings.CutPrefix(line, "    "); ok {
			conf.WriteString(strings.ReplaceAll(code, "pool.example.org", "execpoint.test"))
		}
	}
	p := realpool.New(t, "")
	p.Begin()
	// The pool's own daemons have names, but not the service's.
	ours := p.NewEP(realpool.Ours, 2, conf.String()+"SEC_CLIENT_AUTHENTICATION_METHODS = IDTOKENS\nSTARTD_DEBUG = D_SECURITY\n")
	token := p.Tool("condor_token_create", "-identity", "condor@execpoint.test", "-authz", "ADVERTISE_STARTD", "-authz", "READ")
	p.Write(filepath.Join(ours.Dir, "tokens.d", "pool"), token, 0o600)
	ours.Begin()

	dir := filepath.Join(p.Dir, "job")
	p.Mkdir(dir)
	p.Write(filepath.Join(dir, "in"), "some input\n", 0o644)
	p.Write(filepath.Join(dir, "submit"), fmt.Sprintf("initialdir = %s\nexecutable = /bin/cat\narguments = in\noutput = out\nlog = log\nshould_transfer_files = YES\n"+
		"transfer_input_files = in\nrequirements = Rig == \"ours\"\nqueue\n", dir), 0o644)
	p.Tool("condor_submit", filepath.Join(dir, "submit"))
	p.Eventually("the job is done", realpool.Patience, func(context.Context) error {
		log, err := os.ReadFile(filepath.Join(dir, "log"))
		if err == nil && !strings.Contains(string(log), "Job terminated.") {
			err = fmt.Errorf("its log is\n%s\nthat of the daemon ends\n%s", log, realpool.Last(ours.Log("StartLog"), 20))
		}
		return err
	})
	if out, err := os.ReadFile(filepath.Join(dir, "out")); err != nil || string(out) != "some input\n" {
		t.Errorf("its output is %q, %v", out, err)
	}
	// The pool lets everybody administrate, and its collector has no capability of
	// ours to give.
	address := strings.TrimSpace(p.Tool("condor_status", "-direct", ours.Host(), "-constraint", "PartitionableSlot", "-af", "MyAddress"))
	for _, level := range []string{"ADMINISTRATOR", "DAEMON", "WRITE"} {
		out, err := p.Run(t.Context(), "condor_ping", "-addr", address, level)
		if err == nil && !strings.Contains(out, "FAIL") {
			t.Errorf("somebody who is not named has %s: %s", level, out)
		}
	}
	if out, err := p.Run(t.Context(), "condor_ping", "-addr", address, "READ"); err != nil || !strings.Contains(out, "succeeded") {
		t.Errorf("a user of the pool has no READ: %s, %v", out, err)
	}
	if log := ours.Log("StartLog"); !strings.Contains(log, "ALLOW_ADMINISTRATOR") {
		t.Errorf("the log does not say by which list somebody was refused:\n%s", realpool.Last(log, 30))
	}
}
