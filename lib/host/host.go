// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package host is the vocabulary between this program and the operating
// system: what a process is, how one is started, and what a family of
// processes can be asked to do. It owns words and interfaces only; the work is
// done under platform/<os>, and in memory by hosttest. It must never call the
// operating system, start a goroutine, or know what a job or a slot is.
//
// A process is named by its pid and the time it started, never by the pid
// alone: a pid is used again, a ProcID is not.
//
//	family, err := spawner.Spawn(host.SpawnSpec{Path: "/bin/true", Args: []string{"true"}})
//	if err != nil { … errors.As(err, &errno) tells why exec failed … }
//	<-family.Done()
//	status := family.Status()
//	family.Close() // nothing that it started is left
package host

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// ProcID names one process for ever, as long as the machine is not rebooted.
type ProcID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // when it started, in the ticks the system counts since boot
}

// IsZero reports whether p names no process.
func (p ProcID) IsZero() bool { return p == ProcID{} }

// String prints "pid@start".
func (p ProcID) String() string { return fmt.Sprintf("%d@%d", p.PID, p.Start) }

// Program is a living process by the name that it shows. Anybody can call a
// process as he likes, and some are hidden: it is a hint for people, and no proof.
type Program struct {
	Proc ProcID
	UID  uint32   // whose it is
	Name string   // of the program, without its directory
	Args []string // the beginning of its argument vector; nil if it is not shown
}

// Bond says what happens to a process when the one that started it dies.
type Bond uint8

const (
	// Independent processes live on.
	Independent Bond = iota
	// Bound processes are killed by the system the moment their parent dies,
	// however it dies.
	Bound
)

// Descriptors is how many file descriptors a process has open, and how many it
// may have.
type Descriptors struct{ Open, Most int }

// Identity is a user of the machine other than the one who runs this.
type Identity struct {
	Name   string   `json:"name"`
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"` // beyond GID
	Home   string   `json:"home,omitempty"`   // "" if it has none
}

// Access reaches files with the rights of another user, so that nothing is
// opened for somebody which that one could not open. Implementations are safe
// for concurrent use.
type Access interface {
	Openers
	// Enter says whether u may work in the directory dir; nil is yes.
	Enter(u *Identity, dir string) error
	// As calls f, all of whose dealings with files are then u's: what u could
	// not open, make, rename or remove f cannot either, and what f makes is u's.
	// That goes for the goroutine which calls f and for none that f starts.
	As(u *Identity, f func() error) error
	// Give makes a file or directory below root u's, which this process, or a
	// program with its rights, has made there. One that is u's already is none of
	// its business, and one that is anybody else's or has a second name is Denied.
	Give(u *Identity, root *os.Root, name string) error
	// Alone is nil if nobody but this process's user can have put there what an
	// absolute path leads to, or can put something there: not the file, not a link,
	// not a directory on the way. Only with such a path the rights of this process
	// may serve a job of another user.
	Alone(path string) error
}

// Openers open files for the processes of a user.
type Openers interface {
	// Overwrite opens the file at path, emptied, for a process of u to append
	// to; one that is not there is made and is u's. Its last name may be no
	// symbolic link, no second name of a file and nothing but a regular file.
	Overwrite(u *Identity, path string) (*os.File, error)
	// Append is Overwrite for a file that is there already and keeps what it
	// holds.
	Append(u *Identity, path string) (*os.File, error)
	// Read opens the file at path for a process of u to read from: a regular
	// one or a device.
	Read(u *Identity, path string) (*os.File, error)
}

// Unlimited is the value of a limit that does not limit.
const Unlimited int64 = -1

// SpawnSpec says what to start and how. The zero value of each optional field
// leaves that property as the parent has it.
type SpawnSpec struct {
	Path string   // the file to execute; not searched for
	Args []string // the whole argument vector, Args[0] included
	Env  []string // the whole environment as NAME=value; nil is an empty one
	Dir  string   // working directory; "" is the parent's

	// The standard files; nil is the null device. The child gets exactly these
	// three descriptors and no other. They stay the caller's to close.
	Stdin, Stdout, Stderr *os.File

	// User is who runs the process, nil the user of the caller. The program and
	// Dir are reached with that user's rights, and only those are left to it.
	User *Identity

	// OwnMounts has nobody else see what the family mounts. What others mount and
	// unmount it sees once it has its mounts follow theirs.
	OwnMounts bool
	// OwnUsers has the process begin in a user namespace of its own, as the user that it
	// is, with the rights in there that it needs to give families a Space. It has no
	// other right for it, and what it starts has not even those.
	OwnUsers bool

	Bond Bond
	Nice int // added to the parent's niceness; only positive values have an effect

	Limits Limits
	// Space is what the family sees; nil is what the parent does. A spawner that
	// cannot make it starts nothing: ErrLimit.
	Space *Space

	// Group names the control group for this family below the place that the
	// spawner was given, "" for none. A spawner that may not make groups
	// starts the process without one; Family.Grouped tells. One that fails to
	// make this group, or to apply a limit, starts nothing: ErrLimit.
	Group string
	// Beside puts the process into the control group of another family of the
	// same spawner, which stays that family's: it has the limits of both, dies
	// with it at the latest, and is a family of its own in everything else. Group,
	// Space and Limits.Group mean nothing then: it sees what the other one sees. A
	// family without a group takes nobody in, one that is closed or suspended is a
	// Conflict. nil is none.
	Beside Family
	// Marker is one NAME=value of Env that no other family has. It is how
	// descendants are told apart when neither parentage nor group does.
	Marker string
	// TrackGID is a supplementary group that no process of another family has. It
	// needs User, for only root gives a process a group, and no process of another
	// user than root can get rid of it. 0 is none.
	TrackGID uint32
}

// Spawner starts process families. Implementations are safe for concurrent use.
type Spawner interface {
	// Spawn starts spec as leader of a new session and returns when it has
	// begun to execute its program. If the program cannot be executed nothing
	// is left and errors.As finds the system's syscall.Errno.
	Spawn(spec SpawnSpec) (Family, error)
}

// Family is a started process and everything that descends from it, in
// whatever session or process group and whoever its parent is by now. Methods
// are safe for concurrent use.
type Family interface {
	Process
	Steered
	Measured
}

// Process is a family as who only waits for its end knows it.
type Process interface {
	// Main names the process that was started.
	Main() ProcID
	// Done is closed when the main process has ended. Others of the family may
	// live on.
	Done() <-chan struct{}
	// Status tells how the main process ended. It is the zero ExitStatus until
	// Done is closed.
	Status() ExitStatus
	// Kill ends every process of the family, without mercy and again until
	// none is left, and returns how many it had to kill. It may be called
	// again, and on a suspended family.
	Kill() (int, error)
	// Close kills what is left, waits until it is gone and releases what the
	// system kept for the family. Usage stays readable. The count is that of
	// the processes which outlived the main one.
	Close() (leftovers int, err error)
}

// Steered is a family as who tells it what to do knows it.
type Steered interface {
	// Signal sends sig (the system's number) to the main process alone. An
	// ended main process is no error.
	Signal(sig int) error
	// Suspend stops every process of the family and returns how many were
	// stopped. It may be called again.
	Suspend() (int, error)
	// Continue lets a suspended family go on. It may be called again.
	Continue() error
	// Limit changes the limits of the family's group while it runs. Unsupported is
	// a family without one. After an error each limit is as it was or as it is to be.
	Limit(GroupLimits) error
}

// Measured is a family as who looks at it knows it.
type Measured interface {
	// Grouped reports whether the family is kept by a control group.
	Grouped() bool
	// Lacks says, in words for a log, what of the limits of its spec this machine
	// does not have for any family.
	Lacks() []string
	// Alone reports whether the main process has ended and it is proven, at no
	// cost, that nothing of the family is left: then Close does not wait.
	Alone() bool
	// Unmarked lists the living processes, the main one excepted, that do not carry
	// the family's marker: once their starter is gone nothing but this list tells
	// whose they are. It is empty for a family that is kept by a control group or
	// tracked by TrackGID.
	Unmarked() ([]ProcID, error)
	// Usage measures the whole family, the ended ones included. After the end
	// it tells the final figures.
	Usage() (Usage, error)
}

// ExitStatus tells how a process ended. The zero value is one that has not
// ended.
type ExitStatus struct {
	Exited bool `json:"exited"`           // by itself, with Code
	Code   int  `json:"code"`             // exit code, when Exited
	Signal int  `json:"signal,omitempty"` // the signal that ended it, 0 when Exited
	Core   bool `json:"core,omitempty"`   // a core file was written
}

// Ended reports whether the process has ended at all.
func (s ExitStatus) Ended() bool { return s.Exited || s.Signal != 0 }

// Success reports whether the process exited with code 0.
func (s ExitStatus) Success() bool { return s.Exited && s.Code == 0 }

// String says "exited with status 3", "died on signal 9" or "has not ended".
func (s ExitStatus) String() string {
	switch {
	case s.Exited:
		return fmt.Sprintf("exited with status %d", s.Code)
	case s.Signal != 0 && s.Core:
		return fmt.Sprintf("died on signal %d (core dumped)", s.Signal)
	case s.Signal != 0:
		return fmt.Sprintf("died on signal %d", s.Signal)
	}
	return "has not ended"
}

// ErrLimit is in the error of Spawn where a limit of the process could not be
// applied: its control group, the group's limits, its own or its niceness. It is no
// fault of the program. That a system has no such limit is no error.
var ErrLimit = errors.New("a limit of the process cannot be applied")

// Errno finds the system's error number in err and its text as C's strerror
// gives it ("No such file or directory"). ok is false if err holds none.
type Errno func(err error) (number int, text string, ok bool)

// SignalNumber gives the system's number of a signal by its name, "SIGTERM".
type SignalNumber func(name string) (int, bool)

// GroupPlace says below what a family's control group is made.
type GroupPlace struct {
	Base string // BASE_CGROUP, relative
	// Delegated puts the base below the group that this process is in, where a
	// user without special rights may have been given some.
	Delegated bool
}

// Usage is what a family has used. Times only grow; the other figures are of
// the moment unless they are called peak.
type Usage struct {
	UserCPU      time.Duration `json:"user_cpu"`
	SysCPU       time.Duration `json:"sys_cpu"`
	RSSKiB       int64         `json:"rss_kib"`        // resident memory now
	PeakRSSKiB   int64         `json:"peak_rss_kib"`   // the most resident memory seen
	ImageSizeKiB int64         `json:"image_size_kib"` // the largest address space seen
	Procs        int           `json:"procs"`          // processes alive now
	// PeakProcs is the most processes at a time: threads count too where the kernel keeps
	// it for a control group, else it is what looks at the family have seen. 0 is unknown.
	PeakProcs int `json:"peak_procs,omitempty"`
	// Pressure is how long the family had to wait for what it lacked; nil where the kernel
	// does not tell, and before the end.
	Pressure   *Pressure   `json:"pressure,omitempty"`
	OOMKills   int64       `json:"oom_kills"`             // processes that the kernel killed for memory; 0 without a control group
	OverMemory *OverMemory `json:"over_memory,omitempty"` // why, where OOMKills is not 0
	// What was read from and written to block devices, 0 where that is not
	// counted.
	BlockReads      int64 `json:"block_reads,omitempty"` // operations
	BlockWrites     int64 `json:"block_writes,omitempty"`
	BlockReadBytes  int64 `json:"block_read_bytes,omitempty"`
	BlockWriteBytes int64 `json:"block_write_bytes,omitempty"`
}

// OverMemory is what the kernel counted of a family of which it killed processes for
// memory.
type OverMemory struct {
	LimitKiB int64 `json:"limit_kib"` // of the family, 0 for none
	PeakKiB  int64 `json:"peak_kib"`  // the most that it had, page cache included; 0 if the kernel does not keep it
	// Own says that the family came to its own limit; else the machine, or what the
	// Execution Point has of it, was short of memory.
	Own bool `json:"own"`
	// Part says that neither was so: a part of the family came to the limit that the
	// family gave it, as a glidein gives one to each of its own jobs.
	Part bool `json:"part,omitempty"`
}

// Remains is what is known about a family whose parent is gone, from the
// record it left: enough to find and prove what still runs of it.
type Remains struct {
	Boot   string // identity of the boot the ProcIDs belong to; another boot means nothing is left
	Parent ProcID // the process that had started the family
	Main   ProcID // its main process; zero if it never ran
	Group  string // its control group as in SpawnSpec, "" for none
	Marker string // as in SpawnSpec
	// TrackGID is the group that all its processes have, as in SpawnSpec; Account the
	// user whose processes are all of the family. 0 is none.
	TrackGID, Account uint32
	// Strays are others of the family that were seen while their starter lived:
	// see Family.Unmarked.
	Strays []ProcID
}

// Census looks at processes that are not of a family at hand.
type Census interface {
	// Self names the calling process.
	Self() ProcID
	// Boot identifies the present boot of the machine.
	Boot() string
	// Alive reports whether p is still running (a zombie is not).
	Alive(p ProcID) bool
	// Running reports whether any process has this pid now.
	Running(pid int) bool
	// KillRemains ends every process which r proves to be of that family and
	// all that descends from them, until none is left, removes the group and
	// returns how many were killed. It touches nothing it cannot prove.
	KillRemains(r Remains) (killed int, err error)
	// Suspects names, in a line for each, the processes that KillRemains leaves
	// alone and that may be of the family all the same: they began after its
	// starter and work below dir, or their session has its main process's number.
	Suspects(r Remains, dir string) ([]string, error)
}
