// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// Names inside a base directory and a run directory.
const (
	runPrefix  = "run-"       // BASE/run-<N>, one per EP
	lastFile   = "last"       // BASE/last: the highest N given out
	ownerFile  = "owner.json" // RUN/owner.json: which process the run belongs to
	socketFile = "ctl"        // RUN/ctl: the control socket
	logDir     = "log"
	executeDir = "execute"
)

// Dir is the private directory of one EP that runs without a pool.
type Dir struct {
	Base string // shared by all runs of a user, mode 0700
	Path string // Base/run-<Number>
	// Number is unique among all runs below Base, also those that ended; it
	// serves as the cluster number of the run's jobs.
	Number int
}

// Execute returns the default EXECUTE directory.
func (d *Dir) Execute() string { return filepath.Join(d.Path, executeDir) }

// Log returns the default LOG directory.
func (d *Dir) Log() string { return filepath.Join(d.Path, logDir) }

// Socket returns the path of the control socket.
func (d *Dir) Socket() string { return filepath.Join(d.Path, socketFile) }

// Remove deletes the directory with all that is in it.
func (d *Dir) Remove() error { return os.RemoveAll(d.Path) }

// Owner says which process a run directory belongs to.
type Owner struct {
	Proc    host.ProcID `json:"proc"`
	Execute string      `json:"execute"` // where its sandboxes are; may lie outside the directory
	// Elsewhere are the execute directories of single slots (SLOT<N>_EXECUTE).
	Elsewhere []string `json:"elsewhere,omitempty"`
	Keep      bool     `json:"keep"` // what is left was asked for
}

// OpenBase makes sure that base exists and is nobody else's business: a real
// directory, owned by the caller, closed to others. A directory that somebody
// else prepared is refused.
func OpenBase(base string) error {
	const op = "run.OpenBase"
	if err := os.MkdirAll(base, 0o700); err != nil {
		return errs.E(op, errs.Denied, base, err)
	}
	st, err := os.Lstat(base)
	if err != nil {
		return errs.E(op, errs.Broken, base, err)
	}
	if !st.IsDir() {
		return errs.E(op, errs.Denied, base, errors.New("it is not a directory"))
	}
	// Only its owner may change a directory's mode, so success proves the
	// ownership; on systems without modes it changes nothing.
	if err := os.Chmod(base, 0o700); err != nil {
		return errs.E(op, errs.Denied, base, fmt.Errorf("it belongs to another user: %w", err))
	}
	return nil
}

// NewDir gives out the next run directory below base.
func NewDir(base string, owner Owner) (*Dir, error) {
	const op = "run.NewDir"
	if err := OpenBase(base); err != nil {
		return nil, err
	}
	n := 1
	if b, err := os.ReadFile(filepath.Join(base, lastFile)); err == nil {
		if last, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && last > 0 {
			n = last + 1
		}
	}
	for {
		d := &Dir{Base: base, Path: filepath.Join(base, runPrefix+strconv.Itoa(n)), Number: n}
		err := os.Mkdir(d.Path, 0o700)
		if errors.Is(err, fs.ErrExist) {
			n++
			continue
		}
		if err != nil {
			return nil, errs.E(op, errs.KindOf(err), d.Path, err)
		}
		if owner.Execute == "" {
			owner.Execute = d.Execute()
		}
		if err := d.WriteOwner(owner); err != nil {
			return nil, errors.Join(err, d.Remove())
		}
		if err := replaceFile(filepath.Join(base, lastFile), []byte(strconv.Itoa(n)+"\n")); err != nil {
			return nil, errors.Join(errs.E(op, errs.Broken, base, err), d.Remove())
		}
		return d, nil
	}
}

// WriteOwner records whose directory it is.
func (d *Dir) WriteOwner(o Owner) error {
	b, err := json.Marshal(o)
	if err != nil {
		return errs.E("run.WriteOwner", errs.Internal, d.Path, err)
	}
	if err := replaceFile(filepath.Join(d.Path, ownerFile), b); err != nil {
		return errs.E("run.WriteOwner", errs.Broken, d.Path, err)
	}
	return nil
}

// replaceFile writes a file so that a reader sees the old or the new text.
func replaceFile(path string, b []byte) error {
	tmp := path + "." + strconv.Itoa(os.Getpid())
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return os.Rename(tmp, path)
}

// Dirs lists the run directories below base with their owners, in the order of
// their names. A directory without a readable record has a zero Owner. A base
// that does not exist has none.
func Dirs(base string) ([]Dir, []Owner, error) {
	entries, err := os.ReadDir(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, errs.E("run.Dirs", errs.KindOf(err), base, err)
	}
	var dirs []Dir
	var owners []Owner
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), runPrefix)
		n, err := strconv.Atoi(digits)
		if !ok || err != nil || !e.IsDir() {
			continue
		}
		d := Dir{Base: base, Path: filepath.Join(base, e.Name()), Number: n}
		var o Owner
		if b, err := os.ReadFile(filepath.Join(d.Path, ownerFile)); err == nil {
			if json.Unmarshal(b, &o) != nil {
				o = Owner{}
			}
		}
		dirs, owners = append(dirs, d), append(owners, o)
	}
	return dirs, owners, nil
}

// SweepDirs removes what runs below base left behind that ended without
// cleaning up (kill -9, power loss). alive tells whether a process still
// exists; sweep clears one EXECUTE directory of dead starters and their jobs.
// A directory that was kept on purpose stays. It returns what it removed.
func SweepDirs(base string, alive func(host.ProcID) bool, sweep func(execute string) error) ([]string, error) {
	dirs, owners, err := Dirs(base)
	if err != nil {
		return nil, err
	}
	var removed []string
	var problems []error
	for i, d := range dirs {
		o := owners[i]
		if o.Proc.PID == 0 || alive(o.Proc) {
			// A record that is not there yet belongs to a run that is just
			// being set up, or to nobody; either way it is not ours to judge.
			continue
		}
		execute := o.Execute
		if execute == "" {
			execute = d.Execute()
		}
		var failed error
		for _, dir := range append([]string{execute}, o.Elsewhere...) {
			failed = errors.Join(failed, sweep(dir))
		}
		if failed != nil {
			problems = append(problems, failed)
			continue
		}
		if o.Keep {
			continue
		}
		if err := d.Remove(); err != nil {
			problems = append(problems, errs.E("run.SweepDirs", errs.KindOf(err), d.Path, err))
			continue
		}
		removed = append(removed, d.Path)
	}
	return removed, errors.Join(problems...)
}
