// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package speed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/claim"
)

func TestMain(m *testing.M) { os.Exit(realpool.Main(m)) }

// The environment that chooses what is measured.
const (
	jobsKnob    = "EXECPOINT_BENCH_JOBS"
	bytesKnob   = "EXECPOINT_BENCH_MIB"
	minutesKnob = "EXECPOINT_BENCH_MINUTES"
	epKnob      = "EXECPOINT_BENCH_EP"
)

const (
	slots        = 8
	defaultJobs  = 100
	defaultBytes = 64
)

// site is a pool with the Execution Points that are compared.
type site struct {
	*realpool.Pool
	eps  []*realpool.EP
	jobs string // a directory of the user who runs the daemons
	// rest are the claim ids of what is left of partitionable slots, once parts
	// were claimed: the original tells the first one in a file, and no other.
	rest map[string]claim.ID
}

// newSite starts a pool and the Execution Points, each with as many processors as
// jobs are to run on it at once.
func newSite(b *testing.B, cpus int) *site {
	b.Helper()
	p := realpool.New(b, "SCHEDD.MAX_JOBS_RUNNING = 100\nSTARTD_SHOULD_WRITE_CLAIM_ID_FILE = True\n"+
		"DEFAULT_USERLOG_FORMAT_OPTIONS = ISO_DATE SUB_SECOND\nMACHINE_RESOURCE_NAMES =\n")
	s := &site{Pool: p, jobs: filepath.Join(p.Dir, "jobs"), rest: make(map[string]claim.ID)}
	p.Mkdir(s.jobs)
	kinds := []string{realpool.Original, realpool.Ours}
	if one := os.Getenv(epKnob); one != "" {
		kinds = []string{one}
	}
	p.Begin()
	for _, kind := range kinds {
		e := p.NewEP(kind, cpus, "")
		e.Begin()
		// The pools of tests are told often; an Execution Point of one's own is not.
		config := filepath.Join(e.Dir, "condor_config")
		text, err := os.ReadFile(config)
		p.Must(err)
		p.Must(os.WriteFile(config, append(text, "UPDATE_INTERVAL = 300\n"...), 0o644))
		e.Signal(syscall.SIGHUP)
		s.eps = append(s.eps, e)
	}
	return s
}

// number reads one from the environment.
func number(b *testing.B, knob string, otherwise int) int {
	b.Helper()
	text := os.Getenv(knob)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		b.Fatalf("%s=%s: want a number from 1", knob, text)
	}
	return n
}

// spent is the processor time of an EP once no starter runs but one that is
// kept ready.
func (s *site) spent(e *realpool.EP) time.Duration {
	s.TB.Helper()
	var spent time.Duration
	s.Eventually("starters have ended", realpool.Patience, func(context.Context) error {
		starters := 0
		for _, one := range realpool.Below(realpool.Everything(), e.PID()) {
			if one.Name != "condor_procd" {
				starters++
			}
		}
		if most := map[string]int{realpool.Ours: 1}[e.Name]; starters > most {
			return fmt.Errorf("%d processes", starters)
		}
		var err error
		spent, err = e.Spent()
		return err
	})
	return spent
}

// report tells the median of what was measured, in a unit.
func report(b *testing.B, all []float64, unit string) {
	if len(all) == 0 {
		b.Fatalf("nothing was measured in %s", unit)
	}
	slices.Sort(all)
	b.ReportMetric(all[len(all)/2], unit)
}

// milliseconds of a duration, with their fraction.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// stamp is the time of an event of a log with ISO_DATE and SUB_SECOND.
func stamp(line string) (time.Time, error) {
	f := strings.Fields(line)
	if len(f) < 4 {
		return time.Time{}, fmt.Errorf("no time in %q", line)
	}
	return time.ParseInLocation("2006-01-02 15:04:05.000", f[2]+" "+f[3], time.Local)
}
