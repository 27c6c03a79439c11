// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"net"
	"os"
	"os/exec"
	osuser "os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/execpoint/execpoint/integration/realpool"
)

// needs looks whether everything is there that the tests need, and returns the
// source tree, the installation, and whom the tests are run as.
func needs(t *testing.T) (sourceTree, installation, account) {
	t.Helper()
	source := os.Getenv("EXECPOINT_HTCONDOR_SOURCE")
	if source == "" {
		t.Skip("EXECPOINT_HTCONDOR_SOURCE names no source tree of HTCondor")
	}
	source, err := filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := openSource(source)
	if err != nil {
		t.Fatal(err)
	}
	in := installation{Installation: realpool.Find(t)}
	if in.Bindings, err = findBindings(in.Prefix); err != nil {
		realpool.Missing(t, err.Error(), "install HTCondor's Python bindings, which Debian has in the package condor")
	}
	for _, tool := range [][2]string{{"python3", "python3"}, {"perl", "perl"}, {"openssl", "openssl"}, {"ps", "procps"}, {"strace", "strace"}, {"curl", "curl"}} {
		if _, err := exec.LookPath(tool[0]); err != nil {
			realpool.Missing(t, err.Error(), "install the package "+tool[1]+" of Debian")
		}
	}
	for module, remedy := range map[string]string{"pytest": "the package python3-pytest", "pytest_httpserver": "the package python3-pytest-httpserver"} {
		if out, err := exec.Command("python3", "-c", "import "+module).CombinedOutput(); err != nil {
			realpool.Missing(t, "python3 has no "+module+": "+tail(string(out), 1), "install "+remedy+" of Debian")
		}
	}
	if _, err := osuser.Lookup("condor"); err != nil {
		realpool.Missing(t, err.Error(), "useradd -r condor")
	}
	needAddress(t)
	return tree, in, ordinary(t)
}

// ordinary is the user that the tests are run as.
func ordinary(t *testing.T) account {
	t.Helper()
	if os.Geteuid() != 0 {
		u, err := osuser.Current()
		if err != nil {
			t.Fatal(err)
		}
		return account{Name: u.Username}
	}
	u := realpool.JobUser(t)
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return account{Name: u.Username, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

// needAddress wants the host's name to lead to an address of the host that is
// not loopback: half of HTCondor's tools ask for a daemon by that name.
func needAddress(t *testing.T) {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var mine []string
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			mine = append(mine, n.IP.String())
		}
	}
	if len(mine) == 0 {
		realpool.Missing(t, "this machine has no address but loopback", "give it one, on a dummy interface say")
	}
	remedy := "in /etc/hosts a line like " + mine[0] + " " + name + ".local " + name + " is enough"
	found, err := net.LookupHost(name)
	if err != nil {
		realpool.Missing(t, "the name of this machine leads nowhere: "+err.Error(), remedy)
	}
	if !slices.Contains(mine, found[0]) {
		realpool.Missing(t, "the name of this machine, "+name+", leads to "+found[0]+", which is not an address of it that others reach", remedy)
	}
}
