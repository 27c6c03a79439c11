// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// A program that may be executed at one moment and not at the next is the user's to
// make. It is in its group with its limits, or it is not started.
func TestProgramThatChanges(t *testing.T) {
	eachTracking(t, func(t *testing.T, groups string) {
		if groups == "none" {
			return // and no limits
		}
		tree, err := testTree(map[string]int{"1": 1, "2": 2}[groups])
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(Options{Role: Guest, Groups: tree})
		if err != nil {
			t.Fatal(err)
		}
		program := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(program, []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		var flips sync.WaitGroup
		defer flips.Wait()
		defer close(stop)
		flips.Go(func() {
			for mode := os.FileMode(0); ; mode ^= 0o755 {
				select {
				case <-stop:
					return
				default:
					_ = os.Chmod(program, mode)
				}
			}
		})
		started, refused := 0, 0
		for range 60 {
			f, err := s.Spawn(host.SpawnSpec{Path: program, Args: []string{program}, Dir: "/", Group: groupName() + groups})
			if err != nil {
				if !errs.Is(err, errs.Denied) {
					t.Fatal(err)
				}
				refused++
				continue
			}
			started++
			if !f.Grouped() {
				t.Errorf("program %d runs without its group", started+refused)
			}
			<-f.Done()
			if _, err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%d started, %d refused", started, refused)
	})
}
