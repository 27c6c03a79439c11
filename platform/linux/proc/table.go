// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/host"
)

// table reads a mounted procfs.
type table struct {
	root string
	// boot is what the time namespace of this process adds to the time since
	// boot, in clock ticks.
	boot int64
}

// newTable reads the procfs at root. The kernel shows when a process began by the
// clock of the time namespace of whoever asks. A daemon that starts again in
// another one, in a container that was moved or made anew, would not know what the
// earlier one left by the times that it wrote down: so they are told by the clock
// of the machine itself.
func newTable(root string) table {
	text, err := os.ReadFile(filepath.Join(root, "self/timens_offsets"))
	if err != nil {
		return table{root: root} // the kernel has no time namespaces
	}
	return table{root: root, boot: bootOffset(text)}
}

// stat reads one process. A process that is not there is fs.ErrNotExist.
func (t table) stat(pid int) (Stat, error) {
	var buf [1024]byte
	fd, err := unix.Open(t.root+"/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Stat{}, gone(err)
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf[:])
	if err != nil {
		return Stat{}, gone(err)
	}
	s, err := ParseStat(buf[:n])
	s.Start -= uint64(t.boot)
	return s, err
}

func gone(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return fs.ErrNotExist
	}
	return err
}

func (s Stat) id() host.ProcID { return host.ProcID{PID: s.PID, Start: s.Start} }

// below lists everything that descends from pid, pid itself not included, dead
// ones left out. It is a picture of a moving thing: a process may have ended
// or forked meanwhile.
func (t table) below(pid int) ([]Stat, error) {
	direct, err := t.children(pid)
	if errors.Is(err, errNoChildrenFile) {
		return t.belowByScan(pid)
	}
	if err != nil {
		return nil, err
	}
	var all []Stat
	seen := map[int]bool{pid: true}
	for queue := direct; len(queue) > 0; queue = queue[1:] {
		if seen[queue[0]] {
			continue
		}
		seen[queue[0]] = true
		s, err := t.stat(queue[0])
		if err != nil || s.Dead() {
			continue // ended meanwhile; its children have come to a subreaper
		}
		all = append(all, s)
		more, err := t.children(s.PID)
		if err != nil {
			continue
		}
		queue = append(queue, more...)
	}
	return all, nil
}

var errNoChildrenFile = errors.New("the kernel keeps no lists of children")

// children lists the children of all threads of pid.
func (t table) children(pid int) ([]int, error) {
	task := t.root + "/" + strconv.Itoa(pid) + "/task"
	tids, err := namesIn(task)
	if err != nil {
		return nil, err
	}
	var kids []int
	var buf [512]byte
	for _, tid := range tids {
		text, err := readOf(buf[:], task+"/"+tid+"/children")
		if errors.Is(err, fs.ErrNotExist) {
			if _, serr := os.Stat(filepath.Join(task, tid, "stat")); serr == nil {
				return nil, errNoChildrenFile
			}
			continue // the thread ended
		}
		if err != nil {
			continue
		}
		for word := range strings.FieldsSeq(string(text)) {
			if kid, err := strconv.Atoi(word); err == nil {
				kids = append(kids, kid)
			}
		}
	}
	return kids, nil
}

// namesIn lists a directory of the kernel's. os.Open would ask first whether the
// descriptor can be waited for, with more system calls than the reading takes, and
// keep a buffer of 8 KiB.
func namesIn(path string) ([]string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, gone(err)
	}
	defer unix.Close(fd)
	var names []string
	var room [1024]byte
	for {
		n, err := unix.Getdents(fd, room[:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, gone(err)
		case n <= 0:
			return names, nil
		}
		_, _, names = unix.ParseDirent(room[:n], -1, names)
	}
}

// readOf reads a file of the kernel's, into room where it suffices. A starter reads
// one for each of its threads at each look at its job, and a third of the system
// calls suffices that os.ReadFile makes.
func readOf(room []byte, path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	text := room[:0]
	for {
		if len(text) == cap(text) {
			text = append(text, 0)[:len(text)]
		}
		n, err := unix.Read(fd, text[len(text):cap(text)])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, gone(err)
		case n == 0:
			return text, nil
		}
		text = text[:len(text)+n]
	}
}

// all reads every process of the machine that can be seen and lives.
func (t table) all() ([]Stat, error) {
	return t.read(func(s Stat) bool { return !s.Dead() })
}

// zombies reads the children of pid that have ended.
func (t table) zombies(pid int) ([]Stat, error) {
	return t.read(func(s Stat) bool { return s.Parent == pid && s.Dead() })
}

func (t table) read(wanted func(Stat) bool) ([]Stat, error) {
	dir, err := os.Open(t.root)
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	dir.Close()
	if err != nil {
		return nil, err
	}
	stats := make([]Stat, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, err := t.stat(pid); err == nil && wanted(s) {
			stats = append(stats, s)
		}
	}
	return stats, nil
}

func (t table) belowByScan(pid int) ([]Stat, error) {
	stats, err := t.all()
	if err != nil {
		return nil, err
	}
	return descendants(stats, pid), nil
}

// descendants picks from stats what descends from pid.
func descendants(stats []Stat, pid int) []Stat {
	kids := map[int][]Stat{}
	for _, s := range stats {
		kids[s.Parent] = append(kids[s.Parent], s)
	}
	var found []Stat
	seen := map[int]bool{pid: true}
	for queue := kids[pid]; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		if seen[s.PID] {
			continue
		}
		seen[s.PID] = true
		found = append(found, s)
		queue = append(queue, kids[s.PID]...)
	}
	return found
}

// alive reports whether p is a running process.
func (t table) alive(p host.ProcID) bool {
	s, err := t.stat(p.PID)
	return err == nil && s.Start == p.Start && !s.Dead()
}

// hasEnv reports whether a process was started with entry in its environment.
// One that cannot be read has not.
func (t table) hasEnv(pid int, entry string) bool {
	text, err := os.ReadFile(filepath.Join(t.root, strconv.Itoa(pid), "environ"))
	return err == nil && HasEnv(text, entry)
}

// workDir is where a process works, "" if that cannot be seen. Of a directory that
// was removed it is what the path was.
func (t table) workDir(pid int) string {
	dir, err := os.Readlink(filepath.Join(t.root, strconv.Itoa(pid), "cwd"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(dir, " (deleted)")
}

// signal sends sig to p if p is still that process. The pid is pinned before
// the start time is compared, so that it cannot change hands in between. It
// reports whether the signal was sent.
func (t table) signal(p host.ProcID, sig unix.Signal) bool {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ENOSYS) { // before 5.3: as near as one can get
		return t.alive(p) && unix.Kill(p.PID, sig) == nil
	}
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	s, err := t.stat(p.PID)
	if err != nil || s.Start != p.Start || s.Dead() {
		return false
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0) == nil
}
