// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
)

// ReadRequest is what the tests' fuzzer reads with.
func ReadRequest(c *cedar.Conn) (ep.ClaimRequested, error) {
	r, err := readRequest(c)
	return r.event, err
}

// The other readers of what peers send.
var (
	ReadActivation = readActivation
	DrainFrom      = func(ad *classad.Ad) (ep.DrainRequested, error) { return drainFrom(ad, "somebody") }
)
