// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package check looks for what is wrong with the configuration of an
// Execution Point before anything is started with it.
//
// It owns the table of findings (codes, severities, explanations), the checks
// behind them and the page docs/checks.md that is made from the table. A check
// is conservative: it speaks when a setting cannot do what it says, not when it
// is merely unusual, and never about a default.
//
// It must never open a file, run a program or ask the machine: the
// configuration, the inventory and what is known about files come in.
//
//	s, found := check.Load(options)              // every problem of reading it
//	if s != nil {
//		found = append(found, check.Snapshot(check.Subject{Config: s, Inventory: inv, Files: files})...)
//	}
//	for _, f := range check.Sorted(found) {
//		fmt.Println(f) // /etc/x.conf:3:1: warning EP033: SUSPEND: …
//	}
package check

//go:generate go test -run TestDocumentIsCurrent -update
