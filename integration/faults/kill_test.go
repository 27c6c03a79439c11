// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faults

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
	"github.com/execpoint/execpoint/lib/transfer"
)

// stage is a moment in the life of a job, at which it stays until it is killed.
type stage struct {
	// scripts are files in submit. "job" is run; @DIR@ is submit, @LONG@ a sleep that is
	// known by its time.
	scripts map[string]string
	lines   string // of the job's ad
	// files blocks a transfer: in, or out.
	files string
	// silent is the call that the shadow does not answer.
	silent shadow.Call
	// drive does what brings a job there that runs.
	drive func(p *place, part claim.ID)
	// seen is a file in submit that says that it is there.
	seen string
	// says is what the log of the daemon says then.
	says string
}

const begun = "echo >@DIR@/@NAME@.seen; exec @LONG@\n"

var stages = map[string]stage{
	"asks":      {scripts: map[string]string{"job": "true\n"}, silent: shadow.CallGetJobInfo},
	"input":     {scripts: map[string]string{"job": "true\n"}, files: "in"},
	"before":    {scripts: map[string]string{"job": "true\n", "pre": begun}, lines: "PreCmd = \"/bin/sh\"\nPreArguments = \"@DIR@/@NAME@.pre\"\n", seen: "seen"},
	"computes":  {scripts: map[string]string{"job": begun}, seen: "seen"},
	"hides":     {scripts: map[string]string{"job": "(setsid env -i @LONG@ &)\nsetsid sh -c '(@LONG@ &)'\n" + begun}, seen: "seen"},
	"suspended": {scripts: map[string]string{"job": begun}, seen: "seen", says: "Busy -> Suspended", drive: suspend},
	"leaves": {
		scripts: map[string]string{"job": "trap 'echo >@DIR@/@NAME@.asked' TERM\necho >@DIR@/@NAME@.seen\nwhile :; do @LONG@ & wait; done\n"},
		seen:    "asked", drive: vacate,
	},
	"output": {scripts: map[string]string{"job": "echo made >made\n"}, files: "out"},
	"after":  {scripts: map[string]string{"job": "true\n", "post": begun}, lines: "PostCmd = \"/bin/sh\"\nPostArguments = \"@DIR@/@NAME@.post\"\n", seen: "seen"},
	"tells":  {scripts: map[string]string{"job": "mkdir -p a/b/c && echo made >a/b/c/made\n"}, silent: shadow.CallJobExit},
}

func suspend(p *place, part claim.ID) {
	conn := p.open(part, command.SuspendClaim)
	conn.PutSecret(claim.Secret(part.Wire()))
	p.w.must(conn.EndMessage())
}

func vacate(p *place, part claim.ID) {
	ctx := p.w.t.Context()
	go func() { _, _ = p.startd.Deactivate(ctx, command.DeactivateClaim, part) }() // it is answered when the job has left
}

// enter brings a job to a stage and returns once it is there. number is the time of
// its sleeps.
func (p *place) enter(name string, st stage, n int, part claim.ID, number int) {
	w := p.w
	w.t.Helper()
	submit := filepath.Join(w.dir, "submit")
	fill := strings.NewReplacer("@DIR@", submit, "@NAME@", name, "@LONG@", fmt.Sprint("sleep ", number)).Replace
	for kind, text := range st.scripts {
		w.must(os.WriteFile(filepath.Join(submit, name+"."+kind), []byte(fill(text)), 0o644))
	}
	files, blocked := shadowtest.Files{}, make(chan struct{})
	lines := fill(st.lines) + "JobLeaseDuration = 600\n"
	if st.files == "in" {
		w.must(os.WriteFile(filepath.Join(submit, name+".in"), []byte("some"), 0o644))
		lines += fmt.Sprintf("TransferInput = \"%s.in\"\n", name)
		files.In = transfer.SendPlan{Items: []transfer.SendItem{{Source: name + ".in"}}}
	}
	if st.files != "" {
		ctx := w.t.Context()
		files.Spoil = func(*cedar.Conn, int) error {
			close(blocked)
			<-ctx.Done()
			return ctx.Err()
		}
	}
	s := p.shadow(part, w.job(n, "exec sh "+submit+"/"+name+".job", lines), files)
	if st.silent != 0 {
		s.Misbehave(func(_ int, r *shadow.Request, _ *shadow.Reply) shadowtest.Action {
			if r.Call == st.silent {
				return shadowtest.Silent
			}
			return shadowtest.Send
		})
	}
	p.run(s)
	there := func(kind string) {
		w.eventually(name+" is there", realpool.Patience, func() error {
			_, err := os.Stat(filepath.Join(submit, name+"."+kind))
			return err
		})
	}
	switch {
	case st.silent != 0:
		_, err := s.Wait(w.t.Context(), st.silent, 0)
		w.must(err)
	case st.files != "":
		late := time.NewTimer(realpool.Patience)
		defer late.Stop()
		select {
		case <-blocked:
		case <-late.C:
			w.t.Fatalf("%s: no transfer begins", name)
		}
	case st.drive != nil:
		there("seen")
		st.drive(p, part)
		if st.says != "" {
			w.says(st.says, realpool.Patience)
		}
	}
	if st.seen != "" {
		there(st.seen)
	}
}

// traces are what jobs may leave on the machine.
type traces struct {
	w         *world
	processes map[int]uint64 // when they began
	sleeps    int            // the times of their sleeps are this and more, to hundred
	groups    string         // the base of their groups
	volumes   bool
}

// left is what there is of them, by what the kernel and the file system say alone.
func (r *traces) left() (all []string) {
	for pid, started := range r.processes {
		if p, err := realpool.ReadProcess(pid); err == nil && p.Started == started && p.State != 'Z' {
			all = append(all, fmt.Sprintf("process %d %s", pid, p.Name))
		}
	}
	for n := range 100 {
		all = append(all, processesOf(fmt.Sprintf("sleep\x00%d\x00", r.sleeps+n))...)
	}
	for _, pattern := range []string{filepath.Join(r.w.dir, "execute", "*"), "/sys/fs/cgroup/" + r.groups + "/*", "/sys/fs/cgroup/*/" + r.groups + "/*"} {
		found, err := filepath.Glob(pattern)
		r.w.must(err)
		for _, path := range found {
			if info, err := os.Lstat(path); err == nil && info.IsDir() {
				all = append(all, path)
			}
		}
	}
	for line := range strings.Lines(mountinfo(r.w.t, "self")) {
		if strings.Contains(line, r.w.dir+"/execute/") {
			all = append(all, "mount "+line)
		}
	}
	if r.volumes {
		for _, name := range r.w.volumes() {
			all = append(all, "volume "+name)
		}
	}
	return all
}

func (r *traces) gone(when string) {
	r.w.t.Helper()
	r.w.eventually("nothing is left "+when, realpool.Patience, func() error {
		if left := r.left(); len(left) > 0 {
			return fmt.Errorf("%q", left)
		}
		return nil
	})
}

// TestKilledInEveryStage kills starters, their startd or both with SIGKILL while a job is
// in each stage of its life. After the next start nothing of any job is left on the
// machine, and one job gets all of it.
//
// row: S0-065, S0-171
func TestKilledInEveryStage(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	ways := map[string]string{
		"by itself":         "",
		"in PID namespaces": "USE_PID_NAMESPACES = True\n",
		"by group ids":      fmt.Sprintf("BASE_CGROUP =\nUSE_GID_PROCESS_TRACKING = True\nMIN_TRACKING_GID = %d\nMAX_TRACKING_GID = %d\n", 55001, 55040),
	}
	if _, err := os.Stat("/dev/mapper/control"); err == nil && os.Getenv("EXECPOINT_GUEST_INSIDE") != "" {
		ways = map[string]string{"on volumes": ""}
	}
	sleeps := 800000000 + os.Getpid()%10000*10000
	for _, way := range slices.Sorted(maps.Keys(ways)) {
		for _, whom := range []string{"starters", "startd", "both"} {
			sleeps += 100
			t.Run(way+"/"+whom, func(t *testing.T) {
				if way != "on volumes" {
					t.Parallel()
				}
				killed(t, way, ways[way], whom, sleeps)
			})
		}
	}
}

func killed(t *testing.T, way, lines, whom string, sleeps int) {
	lines += "STARTER_ALLOW_JOB_PRE_AND_POST_CMD = True\nMachineMaxVacateTime = 600\nMAXJOBRETIREMENTTIME = 0\n"
	var w *world
	if way == "on volumes" {
		w = onVolumes(t, lines)
	} else {
		w = newWorld(t, lines)
		w.cred = nil
		for _, dir := range []string{"", "execute", "log", "lock", "spool"} {
			w.must(errors.Join(os.Chown(filepath.Join(w.dir, dir), 0, 0), os.Chmod(filepath.Join(w.dir, dir), 0o755)))
		}
	}
	base := filepath.Base(w.dir)
	config := filepath.Join(w.dir, "condor_config")
	text, err := os.ReadFile(config)
	w.must(err)
	more := "NUM_CPUS = 16\n"
	if way != "by group ids" {
		more += "BASE_CGROUP = " + base + "\n"
	}
	w.must(os.WriteFile(config, append(text, more...), 0o644))
	t.Cleanup(func() {
		all, _ := filepath.Glob("/sys/fs/cgroup/*/" + base)
		for _, dir := range append(all, "/sys/fs/cgroup/"+base) {
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		}
	})
	id := w.begin()
	p := w.peer(nil, w.at, id)
	for i, name := range slices.Sorted(maps.Keys(stages)) {
		job := w.job(i+1, "true", "")
		job.SetInt("RequestDisk", 20000)
		part, rest := p.request(id, job)
		p.enter(name, stages[name], i+1, part, sleeps+i)
		id = rest
	}

	seen := &traces{w: w, processes: map[int]uint64{}, sleeps: sleeps, groups: base, volumes: way == "on volumes"}
	var starters []int
	for _, one := range w.below() {
		seen.processes[one.PID] = one.Started
		if one.Parent == w.cmd.Process.Pid {
			starters = append(starters, one.PID)
		}
	}
	if left := seen.left(); len(starters) < len(stages) || len(left) < 2*len(stages) {
		t.Fatalf("%d children of the startd; of the jobs there is only %q: the test shows nothing", len(starters), left)
	}
	signal := func(sig syscall.Signal) {
		for _, pid := range starters {
			if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Fatal(err)
			}
		}
	}
	switch whom {
	case "starters":
		signal(syscall.SIGKILL)
		seen.gone("while the startd goes on")
		w.must(w.cmd.Process.Kill())
		<-w.gone
	case "startd":
		w.must(w.cmd.Process.Kill())
		<-w.gone
	case "both":
		signal(syscall.SIGSTOP) // so that none sees the end of the startd
		w.must(w.cmd.Process.Kill())
		<-w.gone
		signal(syscall.SIGKILL)
		if len(seen.left()) == 0 {
			t.Error("nobody was there to clean up, and nothing is left: the test shows nothing")
		}
	}
	id = w.begin()
	seen.gone("after the next start")
	p = w.peer(nil, w.at, id)
	job := w.job(99, "true", "")
	job.SetInt("RequestCpus", 16)
	part, _ := p.request(id, job)
	w.done("a job that gets all processors", p.run(p.shadow(part, job, shadowtest.Files{})), realpool.Patience)
}
