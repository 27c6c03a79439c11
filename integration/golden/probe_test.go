// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package golden

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// probe is what our probe.py saw.
type probe struct {
	PID, PPID             int
	Groups                []int
	Umask                 string
	Limits                map[string][2]int64
	Nice                  int
	Cwd                   string
	Env                   []string
	Status, Mounts        string
	Cgroup, OOM_score_adj string
	Session               map[string]bool
	NS, Fds               map[string]string
	Scratch, If           []string
	Dirs                  map[string]string
}

// group is the job's in the hierarchy of a controller.
func (p *probe) group(controller string) string {
	for line := range strings.Lines(p.Cgroup) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 && slices.Contains(strings.Split(f[1], ","), controller) {
			return f[2]
		}
	}
	return ""
}

// status is a line of /proc/self/status.
func (p *probe) status(name string) string {
	for line := range strings.Lines(p.Status) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return "absent"
}

// plain puts the recording's placeholders for what is here.
func (r *run) plain(s string) string {
	s = strings.NewReplacer(r.path("sub"), "${DIR}/sub", r.path("tools"), "${TOOLS}", r.ep.Dir, "${DIR}", strings.ReplaceAll(r.ep.Dir, "/", "_"), "${DIR_}",
		r.ep.Name+"@"+r.host, "node1.example.org").Replace(s)
	return dSlot.ReplaceAllString(dirPID.ReplaceAllString(s, "dir_$${PID}"), "slot1_1")
}

// number is a number of a user or group as it was recorded.
func (r *run) number(n string) string {
	if n == r.owner.Uid || n == r.owner.Gid {
		return "1001"
	}
	return n
}

// owned is mode and owners of a file.
func (r *run) owned(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return err.Error()
	}
	st := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%s %s %s", info.Mode().Perm().String()[1:], r.number(fmt.Sprint(st.Uid)), r.number(fmt.Sprint(st.Gid)))
}

// said is what the probe says of a file: name, then mode and owners.
func (r *run) said(s string) (name, what string) {
	f := strings.Fields(s)
	if len(f) != 4 {
		return s, s
	}
	var mode uint32
	_, _ = fmt.Sscanf(f[1], "%o", &mode)
	text := os.FileMode(mode & 0o777).String()[1:]
	if mode&0o1000 != 0 {
		text = text[:8] + "t"
	}
	return f[0], fmt.Sprintf("%s %s %s", text, r.number(f[2]), r.number(f[3]))
}

func (p *probe) facts(r *run) {
	f := r.seen
	ids := func(name string) string {
		all := strings.Fields(p.status(name))
		for i := range all {
			all[i] = r.number(all[i])
		}
		return fmt.Sprint(all[:min(3, len(all))])
	}
	groups := []int{}
	for _, g := range append(strings.Fields(p.status("Groups")), strings.Fields(p.status("Gid"))[0]) {
		n, _ := strconv.Atoi(r.number(g))
		groups = append(groups, n)
	}
	f["uid"], f["gid"], f["groups"] = ids("Uid"), ids("Gid"), distinct(groups)
	f["umask"], f["nice"], f["cwd"], f["oom_score_adj"] = p.Umask, r.niceness(p.Nice), r.plain(p.Cwd), p.OOM_score_adj
	for name, l := range p.Limits {
		f["limit."+name] = fmt.Sprint(l)
	}
	for _, one := range p.Env {
		if name, v, _ := strings.Cut(one, "="); !unseen.MatchString(name) {
			f["env."+name] = r.plain(v)
		}
	}
	for _, name := range []string{"SigBlk", "SigIgn", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Cpus_allowed_list"} {
		f["status."+name] = p.status(name)
	}
	for fd, to := range p.Fds {
		f["fd."+fd] = r.plain(to)
	}
	if strings.Contains(p.group("memory"), "_execute_slot") {
		f["cgroup"] = r.plain(p.group("memory"))
	}
	for _, one := range p.Scratch {
		if name, what := r.said(one); name != "probe.py" && !slices.Contains(aside, name) {
			f["file."+name] = what
		}
	}
	for path, one := range p.Dirs {
		_, f["dir."+path] = r.said(one)
	}
	r.apart(p)
	f["if"] = strings.Join(p.If, " ")
	if all, err := net.Interfaces(); err == nil && len(all) == len(p.If) && !strings.Contains(f["namespaces"], "net") {
		f["if"] = "those of the host"
	}
	f["session"] = fmt.Sprintf("leader %v, of its group %v, parent is 1 %v, is 1 %v", p.Session["is_session_leader"], p.Session["is_group_leader"], p.PPID == 1, p.PID == 1)
}

// apart notes the mounts and namespaces that are the job's own.
func (r *run) apart(p *probe) {
	dir := fmt.Sprintf("/proc/%d", r.ep.PID())
	b, _ := os.ReadFile(filepath.Join(dir, "mountinfo"))
	there := map[string]int{}
	for _, m := range r.mounts(string(b)) {
		there[m]++
	}
	var added, own []string
	for _, m := range r.mounts(p.Mounts) {
		if there[m]--; there[m] < 0 {
			added = append(added, m)
		}
	}
	slices.Sort(added)
	r.seen["mounts"] = strings.Join(added, ", ")
	for _, name := range slices.Sorted(maps.Keys(p.NS)) {
		if link, err := os.Readlink(filepath.Join(dir, "ns", name)); err != nil || link != p.NS[name] {
			own = append(own, name)
		}
	}
	r.seen["namespaces"] = strings.Join(own, " ")
}

// mounts are those of a mountinfo, as they are recorded.
func (r *run) mounts(info string) []string {
	var all []string
	for line := range strings.Lines(info) {
		f := strings.Fields(line)
		_, kind, _ := strings.Cut(line, " - ")
		if len(f) < 6 || kind == "" {
			continue
		}
		all = append(all, r.plain(f[4])+" "+strings.Fields(kind)[0]+" of "+dirPID.ReplaceAllString(mountOf.ReplaceAllString(f[3], "$${DIR}$1"), "dir_$${PID}"))
	}
	return all
}

// niceness is a job's, beside that of the test, which may be run with a low priority.
func (r *run) niceness(n int) string {
	own, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	r.must(err)
	if own = 20 - own; own > 0 {
		return "-"
	}
	return strconv.Itoa(n)
}
