// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package account

import (
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/platform/linux/access"
)

// as calls f with the file rights of u alone.
func as(u *host.Identity, f func() error) error { return new(access.Files).As(u, f) }
