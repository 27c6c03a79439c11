// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package handover_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/platform/linux/handover"
)

const roleEnv = "EXECPOINT_TEST_ROLE"

// TestMain is also the process that is passed a connection: it writes what the
// line says into that connection.
func TestMain(m *testing.M) {
	role, path, _ := strings.Cut(os.Getenv(roleEnv), ":")
	switch role {
	case "":
		os.Exit(m.Run())
	case "door":
		beDoor(path)
	case "knock":
		knockAt(path)
	}
	in, ok := handover.From(os.Stdin)
	if !ok {
		fmt.Println("standard input is no socket")
		os.Exit(1)
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		nc, err := in.Socket()
		if err != nil {
			fmt.Println(errs.KindOf(err), len(lines.Text()))
			continue
		}
		_, err = fmt.Fprintln(nc, len(lines.Text()))
		nc.Close()
		fmt.Println("passed", err)
	}
	fmt.Println("end", lines.Err())
	os.Exit(0)
}

// tcp returns two ends of a connection.
func tcp(t testing.TB) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// A process of ours gets the connection with the line, and only there.
func TestPass(t *testing.T) {
	child, parent, err := handover.New()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{roleEnv + "=child"}
	cmd.Stdin, cmd.Stderr = child, os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	says := func(want string) {
		t.Helper()
		if !lines.Scan() || !strings.EqualFold(lines.Text(), want) {
			t.Fatalf("the process says %q, want %q", lines.Text(), want)
		}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child.Close()
	if _, err := io.WriteString(parent, "one\n"); err != nil {
		t.Fatal(err)
	}
	says("not found 3")
	for _, size := range []int{5, 300_000} { // the second is larger than what the socket holds
		ours, theirs := tcp(t)
		if err := parent.Pass(append(bytes.Repeat([]byte("x"), size), '\n'), ours); err != nil {
			t.Fatal(err)
		}
		ours.Close() // theirs stays connected
		_ = theirs.SetReadDeadline(time.Now().Add(20 * time.Second))
		got, err := io.ReadAll(theirs)
		if err != nil || string(got) != fmt.Sprintln(size) {
			t.Errorf("through the connection that was passed comes %q (%v)", got, err)
		}
		says("passed <nil>")
	}
	if _, err := io.WriteString(parent, "four\n"); err != nil {
		t.Fatal(err)
	}
	says("not found 4")
	parent.Close()
	says("end <nil>")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

// descriptors counts those of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

// Whatever becomes of a connection, no descriptor stays. It counts those of
// the process, so it is not parallel.
func TestNoDescriptorStays(t *testing.T) {
	tcp(t) // the poller is there
	before := descriptors(t)
	for range 20 {
		// taken, and two that are not; the reader is gone; nothing can be passed
		child, parent, err := handover.New()
		if err != nil {
			t.Fatal(err)
		}
		in, ok := handover.From(child)
		if !ok {
			t.Fatal("the child's end is no socket")
		}
		a, b := tcp(t)
		for range 3 {
			if err := parent.Pass([]byte("x\n"), a); err != nil {
				t.Fatal(err)
			}
			if n, err := in.Read(make([]byte, 9)); n != 2 || err != nil {
				t.Fatal(n, err)
			}
		}
		nc, err := in.Socket()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Socket(); !errs.Is(err, errs.NotFound) {
			t.Errorf("the same connection again: %v", err)
		}
		nc.Close()
		if err := parent.Pass([]byte("never read\n"), a); err != nil {
			t.Fatal(err)
		}
		child.Close()
		if err := parent.Pass([]byte("x\n"), a); err == nil {
			t.Error("a connection was passed to nobody")
		}
		p, q := net.Pipe()
		if err := parent.Pass([]byte("x\n"), p); !errs.Is(err, errs.Unsupported) {
			t.Errorf("a connection without a descriptor: %v", err)
		}
		for _, c := range []io.Closer{p, q, a, b, parent} {
			c.Close()
		}
		if err := parent.Pass([]byte("x\n"), a); err == nil {
			t.Error("a closed connection was passed")
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors became %d", before, after)
	}
}

// What is not a socket is left to be read as it is; several descriptors in one
// message are those of a wrong parent.
func TestOther(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, ok := handover.From(r); ok {
		t.Error("a pipe was taken for a socket")
	}
	child, parent, err := handover.New()
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	in, _ := handover.From(child)
	before := descriptors(t)
	fds := []int{int(r.Fd()), int(w.Fd()), 0, 1, 2, int(r.Fd())}
	if _, _, err := parent.WriteMsgUnix([]byte("x"), unix.UnixRights(fds...), nil); err != nil {
		t.Fatal(err)
	}
	if n, err := in.Read(make([]byte, 9)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if after := descriptors(t); after != before+1 {
		t.Errorf("%d descriptors became %d", before, after)
	}
	if nc, err := in.Socket(); !errs.Is(err, errs.Invalid) {
		t.Errorf("a pipe was passed as a connection: %v %v", nc, err)
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors became %d", before, after)
	}
	parent.Close()
	if n, err := in.Read(make([]byte, 9)); n != 0 || err != io.EOF {
		t.Errorf("after the end: %d, %v", n, err)
	}
}

func BenchmarkPass(b *testing.B) {
	child, parent, err := handover.New()
	if err != nil {
		b.Fatal(err)
	}
	in, _ := handover.From(child)
	nc, _ := tcp(b)
	line, buf := bytes.Repeat([]byte("x"), 8<<10), make([]byte, 16<<10)
	b.ReportAllocs()
	for b.Loop() {
		if err := parent.Pass(line, nc); err != nil {
			b.Fatal(err)
		}
		if _, err := in.Read(buf); err != nil {
			b.Fatal(err)
		}
		got, err := in.Socket()
		if err != nil {
			b.Fatal(err)
		}
		got.Close()
	}
}
