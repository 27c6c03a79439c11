// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Descriptors that inside inherits from enter.
const (
	hearFD  = 3 // signals for the command, one byte each; closed when realpool is gone
	lockFD  = 4
	inUseFD = 5
)

// stopLimit is how long a pool that was asked to end may take.
const stopLimit = 20 * time.Second

// inside is the first process of the namespaces. It sees to the mounts, starts
// the command, waits for every process that loses its parent, and ends when the
// command has ended; the kernel then kills what is left.
func inside(name string) (int, error) {
	for _, fd := range []int{hearFD, lockFD, inUseFD} {
		unix.CloseOnExec(fd)
	}
	// The first process of a PID namespace is the only one that could not be
	// restored, so it ends by its command's end only. A handler, unlike an ignored
	// signal, is not inherited.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	text, err := os.ReadFile(name)
	if err != nil {
		return 1, err
	}
	var o order
	if err := json.Unmarshal(text, &o); err != nil {
		return 1, fmt.Errorf("realpool: %s: %w", name, err)
	}
	var control *net.UnixListener
	if o.Control {
		if control, err = net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(o.Run, controlName), Net: "unix"}); err != nil {
			return 1, fmt.Errorf("realpool: %w", err)
		}
	}
	if err := arrange(o); err != nil {
		return 1, fmt.Errorf("realpool: inside the namespaces: %w", err)
	}
	pid, err := start(o)
	if err != nil {
		return 1, fmt.Errorf("realpool: %w", err)
	}
	go hear(os.NewFile(hearFD, "signals"), pid)
	if control != nil {
		go listen(control, pid, o.Stop)
	}
	return reap(pid)
}

// start starts the command. Its process is waited for by reap.
func start(o order) (int, error) {
	line := asUser(o.User, o.Command)
	program, err := lookIn(o.Env, line[0])
	if err != nil {
		return 0, err
	}
	if err := os.Chdir(o.Dir); err != nil {
		return 0, err
	}
	return syscall.ForkExec(program, line, &syscall.ProcAttr{Env: o.Env, Files: []uintptr{0, 1, 2}})
}

// asUser is the command line by which root has a user run a command. The
// command takes the place of setpriv, so signals reach it.
func asUser(user string, command []string) []string {
	if user == "root" {
		return command
	}
	return append([]string{"setpriv", "--reuid", user, "--regid", user, "--init-groups", "--"}, command...)
}

// lookIn finds a program in the PATH of an environment.
func lookIn(env []string, program string) (string, error) {
	if filepath.Base(program) != program {
		return program, nil
	}
	for _, v := range env {
		if len(v) < 5 || v[:5] != "PATH=" {
			continue
		}
		for _, dir := range filepath.SplitList(v[5:]) {
			path := filepath.Join(dir, program)
			if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("no program %s inside", program)
}

// hear passes signals on to the command, and ends everything when the process
// that sends them is gone.
func hear(from *os.File, pid int) {
	r := bufio.NewReader(from)
	for {
		b, err := r.ReadByte()
		if err != nil {
			os.Exit(1)
		}
		_ = unix.Kill(pid, unix.Signal(b))
	}
}

// listen answers at the control socket. A connection that says stop has the
// command asked to end; any other only learns the number of this process from
// the socket, and that it lives as long as the connection.
func listen(l *net.UnixListener, pid int, stop syscall.Signal) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = conn.Close() }()
			line, _ := bufio.NewReader(conn).ReadString('\n')
			if line != stopLine {
				return
			}
			_ = unix.Kill(pid, stop)
			time.AfterFunc(stopLimit, func() { os.Exit(1) })
		}()
	}
}

// reap waits for all processes of the namespace until the command has ended.
func reap(pid int) (int, error) {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 1, fmt.Errorf("realpool: wait: %w", err)
		case got == pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		case got == pid && status.Exited():
			return status.ExitStatus(), nil
		}
	}
}
