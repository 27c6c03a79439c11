// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/starter/launch"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/platform/linux/account"
	"github.com/execpoint/execpoint/platform/linux/handover"
	"github.com/execpoint/execpoint/platform/linux/proc"
)

// dial is launch.Return's.
func dial(dir *os.File, name string) (net.Conn, int, error) {
	nc, pid, err := handover.Dial(dir, name)
	if err != nil {
		return nil, 0, err
	}
	return nc, pid, nil
}

// abandoned starts a job whose starter stays, kills the startd when the job runs, and
// returns how a later one comes back. The job ends when the file "end" is there, or with
// 5 when it is told to.
func (s *stage) abandoned(script string) (*aStartd, launch.Return) {
	s.Helper()
	s.plan.Orphan = protocol.OrphanStay
	ready, end := filepath.Join(s.submit, "ready"), filepath.Join(s.submit, "end")
	s.sh(fmt.Sprintf(`trap "exit 5" TERM; %s : > %s; until [ -e %s ]; do sleep 0.02; done`, script, ready, end))
	d := s.runStartd()
	s.noLonger(d)
	await(s, ready)
	if err := d.cmd.Process.Kill(); err != nil {
		s.Fatal(err)
	}
	_ = d.cmd.Wait()
	census, err := proc.New(proc.Options{Role: proc.Guest})
	if err != nil {
		s.Fatal(err)
	}
	return d, launch.Return{Dir: filepath.Join(s.execute, fmt.Sprintf("dir_%d", d.starter)), Census: census, Private: account.Directories{}.Private, Dial: dial}
}

// noLonger ends with the test what the test did not end.
func (s *stage) noLonger(d *aStartd) {
	s.Cleanup(func() {
		for _, pid := range []int{d.starter, d.job} {
			if pid != 0 && !gone(pid, 5*time.Second) {
				s.Errorf("process %d is still there", pid)
				_ = syscall.Kill(pid, syscall.SIGKILL)
				gone(pid, time.Second)
			}
		}
	})
}

// back is a later startd.
func (s *stage) back(r launch.Return) *launch.Handle {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	h, err := launch.Reconnect(ctx, r)
	if err != nil {
		s.Fatal(err)
	}
	return h
}

// upTo reads reports up to one of a kind, each with a higher number than the last.
func (s *stage) upTo(h *launch.Handle, last *uint64, kind string) (kinds []string) {
	s.Helper()
	for r := range h.Reports() {
		if r.ID <= *last || r.At.IsZero() {
			s.Errorf("report %d, %s, of %v comes after %d", r.ID, r.What.Kind(), r.At, *last)
		}
		*last = r.ID
		if kinds = append(kinds, r.What.Kind()); r.What.Kind() == kind {
			return kinds
		}
	}
	s.Fatalf("the starter says %q, and not %s", kinds, kind)
	return nil
}

// A startd is killed, and the job goes on. A later one connects to its starter, hears
// what was not acknowledged, in order and once, orders the job to stop, to go on and to
// leave, and hears the end.
func TestReturn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	d, r := s.abandoned("")
	r.Heard = 2 // of what the first startd wrote down
	h := s.back(r)
	if hello := h.Hello(); hello.Activation != "slot1_1#1" || hello.State != protocol.JobRuns || hello.Proc.PID != d.starter || hello.Program != protocol.Program || hello.Taken != 1 {
		t.Errorf("hello %+v", hello)
	}
	last := r.Heard
	if got, want := s.upTo(h, &last, "running"), []string{"transfer-in-done", "running"}; !slices.Equal(got, want) || last != 4 {
		t.Errorf("missed %q up to %d, want %q", got, last, want)
	}
	if _, err := launch.Reconnect(t.Context(), r); !errs.Is(err, errs.Conflict) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("a second startd: %v", err)
	}
	for _, step := range []struct {
		order protocol.Order
		says  string
	}{{protocol.Suspend{}, "suspended"}, {protocol.Continue{}, "continued"}, {protocol.SoftKill{Leave: protocol.Leave{Reason: "the later startd"}}, "ended"}} {
		if err := h.Send(step.order); err != nil {
			t.Fatal(err)
		}
		if step.says == "ended" {
			break
		}
		s.upTo(h, &last, step.says)
		h.Heard(last)
	}
	var rec protocol.ExitRecord
	for told := range h.Reports() {
		if e, ok := told.What.(protocol.Ended); ok {
			rec = e.Record
		}
		h.Heard(told.ID)
	}
	<-h.Exited()
	if st, err := h.Exit(); !st.Success() || err != nil {
		t.Errorf("the starter %v: %v", st, err)
	}
	if !rec.Evicted || rec.Reason != "the later startd" || rec.Status.Code != 5 || len(rec.Problems) != 0 || alive(d.job) {
		t.Errorf("%+v", rec)
	}
	s.empty()
}

// What a later startd has not acknowledged when it goes is told to the next one, and so
// on; what it has is not.
func TestReturnAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	d, r := s.abandoned("")
	for i := range 3 {
		nc, in := s.knock(r.Dir)
		hello, ok := s.said(in).Message.(protocol.StarterHello)
		if !ok || hello.Taken != uint64(i+1) {
			t.Errorf("visit %d: %+v", i, hello)
		}
		say(t, nc, protocol.Line{Message: protocol.StartdHello{Program: "test"}})
		// The order of the visit before comes again, and one that is refused each time
		// that it is carried out.
		for id := max(hello.Taken, 2); id <= uint64(i+2); id++ {
			say(t, nc, protocol.Line{ID: id, Message: protocol.Checkpoint{}})
		}
		var ids []uint64
		refused := 0
		for refused < i+1 {
			switch l := s.said(in); m := l.Message.(type) {
			case protocol.Refused:
				refused++
				ids = append(ids, l.ID)
			case protocol.Report:
				ids = append(ids, l.ID)
			default:
				_ = m
			}
		}
		if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) || ids[0] != 1 {
			t.Errorf("visit %d heard %d", i, ids)
		}
		nc.Close()
	}
	// Everything is acknowledged now, but for what follows.
	nc, in := s.knock(r.Dir)
	s.said(in)
	say(t, nc, protocol.Line{Message: protocol.StartdHello{Program: "test", Heard: 1 << 62}}) // more than there was
	say(t, nc, protocol.Line{ID: 9, Message: protocol.HardKill{Leave: protocol.Leave{Reason: "enough"}}})
	if l := s.said(in); l.Message != (protocol.Message)(protocol.Taken{Order: 9}) {
		t.Errorf("after all was heard: %+v", l)
	}
	for {
		if _, ok := s.said(in).Message.(protocol.Ended); ok {
			break
		}
	}
	say(t, nc, protocol.Line{Message: protocol.Heard{Report: 1 << 62}})
	nc.Close()
	if !gone(d.starter, 30*time.Second) {
		t.Error("the starter waits for more")
	}
	s.empty()
}

// A job ends, and its starter, while no startd is there. What they said is there for a
// later one, and goes when that has dealt with it.
func TestReturnTooLate(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	d, r := s.abandoned("echo some output;")
	s.file("end", "", 0o600)
	if !gone(d.starter, 30*time.Second) {
		t.Fatal("the starter waits for nobody")
	}
	if out := s.read("out"); out != "some output\n" {
		t.Errorf("the output is %q", out)
	}
	h := s.back(r)
	last := uint64(0)
	want := []string{"sandbox", "transfer-in-start", "transfer-in-done", "running", "transfer-out-start", "transfer-out-done", "ended"}
	if got := s.upTo(h, &last, "ended"); !slices.Equal(got, want) {
		t.Errorf("it left %q, want %q", got, want)
	}
	select {
	case <-h.Exited():
		t.Error("what it left is gone before it was dealt with")
	case <-time.After(100 * time.Millisecond):
	}
	if err := h.Send(protocol.Suspend{}); err == nil {
		t.Error("a starter that has ended takes orders")
	}
	h.Heard(last)
	<-h.Exited()
	if st, err := h.Exit(); !st.Success() || err != nil {
		t.Errorf("the starter %v: %v", st, err)
	}
	s.empty()
	if _, err := launch.Reconnect(t.Context(), r); !errs.Is(err, errs.NotFound) {
		t.Errorf("to nobody: %v", err)
	}
}

// A starter that was killed while no startd was there has left a record, by which its
// job is found.
func TestReturnToTheDead(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	hidden := s.hiding("marked.stay") // the job's shell waits for it
	s.plan.Orphan = protocol.OrphanStay
	d := s.runStartd()
	child := await(t, hidden)
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
	if err := syscall.Kill(d.starter, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	census, err := proc.New(proc.Options{Role: proc.Guest})
	if err != nil {
		t.Fatal(err)
	}
	h := s.back(launch.Return{Dir: filepath.Join(s.execute, fmt.Sprintf("dir_%d", d.starter)), Census: census, Private: account.Directories{}.Private, Dial: dial})
	for r := range h.Reports() {
		t.Errorf("it says %+v", r)
	}
	<-h.Exited()
	if st, _ := h.Exit(); st.Success() || alive(child) || alive(d.job) {
		t.Errorf("the starter %v, its job alive %v, a child %v", st, alive(d.job), alive(child))
	}
	s.empty()
}

// A later startd kills the starter, and its job with it.
func TestReturnAndKill(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	d, r := s.abandoned("")
	// Of two orders nobody knows whether they arrived; a third is new.
	r.Unanswered = []launch.Numbered{{ID: 2, Order: protocol.Checkpoint{}}, {ID: 3, Order: protocol.Checkpoint{}}}
	h := s.back(r)
	last := uint64(0)
	for range 2 {
		s.upTo(h, &last, "refused")
	}
	if err := h.Send(protocol.Checkpoint{}); err != nil {
		t.Error(err)
	}
	s.upTo(h, &last, "refused")
	if left := h.Unanswered(); len(left) != 0 {
		t.Errorf("no answer to %+v", left)
	}
	none := r
	none.Dial = nil
	if _, err := launch.Reconnect(t.Context(), none); !errs.Is(err, errs.Unsupported) {
		t.Errorf("where there are no sockets: %v", err)
	}
	if err := h.Kill(); err != nil {
		t.Error(err)
	}
	for range h.Reports() {
	}
	<-h.Exited()
	if st, _ := h.Exit(); st.Success() || alive(d.starter) || alive(d.job) {
		t.Errorf("the starter %v, alive %v, its job %v", st, alive(d.starter), alive(d.job))
	}
	s.empty()
}

// knock connects to a starter like a startd that speaks for itself.
func (s *stage) knock(dir string) (net.Conn, *bufio.Scanner) {
	s.Helper()
	own, err := os.Open(filepath.Join(dir, "htcondor"))
	if err != nil {
		s.Fatal(err)
	}
	defer own.Close()
	for deadline := time.Now().Add(30 * time.Second); ; pause() {
		nc, _, err := dial(own, "starter.socket")
		if err != nil {
			s.Fatal(err)
		}
		in := bufio.NewScanner(nc)
		in.Buffer(nil, protocol.MaxLine)
		_ = nc.SetReadDeadline(time.Now().Add(30 * time.Second))
		if !s.busy(nc) || time.Now().After(deadline) {
			return nc, in
		}
		nc.Close() // it has not seen yet that the one before has gone
	}
}

// busy reports whether the starter has another startd, by the length of what it says.
func (s *stage) busy(nc net.Conn) bool {
	raw, err := nc.(*net.UnixConn).SyscallConn()
	if err != nil {
		s.Fatal(err)
	}
	var b [64]byte
	n := 0
	if err := raw.Read(func(fd uintptr) bool {
		n, _, err = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		return !errors.Is(err, syscall.EAGAIN)
	}); err != nil {
		s.Fatal(err)
	}
	return strings.Contains(string(b[:n]), `"busy"`)
}

func (s *stage) said(in *bufio.Scanner) protocol.Line {
	s.Helper()
	if !in.Scan() {
		s.Fatalf("the starter says no more: %v", in.Err())
	}
	l, err := protocol.Starter.Reader().Read(in.Bytes())
	if err != nil {
		s.Fatal(err)
	}
	return l
}

func say(t *testing.T, nc net.Conn, l protocol.Line) {
	t.Helper()
	line, err := protocol.Append(nil, l)
	if err == nil {
		_, err = nc.Write(line)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A startd of another version is refused, and the job does not notice.
func TestReturnOfAnotherVersion(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	d, r := s.abandoned("")
	nc, in := s.knock(r.Dir)
	s.said(in)
	if _, err := nc.Write([]byte(`{"v":2,"kind":"hello","body":{"program":"execpoint-9"}}` + "\n")); err != nil {
		t.Fatal(err)
	}
	if in.Scan() {
		t.Errorf("it hears %s", in.Text())
	}
	nc.Close()
	h := s.back(r)
	if !alive(d.job) {
		t.Error("the job is gone")
	}
	s.file("end", "", 0o600)
	for told := range h.Reports() {
		h.Heard(told.ID)
	}
	<-h.Exited()
	s.empty()
}

// Neither the job nor any other user can connect to the starter's socket, remove it or put
// another one in its place; who connects all the same, since its mode is open, is turned
// away.
func TestReturnOfTheWrong(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root: without it jobs are the starter's own user")
	}
	s := newStage(t)
	exe := jobProgram(t)
	_, r := s.abandoned(fmt.Sprintf(`cd ../htcondor; (%[1]s=knock:starter.socket %[2]s; rm -f starter.socket; mv starter.socket x; ln -sf y starter.socket) >%[3]s 2>&1; cd ..; mv htcondor x 2>>%[3]s; mv ../dir_* ../other 2>>%[3]s;`,
		roleEnv, exe, filepath.Join(s.submit, "tried")))
	tried := s.read("tried")
	if !strings.HasPrefix(tried, "connect: permission denied") || strings.Count(tried, "ermission denied")+strings.Count(tried, "not permitted") < 5 {
		t.Errorf("the job could do something:\n%s", tried)
	}
	door := filepath.Join(r.Dir, "htcondor/starter.socket")
	if info, err := os.Lstat(door); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if err := os.Chmod(door, 0o666); err != nil {
		t.Fatal(err)
	}
	knock := exec.Command(exe)
	knock.Env = []string{roleEnv + "=knock:" + door}
	knock.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65533, Gid: 65533}}
	if out, err := knock.CombinedOutput(); err != nil || string(out) != "nothing was said\n" {
		t.Errorf("another user: %q, %v", out, err)
	}
	h := s.back(r)
	s.file("end", "", 0o644)
	for told := range h.Reports() {
		h.Heard(told.ID)
	}
	<-h.Exited()
	s.empty()
}

// knockAt says what becomes of a connection to a socket.
func knockAt(path string) {
	nc, err := net.Dial("unix", path)
	if err != nil {
		var no syscall.Errno
		errors.As(err, &no)
		fmt.Println("connect:", no)
		os.Exit(0)
	}
	_ = nc.SetReadDeadline(time.Now().Add(10 * time.Second))
	line, err := bufio.NewReader(nc).ReadString('\n')
	if line == "" && err != nil {
		fmt.Println("nothing was said")
	} else {
		fmt.Println("it said", line)
	}
	os.Exit(0)
}
