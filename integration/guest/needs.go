// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/execpoint/execpoint/ci/qemu"
)

// What the environment says of the tests.
const (
	guestKnob   = "EXECPOINT_GUEST"
	resultsKnob = "EXECPOINT_GUEST_RESULTS"
)

// found is the base of all machines of this process.
var found = sync.OnceValues(func() (qemu.Base, error) {
	s, err := qemu.OpenStore("")
	if err != nil {
		return qemu.Base{}, err
	}
	return s.Find()
})

// Need returns what machines begin with. Without it the test is skipped, or fails
// where guests are required.
func Need(t testing.TB) qemu.Base {
	t.Helper()
	if os.Getenv(guestKnob) == "no" {
		t.Skipf("guests are not wanted: %s=no", guestKnob)
	}
	base, err := found()
	missing(t, err)
	return base
}

// NeedFor is Need for a machine.
func NeedFor(t testing.TB, m Machine) qemu.Base {
	t.Helper()
	base := Need(t)
	missing(t, base.Has(m))
	return base
}

// missing ends a test that something keeps from having a guest.
func missing(t testing.TB, err error) {
	t.Helper()
	var notMade *qemu.NotMade
	switch {
	case err == nil:
	case errors.As(err, &notMade) && os.Getenv(guestKnob) == "required" && !(notMade.ForRoot && os.Geteuid() != 0):
		t.Fatalf("%s, and %s=required does not allow to skip this test; %s", notMade.What, guestKnob, notMade.Remedy)
	case errors.As(err, &notMade):
		t.Skipf("%s; %s", notMade.What, notMade.Remedy)
	default:
		t.Fatal(err)
	}
}
