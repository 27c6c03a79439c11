// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package asstarter

import (
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// asked makes this test program a starter that only says whether it is dumpable.
const asked = "EXECPOINT_TEST_DUMPABLE"

// askedGC makes it one that waits and only says what GOGC is then.
const askedGC = "EXECPOINT_TEST_GC"

func TestMain(m *testing.M) {
	if os.Getenv(asked) != "" {
		_, _, out, err := newHost()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		fmt.Fprint(out, n, err)
		os.Exit(0)
	}
	if os.Getenv(askedGC) != "" {
		h, _, out, err := newHost()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		h.Waits()
		fmt.Fprint(out, debug.SetGCPercent(-1))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A starter of root holds the keys of a claim and of condor_master's family.
// While a process of it turns into the job's, the job's user must not be able to
// look into the memory that both share.
func TestNotDumpable(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only a starter of root runs jobs as other users")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), asked+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil || string(out) != "0 <nil>" {
		t.Errorf("PR_GET_DUMPABLE says %q, %v; want 0", out, err)
	}
}

// A starter begins without a collector of garbage, and has one once it waits: else
// what its looks at the job leave would fill 64 MiB.
func TestCollectsWhileItWaits(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(append(os.Environ(), protocol.Lean...), askedGC+"=1")
	cmd.Stderr = os.Stderr
	if out, err := cmd.Output(); err != nil || string(out) != strconv.Itoa(waitingGC) {
		t.Errorf("GOGC is %q, %v; want %d", out, err, waitingGC)
	}
}
