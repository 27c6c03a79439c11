// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A real job that removes the directory it runs in ends with its exit code, and what
// it owes is told to be missing, the first file by name.
func TestScratchRemovedByJob(t *testing.T) {
	t.Parallel()
	const ads = "; exit 7"
	for _, c := range []struct {
		name, script string
		attrs        map[string]string
		missing      string // "" for a job that owes nothing
	}{
		{"listed", `rm -rf "$_CONDOR_SCRATCH_DIR"` + ads, map[string]string{"Out": `"/dev/null"`, "Err": `"/dev/null"`, "TransferOutput": `"result"`}, "/scratch/result"},
		{"standard files", `rm -rf "$_CONDOR_SCRATCH_DIR"` + ads, nil, "/scratch/_condor_stdout"},
		{"the whole sandbox", `rm -rf "${_CONDOR_SCRATCH_DIR%/*}"` + ads, nil, "/scratch/_condor_stdout"},
		{"nothing is known of", `rm -rf "$_CONDOR_SCRATCH_DIR"` + ads, map[string]string{"Out": `"/dev/null"`, "Err": `"/dev/null"`}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			for attr, expr := range c.attrs {
				s.set(attr, expr)
			}
			r := s.sh(c.script).run().record
			if r.Status.Code != 7 || r.Evicted || (r.Held != nil) != (c.missing != "") {
				t.Fatalf("%+v, held %+v", r, r.Held)
			}
			if h := r.Held; h != nil && (h.Code != 12 || h.Subcode != 2 || !strings.Contains(h.Reason, filepath.Base(c.missing)+": (errno 2) No such file or directory") ||
				!strings.Contains(h.Reason, c.missing)) {
				t.Errorf("held %+v", h)
			}
		})
	}
}
