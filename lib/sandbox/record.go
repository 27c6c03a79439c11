// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

const (
	recordFile = "starter.record" // one JSON Record a line; the last whole one counts
	exitFile   = "exit.record"    // the starter's exit record, whatever it is
	maxRecord  = 1 << 20

	unheardFile = "unheard.reports" // what no startd has heard of a starter that has ended
	maxUnheard  = 16 << 20

	// DoorFile is the socket in the starter's own directory by which a later startd
	// reaches it.
	DoorFile = "starter.socket"
)

// Record is what is needed to know an activation again after its starter or
// its startd has gone: who it is, and what proves a process to be of it.
type Record struct {
	Version    int         `json:"version"` // 1
	Activation string      `json:"activation"`
	Slot       string      `json:"slot"`
	Boot       string      `json:"boot"`
	Starter    host.ProcID `json:"starter"`
	Job        host.ProcID `json:"job,omitzero"` // the main process; zero before it runs
	Group      string      `json:"group,omitempty"`
	Marker     string      `json:"marker,omitempty"`
	TrackGID   uint32      `json:"track_gid,omitempty"`
	Account    uint32      `json:"account,omitempty"` // an account for jobs alone
	Keep       bool        `json:"keep,omitempty"`    // the directory is to stay
	Volume     string      `json:"volume,omitempty"`  // the name of the scratch directory's own file system
	// Strays are processes of the job that do not carry Marker: see host.Remains.
	Strays []host.ProcID `json:"strays,omitempty"`
}

// mostStrays bounds a record. A job with more of them that outlive their starter
// leaves some.
const mostStrays = 4096

// Remains is what r proves, in the words of lib/host.
func (r Record) Remains() host.Remains {
	return host.Remains{Boot: r.Boot, Parent: r.Starter, Main: r.Job, Group: r.Group, Marker: r.Marker, TrackGID: r.TrackGID, Account: r.Account, Strays: r.Strays}
}

// Record adds r to the sandbox's record, where it replaces what was said
// before.
func (s *Sandbox) Record(r Record) error {
	const op = "sandbox.Record"
	r.Version = 1
	r.Strays = r.Strays[:min(len(r.Strays), mostStrays)]
	line, err := json.Marshal(r)
	if err != nil {
		return errs.E(op, errs.Internal, s.dir, err)
	}
	if s.recorded += len(line) + 1; s.recorded > maxRecord/2 { // begin anew, whole or not at all
		if s.ledger != nil {
			s.ledger.Close()
			s.ledger = nil
		}
		s.recorded = len(line) + 1
		if err := s.own.WriteFile(recordFile+".new", append(line, '\n'), 0o644); err != nil {
			return errs.E(op, kindOf(err), s.dir, err)
		}
		if err := s.own.Rename(recordFile+".new", recordFile); err != nil {
			return errs.E(op, kindOf(err), s.dir, err)
		}
		return nil
	}
	if s.ledger == nil {
		if s.ledger, err = s.own.OpenFile(recordFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644); err != nil {
			return errs.E(op, kindOf(err), s.dir, err)
		}
	}
	if _, err := s.ledger.Write(append(line, '\n')); err != nil {
		return errs.E(op, kindOf(err), s.dir, err)
	}
	return nil
}

// WriteExit writes the starter's exit record as JSON: whole or not at all.
func (s *Sandbox) WriteExit(record any) error {
	const op = "sandbox.WriteExit"
	text, err := json.Marshal(record)
	if err != nil {
		return errs.E(op, errs.Internal, s.dir, err)
	}
	return s.writeWhole(op, exitFile, append(text, '\n'), 0o644)
}

// WriteUnheard writes what no startd has heard, whole or not at all, for who may read
// what the starter says alone.
func (s *Sandbox) WriteUnheard(lines []byte) error {
	const op = "sandbox.WriteUnheard"
	if len(lines) > maxUnheard {
		return errs.E(op, errs.Invalid, s.dir, errors.New("it is too long"))
	}
	return s.writeWhole(op, unheardFile, lines, 0o600)
}

// writeWhole puts a file in the starter's own directory in place of what is there.
func (s *Sandbox) writeWhole(op, name string, text []byte, mode fs.FileMode) error {
	err := s.own.WriteFile(name+".new", text, mode)
	if err == nil {
		err = s.own.Rename(name+".new", name)
	}
	if err != nil {
		return errs.E(op, kindOf(err), s.dir, err)
	}
	return nil
}

// OpenOwn opens the starter's own directory, for what only the system can make there.
// The caller closes it.
func (s *Sandbox) OpenOwn() (*os.File, error) {
	f, err := s.own.Open(".")
	if err != nil {
		return nil, errs.E("sandbox.OpenOwn", kindOf(err), s.dir, err)
	}
	return f, nil
}

// Left is what a starter left or leaves for a later startd.
type Left struct {
	Record  Record
	Own     *os.File // the starter's own directory, for the caller to close
	Unheard []byte   // nil while it lives, and if all was heard
}

// Open reads the record of the sandbox at dir, which is EXECUTE/dir_<pid>. It is Denied
// if another user could have written it, and NotFound if there is none.
func Open(dir string, private Private) (Left, error) {
	const op = "sandbox.Open"
	execute, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return Left{}, errs.E(op, kindOf(err), dir, err)
	}
	defer execute.Close()
	own, record, err := openRecord(execute, filepath.Base(dir), private)
	if err != nil {
		return Left{}, errs.E(op, errs.Other, dir, err)
	}
	defer own.Close()
	left := Left{Record: record}
	if left.Own, err = own.Open("."); err != nil {
		return Left{}, errs.E(op, kindOf(err), dir, err)
	}
	if left.Unheard, err = readLimited(own, unheardFile, maxUnheard); err != nil && !errors.Is(err, fs.ErrNotExist) {
		left.Own.Close()
		return Left{}, errs.E(op, kindOf(err), dir, err)
	}
	return left, nil
}

// ParseRecord reads the text of a record file: the last whole line. A text
// without one is NotFound, a line that is no record is Broken.
func ParseRecord(text []byte) (Record, error) {
	const op = "sandbox.ParseRecord"
	end := bytes.LastIndexByte(text, '\n')
	if end < 0 {
		return Record{}, errs.E(op, errs.NotFound, "", errors.New("no whole line"))
	}
	line := text[:end]
	if i := bytes.LastIndexByte(line, '\n'); i >= 0 {
		line = line[i+1:]
	}
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return Record{}, errs.E(op, errs.Broken, "", err)
	}
	if r.Version != 1 {
		return Record{}, errs.E(op, errs.Unsupported, "", fmt.Errorf("version %d of the record is not known here", r.Version))
	}
	if r.Starter.PID <= 0 {
		return Record{}, errs.E(op, errs.Broken, "", errors.New("the record names no starter"))
	}
	return r, nil
}

// readLimited reads a file below root, but no more than most bytes.
func readLimited(root *os.Root, name string, most int64) ([]byte, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // to open a pipe is to wait for who writes to it
		return nil, fmt.Errorf("%s is no record", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err = f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("%s is no record", name)
	}
	var b bytes.Buffer
	_, err = b.ReadFrom(f)
	return b.Bytes(), err
}
