// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package golden

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// record is one job as HTCondor ran it.
type record struct {
	ID, Group, Desc, Config, User, Job string
	Actions, Events                    []string
	Seen                               struct {
		Probe    *probed
		Cgroups  map[string]map[string]any
		Stdout   *string
		Trace    []string
		Returned [][]any `json:"returned_files"`
		Before   []any   `json:"left_before"`
		NoEnd    any     `json:"_no_end"`
	}
	Final map[string]any `json:"final_job"`
}

// probed is what probe.py of the recording saw.
type probed struct {
	IDs struct {
		Resuid, Resgid, Groups []int
	}
	Umask   string
	Rlimits map[string][2]int64
	Nice    int
	Cwd     string
	Argv    []string
	Env     map[string]string
	Fds     map[string]struct{ Target string }
	Status  map[string]string
	Score   string `json:"oom_score_adj"`
	Cgroup  []string
	Scratch [][]any
	Dirs    map[string][]any
	If      []string
	Mounts  []struct{ Root, On, Type string } `json:"mounts_added"`
	Session map[string]any
	Private []string `json:"ns_private"`
}

// facts are what is compared, by name.
type facts map[string]string

func records(t *testing.T) []record {
	t.Helper()
	f, err := os.Open("testdata/starter.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var all []record
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("line %d: %v", len(all)+1, err)
		}
		all = append(all, r)
	}
	if err := lines.Err(); err != nil || len(all) != 126 {
		t.Fatalf("%d records, %v", len(all), err)
	}
	return all
}

// unsaid are events that come by the clock.
const unsaid = "006"

var (
	eviction = regexp.MustCompile(`Job was evicted\. (Code \d+ Subcode \d+)`)
	stamp    = regexp.MustCompile(`(?m)^\d+\.\d `)
	gap      = regexp.MustCompile(`gap \d+`)
	dirPID   = regexp.MustCompile(`dir_\d+`)
	dSlot    = regexp.MustCompile(`slot1_\d+`)
	mountOf  = regexp.MustCompile(`^.*(/execute/dir_)`)
)

// told are the facts of the events of a log.
func told(f facts, events []string) {
	var codes, evictions []string
	for _, e := range events {
		if code := e[:3]; code != unsaid {
			codes = append(codes, code)
		}
		if m := eviction.FindStringSubmatch(e); m != nil {
			evictions = append(evictions, m[1])
		}
	}
	// The shadow tells of the end of the input's transfer when it has waited for the
	// process that did it: before or after the job runs.
	f["events"], f["evicted"] = strings.Replace(strings.Join(codes, " "), "000 040 001 040 ", "000 040 040 001 ", 1), strings.Join(evictions, ", ")
}

// finals are the attributes of the job's last ad that say how it ended.
var finals = []string{"JobStatus", "ExitBySignal", "ExitCode", "ExitSignal", "HoldReasonCode", "HoldReasonSubCode", "HoldReason", "MemoryProvisioned"}

// aside are files of the test, and what is said elsewhere.
var aside = []string{"ready", "release", "job.sub", "log"}

// unseen are variables that are the installation's.
var unseen = regexp.MustCompile(`^(_CONDOR_ANCESTOR_.*|LC_CTYPE|_CONDOR_BIN|_CONDOR_LOWPORT|_CONDOR_HIGHPORT|CONDOR_STARTER_PID|TRACE)$`)

// facts are those of the recording.
func (r *record) facts() facts {
	f := facts{}
	told(f, r.Events)
	if len(r.Final) > 0 {
		for _, name := range finals {
			if v, ok := r.Final[name]; ok && (name != "JobStatus" || !r.unended()) {
				f[name] = fmt.Sprint(v)
			}
		}
	}
	var back []string
	for _, one := range r.Seen.Returned {
		if name := one[0].(string); !slices.Contains(aside, name) {
			back = append(back, core(name)+" "+one[1].(string)[1:])
		}
	}
	slices.Sort(back)
	f["returned"] = strings.Join(back, ", ")
	if r.Seen.Stdout != nil && r.Seen.Probe == nil && r.Seen.Before == nil {
		f["stdout"] = untimed(*r.Seen.Stdout)
	}
	if r.Seen.Trace != nil {
		f["trace"] = untimed(strings.Join(r.Seen.Trace, "\n"))
	}
	if r.Seen.Before != nil {
		f["left"] = fmt.Sprintf("%d, then 0", len(r.Seen.Before))
	}
	if r.Seen.Probe != nil {
		r.Seen.Probe.facts(f)
		r.groups(f)
	}
	return f
}

// unended says that the record stops at an eviction.
func (r *record) unended() bool {
	return len(r.Events) > 0 && !slices.Contains([]string{"005", "009", "012"}, r.Events[len(r.Events)-1][:3])
}

// counted is how many events were recorded, without those that come by the clock.
func (r *record) counted() int {
	n := 0
	for _, e := range r.Events {
		if e[:3] != unsaid {
			n++
		}
	}
	return n
}

// core is the name of a file without the job's number in it.
func core(name string) string {
	if strings.HasPrefix(name, "core.") {
		return "core"
	}
	return name
}

func untimed(s string) string {
	return strings.TrimSpace(gap.ReplaceAllString(stamp.ReplaceAllString(s, ""), "gap"))
}

// groups are what the files of the job's control groups say.
func (r *record) groups(f facts) {
	for path, files := range r.Seen.Cgroups {
		if !strings.Contains(path, "_execute_slot") {
			continue
		}
		controller, _, _ := strings.Cut(path, "/")
		if controller == "memory" {
			dir := files["_dir"].([]any)
			f["cgroup._dir"] = fmt.Sprintf("%s %s %s", dir[0].(string)[1:], who(dir[1]), who(dir[2]))
		}
		for _, name := range []string{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.soft_limit_in_bytes", "cpu.shares"} {
			if v, ok := files[name]; ok {
				f["cgroup."+name] = fmt.Sprint(v)
			}
		}
	}
}

// distinct are groups in order, each once.
func distinct(groups []int) string {
	slices.Sort(groups)
	return fmt.Sprint(slices.Compact(groups))
}

// who is a number of a user or group. HTCondor's daemons had an account of their own,
// where ours are root.
func who(v any) string {
	if n := fmt.Sprint(v); n != "999" && n != "995" {
		return n
	}
	return "0"
}

func (p *probed) facts(f facts) {
	f["uid"], f["gid"], f["groups"] = fmt.Sprint(p.IDs.Resuid), fmt.Sprint(p.IDs.Resgid), distinct(append(p.IDs.Groups, p.IDs.Resgid[0]))
	f["umask"], f["nice"], f["cwd"], f["oom_score_adj"] = p.Umask, strconv.Itoa(p.Nice), p.Cwd, strings.TrimSpace(p.Score)
	for name := range map[string]bool{"AS": true, "CORE": true, "STACK": true, "CPU": true, "FSIZE": true, "DATA": true, "RSS": true} {
		f["limit."+name] = fmt.Sprint(p.Rlimits["RLIMIT_"+name])
	}
	for name, v := range p.Env {
		if !unseen.MatchString(name) {
			f["env."+name] = v
		}
	}
	for _, name := range []string{"SigBlk", "SigIgn", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Cpus_allowed_list"} {
		f["status."+name] = p.Status[name]
	}
	for fd, to := range p.Fds {
		f["fd."+fd] = to.Target
	}
	for _, line := range p.Cgroup {
		if path, ok := strings.CutPrefix(line, "memory:"); ok {
			f["cgroup"] = path
		}
	}
	for _, one := range p.Scratch {
		if name := strings.TrimPrefix(one[0].(string), "./"); !strings.HasPrefix(name, "../") && name != "probe.py" && !slices.Contains(aside, name) {
			f["file."+name] = fmt.Sprintf("%s %s %s", one[1].(string)[1:], who(one[2]), who(one[3]))
		}
	}
	for path, one := range p.Dirs {
		if path != "/proc/1" {
			f["dir."+path] = fmt.Sprintf("%s %s %s", one[1].(string)[1:], who(one[2]), who(one[3]))
		}
	}
	var mounts []string
	for _, m := range p.Mounts {
		mounts = append(mounts, m.On+" "+m.Type+" of "+m.Root)
	}
	slices.Sort(mounts)
	f["mounts"] = strings.Join(mounts, ", ")
	f["namespaces"] = strings.Join(p.Private, " ")
	f["session"] = fmt.Sprintf("leader %v, of its group %v, parent is 1 %v, is 1 %v", p.Session["is_session_leader"], p.Session["is_group_leader"], p.Session["ppid_is_1"], p.Session["pid_is_1"])
	f["if"] = "lo"
	if len(p.If) > 1 {
		f["if"] = "those of the host"
	}
}
