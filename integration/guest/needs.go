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
	says := os.Getenv(guestKnob)
	if says == "no" {
		t.Skipf("guests are not wanted: %s=no", guestKnob)
	}
	base, err := found()
	var notMade *qemu.NotMade
	switch {
	case err == nil:
	case errors.As(err, &notMade) && says == "required":
		t.Fatalf("%s, and %s=required does not allow to skip this test; %s", notMade.What, guestKnob, notMade.Remedy)
	case errors.As(err, &notMade):
		t.Skipf("%s; %s", notMade.What, notMade.Remedy)
	default:
		t.Fatal(err)
	}
	return base
}
