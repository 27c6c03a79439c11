// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"context"
	"errors"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/pool/directory"
)

// Directory is where the address of a daemon can be learnt.
type Directory struct {
	Open directory.Opener
	Port int // of collectors that are named without one

	// Find returns where a collector is that is configured with port 0; nil takes
	// addresses as they are.
	Find func(cedar.Sinful) (cedar.Sinful, error)
}

// Locate asks the collectors of a list where a daemon is. Entries that name no
// collector are a reason only where the others do not know the daemon.
func (d Directory) Locate(ctx context.Context, list []string, kind directory.Kind, name string) (cedar.Sinful, error) {
	var collectors []cedar.Sinful
	var bad []error
	for _, text := range list {
		at, err := directory.ParseCollector(text, d.Port)
		if err == nil && d.Find != nil {
			at, err = d.Find(at)
		}
		if err != nil {
			bad = append(bad, err)
			continue
		}
		collectors = append(collectors, at)
	}
	at, err := directory.Lookup(ctx, d.Open, collectors, kind, name)
	if err != nil {
		return cedar.Sinful{}, errors.Join(append([]error{err}, bad...)...)
	}
	return at, nil
}

// Ping asks whether a daemon lets us in.
func Ping(ctx context.Context, open directory.Opener, at cedar.Sinful) error {
	conn, _, err := open.Command(ctx, at, command.DCNop, security.Options{})
	if err != nil {
		return err
	}
	return conn.Close() // the handshake was the question
}
