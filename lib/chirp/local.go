// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chirp

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/shadow"
)

// Local is a submit side on this machine: a directory and the ad of the job,
// for jobs without a shadow. Nothing outside the directory is reached, whatever
// a path or a symbolic link says: the job is on the same machine and reaches the
// rest by itself. Its methods may be called from any goroutine.
type Local struct {
	// Dir is the submit directory. Absolute paths are taken as below it.
	Dir string
	// As calls f with the rights of the job's user, by which every file is
	// reached. Nil calls it with those of this process.
	As func(f func() error) error
	// Changed is told of each attribute that the job sets, in that order, and
	// Event of each line for its log; nil drops them.
	Changed func(name string, e *classad.Expr)
	Event   func(event *classad.Ad)
	System  System
	// Prefix is what the name of an attribute has to begin with that the job may
	// set; "" is any.
	Prefix string

	mu    sync.Mutex
	job   *classad.Ad
	set   map[string]bool // attributes that the job has set
	root  *os.Root        // of Dir, nil before the first file is asked for
	files map[int]*os.File
}

var _ Remote = (*Local)(nil)

// System is what a Local asks of the operating system that Go's library does not
// have for all of them. Without a function the answer says less.
type System struct {
	Errno host.Errno
	// NoWait is a flag with which opening a pipe does not wait for its other end.
	NoWait int
	Stat   func(fs.FileInfo) shadow.Stat
	Statfs func(*os.File) (shadow.Statfs, error)
}

// What a job can have a Local hold.
const (
	mostFiles = 250  // open at a time
	mostAttrs = 1000 // set in the job's ad
)

// NewLocal returns a submit side with a copy of the job's ad.
func NewLocal(dir string, job *classad.Ad) *Local {
	l := &Local{Dir: dir, job: classad.NewAd(), set: map[string]bool{}, files: map[int]*os.File{}}
	if job != nil {
		l.job.Update(job)
	}
	return l
}

// Shut closes the directory and the files that the job left open.
func (l *Local) Shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for fd, f := range l.files {
		_ = f.Close()
		delete(l.files, fd)
	}
	if l.root != nil {
		_ = l.root.Close()
		l.root = nil
	}
}

// as calls f with the rights of the job's user and makes of its error that of a
// call.
func (l *Local) as(call string, f func() error) error {
	if l.As == nil {
		return l.refused(call, f())
	}
	return l.refused(call, l.As(f))
}

// refused makes the error of a call, nil for none.
func (l *Local) refused(call string, err error) error {
	if err == nil {
		return nil
	}
	var is *shadow.CallError
	if errors.As(err, &is) {
		return err
	}
	n := cedar.ErrnoOf(err)
	if l.System.Errno != nil {
		if number, _, ok := l.System.Errno(err); ok {
			return &shadow.CallError{Call: call, Errno: cedar.ErrnoFromLinux(number)}
		}
	}
	switch {
	case errors.Is(err, os.ErrClosed):
		n = ebadf
	case n == cedar.EIO:
		n = cedar.EACCES // no error of the system: os.Root says that the path leads out of the directory
	}
	return &shadow.CallError{Call: call, Errno: n}
}

func failed(call string, n cedar.Errno) error { return &shadow.CallError{Call: call, Errno: n} }

// FileInfo returns the path as it is.
func (l *Local) FileInfo(_ context.Context, logical string) (string, error) {
	return "remote:" + logical, nil
}

// Whoami returns what the submit side calls itself.
func (l *Local) Whoami(_ context.Context, n int) (string, error) {
	const self = "CONDOR"
	return self[:min(len(self), max(n, 0))], nil
}

// WhoAreYou returns what the submit side calls a host.
func (l *Local) WhoAreYou(ctx context.Context, _ string, n int) (string, error) {
	return l.Whoami(ctx, n)
}

// JobAttr returns an attribute of the job.
func (l *Local) JobAttr(_ context.Context, name string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.job.Lookup(name); ok && !classad.IsPrivate(name) {
		return e.Text(classad.Old), nil
	}
	return "UNDEFINED", nil
}

// immutable are the attributes that say which job it is and whose. A shadow lets
// no job change them (SYSTEM_IMMUTABLE_JOB_ATTRS).
var immutable = [...]string{"ClusterId", "JobUniverse", "MyType", "OsUser", "Owner", "ProcId", "TargetType", "User"}

// Settable reports whether a name begins with Prefix, in any letters.
func (l *Local) Settable(name string) bool {
	return len(name) >= len(l.Prefix) && strings.EqualFold(name[:len(l.Prefix)], l.Prefix)
}

// SetJobAttr sets an attribute of the job.
func (l *Local) SetJobAttr(_ context.Context, name, expr string) error {
	const call = "set_job_attr"
	e, err := classad.ParseExpr(expr, classad.Old)
	if err != nil || !attributeName(name) {
		return failed(call, cedar.EINVAL)
	}
	for _, fixed := range immutable {
		if strings.EqualFold(name, fixed) {
			return failed(call, cedar.EACCES)
		}
	}
	if !l.Settable(name) {
		return failed(call, cedar.EACCES)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if key := strings.ToLower(name); !l.set[key] {
		if len(l.set) >= mostAttrs {
			return failed(call, cedar.ENOSPC)
		}
		l.set[key] = true
	}
	l.job.Set(name, e)
	if l.Changed != nil {
		l.Changed(name, e)
	}
	return nil
}

// Constrain adds a condition to the job's requirements, as a shadow does: it is
// the attribute AgentRequirements, and a later one takes its place.
func (l *Local) Constrain(ctx context.Context, expr string) error {
	const condition = "AgentRequirements"
	if err := l.SetJobAttr(ctx, condition, expr); err != nil {
		return err
	}
	now, err := l.JobAttr(ctx, "Requirements")
	if err != nil || strings.Contains(now, condition) {
		return err
	}
	return l.SetJobAttr(ctx, "Requirements", "("+now+") && "+condition)
}

// Log hands an event on.
func (l *Local) Log(_ context.Context, event *classad.Ad) error {
	if l.Event != nil {
		l.Event(event)
	}
	return nil
}
