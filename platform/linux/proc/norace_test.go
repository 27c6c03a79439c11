// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !race

package proc

// underRace says that the race detector is off.
const underRace = false
