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
	fail := func(what string, err error) (*Init, error) { return nil, errs.E(op, errs.Broken, what, err) }
	file, err := programFile(initCalls(ProcOf(s), u))
	if err != nil {
		return fail("memfd", err)
	}
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fail(os.DevNull, err)
	}
	defer null.Close()
	ready, says, err := os.Pipe()
	if err != nil {
		return fail("pipe", err)
	}
	defer says.Close()
	in := &Init{PidFD: -1, ready: ready}
	// No Pdeathsig here: the syscall package takes a parent in another PID namespace
	// for one that is dead. The calls have one.
	in.PID, err = syscall.ForkExec(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), []string{InitName}, &syscall.ProcAttr{
		Dir: "/", Env: env, Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), says.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &in.PidFD},
	})
	if err != nil {
		ready.Close()
		return fail("execute", err)
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

// initCalls are the calls of an Init, and the texts that they speak of.
func initCalls(procAt string, u *host.Identity) (list []call, text []byte) {
	const calls = 11 // at most; the texts stand behind as many
	at := func(b []byte) uint64 {
		for len(text)%8 != 0 {
			text = append(text, 0)
		}
		text = append(text, b...)
		return textAt(calls, len(text)-len(b))
	}
	words := func(s string) uint64 { return at(append([]byte(s), 0)) }
	do := func(number int64, args ...uint64) {
		c := call{Number: number}
		copy(c.Args[:], args)
		list = append(list, c)
	}
	children := at(binary.LittleEndian.AppendUint64(nil, 1<<(unix.SIGCHLD-1)))
	kind := words("proc")
	do(unix.SYS_MOUNT, kind, words(procAt), kind, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, 0)
	if u != nil {
		var groups []byte
		for _, g := range u.Groups {
			groups = binary.LittleEndian.AppendUint32(groups, g)
		}
		do(unix.SYS_SETGROUPS, uint64(len(u.Groups)), at(groups))
		do(unix.SYS_SETRESGID, uint64(u.GID), uint64(u.GID), uint64(u.GID))
		do(unix.SYS_SETRESUID, uint64(u.UID), uint64(u.UID), uint64(u.UID))
	}
	// After the change of the user, which sets these two back. Should the thread be
	// dead already, nobody reads what is written below, and that fails.
	do(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0)
	do(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uint64(unix.SIGKILL))
	do(unix.SYS_PRCTL, unix.PR_SET_NAME, words(InitName))
	do(unix.SYS_RT_SIGPROCMASK, unix.SIG_BLOCK, children, 0, 8)
	do(unix.SYS_WRITE, 3, kind, 1)
	do(unix.SYS_CLOSE, 3)
	do(-1, children)
	for len(list) < calls {
		list = append(list, call{Number: -1, Args: [5]uint64{children}})
	}
	return list, text
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
