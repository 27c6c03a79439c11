// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// KillUser ends every process of a user, whoever started it and whatever it is
// called, until none is left, and returns how many there were. It is for
// accounts that are for jobs alone; root and the user of this process are
// Denied.
func (s *Spawner) KillUser(uid uint32) (int, error) {
	const op = "proc.KillUser"
	who := strconv.FormatUint(uint64(uid), 10)
	if !s.others(uid) {
		return 0, errs.E(op, errs.Denied, who, errors.New("not the processes of root, nor our own"))
	}
	deadline := time.Now().Add(killPatience)
	killed := map[host.ProcID]bool{}
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		all, err := s.table.all()
		if err != nil {
			return len(killed), errs.E(op, errs.Broken, who, err)
		}
		left := map[host.ProcID]bool{}
		// Those that stand still start no others.
		for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
			for _, st := range all {
				if st.PID == s.self.PID || !s.table.of(st.PID, uid) {
					continue
				}
				if s.table.signal(st.id(), sig) && sig == unix.SIGKILL {
					killed[st.id()] = true
					left[st.id()] = true
				}
			}
		}
		if len(left) == 0 {
			return len(killed), nil
		}
		if time.Now().After(deadline) {
			return len(killed), errs.E(op, errs.Transient, who, undying(left))
		}
		time.Sleep(wait) // they are not our children: nothing tells when they are gone
	}
}

// of reports whether a process is of a user: by its real, effective or saved
// number.
func (t table) of(pid int, uid uint32) bool {
	text, err := os.ReadFile(filepath.Join(t.root, strconv.Itoa(pid), "status"))
	return err == nil && hasUser(text, uid)
}

// hasUser looks for a user in the text of /proc/PID/status. The last of its numbers
// is for files.
func hasUser(text []byte, uid uint32) bool {
	ids := statusIDs(text, "Uid")
	return slices.Contains(ids[:min(len(ids), 3)], uid)
}

// tracked reports whether a process has a supplementary group.
func (t table) tracked(pid int, gid uint32) bool {
	text, err := os.ReadFile(filepath.Join(t.root, strconv.Itoa(pid), "status"))
	return err == nil && slices.Contains(statusIDs(text, "Groups"), gid)
}

// statusIDs are the numbers of a line of /proc/PID/status. The program's name, which
// anybody can choose, stands in the first line and has no line break there.
func statusIDs(text []byte, field string) []uint32 {
	_, rest, ok := bytes.Cut(text, []byte("\n"+field+":"))
	if !ok {
		return nil
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	var ids []uint32
	for word := range bytes.FieldsSeq(line) {
		if n, err := strconv.ParseUint(string(word), 10, 32); err == nil {
			ids = append(ids, uint32(n))
		}
	}
	return ids
}
