// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package speed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
)

// BenchmarkJobs has a real schedd run jobs on one Execution Point after the
// other: jobs/s from the first that executes to the last that ends, and the
// processor time of the EP, the jobs' own included. Each round is a cluster of
// as many jobs as the environment says.
func BenchmarkJobs(b *testing.B) {
	s := newSite(b, slots)
	n := number(b, jobsKnob, defaultJobs)
	s.Write(filepath.Join(s.jobs, "a"), strings.Repeat("a line of a small file\n", 40), 0o644)
	for _, what := range []struct{ name, lines string }{
		{"without files", "executable = /bin/true\nshould_transfer_files = NO\n"},
		{"with files", "executable = /bin/cp\narguments = a b\nshould_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT\ntransfer_input_files = a\n" +
			"transfer_output_files = b\ntransfer_output_remaps = \"b = b.$(Process)\"\n"},
	} {
		for _, e := range s.eps {
			b.Run(what.name+"/"+e.Name, func(b *testing.B) {
				// Claims are made and kept before anything is measured.
				s.cluster(b, e, what.lines, 2*slots)
				var rates, spent []float64
				for b.Loop() {
					before := s.spent(e)
					rate := s.cluster(b, e, what.lines, n)
					rates = append(rates, rate)
					spent = append(spent, milliseconds(s.spent(e)-before)/float64(n))
				}
				report(b, rates, "jobs/s")
				report(b, spent, "cpu-ms/job")
				b.ReportMetric(0, "ns/op")
				s.Eventually("claims are given back", realpool.Patience, e.Idle)
			})
		}
	}
}

// cluster runs jobs and returns how many per second came to their end.
func (s *site) cluster(b *testing.B, e *realpool.EP, lines string, n int) float64 {
	b.Helper()
	log := filepath.Join(s.jobs, "log")
	if err := os.Remove(log); err != nil && !os.IsNotExist(err) {
		b.Fatal(err)
	}
	s.Write(filepath.Join(s.jobs, "sub"), lines+fmt.Sprintf("transfer_executable = false\nlog = log\nkeep_claim_idle = 10\nMY.Rig = %q\nrequirements = TARGET.Rig == MY.Rig\nqueue %d\n", e.Name, n), 0o644)
	cmd := s.Command(b.Context(), "condor_submit", "sub")
	cmd.Dir = s.jobs
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("condor_submit: %v\n%s", err, out)
	}
	var first, last time.Time
	s.Eventually(fmt.Sprintf("%d jobs on %s end", n, e.Name), time.Duration(n)*time.Second+realpool.Patience, func(context.Context) error {
		text, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		ended := 0
		for line := range strings.Lines(string(text)) {
			switch {
			case strings.HasPrefix(line, "001 ") && first.IsZero():
				if first, err = stamp(line); err != nil {
					return err
				}
			case strings.HasPrefix(line, "005 "):
				ended++
				if last, err = stamp(line); err != nil {
					return err
				}
			case strings.HasPrefix(line, "012 "), strings.HasPrefix(line, "007 "):
				b.Fatalf("a job went wrong:\n%s", text)
			}
		}
		if ended < n {
			return fmt.Errorf("%d ended", ended)
		}
		return nil
	})
	return float64(n) / last.Sub(first).Seconds()
}
