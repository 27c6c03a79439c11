// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package speed

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/transfer"
)

// ways in which a job comes to its files.
var ways = [...]struct {
	name, lines string
	in          transfer.SendPlan
}{
	{"without files", "should_transfer_files = NO\n", transfer.SendPlan{}},
	{
		"with files", "should_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT\ntransfer_input_files = a, b\n",
		transfer.SendPlan{Items: []transfer.SendItem{{Source: "a"}, {Source: "b"}}},
	},
}

// BenchmarkActivation measures from the request to activate a claim to the
// job's first instruction, as the job itself reads the clock (a shell and date
// included), and to the answer that the startd is done with the job.
func BenchmarkActivation(b *testing.B) {
	s := newSite(b, slots)
	s.Write(filepath.Join(s.jobs, "begin.sh"), "#!/bin/sh\nexec date +%s.%N > \"$1\"\n", 0o755)
	for _, name := range []string{"a", "b"} {
		s.Write(filepath.Join(s.jobs, name), strings.Repeat("a line of a small file\n", 40), 0o644)
	}
	seq := 0
	for _, e := range s.eps {
		b.Run(e.Name, func(b *testing.B) {
			d := s.drive(b, e, 1)
			for _, way := range ways {
				b.Run(way.name, func(b *testing.B) {
					stamp := filepath.Join(s.jobs, "stamp")
					job := s.ad(b, "executable = "+s.jobs+"/begin.sh\narguments = "+stamp+"\n"+way.lines)
					var first, whole []float64
					once := func() {
						seq++
						if err := os.Remove(stamp); err != nil && !os.IsNotExist(err) {
							b.Fatal(err)
						}
						ctx, cancel := context.WithTimeout(b.Context(), realpool.Patience)
						defer cancel()
						begun, _, err := d.run(ctx, d.claims[0], seq, job, way.in)
						done := time.Now()
						s.Must(err)
						at, err := readStamp(stamp)
						s.Must(err)
						first = append(first, milliseconds(at.Sub(begun)))
						whole = append(whole, milliseconds(done.Sub(begun)))
					}
					once() // starters that are kept ready are ready from the second on
					first, whole = nil, nil
					for b.Loop() {
						once()
					}
					report(b, first, "ms-to-first")
					report(b, whole, "ms-whole")
					b.ReportMetric(0, "ns/op")
				})
			}
		})
	}
}

// readStamp reads what date +%s.%N wrote.
func readStamp(path string) (time.Time, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return time.Time{}, err
	}
	sec, nano, _ := strings.Cut(strings.TrimSpace(string(text)), ".")
	a, err := strconv.ParseInt(sec, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	n, err := strconv.ParseInt(nano, 10, 64)
	return time.Unix(a, n), err
}

// BenchmarkActivations runs as many jobs of /bin/true as the environment says
// on all slots at once, driven by a client of our own: jobs/s, and the
// processor time of the EP, the jobs' own included.
func BenchmarkActivations(b *testing.B) {
	s := newSite(b, slots)
	n := number(b, jobsKnob, defaultJobs)
	for _, name := range []string{"a", "b"} {
		s.Write(filepath.Join(s.jobs, name), strings.Repeat("a line of a small file\n", 40), 0o644)
	}
	seq := 0
	for _, e := range s.eps {
		b.Run(e.Name, func(b *testing.B) {
			d := s.drive(b, e, slots)
			for _, way := range ways {
				b.Run(way.name, func(b *testing.B) {
					job := s.ad(b, "executable = /bin/true\n"+way.lines)
					s.Must(d.many(b, &seq, 2*slots, way.in, job)) // warm
					var rates, spent []float64
					for b.Loop() {
						before, begun := s.spent(e), time.Now()
						s.Must(d.many(b, &seq, n, way.in, job))
						rates = append(rates, float64(n)/time.Since(begun).Seconds())
						spent = append(spent, milliseconds(s.spent(e)-before)/float64(n))
					}
					report(b, rates, "jobs/s")
					report(b, spent, "cpu-ms/job")
					b.ReportMetric(0, "ns/op")
				})
			}
		})
	}
}

// many runs n jobs, all claims at once.
func (d *driver) many(b *testing.B, seq *int, n int, in transfer.SendPlan, job *classad.Ad) error {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), realpool.Patience+time.Duration(n)*time.Second)
	defer cancel()
	numbers := make(chan int, n)
	for range n {
		*seq++
		numbers <- *seq
	}
	close(numbers)
	problems := make([]error, len(d.claims))
	var all sync.WaitGroup
	for i, id := range d.claims {
		all.Go(func() {
			for number := range numbers {
				if _, _, err := d.run(ctx, id, number, job, in); err != nil {
					problems[i] = err
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(problems...)
}
