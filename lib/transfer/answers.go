// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"io/fs"
	"os"
	"sync"
)

// Answers remembers what programs have said of themselves (-classad), as long as
// this process lives. A program whose file is still the same, by place, size and
// time, is not run again to say it. A program that was of no use is always asked
// again: what it lacks, an interpreter or a library, is not in its own file.
//
// Nothing is kept on disk. Whoever could write such a file would decide which jobs
// come to this machine.
//
// The zero value remembers nothing yet. All methods may be called by several
// goroutines at a time. The programs are asked with one environment and with the
// rights of one user.
type Answers struct {
	mu   sync.Mutex
	said map[string]answered // by path
}

// answered is what the program of a file has said.
type answered struct {
	file fs.FileInfo // as it was before the program ran
	one  Plugin
}

// Said returns what these programs said last, without asking any of them; a file
// that was changed since counts with its last answer, until there is another.
func (a *Answers) Said(programs []string) []Plugin {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []Plugin
	for _, path := range programs {
		if x, ok := a.said[path]; ok {
			all = append(all, x.one)
		}
	}
	return all
}

// ask returns what a program has said, and has it asked unless its file is the one
// that said so. A nil Answers always asks.
func (a *Answers) ask(ctx context.Context, path string, query func() (Plugin, error)) (Plugin, error) {
	if a == nil {
		return query()
	}
	before, err := os.Stat(path)
	if err == nil {
		a.mu.Lock()
		x, ok := a.said[path]
		a.mu.Unlock()
		if ok && sameFile(x.file, before) {
			return x.one, nil
		}
	}
	one, qerr := query()
	if qerr != nil && ctx.Err() != nil {
		return one, qerr // it was not let finish
	}
	after, err2 := os.Stat(path)
	a.mu.Lock()
	defer a.mu.Unlock()
	if qerr != nil || err != nil || err2 != nil || !sameFile(before, after) {
		delete(a.said, path)
		return one, qerr
	}
	if a.said == nil {
		a.said = make(map[string]answered)
	}
	a.said[path] = answered{before, one}
	return one, nil
}

// sameFile reports whether nobody has replaced or written a file meanwhile.
func sameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
