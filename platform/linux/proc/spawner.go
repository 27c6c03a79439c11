// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/platform/linux/cgroup"
	"github.com/execpoint/execpoint/platform/linux/space"
)

// Role says what the process is that uses the spawner.
type Role uint8

const (
	// Guest starts processes in a program that has other business too. It
	// waits for its own children only and leaves the rest of the process as
	// it is. What a dead starter leaves is found by its record alone.
	Guest Role = iota
	// Startd is a Guest that is the startd's process: what a dead starter
	// leaves becomes its child, and it starts session leaders nowhere but
	// here. There is one in a process.
	Startd
	// Starter has the process for itself: every child is of its families, and
	// it waits for all of them. It sets the umask to 022 and keeps inherited
	// descriptors and ignored signals from its children. There is one in a process.
	Starter
)

// Options of a Spawner.
type Options struct {
	Role   Role
	Proc   string       // where procfs is mounted; "" is /proc
	Groups *cgroup.Tree // where families get their control groups; nil for none
}

// Spawner implements host.Spawner and host.Census.
type Spawner struct {
	role   Role
	table  table
	groups *cgroup.Tree
	self   Stat
	boot   func() string
	lent   bool // this process has rights that are not for what it starts

	// mu is held while a process is started, so that its end cannot be seen
	// before it is known.
	mu       sync.Mutex
	families map[int]*family // open ones by the pid of their main process
	inits    map[int]*pidSpace
	reaping  bool          // Starter: the reaper runs
	none     bool          // Starter: the kernel says that no child is left
	changed  chan struct{} // Starter: closed and made anew when a child has gone
	floorKiB int64         // the largest this process has been
}

var _ host.Errno = Errno

var _ interface {
	host.Spawner
	host.Census
} = (*Spawner)(nil)

// New returns a spawner and makes of the process what its role asks for.
func New(o Options) (*Spawner, error) {
	const op = "proc.New"
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	s := &Spawner{
		role: o.Role, table: newTable(o.Proc), groups: o.Groups,
		families: map[int]*family{}, inits: map[int]*pidSpace{}, none: true, changed: make(chan struct{}),
	}
	s.boot = sync.OnceValue(func() string {
		id, err := os.ReadFile(filepath.Join(o.Proc, "sys/kernel/random/boot_id"))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(id))
	})
	self, err := s.table.stat(os.Getpid())
	if err != nil {
		return nil, errs.E(op, errs.Broken, o.Proc, err)
	}
	s.self = self
	if o.Role != Guest {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return nil, errs.E(op, errs.Unsupported, "subreaper", err)
		}
	}
	if o.Role == Starter {
		s.lent = space.Lent()
		unignore(unix.SIGHUP, unix.SIGINT) // the two that Go leaves ignored if they were
		unix.Umask(0o022)
	}
	if o.Role != Guest {
		// What the parent left open, as the command socket that condor_master hands
		// down, is ours and not for commands of the configuration or an owner's
		// programs. Kernels before 5.11 cannot; then a child inherits what we did.
		_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	}
	return s, nil
}

// Self implements host.Census.
func (s *Spawner) Self() host.ProcID { return s.self.id() }

// Boot implements host.Census.
func (s *Spawner) Boot() string { return s.boot() }

// Alive implements host.Census.
func (s *Spawner) Alive(p host.ProcID) bool { return s.table.alive(p) }

// Running implements host.Census.
func (s *Spawner) Running(pid int) bool {
	st, err := s.table.stat(pid)
	return err == nil && !st.Dead()
}

// OpenGroups lets families have control groups at place of the mount root
// (/sys/fs/cgroup). Where that cannot be the error says why, and
// families go on without. It is called before the first Spawn, if at all.
func (s *Spawner) OpenGroups(root string, place host.GroupPlace) error {
	tree, err := s.tree(root, place)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = tree
	return nil
}

// GroupsAt is the version of the groups that OpenGroups would open, or why it would not.
func (s *Spawner) GroupsAt(root string, place host.GroupPlace) (version int, err error) {
	tree, err := s.tree(root, place)
	if err != nil {
		return 0, err
	}
	return tree.Version(), nil
}

func (s *Spawner) tree(root string, place host.GroupPlace) (*cgroup.Tree, error) {
	own, err := os.ReadFile(filepath.Join(s.table.root, "self/cgroup"))
	if err != nil {
		return nil, errs.E("proc.OpenGroups", errs.Unsupported, "", err)
	}
	return cgroup.Open(cgroup.Options{Root: root, Base: place.Base, Self: own, Delegated: place.Delegated})
}

// progress returns a channel that is closed at the next end of a child.
func (s *Spawner) progress() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// noChildren reports whether the kernel said that this process has no child
// left and none was started since.
func (s *Spawner) noChildren() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.role == Starter && s.none
}
