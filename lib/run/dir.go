// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// Names inside a base directory and the directories of a run.
const (
	runPrefix  = "run-"              // BASE/run-<N>, one per EP
	filesName  = "execpoint-run-%d-" // among the temporary files, with something random behind it
	lastFile   = "last"              // BASE/last: the highest N given out
	ownerFile  = "owner.json"        // RUN/owner.json: which process the run belongs to
	socketFile = "ctl"               // RUN/ctl: the control socket
	logDir     = "log"               // below the run's files
	executeDir = "execute"

	mostRecord = 1 << 20 // bytes of owner.json that are read
)

// Dir are the private directories of one EP that runs without a pool: a small
// one that lives as long as the machine is up, where others find the run, and
// one for everything that may grow.
type Dir struct {
	Base string // shared by all runs of a user, mode 0700
	Path string // Base/run-<Number>: the record and the control socket
	// Files is the run's directory among the temporary files, whose name nobody
	// can know before: logs, sandboxes and whatever LOCAL_DIR stands for.
	Files string
	// Number is unique among all runs below Base, also those that ended; it
	// serves as the cluster number of the run's jobs.
	Number int
}

// Execute returns the default EXECUTE directory.
func (d *Dir) Execute() string { return filepath.Join(d.Files, executeDir) }

// Log returns the default LOG directory.
func (d *Dir) Log() string { return filepath.Join(d.Files, logDir) }

// Socket returns the path of the control socket.
func (d *Dir) Socket() string { return filepath.Join(d.Path, socketFile) }

// Remove deletes both directories with all that is in them.
func (d *Dir) Remove() error {
	var err error
	if d.Files != "" {
		err = os.RemoveAll(d.Files)
	}
	return errors.Join(err, os.RemoveAll(d.Path))
}

// Owner says which process a run directory belongs to.
type Owner struct {
	Proc    host.ProcID `json:"proc"`
	Files   string      `json:"files"`   // Dir.Files
	Execute string      `json:"execute"` // where its sandboxes are; may lie outside the directory
	// Elsewhere are the execute directories of single slots (SLOT<N>_EXECUTE).
	Elsewhere []string `json:"elsewhere,omitempty"`
	Keep      bool     `json:"keep"` // what is left was asked for
}

// openBase opens the directory of the records. One that another user prepared,
// or could have written in, is refused.
func openBase(dirs host.PrivateDirs, base string) (*os.Root, error) {
	root, err := dirs.OpenPrivate(base)
	if errs.Is(err, errs.Denied) {
		err = fmt.Errorf("the records of runs are not kept here: %w; remove it, or name another directory in %s", err, BaseVariable)
	}
	if err != nil {
		return nil, errs.E("run.openBase", errs.KindOf(err), base, err)
	}
	return root, nil
}

// BaseVariable is the environment variable that names the directory of the
// records of runs.
const BaseVariable = "EXECPOINT_RUNTIME_DIR"

// NewDir gives out the next run directory below base, which is made if it is
// not there, and a directory for the run's files below temp.
func NewDir(dirs host.PrivateDirs, base, temp string, owner Owner) (*Dir, error) {
	const op = "run.NewDir"
	if err := os.MkdirAll(base, 0o700); err != nil {
		if filepath.Dir(base) == filepath.Clean(temp) {
			return nil, noTemp(temp, err)
		}
		return nil, errs.E(op, errs.Denied, base, fmt.Errorf("the records of runs cannot be kept here: %w; name another directory in %s", err, BaseVariable))
	}
	root, err := openBase(dirs, base)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	n := 1
	if b, err := root.ReadFile(lastFile); err == nil {
		if last, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && last > 0 {
			n = last + 1
		}
	}
	for {
		name := runPrefix + strconv.Itoa(n)
		d := &Dir{Base: base, Path: filepath.Join(base, name), Number: n}
		err := root.Mkdir(name, 0o700)
		if errors.Is(err, fs.ErrExist) {
			n++
			continue
		}
		if err != nil {
			return nil, errs.E(op, errs.KindOf(err), d.Path, err)
		}
		if err := d.begin(dirs, root, temp, owner); err != nil {
			return nil, errors.Join(err, d.Remove())
		}
		return d, nil
	}
}

// noTemp says that the directory for temporary files is of no use.
func noTemp(temp string, err error) error {
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err // it is about a name that nobody has given
	}
	return fmt.Errorf("TMPDIR: the directory of a run cannot be made in %s: %w; let TMPDIR name a directory that exists and in which you may write, as /tmp", temp, err)
}

// begin makes the directory for the files of a run, and says whose run it is.
func (d *Dir) begin(dirs host.PrivateDirs, base *os.Root, temp string, owner Owner) error {
	const op = "run.NewDir"
	var err error
	// The record knows the name, so it can be one that nobody makes before us.
	if d.Files, err = os.MkdirTemp(temp, fmt.Sprintf(filesName, d.Number)); err != nil {
		return noTemp(temp, err)
	}
	files, err := dirs.OpenPrivate(d.Files)
	if err != nil {
		empty := d.Files
		d.Files = ""
		err = errors.Join(err, os.Remove(empty))
		return errs.E(op, errs.Denied, temp, fmt.Errorf("the files of a run would not be safe there: %w; name another directory in TMPDIR", err))
	}
	files.Close()
	if owner.Execute == "" {
		owner.Execute = d.Execute()
	}
	if err := d.WriteOwner(owner); err != nil {
		return err
	}
	if err := replaceFile(base, lastFile, []byte(strconv.Itoa(d.Number)+"\n")); err != nil {
		return errs.E(op, errs.Broken, d.Base, err)
	}
	return nil
}

// WriteOwner records whose directory it is.
func (d *Dir) WriteOwner(o Owner) error {
	const op = "run.WriteOwner"
	o.Files = d.Files
	b, err := json.Marshal(o)
	if err != nil {
		return errs.E(op, errs.Internal, d.Path, err)
	}
	root, err := os.OpenRoot(d.Path)
	if err != nil {
		return errs.E(op, errs.Broken, d.Path, err)
	}
	defer root.Close()
	if err := replaceFile(root, ownerFile, b); err != nil {
		return errs.E(op, errs.Broken, d.Path, err)
	}
	return nil
}

// replaceFile writes a file so that a reader sees the old or the new text.
func replaceFile(root *os.Root, name string, b []byte) error {
	tmp := name + "." + strconv.Itoa(os.Getpid())
	if err := root.WriteFile(tmp, b, 0o600); err != nil {
		return errors.Join(err, root.Remove(tmp))
	}
	return root.Rename(tmp, name)
}

// Dirs lists the run directories below base with their owners, in the order of
// their names. A directory without a readable record has a zero Owner, and so
// has one that another user could have written in. A base that does not exist
// has none; one that another user could have written in is Denied.
func Dirs(dirs host.PrivateDirs, base string) ([]Dir, []Owner, error) {
	root, err := openBase(dirs, base)
	if errs.Is(err, errs.NotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, nil, errs.E("run.Dirs", errs.KindOf(err), base, err)
	}
	var all []Dir
	var owners []Owner
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), runPrefix)
		n, err := strconv.Atoi(digits)
		if !ok || err != nil || !e.IsDir() {
			continue
		}
		o := readOwner(dirs, root, e.Name())
		all = append(all, Dir{Base: base, Path: filepath.Join(base, e.Name()), Files: o.Files, Number: n})
		owners = append(owners, o)
	}
	return all, owners, nil
}

// readOwner reads the record of one run; it is zero if there is none that can
// be believed.
func readOwner(dirs host.PrivateDirs, base *os.Root, name string) (o Owner) {
	run, err := base.OpenRoot(name)
	if err != nil {
		return Owner{}
	}
	defer run.Close()
	if dirs.Private(run) != nil {
		return Owner{}
	}
	// Nobody else can have put a pipe here, which would hold us up.
	f, err := run.Open(ownerFile)
	if err != nil {
		return Owner{}
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostRecord))
	if err != nil || json.Unmarshal(b, &o) != nil {
		return Owner{}
	}
	return o
}

// SweepDirs removes what runs below base left behind that ended without
// cleaning up (kill -9, power loss). alive tells whether a process still
// exists; sweep clears one EXECUTE directory of dead starters and their jobs.
// Nothing is swept or removed but in directories that no other user could have
// written in: what is left for that reason is told by problems, and not again,
// since the run's record goes. A directory that was kept on purpose stays.
func SweepDirs(dirs host.PrivateDirs, base string, alive func(host.ProcID) bool, sweep func(execute string) error) (removed []string, problems error) {
	all, owners, err := Dirs(dirs, base)
	if err != nil {
		return nil, err
	}
	for i, d := range all {
		o := owners[i]
		if o.Proc.PID == 0 || alive(o.Proc) {
			// A record that is not there yet belongs to a run that is just
			// being set up, or to nobody; either way it is not ours to judge.
			continue
		}
		gone, err := sweepRun(dirs, d, o, sweep)
		problems = errors.Join(problems, err)
		if gone {
			removed = append(removed, d.Path)
		}
	}
	return removed, problems
}

// sweepRun clears away one run whose process is gone, and reports whether its
// directories are.
func sweepRun(dirs host.PrivateDirs, d Dir, o Owner, sweep func(execute string) error) (gone bool, err error) {
	execute := o.Execute
	if execute == "" {
		execute = d.Execute()
	}
	if !strings.HasPrefix(filepath.Base(d.Files), fmt.Sprintf(filesName, d.Number)) {
		d.Files = "" // no name that NewDir gives: it is not removed
	}
	var foreign, failed error
	kept := o.Keep
	for _, dir := range append([]string{d.Files, execute}, o.Elsewhere...) {
		if dir == "" {
			continue // of a run that had no files of its own
		}
		switch root, err := dirs.OpenPrivate(dir); {
		case errs.Is(err, errs.NotFound):
			if dir == d.Files {
				kept, d.Files = false, "" // the user has removed what was kept
			}
		case err != nil:
			foreign = errors.Join(foreign, errs.E("run.SweepDirs", errs.Denied, d.Path, fmt.Errorf("what this run left in %s is not cleared away: %w", dir, err)))
			if dir == d.Files {
				d.Files = "" // another user's by now
			}
		default:
			root.Close()
			if dir != d.Files {
				failed = errors.Join(failed, sweep(dir))
			}
		}
	}
	if kept {
		return false, failed
	}
	if failed != nil {
		return false, errors.Join(foreign, failed)
	}
	if err := d.Remove(); err != nil {
		return false, errors.Join(foreign, errs.E("run.SweepDirs", errs.KindOf(err), d.Path, err))
	}
	return true, foreign
}
