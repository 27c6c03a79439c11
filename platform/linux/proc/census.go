// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// KillRemains implements host.Census. Proof is: a recorded process itself, or the
// session of one that lives; membership in the recorded control group, the mark in the
// environment, the group by which the job was tracked, the account that is for such
// jobs alone, descent from any of these; and in the startd, being a child that
// nobody here started.
func (s *Spawner) KillRemains(r host.Remains) (int, error) {
	if r.Boot != s.Boot() {
		return 0, nil // pids and groups of another boot
	}
	deadline := time.Now().Add(killPatience)
	killed := map[host.ProcID]bool{}
	byGroup, torn := 0, 0
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		n, err := s.killGroupOf(r)
		byGroup = max(byGroup, n)
		found, complete, ferr := s.remains(r)
		if ferr != nil {
			return len(killed), errs.E("proc.KillRemains", errs.Broken, r.Parent.String(), ferr)
		}
		for _, st := range found {
			s.table.signal(st.id(), unix.SIGSTOP)
		}
		for _, st := range found {
			if s.table.signal(st.id(), unix.SIGKILL) {
				killed[st.id()] = true
			}
		}
		s.bury(killed)
		if !complete && len(found) == 0 && torn < mostTorn {
			torn++
			continue
		}
		// One that is on its way out shows no environment any more and lives still.
		if n == 0 && len(found) == 0 && err == nil && s.dying(killed) == 0 {
			s.removeGroupOf(r)
			s.buryOrphans()
			return max(len(killed), byGroup), nil
		}
		if time.Now().After(deadline) {
			if err == nil {
				living := map[host.ProcID]bool{}
				for _, st := range found {
					living[st.id()] = true
				}
				for id := range killed {
					if s.table.alive(id) {
						living[id] = true
					}
				}
				err = undying(living)
			}
			return len(killed), errs.E("proc.KillRemains", errs.Transient, r.Parent.String(), err)
		}
		time.Sleep(wait) // they are not our children: nothing tells when they are gone
	}
}

func (s *Spawner) killGroupOf(r host.Remains) (int, error) {
	if r.Group == "" || s.groups == nil {
		return 0, nil
	}
	g, ok := s.groups.Lookup(r.Group)
	if !ok {
		return 0, nil
	}
	return g.Kill()
}

func (s *Spawner) removeGroupOf(r host.Remains) {
	if r.Group == "" || s.groups == nil {
		return
	}
	if g, ok := s.groups.Lookup(r.Group); ok {
		_ = g.Remove() // the next job of the slot tries again
	}
}

// mostTorn bounds how often the processes are read again because a reading was
// not whole. On a machine where others come and go all the time none may be.
const mostTorn = 20

// whole reports whether each process of a reading that is not older than since
// stands in it with its parent. A parent that ended while the processes were
// read, after its child was and before it was itself, hides from whom the child
// descends; the next reading shows whose it has become. Pids begin anew at some
// point, so a parent may well come after its child.
func whole(all []Stat, since uint64) bool {
	there := make(map[int]bool, len(all))
	for _, st := range all {
		there[st.PID] = true
	}
	for _, st := range all {
		if st.Start >= since && st.Parent != 0 && !there[st.Parent] {
			return false
		}
	}
	return true
}

// remains lists what r proves, and whether that may be all.
func (s *Spawner) remains(r host.Remains) ([]Stat, bool, error) {
	all, err := s.table.all()
	if err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	known := make(map[int]bool, len(s.families))
	for pid, f := range s.families {
		known[pid] = !f.ended()
	}
	s.mu.Unlock()
	recorded, sessions := s.recorded(all, r)
	chosen := map[int]Stat{}
	add := func(st Stat) {
		if st.PID != s.self.PID && !known[st.PID] {
			chosen[st.PID] = st
		}
	}
	for _, st := range all {
		switch {
		case recorded[st.id()]:
			add(st)
		case st.Start < r.Parent.Start:
			// older than the starter: it cannot be of its family
		case s.role == Startd && st.Parent == s.self.PID && st.Session != s.self.Session:
			add(st) // its starter is dead, or it would be that one's child
		case sessions[st.Session]:
			add(st)
		case r.Marker != "" && s.table.hasEnv(st.PID, r.Marker):
			add(st)
		case r.TrackGID != 0 && s.table.tracked(st.PID, r.TrackGID):
			add(st)
		case s.others(r.Account) && s.table.of(st.PID, r.Account):
			add(st)
		}
	}
	var found []Stat
	for _, st := range chosen {
		found = append(found, st)
		for _, below := range descendants(all, st.PID) {
			if _, again := chosen[below.PID]; !again && below.PID != s.self.PID {
				found = append(found, below)
			}
		}
	}
	return found, whole(all, r.Parent.Start), nil
}

// others reports whether uid is an account whose processes may be ended because they
// are its own: neither root nor the user of this process.
func (s *Spawner) others(uid uint32) bool {
	return uid != 0 && uid != uint32(os.Getuid()) && uid != uint32(os.Geteuid())
}

// recorded lists those of all that r names and that may be signalled, and the
// sessions they are in. A session is entered by being born into it or by leading it,
// and its number is no other's as long as one process of it lives: so whoever is in
// one session with a process of the family is of the family.
func (s *Spawner) recorded(all []Stat, r host.Remains) (map[host.ProcID]bool, map[int]bool) {
	named := map[host.ProcID]bool{}
	for _, id := range append([]host.ProcID{r.Main}, r.Strays...) {
		if !id.IsZero() {
			named[id] = true
		}
	}
	alive, sessions := map[host.ProcID]bool{}, map[int]bool{}
	for _, st := range all {
		// A program with another user's rights is not ours to end.
		if !named[st.id()] || errors.Is(unix.Kill(st.PID, 0), unix.EPERM) {
			continue
		}
		alive[st.id()] = true
		if st.Session > 1 && st.Session != s.self.Session && st.Session != r.Parent.PID {
			sessions[st.Session] = true
		}
	}
	return alive, sessions
}

// dying counts those of killed that live still.
func (s *Spawner) dying(killed map[host.ProcID]bool) int {
	n := 0
	for id := range killed {
		if s.table.alive(id) {
			n++
		}
	}
	return n
}

// Suspects implements host.Census.
func (s *Spawner) Suspects(r host.Remains, dir string) ([]string, error) {
	if r.Boot != s.Boot() {
		return nil, nil
	}
	all, err := s.table.all()
	if err != nil {
		return nil, errs.E("proc.Suspects", errs.Broken, r.Parent.String(), err)
	}
	// As long as another process has the number, the session is that one's.
	number := r.Main.PID
	if slices.ContainsFunc(all, func(st Stat) bool { return st.PID == number && st.id() != r.Main }) {
		number = 0
	}
	var names []string
	for _, st := range all {
		if st.PID == s.self.PID || st.Start < r.Parent.Start {
			continue
		}
		if cwd := s.table.workDir(st.PID); dir != "" && (cwd == dir || strings.HasPrefix(cwd, dir+"/")) {
			names = append(names, fmt.Sprintf("process %v (%q) works in %q", st.id(), st.Comm, cwd))
		} else if number != 0 && st.Session == number {
			names = append(names, fmt.Sprintf("process %v (%q) is in session %d, which was the job's", st.id(), st.Comm, st.Session))
		}
	}
	return names, nil
}

// bury waits for those of the killed that have become our children.
func (s *Spawner) bury(killed map[host.ProcID]bool) {
	if s.role != Startd {
		return
	}
	for id := range killed {
		_, _ = unix.Wait4(id.PID, nil, unix.WNOHANG, nil)
	}
}

// buryOrphans waits for the dead among the children that nobody here started:
// they came from starters that are gone, and had ended before they could be
// killed.
func (s *Spawner) buryOrphans() {
	if s.role != Startd {
		return
	}
	dead, err := s.table.zombies(s.self.PID)
	if err != nil {
		return // they are seen the next time
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range dead {
		if s.families[st.PID] == nil && st.Session != s.self.Session {
			_, _ = unix.Wait4(st.PID, nil, unix.WNOHANG, nil)
		}
	}
}
