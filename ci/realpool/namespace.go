// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"
)

// unshare is the command line that starts a program as root in namespaces of
// its own: for an ordinary user in a user namespace, in which the user is root
// and the user's range of /etc/subuid gives the other users.
func unshare(uid int, rest ...string) []string {
	line := []string{"unshare"}
	if uid != 0 {
		line = append(line, "--user", "--map-root-user", "--map-auto")
	}
	return append(line, rest...)
}

// removeAll removes a directory with files of any user of the namespace.
// Processes of a namespace that has just ended can write for a moment longer.
func removeAll(dir string) error {
	remove := func() error { return os.RemoveAll(dir) }
	if os.Geteuid() != 0 {
		remove = func() error {
			line := unshare(os.Geteuid(), "rm", "-rf", "--one-file-system", "--", dir)
			if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
				return fmt.Errorf("realpool: %s cannot be removed: %w: %s", dir, err, strings.TrimSpace(string(out)))
			}
			return nil
		}
	}
	err := remove()
	for range 50 {
		if err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
		err = remove()
	}
	return err
}

// machine is what missing asks of this machine; tests give another one.
type machine struct {
	uid      int
	user     string
	look     func(program string) error
	readFile func(string) ([]byte, error)
	// try runs a command and returns what it printed if it failed.
	try func(line ...string) (string, error)
}

func thisMachine() machine {
	m := machine{
		uid:      os.Geteuid(),
		look:     func(program string) error { _, err := exec.LookPath(program); return err },
		readFile: os.ReadFile,
		try: func(line ...string) (string, error) {
			out, err := exec.Command(line[0], line[1:]...).CombinedOutput()
			return strings.TrimSpace(string(out)), err
		},
	}
	if u, err := user.Current(); err == nil {
		m.user = u.Username
	}
	return m
}

// missing lists everything that this machine lacks for entering a root
// directory, and for making one; each with what to do about it.
func (m machine) missing(making bool) []string {
	var lacks []string
	lack := func(format string, args ...any) { lacks = append(lacks, fmt.Sprintf(format, args...)) }
	if m.look("unshare") != nil {
		lack("unshare is not installed: apt-get install util-linux")
		return lacks
	}
	if making && m.look("mmdebstrap") != nil {
		lack("mmdebstrap is not installed: apt-get install mmdebstrap")
	}
	if m.uid != 0 {
		if m.look("newuidmap") != nil || m.look("newgidmap") != nil {
			lack("newuidmap is not installed, which an ordinary user needs: apt-get install uidmap")
		}
		for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
			text, err := m.readFile(file)
			if (err != nil && !errors.Is(err, os.ErrNotExist)) || !hasRange(string(text), m.user, m.uid) {
				lack("user %s has no range in %s: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 %s", m.user, file, m.user)
			}
		}
		if out, err := m.try("unshare", "--user", "--map-root-user", "true"); err != nil {
			lack("user namespaces are not allowed here (%s): see the settings user.max_user_namespaces, kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns of sysctl, or be root", firstLine(out, err))
			return lacks
		}
	}
	if len(lacks) > 0 {
		return lacks
	}
	line := unshare(m.uid, "--mount", "--pid", "--net", "--uts", "--fork", "--mount-proc", "true")
	if out, err := m.try(line...); err != nil {
		lack("this machine does not let user %s have namespaces with mounts of their own (%s); in a container, start it with the capability CAP_SYS_ADMIN", m.user, firstLine(out, err))
	}
	return lacks
}

func firstLine(out string, err error) string {
	if line, _, _ := strings.Cut(out, "\n"); line != "" {
		return line
	}
	return err.Error()
}

// hasRange says whether a file as /etc/subuid gives the user a range, by name
// or by number, in which a Debian system's users fit.
func hasRange(text, user string, uid int) bool {
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ":")
		var count int
		if len(f) == 3 && (f[0] == user || f[0] == fmt.Sprint(uid)) {
			if _, err := fmt.Sscan(f[2], &count); err == nil && count >= 65535 {
				return true
			}
		}
	}
	return false
}

// require fails if something is missing.
func require(making bool) error {
	if lacks := thisMachine().missing(making); len(lacks) > 0 {
		return errors.New("realpool: this machine lacks something:\n  " + strings.Join(lacks, "\n  "))
	}
	return nil
}

// last returns the last n lines.
func last(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// self is this program, as a path that a child can start.
func self() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}
