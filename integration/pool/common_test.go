// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar"
)

// sharedFiles is the release whose schedd brings files that jobs share to a machine
// once, with a data slot.
var sharedFiles = cedar.Version{Major: 25, Minor: 12}

// TestCommonFiles runs jobs that share the files of two catalogs: each is moved once,
// all jobs see them beside their own input, as links to the same files (or as copies,
// where the owner forbids links), and when no job has wanted them for a while the data
// slot is gone with all that it held. What is linked counts in the disk of the data slot
// alone: the slots of jobs are smaller by it.
//
// row: S4-112
func TestCommonFiles(t *testing.T) {
	t.Parallel()
	realpool.Find(t).NeedVersion(t, sharedFiles, "a schedd makes data slots")
	for _, tt := range []struct {
		name, kind, lines string
		links             string // how many names a shared file has
		smaller           bool   // whether the slots of jobs are
	}{
		{"original", realpool.Original, "", "[2-9]", true},
		{"links", realpool.Ours, "", "[2-9]", true},
		{"copies", realpool.Ours, "FORBID_HARDLINK_MAPPING = True\n", "1", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := realpool.New(t, "KEEP_DATA_CLAIM_IDLE = 5\n")
			p.Begin()
			e := p.NewEP(tt.kind, 4, tt.lines)
			e.Begin()
			dir := filepath.Join(p.Dir, "jobs")
			p.Mkdir(dir)
			for _, name := range []string{"a1", "a2", "b1", "own"} {
				p.Write(filepath.Join(dir, name), "this is "+name+"\n", 0o644)
			}
			p.Write(filepath.Join(dir, "big"), strings.Repeat("big\n", 2<<20/4), 0o644)
			p.Write(filepath.Join(dir, "job"), "#!/bin/sh\nls\ngrep '^Disk = ' .machine.ad\nfor f in a1 a2 b1 own; do cat $f; stat -c \"$f has %h names and mode %a\" $f; done\necho changed > a1 2>/dev/null\nsleep 5\n", 0o755)
			p.Write(filepath.Join(dir, "submit"), "executable = job\noutput = out.$(Process)\nlog = log\nshould_transfer_files = YES\nrequest_disk = 8192\nrequest_memory = 64\n"+
				"transfer_input_files = own\nMY.CommonInputCatalogs = \"A, B\"\nMY._x_catalog_A = \"a1, a2, big\"\nMY._x_catalog_B = \"b1\"\nqueue 3\n", 0o644)
			cluster, _, _ := strings.Cut(strings.TrimSpace(p.Submit(dir, "-terse", "submit")), ".")
			p.Eventually("the jobs are done", 3*realpool.Patience, func(ctx context.Context) error {
				out, err := p.Run(ctx, "condor_q", cluster, "-af", "JobStatus", "HoldReason")
				if err == nil && strings.TrimSpace(out) != "" {
					err = fmt.Errorf("they are %q; StartLog:\n%s", out, realpool.Last(e.Log("StartLog"), 30))
				}
				return err
			})
			smaller := 0 // slots that were made when the files were there: that of the job for which they came
			for n := range 3 {
				text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("out.%d", n)))
				p.Must(err)
				if regexp.MustCompile(`(?m)^Disk = 4096$`).Match(text) {
					smaller++
				}
				for _, want := range []string{
					"(?m)^this is a1$", "(?m)^this is a2$", "(?m)^this is b1$", "(?m)^this is own$", "(?m)^own has 1 names", `(?m)^a1 has ` + tt.links + ` names and mode 444$`,
				} {
					if !regexp.MustCompile(want).Match(text) {
						t.Errorf("job %d saw no %s in\n%s", n, want, text)
					}
				}
			}
			if (smaller > 0) != tt.smaller {
				t.Errorf("%d slots are smaller by what is shared", smaller)
			}
			text, err := os.ReadFile(filepath.Join(dir, "log"))
			p.Must(err)
			if n := strings.Count(string(text), "Started transferring common files"); n != 2 {
				t.Errorf("two catalogs were moved %d times:\n%s", n, text)
			}
			for _, name := range []string{"a1", "a2", "b1", "own"} {
				if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != "this is "+name+"\n" {
					t.Errorf("%s is now %q, %v", name, got, err)
				}
			}
			p.Eventually("the data slot is gone", realpool.Patience, func(ctx context.Context) error {
				out, err := p.Run(ctx, "condor_status", "-direct", e.Host(), "-af", "Name", "catalogs")
				if err == nil && (strings.Contains(out, "data") || strings.Contains(out, "catalog_") || len(e.Scratch()) > 0) {
					err = errors.New(out + " and " + fmt.Sprint(e.Scratch()))
				}
				return err
			})
		})
	}
}
