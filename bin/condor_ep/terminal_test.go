// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is what a person sits at: a pseudo-terminal, and what was written to
// it so far.
type terminal struct {
	master, slave *os.File
	mu            sync.Mutex
	text          strings.Builder
}

func openTerminal(t *testing.T, columns uint16) *terminal {
	t.Helper()
	// Not by os.OpenFile: it is read by a goroutine of its own, and a non-blocking
	// descriptor would be the job's as well.
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	term := &terminal{master: os.NewFile(uintptr(fd), "ptmx")}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if term.slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	term.resize(t, columns)
	read := make(chan struct{})
	go func() {
		defer close(read)
		b := make([]byte, 4096)
		for {
			n, err := term.master.Read(b)
			if err != nil {
				return // nobody has it open any more
			}
			term.mu.Lock()
			term.text.Write(b[:n])
			term.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		term.slave.Close()
		<-read
		term.master.Close()
	})
	return term
}

func (term *terminal) resize(t *testing.T, columns uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(term.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
}

func (term *terminal) written() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return strings.ReplaceAll(term.text.String(), "\r\n", "\n")
}

// clearLine is what a line that is drawn over begins with.
const clearLine = "\r\x1b[K"

// paints are the lines that were drawn to be drawn over.
func paints(text string) (all []string) {
	for _, part := range strings.Split(text, clearLine) {
		if i := strings.LastIndexByte(part, '\n'); i >= 0 {
			part = part[i+1:]
		}
		if part != "" {
			all = append(all, part)
		}
	}
	return all
}

// TestLiveLine draws the progress in a narrow terminal that becomes narrower: no
// line that is drawn over is ever as wide as the terminal, and what jobs and users
// have named gets no escape sequence through.
func TestLiveLine(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "job.sh", "#!/bin/sh\necho $$ >daemon.pid\nread line <"+filepath.Join(p.dir, "fifo")+"\n")
	if err := syscall.Mkfifo(filepath.Join(p.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	fifo, err := os.OpenFile(filepath.Join(p.dir, "fifo"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer fifo.Close()
	p.write(t, "job.sub", small+"skip_filechecks = true\ntransfer_executable = false\nexecutable = $(x)\n"+
		"queue x in ("+filepath.Join(p.dir, "job.sh")+", /no/such/\x1b[31mred\x1b]0;title\a世界)\n")
	term := openTerminal(t, 50)
	c, _, stderr := p.cmd(t, "run", "job.sub")
	c.Env = append(c.Env, "TERM=xterm")
	c.Stdout = term.slave
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "one job runs and one is held", func() bool { return strings.Contains(term.written(), "1 running, 0 idle, 1 held") })
	fits := func(text string, columns int) {
		drawn := paints(text)
		for _, line := range drawn {
			if len(line) >= columns {
				t.Errorf("%q in %d columns", line, columns)
			}
		}
		if len(drawn) == 0 {
			t.Errorf("nothing is drawn in %q", text)
		}
		if strings.Contains(strings.ReplaceAll(text, clearLine, ""), "\x1b") {
			t.Errorf("an escape sequence in %q", text)
		}
	}
	wide := term.written()
	if fits(wide, 50); !strings.Contains(wide, "[") || !strings.Contains(wide, `\x1b[31mred\x1b]0;title\a世界`) {
		t.Errorf("%q", wide)
	}
	term.resize(t, 20)
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	const told = "told to end: no other job begins, 1 job is asked to end"
	waitFor(t, "it says what it does", func() bool {
		return strings.Contains(term.written(), "\n"+told) || strings.Contains(term.written(), clearLine+told)
	})
	if err := c.Wait(); err == nil {
		t.Error("a job is not done, and the status says nothing")
	}
	fits(strings.TrimPrefix(term.written(), wide), 20)
	if t.Failed() {
		t.Logf("%q\n%s", term.written(), stderr)
	}
	p.nothingLeft(t)
}
