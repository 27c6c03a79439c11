// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"fmt"
	"net"
	"os"
	"sync"
	"testing"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/eventlog"
)

// relay is the network between an access point and its Execution Points: what
// goes to a port of 127.0.0.2 comes to the same port of 127.0.0.1.
type relay struct {
	first, last int
	mu          sync.Mutex
	open        *sync.Cond
	held        bool
	conns       []net.Conn
}

// newRelay takes some ports in a row.
func newRelay(t *testing.T) *relay {
	t.Helper()
	const width = 60
	r := &relay{}
	r.open = sync.NewCond(&r.mu)
	var all []net.Listener
	shut := func() {
		for _, l := range all {
			_ = l.Close()
		}
		all = nil
	}
	// Below the ports that the system gives out. Processes with tests of their own
	// begin in different places.
	for next := os.Getpid() * width; len(all) == 0; next += width {
		r.first = 12000 + next%18000
		r.last = r.first + width - 1
		for port := r.first; port <= r.last; port++ {
			l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.2:%d", port))
			if err != nil {
				shut()
				break
			}
			all = append(all, l)
		}
	}
	for _, l := range all {
		go r.serve(l)
	}
	t.Cleanup(func() { shut(); r.pass(); r.cut() })
	return r
}

func (r *relay) serve(l net.Listener) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", l.Addr().(*net.TCPAddr).Port))
		if err != nil {
			_ = in.Close()
			continue
		}
		r.mu.Lock()
		r.conns = append(r.conns, in, out)
		r.mu.Unlock()
		go r.copy(out, in)
		go r.copy(in, out)
	}
}

// copy passes on what comes, unless the relay is held: then it keeps it.
func (r *relay) copy(to, from net.Conn) {
	defer func() { _ = from.Close(); _ = to.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		r.mu.Lock()
		for r.held {
			r.open.Wait()
		}
		r.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// hold lets nothing through, and tells nobody.
func (r *relay) hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = true
}

// pass ends hold: nothing was lost.
func (r *relay) pass() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = false
	r.open.Broadcast()
}

// cut ends all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, nc := range r.conns {
		_ = nc.Close()
	}
	r.conns = nil
}

// TestNetworkCut compares what becomes of jobs when the network between the
// access point and both sides goes, and comes back.
func TestNetworkCut(t *testing.T) {
	t.Parallel()
	cut := func(net *relay, jobs [2]*job) {
		net.cut()
		for _, j := range jobs {
			j.wait(eventlog.CodeReconnected, 1)
		}
		told2(jobs)
	}
	for _, tt := range []struct {
		name, submit, want, known string
		act                       func(net *relay, jobs [2]*job)
	}{
		{"silent for a while", "", "001 005", "", func(net *relay, jobs [2]*job) {
			net.hold()
			for _, j := range jobs {
				j.told("go") // it ends while nobody hears of it
				j.gone()
			}
			net.pass()
			over2(jobs)
		}},
		{"cut and back", "should_transfer_files = NO", "001 022 023 005", "", cut},
		// A shadow that comes back itself, not a new one in its place, no longer
		// knows the key that it tells: the job is run once more.
		{"cut and back, with files", "", "", "both are refused the transfer by the shadow; ours says so, as a failed transfer", cut},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			realpool.NeedLong(t)
			net := newRelay(t)
			lines := ""
			for _, daemon := range [...]string{"STARTD", "STARTER"} {
				lines += fmt.Sprintf("%[1]s.IN_LOWPORT = %[2]d\n%[1]s.IN_HIGHPORT = %[3]d\n%[1]s.TCP_FORWARDING_HOST = 127.0.0.2\n", daemon, net.first, net.last)
			}
			d := disturbance{lines: lines, submit: tt.submit, known: tt.known, want: tt.want, differ: []string{"TotalJobReconnectAttempts"}, act: func(_ *rig, jobs [2]*job) { tt.act(net, jobs) }}
			d.run(t)
		})
	}
}
