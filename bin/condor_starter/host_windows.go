// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/starter"
)

// newHost says that this program cannot run jobs here: it has nothing yet that
// keeps hold of a job's processes on Windows.
func newHost() (starter.Host, error) {
	return starter.Host{}, errs.E("starter.newHost", errs.Unsupported, "windows", errors.New("jobs cannot be run on Windows by this version"))
}
