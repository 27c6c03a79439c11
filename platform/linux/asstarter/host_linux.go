// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package asstarter

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/starter"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/shadowjob"
	"github.com/execpoint/execpoint/platform/linux"
	"github.com/execpoint/execpoint/platform/linux/access"
	"github.com/execpoint/execpoint/platform/linux/account"
	"github.com/execpoint/execpoint/platform/linux/handover"
	"github.com/execpoint/execpoint/platform/linux/leftover"
	"github.com/execpoint/execpoint/platform/linux/mount"
	"github.com/execpoint/execpoint/platform/linux/proc"
	"github.com/execpoint/execpoint/platform/linux/quota"
	"github.com/execpoint/execpoint/platform/linux/sharedport"
	"github.com/execpoint/execpoint/platform/linux/space"
	"github.com/execpoint/execpoint/platform/linux/syslog"
)

// waitingGC is GOGC of a starter whose job has run for a moment. Until then it
// collects no garbage (protocol.Lean), since most starters end soon. But each look at
// a job leaves a little, and a starter may look for weeks. With 50 the runtime
// collects when the heap has come to 2 MiB.
const waitingGC = 50

// newHost also returns standard input, through which connections come where it
// is a socket, and standard output, under another descriptor: a Go program
// dies when it writes to a closed pipe as its standard output, and is told of
// it as an error elsewhere.
func newHost() (starter.Host, io.Reader, *os.File, error) {
	s, err := proc.New(proc.Options{Role: proc.Starter})
	if err != nil {
		return starter.Host{}, nil, nil, err
	}
	fd, err := unix.FcntlInt(uintptr(unix.Stdout), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return starter.Host{}, nil, nil, err
	}
	// Whichever program has become a starter: administrators and HTCondor's tools
	// look for this name. Without /proc it keeps its own.
	_ = os.WriteFile("/proc/self/comm", []byte("condor_starter"), 0)
	passwd, _ := os.ReadFile("/etc/passwd") // without it HOME is the job's own affair
	// Without the rights of root nobody can be another user.
	var others host.Access
	var killUser func(uint32) (int, error)
	var audit func(host.AuditSpec) (host.Audit, error)
	var userName, groupName func(uint32) (string, error)
	if os.Geteuid() == 0 {
		// A process that is to become the job's shares the starter's memory until
		// it executes the job's program, and has the user's rights a moment before
		// that. The user must not look into it: the claim's key is there, and that
		// of condor_master's family.
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return starter.Host{}, nil, nil, err
		}
		others, killUser, userName, groupName = new(access.Files), s.KillUser, account.Owners{}.UserName, account.GroupName
		audit = leftover.New(others).Audit
	}
	var stdin io.Reader = os.Stdin
	var socket func() (net.Conn, error)
	if in, ok := handover.From(os.Stdin); ok {
		stdin, socket = in, in.Socket
	}
	return starter.Host{
		Accounts: job.Accounts{Access: others, KillUser: killUser, Audit: audit, UserName: userName, GroupName: groupName, Home: proc.Home(passwd, os.Geteuid())},
		Machine: shadowjob.Machine{
			Socket: socket,
			SharedPort: func(cookie, dir, id string) (listen.NamedSocket, error) {
				return sharedport.Listen(sharedport.Place{Cookie: cookie, Dir: dir, ID: id})
			},
			Reuse: linux.ReuseAddress, System: Credentials, Clock: linux.Clock(), Outside: access.Outside,
			Wake:        func(pid int) error { return unix.Kill(pid, unix.SIGHUP) },
			OpenRecords: func(path string) (io.Writer, error) { return openRecords(path, asOwner(filepath.Dir(path))) },
		},
		Spawner: s, Census: s, Errno: proc.Errno, Signal: proc.SignalNumber, Files: files, Acknowledge: acknowledge,
		Listen: func(dir *os.File, name string) (starter.Door, error) { return handover.Listen(dir, name) },
		Log:    slog.New(observe.NewLogHandler(os.Stderr, slog.LevelInfo)), OpenLog: openLog,
		GPUs:    func() []host.GPU { return linux.NVIDIAGPUs(linux.DefaultRoot()) },
		Groups:  func(place host.GroupPlace) error { return s.OpenGroups("/sys/fs/cgroup", place) },
		Space:   space.Able,
		Mounter: mount.Volumes{},
		Quotas:  quota.Projects{},
		Stop: func() <-chan struct{} {
			ctx, _ := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGQUIT)
			return ctx.Done()
		},
		Waits: func() { debug.SetGCPercent(waitingGC) },
	}, stdin, os.NewFile(uintptr(fd), "stdout"), nil
}

// asOwner calls functions whose dealings with files are those of the owner of dir.
// Without the rights of root they are the process's own.
func asOwner(dir string) func(func() error) error {
	return func(f func() error) error {
		var st unix.Stat_t
		err := unix.Stat(dir, &st)
		switch {
		case os.Geteuid() != 0:
			return f()
		case err != nil:
			return &os.PathError{Op: "stat", Path: dir, Err: err}
		case st.Uid == 0:
			return f()
		}
		return new(access.Files).As(&host.Identity{Name: "the owner of " + dir, UID: st.Uid, GID: st.Gid}, f)
	}
}

// systemLog is where a starter logs with LOG_TO_SYSLOG.
func systemLog() (io.Writer, error) { return syslog.New("condor_starter"), nil }

// acknowledge has what came on nc acknowledged now. That it cannot be is no
// loss but of time.
func acknowledge(nc net.Conn) {
	if tcp, ok := nc.(*net.TCPConn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) })
		}
	}
}

// Credentials are those with which the daemon meets the pool, for a starter is
// part of it. One that acts for the whole machine has no home of its own, and
// what is the daemons' belongs to the user condor if there is one.
func Credentials() authn.System {
	s := authn.System{Files: account.Private{}, Owners: account.Owners{}}
	all := os.Geteuid() == 0 // it acts for the whole machine
	if me, err := user.Current(); err == nil {
		if s.User = me.Username; !all {
			s.Home = me.HomeDir
		}
	}
	if _, err := user.Lookup("condor"); err == nil && all {
		s.Condor = "condor"
	}
	return s
}
