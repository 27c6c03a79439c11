// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/eventlog"
)

// TestStatusWhileJobsRun looks at both sides with condor_status while a job
// runs at each: the tool shows both alike, in all its forms.
func TestStatusWhileJobsRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	var jobs [2]*job
	for i, s := range r.sides {
		jobs[i] = s.submit(t, "job", "executable = job.sh\noutput = out\nerror = err\nshould_transfer_files = YES\nrequest_cpus = 2\n", "", func(dir string) {
			r.files(dir, map[string]string{"job.sh": strings.ReplaceAll(waits, "@DIR@", dir)})
		})
	}
	for _, j := range jobs {
		j.made("ready")
		eventually(t, "the collector knows of the job on "+j.side.name, func() error {
			out, err := r.run("condor_status", "-constraint", `Rig == "`+j.side.name+`"`, "-sort", "Name", "-af", "State", "Activity", "Cpus", "JobId")
			if want := "Unclaimed Idle 62 undefined Claimed Busy 2 " + j.id(); err == nil && strings.Join(strings.Fields(out), " ") != want {
				err = fmt.Errorf("it shows %q, not %q", out, want)
			}
			return err
		})
	}
	number := regexp.MustCompile(`[ \d+:.]+`)
	for _, form := range [][]string{nil, {"-compact"}, {"-state"}, {"-claimed"}, {"-run"}, {"-server"}, {"-total"}, {"-avail"}, {"-startd"}} {
		// The original tells the collector what its slot's children do when it
		// next has something to tell.
		eventually(t, fmt.Sprintf("condor_status %v shows both alike", form), func() error {
			var shown [2]string
			for i, s := range r.sides {
				out, err := r.run("condor_status", append(slices.Clone(form), "-constraint", `Rig == "`+s.name+`"`)...)
				if err != nil {
					return err
				}
				out = number.ReplaceAllString(strings.ReplaceAll(jobs[i].alike(out), s.name, "SIDE"), " ")
				// Both versions have a word of their own behind them; how many jobs
				// start in a minute, which -compact shows, is a statistic.
				shown[i] = strings.NewReplacer(" PRE ", " ", " PackageID ", " ", " execpoint ", " ", " _ ", " ").Replace(out)
			}
			if shown[0] != shown[1] {
				return fmt.Errorf("of the original\n%s\nof ours\n%s", shown[0], shown[1])
			}
			return nil
		})
	}
	// Some attributes come with an update of the starter, by each one's clock.
	var original, ours []*classad.Ad
	eventually(t, "ours has all attributes that the original has, asked directly", func() error {
		if original == nil {
			original = r.sides[0].slots()
		}
		ours = r.sides[1].slots()
		if len(original) != 2 || len(ours) != 2 {
			t.Fatalf("asked directly: %d slots of the original, %d of ours, want 2 of each", len(original), len(ours))
		}
		var lacks []string
		for i := range original {
			for attribute := range original[i].All() {
				_, ok := ours[i].Lookup(attribute)
				if !ok && !strings.HasSuffix(attribute, "RunTime") /* sums of the original's */ && !slices.ContainsFunc(absent[:], func(pattern string) bool { m, _ := filepath.Match(pattern, attribute); return m }) {
					lacks = append(lacks, fmt.Sprintf("slot %d: %s", i, attribute))
				}
			}
		}
		if len(lacks) > 0 {
			return fmt.Errorf("ours lacks %q", lacks)
		}
		return nil
	})
	for i := range original {
		name, _ := ours[i].EvalString("Name", nil)
		checkSame(t, name, ours[i], original[i], "MyType", "State", "Activity", "Cpus", "Memory", "SlotType", "SlotID", "TotalSlots", "Start", "Rank")
	}
	for _, j := range jobs {
		j.told("go")
		j.wait(eventlog.CodeTerminated, 1)
		j.side.idle()
	}
}
