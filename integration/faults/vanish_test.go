// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
	"github.com/execpoint/execpoint/lib/transfer"
)

// linked is a world whose daemon is at the near end of a link.
func linked(t *testing.T, lines string) (*world, *link) {
	t.Helper()
	l := newLink(t)
	w := newWorld(t, "")
	w.at, w.net = near, l.near
	w.configure(lines)
	return w, l
}

// open opens a command under the session of a claim, without its payload.
func (p *place) open(id claim.ID, command int) *cedar.Conn {
	p.w.t.Helper()
	snap, err := config.Parse("peer", "COLLECTOR_HOST =\nALLOW_CLIENT = *\n", config.Options{})
	p.w.must(err)
	set, err := security.SettingsFrom(snap, security.Sources{Subsystem: "SCHEDD"})
	p.w.must(err)
	c := &security.Client{
		Sessions: security.NewSessions(clock.System(), 0), Clock: clock.System(), Dial: p.dial, Version: shadowtest.Version,
		Subsystem: "SCHEDD", PID: os.Getpid(), Address: func() string { return p.files.Address() },
	}
	c.Configure(set, nil)
	startd, _, _ := strings.Cut(id.Public, "#")
	to, err := cedar.ParseSinful(startd)
	p.w.must(err)
	_, err = c.Sessions.AddExecuteSide(id, startd)
	p.w.must(err)
	conn, _, err := c.Command(p.w.t.Context(), to, command, security.Options{Session: id.Public})
	p.w.must(err)
	p.w.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// sockets is how many the daemon has.
func (w *world) sockets() int {
	w.t.Helper()
	all, err := realpool.Descriptors(w.cmd.Process.Pid)
	w.must(err)
	return len(slices.DeleteFunc(all, func(to string) bool { return !strings.HasPrefix(to, "socket:") }))
}

// Messages are broken off in the middle: the header of one says that it has more
// bytes than come.
var torn = []byte{1, 0, 0, 1, 0, 42}

// TestPeersVanish has peers be lost without a word in every stage of a
// conversation. Each is forgotten once the time for its message is over, the
// others are served meanwhile, and the claim that was half asked for is free.
func TestPeersVanish(t *testing.T) {
	t.Parallel()
	const (
		many    = 8
		message = 20 * time.Second // lib/cedar/listen: Limits.Message, and SEC_TCP_SESSION_TIMEOUT
	)
	w, l := linked(t, "SEC_TCP_SESSION_TIMEOUT = 5\n")
	id := w.begin()
	there, here := w.peer(l.far, far, id), w.peer(l.near, near, id)
	part, rest := here.request(id, w.job(1, "true", ""))
	before := w.sockets()

	startd, _, _ := strings.Cut(id.Public, "#")
	at, err := cedar.ParseSinful(startd)
	w.must(err)
	for range many {
		for _, first := range [][]byte{nil, {1}, torn} { // of a handshake
			nc, err := there.dial(t.Context(), at)
			w.must(err)
			t.Cleanup(func() { _ = nc.Close() })
			_, err = nc.Write(first)
			w.must(err)
		}
		_, err := there.open(rest, command.RequestClaim).NetConn().Write(torn) // where the claim id begins
		w.must(err)
		conn := there.open(part, command.ActivateClaim) // in the middle of a job
		conn.SetPacketSize(4 << 10)
		conn.PutSecret(claim.Secret(part.Wire()))
		conn.PutInt(2)
		conn.PutInt(100)
		conn.PutString("Cmd = \"" + strings.Repeat("x", 100<<10) + "\"")
	}
	w.eventually("all are there", 10*time.Second, func() error {
		if n := w.sockets(); n < before+5*many-1 { // one may have been that of the request
			return fmt.Errorf("%d sockets, %d before", n, before)
		}
		return nil
	})
	l.cut()
	began := time.Now()
	w.done("a job meanwhile", here.run(here.shadow(part, w.job(1, "true", ""), shadowtest.Files{})), 15*time.Second)
	w.eventually("the lost peers of a handshake are forgotten", 15*time.Second, func() error {
		if n := w.sockets(); n > before+many {
			return fmt.Errorf("%d sockets, %d before", n, before)
		}
		return nil
	})
	t.Logf("those of a handshake after %v", time.Since(began).Round(time.Millisecond))
	w.eventually("all lost peers are forgotten", message+10*time.Second, func() error {
		if n := w.sockets(); n > before {
			return fmt.Errorf("%d sockets, %d before", n, before)
		}
		return nil
	})
	t.Logf("all after %v", time.Since(began).Round(time.Millisecond))
	again, _ := here.request(rest, w.job(2, "true", ""))
	w.done("a job in the claim that was half asked for", here.run(here.shadow(again, w.job(2, "true", ""), shadowtest.Files{})), 20*time.Second)
}

// quick are times after which a starter gives a silent shadow up.
const quick = "STARTER_UPDATE_INTERVAL = 2\nSTARTER_INITIAL_UPDATE_INTERVAL = 2\nSTARTER_UPLOAD_TIMEOUT = 4\nKILLING_TIMEOUT = 5\n"

// TestShadowVanishes loses the shadow of a running job. The job runs on for the
// rest of its lease, then it is ended and its slot is free.
func TestShadowVanishes(t *testing.T) {
	t.Parallel()
	const lease = 15 * time.Second
	w, l := linked(t, quick)
	id := w.begin()
	there := w.peer(l.far, far, id)
	part, _ := there.request(id, w.job(1, "true", ""))
	word := fmt.Sprintf("87654.%d", os.Getpid()%10000)
	there.run(there.shadow(part, w.job(1, "exec sleep "+word, "JobLeaseDuration = 15\n"), shadowtest.Files{}))
	runs := func() bool { return len(processesOf("sleep\x00"+word)) > 0 }
	w.eventually("the job runs", 20*time.Second, func() error {
		if !runs() {
			return fmt.Errorf("it does not")
		}
		return nil
	})
	l.cut()
	began := time.Now()
	w.eventually("the job is ended", lease+20*time.Second, func() error {
		if runs() {
			return fmt.Errorf("it still runs")
		}
		return nil
	})
	took := time.Since(began)
	t.Logf("the job was ended %v after its shadow was lost", took.Round(time.Millisecond))
	if took < lease-5*time.Second { // the shadow was heard of at most an update before
		t.Errorf("it was ended %v after its shadow was lost, its lease is %v", took, lease)
	}
	w.eventually("nothing of it is left", 15*time.Second, func() error {
		dirs, err := filepath.Glob(filepath.Join(w.dir, "execute", "dir_*"))
		if err == nil && len(dirs) > 0 {
			err = fmt.Errorf("%v are in EXECUTE", dirs)
		}
		return err
	})
	w.says("slot1_1: Changing state: Owner -> Unclaimed", 15*time.Second)
}

// TestLinkComesBack loses the shadow of a running job for longer than its starter
// waits for an answer, and has it come back within the lease: the job goes on and
// its output arrives.
func TestLinkComesBack(t *testing.T) {
	t.Parallel()
	w, l := linked(t, quick)
	id := w.begin()
	there := w.peer(l.far, far, id)
	part, _ := there.request(id, w.job(1, "true", ""))
	release := filepath.Join(w.dir, "submit", "release")
	s := there.shadow(part, w.job(1, "echo > began; until test -e "+release+"; do sleep 0.1; done; echo done > made", "JobLeaseDuration = 120\n"), shadowtest.Files{})
	there.run(s)
	w.eventually("the job runs", 20*time.Second, func() error {
		found, err := filepath.Glob(filepath.Join(w.dir, "execute", "dir_*", "scratch", "began"))
		if err != nil || len(found) == 0 {
			return fmt.Errorf("it has not begun: %v", err)
		}
		return nil
	})
	l.cut()
	wait := time.NewTimer(10 * time.Second) // an update and its timeout, and more
	<-wait.C
	l.mend()
	s.Vanish()
	conn, err := s.Reconnect(t.Context(), there.startd)
	w.must(err)
	defer func() { _ = conn.Close() }()
	ended := make(chan end, 1)
	go func() {
		e, err := s.Serve(t.Context(), conn)
		ended <- end{e, err}
	}()
	w.must(os.WriteFile(release, nil, 0o644))
	w.done("the job", ended, 30*time.Second)
	w.eventually("its output is there", 10*time.Second, func() error {
		_, err := os.Stat(filepath.Join(w.dir, "submit", "made"))
		return err
	})
}

// TestTransferVanishes loses the shadow in the middle of the input: the starter
// gives up once nothing has come for as long as it waits, and the slot is free when
// the lease of its claim is over at the latest.
func TestTransferVanishes(t *testing.T) {
	t.Parallel()
	w, l := linked(t, quick)
	id := w.begin()
	there := w.peer(l.far, far, id)
	part, _ := there.request(id, w.job(1, "true", ""))
	big := filepath.Join(w.dir, "submit", "big")
	f, err := os.Create(big)
	w.must(err)
	w.must(f.Truncate(1 << 40)) // nothing but a hole
	w.must(f.Close())
	there.run(there.shadow(part, w.job(1, "true", "TransferInput = \"big\"\nJobLeaseDuration = 15\n"), shadowtest.Files{In: transfer.SendPlan{Items: []transfer.SendItem{{Source: "big"}}}}))
	w.eventually("half of the input is there", 20*time.Second, func() error {
		found, err := filepath.Glob(filepath.Join(w.dir, "execute", "dir_*", "scratch", "big"))
		if err != nil || len(found) == 0 {
			return fmt.Errorf("there is no file: %v", err)
		}
		if info, err := os.Stat(found[0]); err != nil || info.Size() < 1<<20 {
			return fmt.Errorf("it has not begun: %v", err)
		}
		return nil
	})
	l.cut()
	began := time.Now()
	w.eventually("nothing of it is left", 20*time.Second, func() error { // two calls that are not answered, 4 s each
		dirs, err := filepath.Glob(filepath.Join(w.dir, "execute", "dir_*"))
		if err == nil && len(dirs) > 0 {
			err = fmt.Errorf("%v are in EXECUTE", dirs)
		}
		return err
	})
	t.Logf("the starter gave up %v after the shadow was lost", time.Since(began).Round(time.Millisecond))
	w.says("slot1_1: Changing state: Owner -> Unclaimed", 30*time.Second)
}
