// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package launch is the startd's side of starters: it starts them (Launcher),
// gives them their plans and orders, and hears what they report (Handle). It
// must never decide what is ordered.
package launch
