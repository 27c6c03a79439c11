// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
)

// Rows of the documents about the daemon: it is started, and what it tells and
// writes is looked at.

// program writes one that the daemon is to run.
func (s *site) program(name, text string) string {
	s.t.Helper()
	syscall.ForkLock.RLock() // no child may hold it open for writing
	defer syscall.ForkLock.RUnlock()
	s.must(os.WriteFile(s.path(name), []byte("#!/bin/sh\n"+text), 0o755))
	return s.path(name)
}

// reachable lets another user in, if the daemon may run programs as one.
func (s *site) reachable() {
	s.t.Helper()
	for dir := s.dir; dir != "/tmp" && dir != "/" && os.Geteuid() == 0; dir = filepath.Dir(dir) {
		s.must(os.Chmod(dir, 0o755))
	}
}

// without takes a line out of the configuration.
func (s *site) without(line string) *site {
	s.t.Helper()
	b, err := os.ReadFile(s.path("condor_config"))
	s.must(err)
	if !strings.Contains(string(b), "\n"+line+"\n") {
		s.t.Fatalf("there is no line %q", line)
	}
	s.must(os.WriteFile(s.path("condor_config"), []byte(strings.Replace(string(b), "\n"+line+"\n", "\n", 1)), 0o644))
	return s
}

// with adds lines to the configuration.
func (s *site) with(lines string) {
	s.t.Helper()
	file, err := os.OpenFile(s.path("condor_config"), os.O_APPEND|os.O_WRONLY, 0)
	s.must(err)
	_, err = file.WriteString(lines)
	s.must(errors.Join(err, file.Close()))
}

// reconfigured has the daemon take lines over, and waits until it has.
func (l *life) reconfigured(n int, lines string) {
	l.t.Helper()
	l.with(fmt.Sprintf("STARTD_ATTRS = Taken\n%sSTARTD_ATTRS = $(STARTD_ATTRS), Taken\nTaken = %d\n", lines, n))
	l.must(l.cmd.Process.Signal(syscall.SIGHUP))
	l.shows("Taken = " + strconv.Itoa(n))
}

// ads are those of all slots.
func (l *life) ads() []*classad.Ad {
	l.t.Helper()
	ads, err := slots(l.c, l.at)
	l.must(err)
	if len(ads) == 0 {
		l.t.Fatal("no slots")
	}
	return ads
}

// shows waits until the first slot's ad has the line.
func (l *life) shows(line string) {
	l.t.Helper()
	eventually(l.t, line, func() error {
		if text := "\n" + l.ads()[0].Text(classad.Old); !strings.Contains(text, "\n"+line+"\n") {
			return errors.New(text)
		}
		return nil
	})
}

// moves waits until the log tells of these moves of the first slot, one after
// another and behind those that were waited for before.
func (l *life) moves(words ...string) {
	l.t.Helper()
	for _, w := range words {
		eventually(l.t, w, func() error {
			log := l.log()
			i := strings.Index(log[l.told:], "slot1: "+w)
			if i < 0 {
				return errors.New(log)
			}
			l.told += i + 1
			return nil
		})
	}
}

// looks waits until the first slot was looked at so many times more, which a
// daemon with D_FULLDEBUG says.
func (l *life) looks(times int) {
	l.t.Helper()
	seen := func() int { return strings.Count(l.log(), "slot1: state ") }
	from := seen()
	eventually(l.t, "the slot is looked at", func() error {
		if n := seen() - from; n < times {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
}

// says waits until the log has the words.
func (l *life) says(words string) {
	l.t.Helper()
	eventually(l.t, words, func() error {
		if log := l.log(); !strings.Contains(log, words) {
			return errors.New(log)
		}
		return nil
	})
}

// row: S4-055
func TestAdsAtShutdown(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]bool{"": false, "STARTD_PRINT_ADS_ON_SHUTDOWN = true\n": true} {
		l := newSite(t, lines+"STARTD_ATTRS = Marked\nMarked = 4711\n").live()
		if strings.Contains(l.log(), "Marked = 4711") {
			t.Error("the log has an ad before the end")
		}
		l.end()
		_, dump, begun := strings.Cut(l.log(), "*** BEGIN AD DUMP ***")
		dump, rest, ended := strings.Cut(dump, "*** END AD DUMP ***")
		if begun != want || ended != want || strings.Contains(dump, "Marked = 4711") != want || want && !strings.Contains(rest, "EXITING WITH STATUS 0") {
			t.Errorf("%q: %s", lines, l.log())
		}
	}
}

// row: S4-042
func TestDebugLevels(t *testing.T) {
	t.Parallel()
	l := newSite(t, "POLLING_INTERVAL = 1\nUPDATE_INTERVAL = 1\n").live()
	l.reconfigured(1, "")
	const detail = "slot1: state State=Unclaimed Activity=Idle"
	if strings.Contains(l.log(), detail) {
		t.Error("the log has details that nobody asked for")
	}
	l.reconfigured(2, "STARTD_DEBUG = D_FULLDEBUG\n")
	l.says(detail)
	l.end()
}

// The machine's processors are counted at the start, as far as the owner does
// not say how many there are.
//
// row: S4-057
func TestProcessorsAtTheStart(t *testing.T) {
	t.Parallel()
	s := newSite(t, "").without("NUM_CPUS = 4")
	l := s.live()
	limit := l.value("DETECTED_CPUS_LIMIT")
	if n, err := strconv.Atoi(limit); err != nil || n < 1 {
		t.Fatalf("DETECTED_CPUS_LIMIT = %s", limit)
	}
	l.shows("Cpus = " + limit)
	if got := l.value("NUM_CPUS"); got != limit {
		t.Errorf("NUM_CPUS = %s, want %s", got, limit)
	}
	n, _ := strconv.Atoi(limit)
	l.reconfigured(1, fmt.Sprintf("NUM_CPUS = %d\n", n+3))
	l.shows("Cpus = " + limit)
	l.end()
	l = s.live()
	l.shows(fmt.Sprintf("Cpus = %d", n+3))
	l.end()
}

// A numbered type makes static slots, if nothing else is said of it; a machine
// without types is one partitionable slot.
//
// row: S4-096
func TestKindsOfSlots(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]string{
		"": "Partitionable",
		"SLOT_TYPE_1 = 25%\nNUM_SLOTS_TYPE_1 = 2\nSLOT_TYPE_2 = 25%\nNUM_SLOTS_TYPE_2 = 1\nSLOT_TYPE_2_PARTITIONABLE = True\nSLOT_TYPE_7 = 25%\nNUM_SLOTS_TYPE_7 = 1\n": "Static Static Partitionable Static",
	} {
		l := newSite(t, lines).live()
		var kinds []string
		for _, ad := range l.ads() {
			kind, _ := ad.EvalString("SlotType", nil)
			can, _ := ad.EvalBool("PartitionableSlot", nil)
			if can != (kind == "Partitionable") {
				t.Errorf("PartitionableSlot = %v of a %s one", can, kind)
			}
			kinds = append(kinds, kind)
		}
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("%q: %s, want %s", lines, got, want)
		}
		l.end()
	}
}

// row: S0-243
func TestCronEnvironment(t *testing.T) {
	t.Parallel()
	s := newSite(t, "STARTD_CRON_JOBLIST = env\nSTARTD_CRON_env_EXECUTABLE = $(LOCAL_DIR)/env.sh\nSTARTD_CRON_env_PERIOD = 1h\nSTARTD_CRON_env_ENV = \"Mine=two' 'words\"\n"+
		"STARTD_CRON_CONFIG_VAL = /opt/condor_config_val\n")
	s.program("env.sh", `echo "Tool = \"$STARTD_CRON_CONFIG_VAL\""; echo "Mine = \"$Mine\""`+"\n")
	l := s.live()
	l.shows(`Tool = "/opt/condor_config_val"`)
	l.shows(`Mine = "two words"`)
	l.end()
}

// The unclaimed slot of a daemon runs its benchmarks when the old helper says
// that it is time, and not before; it goes to its owner and comes back, and is
// drained. Matches, claims and backfill are integration/pool's and
// TestBackfillKnobs'.
//
// row: S0-133, S0-134, S0-135, S0-136, S0-137, S0-142, S1-044, S2-009
func TestUnclaimedSlot(t *testing.T) {
	t.Parallel()
	s := newSite(t, lets+"POLLING_INTERVAL = 1\nUPDATE_INTERVAL = 1\nBenchmarkTimer = (CurrentTime - LastBenchmark)\nHOUR = 3600\n"+
		"RunBenchmarks = ((LastBenchmark == 0) || ($(BenchmarkTimer) >= (4 * $(HOUR))))\n"+
		"BENCHMARKS_JOBLIST = b\nBENCHMARKS_b_EXECUTABLE = $(LOCAL_DIR)/b.sh\nIS_OWNER = Mine =?= true\n")
	s.program("b.sh", "echo run >>"+s.path("benchmarked")+"\ncat "+s.path("figures")+"\n")
	figures := func(mips, kflops int) {
		s.must(os.WriteFile(s.path("figures"), fmt.Appendf(nil, "Mips = %d\nKFlops = %d\n", mips, kflops), 0o644))
	}
	rounds := func() int {
		b, _ := os.ReadFile(s.path("benchmarked"))
		return strings.Count(string(b), "run\n")
	}
	figures(1000, 2000)
	began := time.Now().Unix()
	l := s.live()
	l.shows("Mips = 1000")
	l.shows("KFlops = 2000")
	l.moves("Changing activity: Idle -> Benchmarking", "Changing activity: Benchmarking -> Idle")
	first, _ := l.ads()[0].EvalInt("LastBenchmark", nil)
	if first < began || first > time.Now().Unix() {
		t.Errorf("LastBenchmark = %d", first)
	}

	l.reconfigured(1, "Mine = true\nSTARTD_ATTRS = Mine\n")
	l.moves("Changing state: Unclaimed -> Owner")
	l.shows(`State = "Owner"`)
	l.reconfigured(2, "Mine = false\nSTARTD_ATTRS = Mine\n")
	l.moves("Changing state: Owner -> Unclaimed")
	if n := rounds(); n != 1 {
		t.Errorf("%d rounds of benchmarks, though four hours are not over", n)
	}

	// With other hours it is time again: a new round counts for one of four.
	figures(2000, 4000)
	l.reconfigured(3, "HOUR = 1\n")
	l.moves("Changing activity: Idle -> Benchmarking", "Changing activity: Benchmarking -> Idle")
	l.reconfigured(4, "RunBenchmarks = False\n")
	eventually(t, "the rounds are weighed", func() error {
		want := 1000.0
		for range rounds() - 1 {
			want = (3*want + 2000) / 4
		}
		mips, _ := l.ads()[0].EvalReal("Mips", nil)
		kflops, _ := l.ads()[0].EvalReal("KFlops", nil)
		if math.Abs(mips-want) > 1 || math.Abs(kflops-2*want) > 1 || want == 1000 {
			return fmt.Errorf("Mips = %g and KFlops = %g after %d rounds, want %g", mips, kflops, rounds(), want)
		}
		return nil
	})
	if again, _ := l.ads()[0].EvalInt("LastBenchmark", nil); again < first+4 {
		t.Errorf("LastBenchmark = %d after %d", again, first)
	}

	l.drain(512, "HowFast = 0\nResumeOnCompletion = 0")
	l.moves("Changing state and activity: Unclaimed/Idle -> Drained/Retiring", "Changing activity: Retiring -> Idle")
	l.shows(`State = "Drained"`)
	l.end()
}

// drain sends an order to drain, or to end that.
func (l *life) drain(command int, ad string) {
	l.t.Helper()
	l.ask(command, func(c *cedar.Conn) {
		a, err := classad.ParseAd(ad, classad.Old)
		l.must(err)
		c.PutAd(a, cedar.AdOptions{})
	}, func(c *cedar.Conn) error {
		reply, err := c.Ad(cedar.AdOptions{})
		if done, _ := reply.EvalBool("Result", nil); err == nil && !done {
			err = errors.New(reply.Text(classad.Old))
		}
		return err
	})
}

// row: S0-185
func TestEndOfADrain(t *testing.T) {
	t.Parallel()
	s := newSite(t, lets+"POLLING_INTERVAL = 1\nRunBenchmarks = False\n")
	l := s.live()
	l.drain(512, "HowFast = 0\nResumeOnCompletion = 0")
	l.shows(`State = "Drained"`)
	l.says("slot1: Changing activity: Retiring -> Idle")
	l.drain(513, `RequestID = "1"`)
	l.says("slot1: Changing state: Drained -> Owner")
	l.shows(`State = "Unclaimed"`)
	// A drain that resumes ends by itself.
	l.drain(512, "HowFast = 0\nResumeOnCompletion = 1")
	eventually(t, "it has ended", func() error {
		if log := l.log(); strings.Count(log, "slot1: Changing state: Drained -> Owner") != 2 {
			return errors.New(log)
		}
		return nil
	})
	l.end()
}

// A quarter of the disk stays a quarter of what there is, also after that was
// measured again.
//
// row: S0-022
func TestQuarterOfTheDisk(t *testing.T) {
	t.Parallel()
	const taken = 1 << 30
	s := newSite(t, "SLOT_TYPE_1 = cpus=1, disk=25%, memory=10\nNUM_SLOTS_TYPE_1 = 4\nSTARTD_RECOMPUTE_DISK_FREE = True\nUPDATE_INTERVAL = 1\nPOLLING_INTERVAL = 1\n")
	l := s.live()
	quarters := func() float64 {
		var total float64
		for _, ad := range l.ads() {
			disk, _ := ad.EvalReal("Disk", nil)
			total, _ = ad.EvalReal("TotalDisk", nil)
			if r := disk - total/4; r < -2 || r > 2 {
				t.Fatalf("Disk is %.0f of %.0f", disk, total)
			}
		}
		return total
	}
	before := quarters()
	var fs syscall.Statfs_t
	s.must(syscall.Statfs(s.path("execute"), &fs))
	if free := float64(fs.Bavail) * float64(fs.Bsize) / 1024; math.Abs(before-free) > free/4 {
		t.Errorf("TotalDisk is %.0f, and %.0f are free", before, free)
	}
	file, err := os.Create(s.path("execute/taken"))
	s.must(err)
	s.must(syscall.Fallocate(int(file.Fd()), 0, 0, taken))
	s.must(file.Close())
	eventually(t, "the disk is measured again", func() error {
		if now := quarters(); before-now < taken/1024/2 {
			return fmt.Errorf("%.0f were free, %.0f are", before, now)
		}
		return nil
	})
	l.end()
}

// The free disk is that of the start, unless STARTD_RECOMPUTE_DISK has it measured
// again.
//
// row: S4-073
func TestDiskAgain(t *testing.T) {
	t.Parallel()
	const taken = 1 << 30
	s := newSite(t, "UPDATE_INTERVAL = 1\nPOLLING_INTERVAL = 1\nSTARTD_DEBUG = D_FULLDEBUG\n")
	for _, again := range []string{"", "STARTD_RECOMPUTE_DISK = False\n", "STARTD_RECOMPUTE_DISK = True\n"} {
		s.with(again)
		l := s.live()
		free := func() int64 {
			disk, _ := l.ads()[0].EvalInt("TotalDisk", nil)
			return disk
		}
		before := free()
		file, err := os.Create(s.path("execute/taken"))
		s.must(err)
		s.must(syscall.Fallocate(int(file.Fd()), 0, 0, taken))
		s.must(file.Close())
		if strings.Contains(again, "True") {
			eventually(t, "the disk is measured again", func() error {
				if now := free(); before-now < taken/1024/2 {
					return fmt.Errorf("%d were free, %d are", before, now)
				}
				return nil
			})
		} else {
			l.looks(3)
			if now := free(); now != before {
				t.Errorf("%q: %d were free, %d are", again, before, now)
			}
		}
		l.end()
		s.must(os.Remove(s.path("execute/taken")))
	}
}

// Volumes of jobs are begun with at a start and at no reconfig.
//
// row: S0-091
func TestVolumesAtTheStart(t *testing.T) {
	t.Parallel()
	l := newSite(t, "POLLING_INTERVAL = 1\nUPDATE_INTERVAL = 1\n").live()
	l.reconfigured(1, "STARTD_ENFORCE_DISK_LIMITS = True\nLVM_VOLUME_GROUP_NAME = not_there\n")
	if e, there := l.ads()[0].Lookup("IsEnforcingDiskUsage"); there {
		t.Errorf("IsEnforcingDiskUsage = %v after a reconfig", e)
	}
	l.says("STARTD_ENFORCE_DISK_LIMITS")
	l.end()
	// A startd that is told to have volumes, and cannot, does not begin without.
	if os.Geteuid() != 0 {
		return
	}
	l.with("LVM_VOLUME_GROUP_NAME = not_there\nSTARTD_ENFORCE_DISK_LIMITS = True\n")
	l.fails()
	if log := l.log(); !strings.Contains(log, "LVM_VOLUME_GROUP_NAME") && !strings.Contains(log, "lvm2") {
		t.Errorf("the log does not say why:\n%s", log)
	}
}

// Without what the client needs there is no backfill, and the log names the
// knob; with all of it the client gets what the knobs say.
//
// row: S0-198, S0-199, S3-031, S4-088
func TestBackfillKnobs(t *testing.T) {
	t.Parallel()
	all := []string{"BOINC_Executable = $(LOCAL_DIR)/client.sh", "BOINC_InitialDir = $(LOCAL_DIR)/boinc", "BOINC_Universe = vanilla"}
	if os.Geteuid() == 0 {
		all = append(all, "BOINC_Owner = nobody")
	}
	const on = "ENABLE_BACKFILL = True\nBACKFILL_SYSTEM = BOINC\nSTART_BACKFILL = True\nEVICT_BACKFILL = False\nRunBenchmarks = False\nPOLLING_INTERVAL = 1\nUPDATE_INTERVAL = 1\nSTARTD_DEBUG = D_FULLDEBUG\n"
	for i, line := range all {
		knob, _, _ := strings.Cut(line, " ")
		t.Run(knob, func(t *testing.T) {
			t.Parallel()
			for _, instead := range []string{"", "BOINC_Universe = standard"} {
				if instead != "" && knob != "BOINC_Universe" {
					continue
				}
				lines := on
				for k, l := range all {
					if k == i {
						l = instead
					}
					lines += l + "\n"
				}
				s := newSite(t, lines)
				s.program("client.sh", "sleep 100\n")
				s.must(os.Mkdir(s.path("boinc"), 0o777))
				l := s.live()
				l.says(knob)
				l.looks(3)
				if ad := l.ads()[0].Text(classad.Old); !strings.Contains(ad, `State = "Unclaimed"`) {
					t.Errorf("without %s: %s", line, ad)
				}
				l.end()
			}
		})
	}
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, on+strings.Join(all, "\n")+"\nBOINC_Arguments = \"one 'two three'\"\nBOINC_Environment = \"MARK='a mark'\"\nBOINC_Output = $(LOCAL_DIR)/boinc/out\nBOINC_Error = $(LOCAL_DIR)/boinc/err\n")
		s.reachable()
		s.program("client.sh", `trap 'exit 0' TERM; echo "$1|$2|$MARK|$(pwd)|$(id -u)"; echo bad >&2; while :; do sleep 0.1; done`+"\n")
		s.must(os.Mkdir(s.path("boinc"), 0o777))
		s.must(os.Chmod(s.path("boinc"), 0o777))
		l := s.live()
		l.shows(`State = "Backfill"`)
		uid := os.Geteuid()
		if uid == 0 {
			nobody, err := user.Lookup("nobody")
			s.must(err)
			uid, err = strconv.Atoi(nobody.Uid)
			s.must(err)
		}
		want := fmt.Sprintf("one|two three|a mark|%s|%d\n", s.path("boinc"), uid)
		eventually(t, "the client has what the knobs say", func() error {
			out, _ := os.ReadFile(s.path("boinc/out"))
			bad, _ := os.ReadFile(s.path("boinc/err"))
			if string(out) != want || string(bad) != "bad\n" {
				return fmt.Errorf("%q and %q, want %q\n%s", out, bad, want, l.log())
			}
			return nil
		})
		// It stays while nothing else wants the slot, and goes with the daemon.
		l.looks(3)
		if log := l.log(); strings.Contains(log, "backfill client has ended") {
			t.Errorf("the client does not stay:\n%s", log)
		}
		l.says("slot1: Changing activity: Idle -> Busy")
		l.end()
	})
}
