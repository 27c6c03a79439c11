// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"os"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/reason"
)

// Machine is what runners need of the machine. The zero value is enough to ask
// them for their Offers.
type Machine struct {
	Spawner host.Spawner
	Errno   host.Errno
	// Enter says why u, nil being the user of this process, cannot work in dir; nil
	// is that it can.
	Enter func(u *host.Identity, dir string) error
	// Read opens a file with the rights of u, nil being the user of this process. nil
	// where none is read.
	Read func(u *host.Identity, path string) (*os.File, error)
}

// All lists the runners that there are. A job gets the first one that takes it, see
// Choose. A new kind of job is a line here.
func All(m Machine) []Runner {
	return []Runner{&Process{m}}
}

// Offers are those of all runners.
func Offers() []Offer {
	var all []Offer
	for _, r := range All(Machine{}) {
		all = append(all, r.Offer())
	}
	return all
}

// Runner runs jobs of one kind. Its methods are safe for concurrent use.
type Runner interface {
	// Offer says which jobs the runner takes, and what the machine's ad says of it.
	Offer() Offer
	// Prepare makes ready what a job needs besides its files, which are there:
	// limits, mounts, an image. It ends when ctx ends. The job is held for a *Refusal;
	// any other error is the machine's fault, and nothing of the preparation is left
	// after either.
	Prepare(ctx context.Context, t Task) (Prepared, error)
}

// Offer is what a runner can do.
type Offer struct {
	// Universes are those of which the runner takes jobs.
	Universes []Universe
	// Meets are the demands of a job that the runner meets. It takes no job with
	// another one.
	Meets []Demand
	// Abilities are the attributes that are true in the machine's ad wherever this
	// runner is.
	Abilities []string
	// Programs are the kinds of program that the runner needs. They are looked for,
	// and the machine's ad says what was found.
	Programs []machine.Kind
	// Waits says that Prepare takes time: then it is done beside everything else, and
	// an order to leave ends it.
	Waits bool
}

// Task is a job that a runner has taken.
type Task struct {
	Job     *classad.Ad
	Scratch string         // path of the scratch directory, where the job's input is
	User    *host.Identity // who the job runs as, nil for the user of this process
	// Group names the control group of the job, "" for none; Marker is one NAME=value
	// of its environment that no other job has.
	Group, Marker string
	TrackGID      uint32 // a group that no process of another job has, 0 for none
	Limits        host.Limits
	Space         *host.Space // what it sees, nil for what this process does
}

// Prepared is a job that can be started.
type Prepared interface {
	// Start begins to run p. It is called again to run the job once more, when the
	// run before it is closed. The job is held for a *Refusal, unless that is of an
	// error which tells that the machine is short of something; host.ErrLimit and any
	// other error are the machine's fault. Nothing runs after an error.
	Start(p Program) (*Run, error)
	// Close undoes what Prepare has made. No run is left then.
	Close() error
}

// Program is what a run of a job executes.
type Program struct {
	Path string
	Args []string // without the program's name
	Env  []string // the whole environment as NAME=value
	Dir  string   // where it begins
	Home string   // where the job's files are: Dir, unless the job names another for that
	Nice int      // added to the niceness of this process
	// Files are standard input, output and error; nil is the null device. They stay
	// the caller's to close.
	Files [3]*os.File
}

// Run is a job that runs, and the handle by which it is dealt with. A host.Family
// is its first three parts. Its methods are safe for concurrent use.
type Run struct {
	Controls
	Ending
	Meter
	// Beside starts a process for a visitor of the job: where the job runs, with its
	// limits, and in a family of its own, for the job goes on when the visitor leaves.
	Beside func(host.SpawnSpec) (host.Family, error)
}

// Controls act on a job that runs. Each may be called again, and after its end.
type Controls interface {
	// Suspend stops the job and returns how many processes were stopped.
	Suspend() (int, error)
	// Continue lets a suspended job go on.
	Continue() error
	// Signal sends the system's number to the job's main process: this is how it is
	// asked to stop.
	Signal(number int) error
	// Kill ends the job at once and returns how many processes that took.
	Kill() (int, error)
	// Limit changes what the job may take as a whole. Unsupported is a job that is
	// not kept by a control group.
	Limit(host.GroupLimits) error
}

// Ending tells which process a job is and how it ends.
type Ending interface {
	// Main is the job's main process as this machine sees it.
	Main() host.ProcID
	// Done is closed when the main process has ended.
	Done() <-chan struct{}
	// Status tells how it ended; zero until Done is closed.
	Status() host.ExitStatus
	// Alone reports whether it is proven, at no cost, that nothing of the job is
	// left: then Close does not wait.
	Alone() bool
	// Close ends what is left of the job, waits for that, and returns how many
	// processes outlived the main one. Usage is final then.
	Close() (leftovers int, err error)
}

// Meter measures a job.
type Meter interface {
	// Usage is what the whole job has used, what has ended of it included.
	Usage() (host.Usage, error)
	// Grouped reports whether a control group keeps the job.
	Grouped() bool
	// Lacks says, in words for a log, what of the job's limits this machine does not
	// have.
	Lacks() []string
	// Unmarked lists the processes of the job, the main one excepted, that could not
	// be told to be its once this process is gone.
	Unmarked() ([]host.ProcID, error)
}

// Refusal says why a job has to be held: its runner cannot run it, or there is no
// runner for it.
type Refusal struct {
	Code    reason.Code
	Subcode int
	Text    string
	Err     error // what it came of; nil if it is the job's ad
}

func (r *Refusal) Error() string { return r.Text }

// Unwrap returns what the refusal came of.
func (r *Refusal) Unwrap() error { return r.Err }
