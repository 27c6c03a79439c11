// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"errors"

	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// ErrAway says that the shadow could not be told or asked, for it is away. What was
// to be done is done when it, or its successor, is back.
var ErrAway = errors.New("the shadow is away")

// Held is why a job is to be held.
type Held struct{ Hold protocol.Hold }

// Error is the reason of the hold.
func (h *Held) Error() string { return h.Hold.Reason }

// HeldFor makes an error of a hold, nil of none.
func HeldFor(h *protocol.Hold) error {
	if h == nil {
		return nil
	}
	return &Held{*h}
}

// Unfit is why a job cannot be set up here, without blame for it.
type Unfit struct {
	Err      error
	Eviction      // with which it leaves
	Lost     bool // its shadow is, for good
}

// Error is that of the cause.
func (u *Unfit) Error() string { return u.Err.Error() }

// Unwrap gives the cause.
func (u *Unfit) Unwrap() error { return u.Err }
