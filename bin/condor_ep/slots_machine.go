// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"

	"github.com/execpoint/execpoint/lib/tool/slots"
)

// readMachine reads the description of a machine.
func readMachine(path string) (*slots.Machine, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, slots.MaxMachine+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	d, err := slots.ParseMachine(path, text)
	if err != nil {
		return nil, err
	}
	d.Elsewhere, _ = os.Hostname() // a machine without a name has none to show
	return d, nil
}
