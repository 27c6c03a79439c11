// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// mostArgs is how much of an argument vector is read, in bytes: the words that
// tell what a program does come first, and another user wrote them.
const mostArgs = 512

// Running lists the living processes in the procfs at root that show themselves
// by one of names, of which the kernel keeps 15 bytes, but for this process. Those
// of other users are not there where hidepid hides them.
func Running(root string, names ...string) ([]host.Program, error) {
	t, self := newTable(root), os.Getpid()
	found, err := t.read(func(s Stat) bool { return !s.Dead() && s.PID != self && slices.Contains(names, s.Comm) })
	if err != nil {
		return nil, errs.E("proc.Running", errs.Broken, root, err)
	}
	slices.SortFunc(found, func(a, b Stat) int { return a.PID - b.PID })
	var all []host.Program
	args := make(map[int][]string)
	for _, s := range found {
		args[s.PID] = t.args(s.PID)
	}
	for _, s := range found {
		if above, ok := args[s.Parent]; ok && slices.Equal(above, args[s.PID]) {
			continue // its parent has just forked it to execute another program
		}
		var st unix.Stat_t
		if unix.Stat(filepath.Join(root, strconv.Itoa(s.PID)), &st) != nil {
			continue // it has ended
		}
		all = append(all, host.Program{Proc: s.id(), UID: st.Uid, Name: s.Comm, Args: args[s.PID]})
	}
	return all, nil
}

// args is the beginning of the argument vector of a process, nil if it is not
// shown.
func (t table) args(pid int) []string {
	f, err := os.Open(filepath.Join(t.root, strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return nil
	}
	defer f.Close()
	text := make([]byte, mostArgs)
	n, _ := f.Read(text) // what cannot be read is not shown
	return ParseArgs(text[:n])
}
