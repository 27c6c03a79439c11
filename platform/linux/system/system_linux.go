// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/launch"
	"github.com/execpoint/execpoint/platform/linux"
	"github.com/execpoint/execpoint/platform/linux/access"
	"github.com/execpoint/execpoint/platform/linux/account"
	"github.com/execpoint/execpoint/platform/linux/cgroup"
	"github.com/execpoint/execpoint/platform/linux/detect"
	"github.com/execpoint/execpoint/platform/linux/handover"
	"github.com/execpoint/execpoint/platform/linux/idle"
	"github.com/execpoint/execpoint/platform/linux/lockfile"
	"github.com/execpoint/execpoint/platform/linux/mount"
	"github.com/execpoint/execpoint/platform/linux/proc"
	"github.com/execpoint/execpoint/platform/linux/space"
)

// System is the operating system as our programs use it.
type System struct {
	Self    string // this program, to be executed again as a starter
	Census  host.Census
	Spawner host.Spawner

	root linux.Root
	more []machine.Scanner
	// families are what Spawner is, for an Execution Point; nil in a program that only
	// looks, and makes no group.
	families *proc.Spawner
}

// New is for a program that is an Execution Point. There is one in a process.
// Scanners of one's own look at the machine after those of the system.
func New(more ...machine.Scanner) (*System, error) { return systemOf(proc.Startd, more) }

// Visit is for a program that only looks at the machine.
func Visit(more ...machine.Scanner) (*System, error) { return systemOf(proc.Guest, more) }

func systemOf(role proc.Role, more []machine.Scanner) (*System, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s, err := proc.New(proc.Options{Role: role})
	if err != nil {
		return nil, err
	}
	sys := &System{Self: self, root: linux.DefaultRoot(), Census: s, Spawner: s, more: more}
	if role == proc.Startd {
		sys.families = s
	}
	return sys, nil
}

// Scanners detect the machine.
func (p *System) Scanners() []machine.Scanner {
	all := append(detect.Scanners(detect.Host(p.root)), machine.EnvScanner(os.Environ()))
	return append(all, p.more...)
}

// Volume looks at the file systems that jobs work on. What is wrong with a
// SLOT<N>_EXECUTE is said by the scanner of the configuration.
func (p *System) Volume(execute string, snap *config.Snapshot) machine.Scanner {
	slots, _ := machine.SlotExecutes(snap)
	return detect.Volume(detect.Host(p.root), execute, slots...)
}

// Host gives a run what it needs of the system.
func (p *System) Host(execute string, snap *config.Snapshot) (run.Host, error) {
	c := linux.Clock()
	watched, err := idle.OptionsFrom(snap)
	if err != nil {
		return run.Host{}, err
	}
	watch := idle.New(p.root, watched)
	again, err := machine.RecomputesDisk(snap)
	if err != nil {
		return run.Host{}, err
	}
	if !again || enforcing(snap) {
		execute = "" // what was measured at the start holds
	}
	others, files := p.Others()
	var groupName func(uint32) (string, error)
	if others != nil {
		groupName = account.GroupName
	}
	var tracking func(host.GroupPlace) host.Tracking
	if p.families != nil {
		tracking = p.tracking
		// By its group a job of a dead starter is found that nothing else tells from others.
		delegated, _ := snap.Bool("CREATE_CGROUP_WITHOUT_ROOT")                                                        // its error is told of the knob
		_ = p.families.OpenGroups(groupsRoot, host.GroupPlace{Base: snap.String("BASE_CGROUP"), Delegated: delegated}) // tracking says why
	}
	return run.Host{
		Clock: c, Sampler: detect.NewSampler(detect.Host(p.root), c, watch, execute), Spawner: p.Spawner, Census: p.Census, Private: account.Directories{}.Private,
		// Read never fails: it ends the program instead.
		Rand:   func(b []byte) { _, _ = rand.Read(b) },
		Errno:  proc.Errno,
		Hangup: int(syscall.SIGHUP), Terminate: int(syscall.SIGTERM), Peer: linux.PeerUser, Account: others, GroupName: groupName, Access: files,
		Cores:       linux.Cores,
		Tracking:    tracking,
		Mounter:     mount.Volumes{},
		Rootless:    p.rootless(),
		Descriptors: func() (host.Descriptors, error) { return linux.Descriptors(p.root) },
		Channel: func() (*os.File, launch.Channel, error) {
			child, parent, err := handover.New()
			if err != nil { // a Channel that is nil, not one of a nil
				return nil, nil, err
			}
			return child, parent, nil
		},
	}, nil
}

// groupsRoot is where control groups are mounted.
const groupsRoot = "/sys/fs/cgroup"

// tracking tries, as a starter will, whether a job can have a control group and
// namespaces of its own.
func (p *System) tracking(place host.GroupPlace) host.Tracking {
	has := host.Tracking{NoSpaces: space.Able()}
	has.Groups, has.NoGroups = p.families.GroupsAt(groupsRoot, place)
	return has
}

// rootless is how this program contains jobs without the rights of root, nil with them.
func (p *System) rootless() *run.Rootless {
	if os.Geteuid() == 0 {
		return nil
	}
	return &run.Rootless{
		Users: space.TryUsers,
		Memory: func(place host.GroupPlace) error {
			own, err := os.ReadFile(filepath.Join(p.root.Proc, "self/cgroup"))
			if err != nil {
				return err
			}
			o := cgroup.Options{Root: p.root.Cgroup, Base: place.Base, Self: own, Delegated: place.Delegated}
			if place.Base != "" {
				if err := cgroup.MakeWay(o); err != nil {
					return err
				}
			}
			tree, err := cgroup.Open(o)
			if err == nil && !tree.Has("memory") {
				err = errs.E("system.Rootless", errs.Unsupported, place.Base, errors.New(
					"the memory controller is not handed down to the groups of jobs; a group that has processes of others hands none down"))
			}
			return err
		},
	}
}

// Others finds users of the machine, and acts for them; nil where this program
// can act for no other user. Only root can.
func (p *System) Others() (find func(name string) (*host.Identity, error), files host.Access) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	return account.Lookup, new(access.Files)
}

// Writable is nil if the calling thread may write the file at path, or make it.
func (p *System) Writable(path string) error { return access.Writable(path) }

// Hooks runs the programs of an owner in dir. They do not see the keys that a
// condor_master handed down.
func (p *System) Hooks(dir string) *hook.Runner {
	return &hook.Runner{
		Spawner: p.Spawner, Census: p.Census, Env: daemon.Scrub(os.Environ()), Dir: dir,
		Hangup: int(syscall.SIGHUP), Terminate: int(syscall.SIGTERM), Grace: time.Second,
	}
}

// Running lists the processes of this machine that show themselves by one of
// names, but for this one.
func (p *System) Running(names ...string) ([]host.Program, error) {
	return proc.Running(p.root.Proc, names...)
}

// TerminalWidth is how many columns the terminal behind f has; false for what is
// no terminal.
func (p *System) TerminalWidth(f *os.File) (columns int, ok bool) { return linux.TerminalWidth(f) }

// UserNamespace is the number of the user namespace this program is in.
func (p *System) UserNamespace() uint64 { return detect.UserNamespace(p.root) }

// Lock is a host.Locker.
func (p *System) Lock(path string, share host.Share, me host.Holder) (host.Lock, error) {
	return lockfile.Lock(path, share, me)
}

// Private opens directories that no other user could have written in.
func (p *System) Private() host.PrivateDirs { return account.Directories{} }

// RunBase is the directory in which the runs of this user are recorded: the one
// that run.BaseVariable names; for root one below /run, which is root's alone; for
// others one below XDG_RUNTIME_DIR where that is the user's own, else one among
// the temporary files. The name of that last one can be guessed, so another user
// may have made it: its user has to check whose it is.
func (p *System) RunBase() (string, error) {
	if dir := os.Getenv(run.BaseVariable); dir != "" {
		return filepath.Abs(dir)
	}
	uid := os.Geteuid()
	if uid == 0 {
		if info, err := os.Stat(p.root.Run); err != nil || !info.IsDir() {
			return "", errs.E("system.RunBase", errs.Unsupported, p.root.Run, fmt.Errorf(
				"this system has no such directory, in which root keeps the records of runs; name another one that only root can write in with %s", run.BaseVariable))
		}
		return filepath.Join(p.root.Run, "execpoint"), nil
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		// After su it is another user's.
		if root, err := p.Private().OpenPrivate(dir); err == nil {
			root.Close()
			return filepath.Join(dir, "execpoint"), nil
		}
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("execpoint-%d", uid)), nil
}

// Sweep clears one EXECUTE directory of what dead starters left. Where others
// may make directories there nothing that is found proves a process to be ours:
// the directories go, and no process is killed.
func (p *System) Sweep(execute string) error {
	var census host.Census = p.Census
	if info, err := os.Stat(execute); err == nil && info.Mode().Perm()&0o002 != 0 {
		census = unproven{census}
	}
	swept, err := sandbox.Sweeper{Census: census, Private: account.Directories{}.Private, Mounter: mount.Volumes{}}.Sweep(execute)
	for _, who := range swept.Suspects {
		err = errors.Join(err, errs.E("system.Sweep", errs.Conflict, execute,
			fmt.Errorf("%s: it may be of that job, which nothing proves, and was left running; end it if it is", who)))
	}
	return err
}

// unproven is a census for records that anybody may have written.
type unproven struct{ host.Census }

// KillRemains implements host.Census.
func (unproven) KillRemains(host.Remains) (int, error) { return 0, nil }
