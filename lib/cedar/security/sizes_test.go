// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/errs"
)

// How long a message may be goes by the command and by what its sender has
// proven: little before the handshake is done, more for a peer that nobody
// knows, and what the command needs for one that is known. A session that is
// taken up again counts once its key was shown, within the same message.
func TestMessagesGoByCommandAndProof(t *testing.T) {
	t.Parallel()
	const (
		large   = 8 << 20
		known   = "SEC_DEFAULT_AUTHENTICATION = REQUIRED\nSEC_DEFAULT_AUTHENTICATION_METHODS = PASSWORD"
		claimed = "SEC_DEFAULT_AUTHENTICATION = REQUIRED\nSEC_DEFAULT_AUTHENTICATION_METHODS = CLAIMTOBE"
		nobody  = "SEC_DEFAULT_AUTHENTICATION = NEVER"
	)
	tests := []struct {
		name    string
		config  string
		command int
		resumed bool
		size    int
		passes  bool
	}{
		{"a known peer", known, cmdQuery, false, 1<<20 - 100, true},
		{"a known peer, more", known, cmdQuery, false, 1<<20 + 100, false},
		{"a known peer with a job", known, cmdClaim, false, large - 100, true},
		{"a known peer with a job, more", known, cmdClaim, false, large + 100, false},
		{"a known peer that came before", known, cmdQuery, true, 1<<20 - 100, true},
		{"a known peer that came before, more", known, cmdQuery, true, 1<<20 + 100, false},
		{"a known peer that came before with a job", known, cmdClaim, true, large - 100, true},
		{"a known peer that came before with a job, more", known, cmdClaim, true, large + 100, false},
		{"a name without proof", claimed, cmdQuery, false, 128<<10 - 100, true},
		{"a name without proof, more", claimed, cmdQuery, false, 128<<10 + 100, false},
		{"a name without proof that came before, more", claimed, cmdQuery, true, 128<<10 + 100, false},
		{"an unknown peer", nobody, cmdQuery, false, 128<<10 - 100, true},
		{"an unknown peer, more", nobody, cmdQuery, false, 128<<10 + 100, false},
		{"an unknown peer with a job", nobody, cmdClaim, false, large/8 - 100, true},
		{"an unknown peer with a job, more", nobody, cmdClaim, false, large/8 + 100, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			const all = "ALLOW_READ = *\nALLOW_DAEMON = *\nSEC_DEFAULT_ENCRYPTION = OPTIONAL\n"
			w := newWorld(t, all+tt.config, tt.config)
			w.server.Commands = Commands{cmdQuery: testCommands[cmdQuery], cmdClaim: {Number: cmdClaim, Name: "REQUEST_CLAIM", Terms: command.Terms{Level: Daemon, Message: large}}}
			for again := range 2 {
				conn, _, err := w.client.Command(t.Context(), serverAddress, tt.command, Options{})
				if err != nil {
					t.Fatal(err)
				}
				size := 10
				if !tt.resumed || again > 0 {
					size = tt.size
				}
				go func() {
					conn.PutString(strings.Repeat("x", size))
					_ = conn.EndMessage()
				}()
				out := <-w.requests
				if out.err == nil {
					var s string
					if s, out.err = out.conn.String(); out.err == nil && len(s) != size {
						t.Errorf("%d bytes arrived", len(s))
					}
				}
				if tt.resumed && again == 0 {
					if out.err != nil {
						t.Fatal(out.err)
					}
					_ = conn.Close()
					continue
				}
				if tt.resumed && (out.r != nil && !out.r.Resumed) {
					t.Error("the session was not taken up")
				}
				if tt.passes && out.err != nil || !tt.passes && !errs.Is(out.err, errs.Exhausted) {
					t.Errorf("%d bytes: %v; want them to pass: %t", size, out.err, tt.passes)
				}
				_ = out.conn.Close()
				_ = conn.Close()
				return
			}
		})
	}
}

// Before its first message is there a peer has room for a handshake and no more,
// whatever the command would be.
func TestTheFirstMessageIsSmall(t *testing.T) {
	t.Parallel()
	for _, bare := range []bool{true, false} {
		w := newWorld(t, open, "")
		mine, yours := cedartest.Pipe()
		w.serve(yours)
		conn := cedar.NewConn(mine, cedar.Limits{})
		go func() {
			conn.PutInt(map[bool]int64{true: cmdQuery, false: command.DCAuthenticate}[bare])
			conn.PutString(strings.Repeat("x", maxHandshake+100))
			_ = conn.EndMessage()
		}()
		if out := <-w.requests; !errs.Is(out.err, errs.Exhausted) {
			t.Errorf("bare %t: a first message of more than %d bytes: %v", bare, maxHandshake, out.err)
		}
		_ = conn.Close()
	}
}
