// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
)

// NewKeyText makes the key of a claim id or of anything in its shape: 32
// random bytes as 64 hex digits. random nil is crypto/rand.
func NewKeyText(random io.Reader) (claim.Secret, error) {
	if random == nil {
		random = rand.Reader
	}
	var b [32]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", errs.E("security.NewKeyText", errs.Internal, "", err)
	}
	return claim.Secret(hex.EncodeToString(b[:])), nil
}

// NewClaimSecret makes the secret part of a new claim id, info and key, of a
// daemon of version (as "25.14.0").
func NewClaimSecret(version string, random io.Reader) (claim.Secret, error) {
	key, err := NewKeyText(random)
	if err != nil {
		return "", err
	}
	return claim.Secret(DefaultInfo(version).String()) + key, nil
}

// The life of an administration capability, and for how long the same one is
// given out again.
const (
	capabilityLife  = 1800 * time.Second
	capabilityReuse = 30 * time.Second
)

// Administration makes the capabilities that a daemon puts into its ads as
// _condor_PrivRemoteAdminCapability. The collector gives them to those who may
// administrate, and a peer that has one may give our ADMINISTRATOR commands. It is
// safe for concurrent use.
type Administration struct {
	Sessions *Sessions
	Commands []int // that the holder may give
	Clock    clock.Clock
	Rand     io.Reader     // nil is crypto/rand
	Address  func() string // our public sinful
	Start    int64         // when the daemon started, in Unix seconds

	mu   sync.Mutex
	seq  int64
	last claim.Secret
	made time.Duration // boot time
}

// Capability returns a capability to put into ads now; its session exists.
func (a *Administration) Capability() (claim.Secret, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.Clock.Now().Boot
	if a.last != "" && now < a.made+capabilityReuse {
		return a.last, nil
	}
	key, err := NewKeyText(a.Rand)
	if err != nil {
		return "", err
	}
	// An order without a payload proves no more than that its sender knows the
	// id, so it must not be possible to guess it.
	random, err := randomID(a.Rand)
	if err != nil {
		return "", err
	}
	a.seq++
	info := Info{Encryption: true, Integrity: true, ValidCommands: a.Commands}
	id := NewCapabilityID(fmt.Sprintf("admin_%s#%d#%d_%s", a.Address(), a.Start, a.seq, random), info, key.Reveal())
	if _, err := a.Sessions.AddCapability(id, capabilityLife); err != nil {
		return "", err
	}
	a.last, a.made = claim.Secret(id.Reveal()), now
	return a.last, nil
}
