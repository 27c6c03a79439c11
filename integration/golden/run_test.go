// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package golden

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
)

// run is a case that runs here.
type run struct {
	record
	*world
	ep   *realpool.EP
	dir  string // from which it is submitted
	id   string
	seen facts
	done bool

	released bool
	last     time.Time // when it began or the last action was taken
	acted    int
	place    string // where it runs
	left     int    // processes that were to be left behind, while they ran
}

func (r *run) submit() {
	r.t.Helper()
	r.seen = facts{}
	r.dir = filepath.Join(r.path("sub"), r.ID)
	r.pool.Mkdir(r.dir)
	for _, f := range []struct {
		name, text string
		mode       os.FileMode
	}{{"in1", "one\n", 0o640}, {"in2", "two\n", 0o755}, {"in.txt", "input\n", 0o644}, {"bad.sh", "#!/nonexistent/interp\n", 0o755}} {
		if strings.Contains(r.Job, f.name) {
			r.pool.Write(filepath.Join(r.dir, f.name), f.text, f.mode)
		}
	}
	job := strings.Replace(r.replace(r.Job), "\nqueue", fmt.Sprintf("\nrequirements = Rig == %q\nqueue", r.ep.Name), 1)
	r.pool.Write(filepath.Join(r.dir, "job.sub"), job, 0o644)
	out := r.pool.Submit(r.dir, "-terse", "job.sub")
	r.id, _, _ = strings.Cut(strings.TrimSpace(out), " ")
}

// events are those of the log until now.
func (r *run) events() []string {
	b, _ := os.ReadFile(filepath.Join(r.dir, "log"))
	var all []string
	for e := range realpool.Events(string(b)) {
		all = append(all, e.Text)
	}
	return all
}

func (r *run) where() string {
	f := facts{}
	told(f, r.events())
	return f["events"]
}

// look moves the case on, and says whether it is over: the log has all that was
// recorded, or an end.
func (r *run) look() bool {
	events := r.events()
	n, began, held := 0, false, false
	for _, e := range events {
		switch e[:3] {
		case unsaid:
			continue
		case "001":
			began = true
		case "005", "009":
			r.done = true
		case "012":
			held = true
		}
		n++
	}
	r.done = r.done || held
	recorded := 0
	for _, e := range r.Events {
		if e[:3] != unsaid {
			recorded++
		}
	}
	if n >= recorded && r.acted == len(r.Actions) {
		r.done = true
	}
	if began && !r.done {
		if r.last.IsZero() {
			r.last = time.Now()
		}
		r.act()
		r.release()
	}
	return r.done
}

// act takes the next of the recorded actions.
func (r *run) act() {
	pause := 1500 * time.Millisecond
	if r.acted > 0 {
		pause = 4 * time.Second
	}
	if r.acted == len(r.Actions) || time.Since(r.last) < pause {
		return
	}
	_, command, _ := strings.Cut(r.Actions[r.acted], " ")
	tool, result, _ := strings.Cut(command, " ")
	_, err := r.pool.Run(r.t.Context(), tool, r.id)
	if (err == nil) != (result != "rc=1") {
		r.t.Errorf("%s: %s: %v, recorded %s", r.ID, tool, err, result)
	}
	r.acted++
	r.last = time.Now()
}

// release looks at a job that waits to be looked at, and lets it go.
func (r *run) release() {
	if r.released || len(r.Actions) > 0 {
		return
	}
	for _, dir := range r.scratches() {
		if _, err := os.Stat(filepath.Join(dir, "ready")); err != nil {
			continue
		}
		r.released = true
		r.snapshot(dir)
		_ = os.WriteFile(filepath.Join(dir, "release"), nil, 0o644)
	}
}

// scratches are where the job may run.
func (r *run) scratches() []string {
	found := []string{r.dir}
	ads, _ := filepath.Glob(filepath.Join(r.ep.Dir, "execute", "dir_*", "scratch", ".job.ad"))
	more, _ := filepath.Glob(filepath.Join(r.ep.Dir, "execute", "dir_*", ".job.ad"))
	cluster, _, _ := strings.Cut(r.id, ".")
	for _, path := range append(ads, more...) {
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte("\nClusterId = "+cluster+"\n")) {
			found = append(found, filepath.Dir(path))
		}
	}
	return found
}

// snapshot notes what is only to be seen while the job runs.
func (r *run) snapshot(dir string) {
	r.place = dir
	r.left = r.remaining()
	b, err := os.ReadFile(filepath.Join(dir, "_condor_stdout"))
	if err != nil {
		b, _ = os.ReadFile(filepath.Join(dir, "out")) // without file transfer
	}
	var p probe
	if json.Unmarshal(b, &p) != nil {
		return
	}
	p.facts(r)
	path := p.group("memory")
	at := func(controller, name string) string {
		b, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", controller, p.group(controller), name))
		if err != nil {
			return "absent"
		}
		return strings.TrimSpace(string(b))
	}
	if !strings.Contains(path, "_execute_slot") {
		return
	}
	for _, name := range []string{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.soft_limit_in_bytes"} {
		r.seen["cgroup."+name] = at("memory", name)
	}
	r.seen["cgroup.cpu.shares"] = at("cpu", "cpu.shares")
	r.seen["cgroup._dir"] = r.owned(filepath.Join("/sys/fs/cgroup/memory", path))
}

// remaining are the processes that left.py started and that live.
func (r *run) remaining() int {
	n := 0
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		b, err := os.ReadFile(path)
		if err == nil && bytes.HasPrefix(b, []byte("xl_")) && bytes.Contains(b, []byte(r.place+"\x00")) {
			n++
		}
	}
	return n
}

// finish takes the job away, and notes what is left of it.
func (r *run) finish() {
	events := r.events()
	// A job that was recorded without an end was taken away there, and those that
	// start over and over are looked at as long.
	var kept []string
	for _, e := range events {
		if e[:3] != unsaid && len(kept) < r.counted()+1-btoi(r.unended()) {
			kept = append(kept, e)
		}
	}
	told(r.seen, kept)
	ad := r.ad()
	for _, name := range finals {
		if v, ok := ad[name]; ok && (name != "JobStatus" || !r.unended()) {
			r.seen[name] = r.plain(v)
		}
	}
	list, err := os.ReadDir(r.dir)
	r.must(err)
	var back []string
	for _, e := range list {
		info, err := e.Info()
		if err != nil || slices.Contains(aside, e.Name()) {
			continue
		}
		back = append(back, core(e.Name())+" "+info.Mode().Perm().String()[1:])
	}
	slices.Sort(back)
	r.seen["returned"] = strings.Join(back, ", ")
	if b, err := os.ReadFile(filepath.Join(r.dir, "out")); err == nil && r.Seen.Probe == nil && r.Seen.Stdout != nil && r.Seen.Before == nil {
		r.seen["stdout"] = untimed(string(b))
	}
	if b, err := os.ReadFile(filepath.Join(r.path("traces"), r.ID)); err == nil {
		first, _, again := strings.Cut(strings.TrimPrefix(untimed(string(b)), "start\n"), "\nstart")
		r.seen["trace"] = "start\n" + first
		if again && !r.unended() {
			r.seen["trace"] += "\nstart"
		}
		r.seen["trace"] = strings.TrimSuffix(strings.ReplaceAll(r.seen["trace"], "start\nstart", "start"), "\n")
	}
	if r.Seen.Before != nil {
		r.seen["left"] = fmt.Sprintf("%d, then %d", r.left, r.remaining())
	}
	_, _ = r.pool.Run(r.t.Context(), "condor_rm", "-forcex", r.id)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ad is the job's, from the queue or the history.
func (r *run) ad() map[string]string {
	ad := map[string]string{}
	for _, tool := range []string{"condor_q", "condor_history"} {
		args := []string{"-l", r.id}
		if tool == "condor_history" {
			args = append(args, "-limit", "1")
		}
		out, _ := r.pool.Run(r.t.Context(), tool, args...)
		for line := range strings.Lines(out) {
			if name, v, ok := strings.Cut(strings.TrimSpace(line), " = "); ok {
				ad[name] = v
			}
		}
		if len(ad) > 0 {
			break
		}
	}
	return ad
}
