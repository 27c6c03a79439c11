// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
)

// works demands that the shadow and the owner are served now.
func (w *world) works() {
	w.t.Helper()
	w.write("_condor_stdout", "still here")
	if _, files, _, err := w.peekAt(w.ownerSession(), "Out = true"); err != nil || len(files) != 1 || files[0] != "still here" {
		w.t.Errorf("the owner is not served: %q, %v", files, err)
	}
}

func TestFloodsAndSilence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.works()
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	to, err := cedar.ParseSinful(w.socket.Address())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * mostConns {
		nc, err := from.Dial("tcp", to.HostPort())
		if err != nil {
			t.Skipf("there is only one loopback address to come from: %v", err)
		}
		defer nc.Close()
		switch i % 4 {
		case 1:
			_, _ = nc.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
		case 2:
			_, _ = nc.Write(bytes.Repeat([]byte{0xff}, 5000))
		case 3:
			_, _ = nc.Write([]byte{1, 0, 0, 0, 8, 0, 0}) // half of a message
		}
	}
	if all, unknown := w.socket.server.Connections(); all > mostConns || unknown > mostHandshakes {
		t.Errorf("the socket holds %d connections, %d of them of nobody", all, unknown)
	}
	w.works()
	if got := w.job.told(); got != "" {
		t.Errorf("the job was told %q", got)
	}
}

func TestNobodyNegotiates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, number := range []int{command.CACmd, command.StarterVacateJob, command.CreateJobOwnerSecSession, command.StartSSHD, command.StarterPeek, 60000, 60011, 60045, 60004, 442} {
		client := &security.Client{
			Sessions: security.NewSessions(clock.System(), 10), Clock: clock.System(), Version: testVersion, Subsystem: "TOOL",
			Address: func() string { return "" }, Dial: w.dialer(),
		}
		client.Configure(&security.Settings{Authorizer: &security.Authorizer{}, StepTimeout: 10 * time.Second, Deadline: 10 * time.Second}, nil)
		to, err := cedar.ParseSinful(w.socket.Address())
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range []bool{false, true} {
			conn, _, err := client.Command(t.Context(), to, number, security.Options{Raw: raw})
			if err == nil {
				_, err = ask(conn, mustAd(t, "Out = true"))
			}
			if err == nil {
				t.Errorf("the command %d was answered to nobody, raw %v", number, raw)
			}
		}
	}
	if n := w.socket.sessions.Len(); n != 1 {
		t.Errorf("there are %d sessions, want that of the claim", n)
	}
	w.works()
}

func (w *world) dialer() security.Dialer {
	return func(_ context.Context, _ cedar.Sinful) (net.Conn, error) { return w.dial(), nil }
}

func TestBadSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// A session that we do not know, and the claim's with another key.
	for _, text := range []string{
		startdText + "#1700000000#2#" + security.DefaultInfo("25.14.0").String() + keyText,
		startdText + "#1700000000#1#" + security.DefaultInfo("25.14.0").String() + strings.Repeat("f", 64),
	} {
		id, err := claim.ParseID(text)
		if err != nil {
			t.Fatal(err)
		}
		w.peers = security.NewSessions(clock.System(), 10)
		if _, err := w.peers.AddExecuteSide(id, ""); err != nil {
			t.Fatal(err)
		}
		conn, err := w.command(command.StarterVacateJob, id.Public)
		if err != nil {
			continue // refused before anything was sent
		}
		conn.PutString("bad")
		for range 3 {
			conn.PutInt(1)
		}
		if err = conn.EndMessage(); err == nil {
			_, err = conn.Int()
		}
		if err == nil {
			t.Error("a bad session was answered")
		}
		_ = conn.Close()
	}
	if got := w.job.told(); got != "" {
		t.Errorf("the job was told %q", got)
	}
}

// recorder keeps what is written to a connection.
type recorder struct {
	net.Conn
	mu  sync.Mutex
	all bytes.Buffer
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	r.all.Write(b)
	r.mu.Unlock()
	return r.Conn.Write(b)
}

// What somebody saw on the network is of no use to him.
func TestPlayedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tap := &recorder{Conn: w.dial()}
	conn, err := w.commandOver(tap, command.StarterVacateJob, claimSession())
	if err != nil {
		t.Fatal(err)
	}
	conn.PutString("once")
	for range 3 {
		conn.PutInt(1)
	}
	if err := conn.EndMessage(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Int(); err != nil {
		t.Fatal(err)
	}
	if err := conn.EndOfMessage(); err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Int() // until the connection is closed: the job is told after the answer
	once := w.job.told()
	nc := w.dial()
	if _, err := nc.Write(tap.all.Bytes()); err != nil {
		t.Fatal(err)
	}
	_ = nc.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.Copy(io.Discard, nc)
	if got := w.job.told(); got != once || !strings.HasPrefix(once, "once/") {
		t.Errorf("the job was told %q, and then %q", once, got)
	}
	w.works()
}

// A peer that stops in the middle of taking a file holds nobody else.
func TestSlowPeeker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("result", strings.Repeat("x", 32<<20))
	session := w.ownerSession()
	conn, err := w.command(command.StarterPeek, session)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := ask(conn, mustAd(t, `TransferFiles = { "result" }`))
	if err != nil {
		t.Fatal(err)
	}
	if ok, _ := reply.EvalBool("Result", nil); !ok {
		t.Fatal(reply.Text(classad.Old))
	}
	w.works()
}

func TestBrokenRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := w.ownerSession()
	for _, number := range []int{command.CACmd, command.StarterVacateJob, command.CreateJobOwnerSecSession, 60000} {
		conn, err := w.command(number, claimSession())
		if err != nil {
			t.Fatal(err)
		}
		conn.PutBytes([]byte{0, 0, 0, 0, 0, 0, 0})
		_ = conn.EndMessage()
		if _, err := conn.Ad(cedar.AdOptions{}); err == nil {
			t.Errorf("%d: broken bytes were answered", number)
		}
	}
	for _, number := range []int{command.StarterPeek, command.StartSSHD} {
		conn, err := w.command(number, session)
		if err != nil {
			t.Fatal(err)
		}
		conn.PutInt(1 << 40) // lines
		_ = conn.EndMessage()
		if _, err := conn.Ad(cedar.AdOptions{}); err == nil {
			t.Errorf("%d: broken bytes were answered", number)
		}
	}
	if got := w.job.told(); got != "" {
		t.Errorf("the job was told %q", got)
	}
	w.works()
}
