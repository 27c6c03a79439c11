// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar"
)

// both are Execution Points that are held against one another.
var both = [...]string{realpool.Original, realpool.Ours}

// TestMonitoredResource has a program measure a resource of the owner's own: what
// a job is said to have used of it is in the slot's ad, in the file that the job
// finds, in the job's ad and in its log, as with the original. The program ends
// with an ad for all slots, which says nothing of the resource.
func TestMonitoredResource(t *testing.T) {
	t.Parallel()
	p := realpool.New(t, "")
	p.Begin()
	monitor := filepath.Join(p.Dir, "monitor")
	p.Write(monitor, `#!/bin/sh
for squid in 0 1; do
	echo "SlotMergeConstraint = StringListMember(\"squid$squid\", AssignedSquids)"
	[ $squid = 0 ] && echo UptimeSquidsSeconds = 4 && echo UptimeSquidsMemoryPeakUsage = 7
	[ $squid = 1 ] && echo UptimeSquidsSeconds = 40 && echo UptimeSquidsMemoryPeakUsage = 70
	echo "- squid$squid"
done
echo Monitored = true
echo -GLOBAL update:true
`, 0o755)
	lines := "MACHINE_RESOURCE_Squids = squid0, squid1\nSTARTD_CRON_JOBLIST = WATCH\nSTARTD_CRON_WATCH_EXECUTABLE = " + monitor + "\n" +
		"STARTD_CRON_WATCH_PERIOD = 2\nSTARTD_CRON_WATCH_METRICS = SUM:Squids, PEAK:SquidsMemory\nSTART = Monitored =?= true\n" +
		"STARTD_ATTRS = Rig\n"
	for _, kind := range both {
		e := p.NewEP(kind, 2, lines)
		e.Begin()
		p.Eventually("the machine is measured", realpool.Patience, func(ctx context.Context) error {
			out, err := p.Run(ctx, "condor_status", "-direct", e.Host(), "-af", "Monitored", "DeviceSquidsAverageUsage > 0", "DeviceSquidsMemoryPeakUsage")
			if err == nil && strings.TrimSpace(out) != "true true 70.0" {
				err = fmt.Errorf("it shows %q", out)
			}
			return err
		})
		dir := filepath.Join(p.Dir, "jobs-"+kind)
		p.Mkdir(dir)
		p.Write(filepath.Join(dir, "job"), `#!/bin/sh
sleep 12
for ad in ../htcondor/.update.ad .update.ad; do [ -r $ad ] && grep Squids $ad; done
exit 0
`, 0o755)
		p.Write(filepath.Join(dir, "submit"), "executable = job\noutput = out.$(Process)\nlog = log\nshould_transfer_files = YES\nrequest_disk = 1024\nrequest_memory = 64\n"+
			"request_squids = 1\nrequirements = TARGET.Rig == \""+kind+"\"\nleave_in_queue = JobStatus == 4\nqueue 2\n", 0o644)
		cluster, _, _ := strings.Cut(strings.TrimSpace(p.Submit(dir, "-terse", "submit")), ".")
		p.Eventually("the jobs are done", 2*realpool.Patience, func(ctx context.Context) error {
			out, err := p.Run(ctx, "condor_q", cluster, "-af", "JobStatus")
			if err == nil && strings.Join(strings.Fields(out), "") != "44" {
				err = fmt.Errorf("they are %q; StartLog:\n%s", out, realpool.Last(e.Log("StartLog"), 20))
			}
			return err
		})
		text, err := os.ReadFile(filepath.Join(dir, "log"))
		p.Must(err)
		seen := map[string]bool{}
		for line := range strings.Lines(p.Tool("condor_q", cluster, "-af", "ProcId", "AssignedSquids", "SquidsAverageUsage", "SquidsMemoryUsage")) {
			words := strings.Fields(line)
			if len(words) != 4 {
				t.Fatalf("the job's ad says %q", line)
			}
			squid, memory := words[1], words[3]
			seen[squid] = true
			scale := map[string]float64{"squid0": 1, "squid1": 10}[squid]
			// 4 or 40 in 2 seconds, which may be 1 or 3 by the clock that is read.
			average, err := strconv.ParseFloat(words[2], 64)
			if err != nil || average < scale || average > 4*scale || memory != strconv.Itoa(int(7*scale))+".0" {
				t.Errorf("the job of %s used %s on average and %s of memory", squid, words[2], memory)
			}
			row := fmt.Sprintf(`Squids\s+:\s+%s\s+1\s+1 "%s"`, strings.TrimSuffix(strconv.FormatFloat(average, 'f', 2, 64), ".00"), squid)
			if !regexp.MustCompile(row).Match(text) {
				t.Errorf("the log has no %q:\n%s", row, text)
			}
			out, err := os.ReadFile(filepath.Join(dir, "out."+words[0]))
			p.Must(err)
			for _, want := range []string{`(?m)^AssignedSquids = "` + squid + `"$`, `(?m)^SquidsAverageUsage = \d`, `(?m)^SquidsMemoryUsage = ` + memory + "$"} {
				if !regexp.MustCompile(want).Match(out) {
					t.Errorf("the job of %s saw no %s in\n%s", squid, want, out)
				}
			}
			if regexp.MustCompile(`(?m)^(StartOfJob|FirstUpdate|LastUpdate.|UptimeSquidsSeconds |Uptime.*PeakUsage)`).Match(out) {
				t.Errorf("the job saw\n%s", out)
			}
		}
		if len(seen) != 2 {
			t.Errorf("jobs had %v", seen)
		}
	}
}

// slotFailures is the first release that makes broken slots, and of whose tools
// condor_status shows them.
var slotFailures = cedar.Version{Major: 24, Minor: 12}

// TestSlotWithoutExecute starts machines of which a slot's directory is missing:
// the slot is broken until the daemon is started again, and nothing is made in the
// directory's place, which may be a disk that is not mounted.
func TestSlotWithoutExecute(t *testing.T) {
	t.Parallel()
	realpool.Find(t).NeedVersion(t, slotFailures, "a slot that cannot be made is broken")
	const layout = "NUM_SLOTS_TYPE_2 = 2\nSLOT_TYPE_1 = cpus=1\nSLOT_TYPE_2 = cpus=1\n"
	for _, mode := range []string{"CONTINUE", "CLEAR", "ABORT"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := realpool.New(t, "")
			p.Begin()
			missing := filepath.Join(p.Dir, "missing")
			lines := layout + "SLOT_CONFIG_FAILURE_MODE = " + mode + "\nSLOT2_EXECUTE = " + missing + "\n"
			shows := map[string]string{}
			for _, kind := range both {
				e := p.NewEP(kind, 4, lines)
				switch mode {
				case "ABORT":
					e.Start()
					p.Eventually(kind+" refuses to begin", realpool.Patience, func(context.Context) error {
						if !e.Ended() {
							return errors.New("it goes on")
						}
						return nil
					})
					if log := e.Log("StartLog"); !regexp.MustCompile(`ERROR ".*Error accessing execute directory ` + missing).MatchString(log) {
						t.Errorf("the log of %s:\n%s", kind, realpool.Last(log, 20))
					}
					continue
				case "CLEAR":
					e.Start()
					t.Cleanup(func() { e.Stop(syscall.SIGQUIT, realpool.Patience) })
				default:
					e.Begin()
				}
				p.Eventually(kind+" answers", realpool.Patience, func(ctx context.Context) error {
					out, err := p.Run(ctx, "condor_status", "-direct", e.Host(), "-startd", "-long", "-attributes", "BrokenReasons,slot2BrokenReason,slot_type2BrokenReason,BrokenContextAds")
					if err == nil && strings.TrimSpace(out) == "" {
						err = errors.New("there is no ad of the daemon")
					}
					shows[kind] = out
					return err
				})
				slots := p.Tool("condor_status", "-direct", e.Host(), "-af", "SlotID", "SlotBrokenCode", "SlotBrokenReason", "Requirements", "TotalSlotCpus", "TotalSlotDisk")
				shows[kind] += slots
				if want := "2 3 Error accessing execute directory " + missing; mode == "CONTINUE" && !strings.Contains(slots, want) {
					t.Errorf("%s shows\n%swant %s", kind, slots, want)
				}
				if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s has made the directory: %v", kind, err)
				}
			}
			if shows[realpool.Ours] != shows[realpool.Original] {
				t.Errorf("the original shows\n%sours\n%s", shows[realpool.Original], shows[realpool.Ours])
			}
		})
	}
	t.Run("mended", func(t *testing.T) {
		t.Parallel()
		p := realpool.New(t, "")
		p.Begin()
		for _, kind := range both {
			missing := filepath.Join(p.Dir, "missing-"+kind)
			e := p.NewEP(kind, 4, layout+"SLOT2_EXECUTE = "+missing+"\n")
			e.Begin()
			codes := func() string {
				return strings.Join(strings.Fields(p.Tool("condor_status", "-direct", e.Host(), "-af", "SlotBrokenCode")), " ")
			}
			p.Mkdir(missing)
			config, err := os.OpenFile(filepath.Join(e.Dir, "condor_config"), os.O_WRONLY|os.O_APPEND, 0)
			p.Must(err)
			_, err = config.WriteString("Reread = true\nSTARTD_ATTRS = Reread\n")
			p.Must(errors.Join(err, config.Close()))
			e.Signal(syscall.SIGHUP)
			p.Eventually(kind+" has read its configuration", realpool.Patience, func(ctx context.Context) error {
				out, err := p.Run(ctx, "condor_status", "-direct", e.Host(), "-af", "Reread")
				if err == nil && strings.Join(strings.Fields(out), " ") != "true true true" {
					err = errors.New("not yet")
				}
				return err
			})
			if got := codes(); got != "undefined 3 undefined" {
				t.Errorf("after a reconfig %s shows %s", kind, got)
			}
			if !e.Stop(syscall.SIGTERM, realpool.Patience) {
				t.Fatalf("%s does not end", kind)
			}
			e.Daemon.Start()
			e.Shown()
			if got := codes(); got != "undefined undefined undefined" {
				t.Errorf("after a restart %s shows %s", kind, got)
			}
		}
	})
}

// TestDutyCycle asks how busy the daemon is: tools take its health from that.
func TestDutyCycle(t *testing.T) {
	t.Parallel()
	p := realpool.New(t, "")
	p.Begin()
	for _, kind := range both {
		e := p.NewEP(kind, 2, "")
		e.Begin()
		for _, of := range [][]string{{}, {"-startd"}} {
			if len(of) > 0 && kind == realpool.Original && !p.Version.AtLeast(slotFailures.Major, slotFailures.Minor, slotFailures.Patch) {
				continue // it has no ad of the daemon that can be asked for
			}
			out := p.Tool("condor_status", append(of, "-direct", e.Host(), "-af", "DaemonCoreDutyCycle", "RecentDaemonCoreDutyCycle")...)
			words := strings.Fields(out)
			if len(words) != 2 {
				t.Fatalf("%s %v shows %q", kind, of, out)
			}
			for _, word := range words {
				// Ours has worked since it began, and has nothing to do. The original
				// may have waited longer than it lived, by its own account.
				share, err := strconv.ParseFloat(word, 64)
				if err != nil || share >= 0.95 || kind == realpool.Ours && share <= 0 {
					t.Errorf("%s %v shows %q", kind, of, out)
				}
			}
		}
	}
}
