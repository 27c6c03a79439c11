// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cedartest replays recorded connections with real HTCondor daemons:
// it plays one side, as it was recorded, and holds what the other side sends
// against the record. It owns the form of the recordings (testdata/vectors of
// package cedar); it must never be imported by anything but tests.
package cedartest
