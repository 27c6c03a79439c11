// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package space

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// programAt tells where program of program_*.s begins and ends.
func programAt() (start, end unsafe.Pointer)

// InitName is what an Init calls itself, as HTCondor's does.
const InitName = "condor_pid_ns_init"

// Init is the first process of a PID namespace.
type Init struct {
	PID   int
	PidFD int // the caller's to close; -1 where the kernel has none
	ready *os.File
}

// StartInit starts the first process of the PID namespace that Make gave the calling
// thread for s. It mounts the namespace's /proc where the thread's mounts are, becomes u
// (nil: it stays who this process is), and dies with this thread. env is its
// environment. It must be waited for as every child.
func StartInit(s host.Space, u *host.Identity, env []string) (*Init, error) {
	const op = "space.StartInit"
	attr := &syscall.SysProcAttr{Setsid: true}
	if Lent() {
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // to mount /proc; it gives it back then
	}
	// No Pdeathsig here: the syscall package takes a parent in another PID namespace
	// for one that is dead. The calls have one.
	in, err := execute(initCalls(ProcOf(s), u), env, attr)
	if err != nil {
		return nil, errs.E(op, errs.Broken, "execute", err)
	}
	return in, nil
}

// execute starts a program of these calls. Its descriptor 3 is the pipe that Ready reads.
func execute(c *calls, env []string, attr *syscall.SysProcAttr) (*Init, error) {
	c.end()
	file, err := programFile(c.list, c.text)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	ready, says, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer says.Close()
	in := &Init{PidFD: -1, ready: ready}
	attr.PidFD = &in.PidFD
	in.PID, err = syscall.ForkExec(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), []string{InitName}, &syscall.ProcAttr{
		Dir: "/", Env: env, Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), says.Fd()}, Sys: attr,
	})
	if err != nil {
		ready.Close()
		return nil, err
	}
	return in, nil
}

// Ready waits until the Init has done what it is started for. False is that it has
// ended: its exit status is the number of an error.
func (in *Init) Ready() bool {
	defer in.ready.Close()
	var b [1]byte
	n, err := io.ReadFull(in.ready, b[:])
	return n == 1 && err == nil
}

// calls are those of a program while it is made: the texts that they speak of stand
// behind mostCalls of them.
type calls struct {
	list []call
	text []byte
}

const mostCalls = 12

// at is the address of b in the program.
func (c *calls) at(b []byte) uint64 {
	for len(c.text)%8 != 0 {
		c.text = append(c.text, 0)
	}
	c.text = append(c.text, b...)
	return textAt(mostCalls, len(c.text)-len(b))
}

func (c *calls) word(s string) uint64 { return c.at(append([]byte(s), 0)) }

func (c *calls) do(number int64, args ...uint64) {
	one := call{Number: number}
	copy(one.Args[:], args)
	c.list = append(c.list, one)
}

// end ends the list: the program waits for children from there on.
func (c *calls) end() {
	children := c.at(children)
	c.do(-1, children)
	for len(c.list) < mostCalls {
		c.do(-1, children)
	}
}

// children is the set of signals of which one tells of a child.
var children = binary.LittleEndian.AppendUint64(nil, 1<<(unix.SIGCHLD-1))

// mountProc mounts what shows the processes of the namespace that the program is in.
func (c *calls) mountProc(at string) {
	kind := c.word("proc")
	c.do(unix.SYS_MOUNT, kind, c.word(at), kind, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, 0)
}

// ready tells the starter of the program that all before it is done.
func (c *calls) ready() { c.do(unix.SYS_WRITE, 3, c.word("p"), 1) }

// initCalls are the calls of an Init.
func initCalls(procAt string, u *host.Identity) *calls {
	c := new(calls)
	c.mountProc(procAt)
	if u != nil {
		var groups []byte
		for _, g := range u.Groups {
			groups = binary.LittleEndian.AppendUint32(groups, g)
		}
		c.do(unix.SYS_SETGROUPS, uint64(len(u.Groups)), c.at(groups))
		c.do(unix.SYS_SETRESGID, uint64(u.GID), uint64(u.GID), uint64(u.GID))
		c.do(unix.SYS_SETRESUID, uint64(u.UID), uint64(u.UID), uint64(u.UID))
	} else if Lent() {
		head := binary.LittleEndian.AppendUint64(nil, unix.LINUX_CAPABILITY_VERSION_3)
		c.do(unix.SYS_CAPSET, c.at(head), c.at(make([]byte, 24))) // none are left
	}
	// After the change of the user, which sets these two back. Should the thread be
	// dead already, nobody reads what is written below, and that fails.
	c.do(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0)
	c.do(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uint64(unix.SIGKILL))
	c.do(unix.SYS_PRCTL, unix.PR_SET_NAME, c.word(InitName))
	c.do(unix.SYS_RT_SIGPROCMASK, unix.SIG_BLOCK, c.at(children), 0, 8)
	c.ready()
	c.do(unix.SYS_CLOSE, 3)
	return c
}

// programFile is the program with these calls, as a file in memory.
func programFile(list []call, text []byte) (*os.File, error) {
	start, end := programAt()
	size := uintptr(end) - uintptr(start)
	if size == 0 || size > listAt-loadAt-codeOff { // the linker has put something between
		return nil, errors.New("the code of the program is not where it should be")
	}
	code := unsafe.Slice((*byte)(start), size) // one function of this program's text, which nobody writes
	machine := elf.EM_X86_64
	if runtime.GOARCH == "arm64" {
		machine = elf.EM_AARCH64
	}
	fd, err := unix.MemfdCreate(InitName, unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before 6.3 each can be executed
		fd, err = unix.MemfdCreate(InitName, unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	// The child's own files take the numbers up to 3 before it executes this one.
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 4)
	unix.Close(fd)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	fd = high
	file := os.NewFile(uintptr(fd), InitName)
	if _, err := file.Write(image(machine, code, list, text)); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
