// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/machine"
)

// inheritedScript tells what a program finds of what condor_master handed down.
const inheritedScript = `echo "SEEN = ${CONDOR_INHERIT:+address }${CONDOR_PRIVATE_INHERIT:+keys }${CONDOR_PRIVATE_SHARED_PORT_COOKIE:+cookie }$(test -e /proc/$$/fd/7 && echo socket)."
`

// Commands of the configuration and the programs of an owner see neither the keys nor
// the sockets that the parent handed down.
func TestNothingInheritedIsPassedOn(t *testing.T) {
	t.Parallel()
	const asChild = "EXECPOINT_TEST_SCRIPT"
	if script := os.Getenv(asChild); script != "" {
		fmt.Print(seen(t, script))
		return
	}
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte(inheritedScript), 0o644); err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNothingInheritedIsPassedOn$")
	cmd.Env = append(os.Environ(), asChild+"="+script, "CONDOR_INHERIT=1 <127.0.0.1:1>", "CONDOR_PRIVATE_INHERIT=SessionKey:x", "CONDOR_PRIVATE_SHARED_PORT_COOKIE=x")
	cmd.ExtraFiles = []*os.File{null, null, null, null, null} // 3 to 7
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "SEEN = .\n") != 2 {
		t.Errorf("%v; a command of the configuration and a program of the owner say\n%s", err, out)
	}
}

// seen is what the script says as a command of the configuration and as a program of
// the owner, of this process, which has only begun.
func seen(t *testing.T, script string) string {
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	snap, err := s.Reader(Configuration{File: "/bin/sh " + script + " |"})(t.Context(), &machine.Inventory{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	prober := s.Prober()
	out, err := prober.Run(t.Context(), []string{"/bin/sh", script})
	if err != nil {
		t.Fatal(err)
	}
	return "SEEN = " + snap.String("SEEN") + "\n" + string(out.Stdout)
}
