// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/host"
)

// live is a conversation of this package with a real daemon or tool of
// HTCondor 25.14.0, from the mask to the end of the method, with zeros for
// randomness. All packets are clear.
type live struct {
	Note     string
	Role     string // ours
	Methods  string
	Now      int64
	Version  string
	Server   netip.AddrPort
	PoolKey  string `json:"pool_key_file"` // ours, in hex; "" if we had none or the peer's
	Messages []struct{ From, Packet string }
}

// play plays the real side.
func (l *live) play(nc io.ReadWriter) error {
	for i, m := range l.Messages {
		packet, err := hex.DecodeString(m.Packet)
		if err != nil {
			return err
		}
		if m.From != l.Role {
			if _, err := nc.Write(packet); err != nil {
				return err
			}
			continue
		}
		got := make([]byte, len(packet))
		if _, err := io.ReadFull(nc, got); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		if err := cedartest.Diff(packet, got); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	return nil
}

// dir returns the directory of an FS exchange, extension included.
func (l *live) dir() string {
	for i, m := range l.Messages {
		packet, _ := hex.DecodeString(m.Packet)
		if len(packet) > 5 && bytes.HasPrefix(packet[5:], []byte("/tmp/FS_")) {
			answer, _ := hex.DecodeString(l.Messages[i+1].Packet)
			return strings.TrimRight(string(packet[5:]), "\x00") + strings.TrimRight(string(answer[5+8:]), "\x00")
		}
	}
	return ""
}

func TestLive(t *testing.T) {
	t.Parallel()
	tests := []struct {
		file   string
		method Method // the one that succeeds
		failed string // what came before it
		fqu    string // the client, at the server
	}{
		{"client-anonymous", Anonymous, "", ""},
		{"client-claimtobe", ClaimToBe, "", ""},
		{"client-token-wrong", FS, "TOKEN: the server does not have the same key", ""},
		{"client-password-wrong", FS, "PASSWORD: the server does not have the same key", ""},
		{"server-anonymous", Anonymous, "", "CONDOR_ANONYMOUS_USER"},
		{"server-claimtobe", ClaimToBe, "", "root@live.test"},
		{"server-token-refused", FS, "TOKEN: there is no such signing key here", "root@live.test"},
		{"server-password-wrong", FS, "PASSWORD: the client gave up", "root@live.test"},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(filepath.Join("testdata/live", tt.file+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var l live
			if err := json.Unmarshal(b, &l); err != nil {
				t.Fatal(err)
			}
			mem := newMemory()
			mem.as = 0
			set := Settings{UIDDomain: "live.test", TrustDomain: "live.test", FSDir: "/tmp", FSBinding: true, ClaimToBeDomain: true}
			if l.PoolKey != "" {
				key, err := hex.DecodeString(l.PoolKey)
				if err != nil {
					t.Fatal(err)
				}
				set.PoolKeyFile = write(t, t.TempDir(), PoolKey, key)
				set.PasswordFile = set.PoolKeyFile
			}
			sys := System{Files: plainFiles{}, Owners: mem, User: "root", Rand: zeros{}, Now: func() time.Time { return time.Unix(l.Now, 0) }}
			p := Peer{Version: l.Version, TrustDomain: "live.test", IssuerKeys: []string{PoolKey}}
			methods, _ := ParseMethods(l.Methods)

			ours, theirs := cedartest.Pipe()
			conn := cedar.NewConn(ours, cedar.Limits{Timeout: 10 * time.Second})
			t.Cleanup(func() { conn.Close() })
			played := make(chan error, 1)
			go func() { played <- l.play(theirs); theirs.Close() }()
			var r Result
			if l.Role == "client" {
				p.Remote = l.Server
				r, err = (&Client{Settings: set, System: sys}).Authenticate(context.Background(), conn, p, methods)
			} else {
				p.Local = l.Server
				if dir := l.dir(); dir != "" {
					// The tool made it.
					mem.entries[dir] = host.Entry{Mode: os.ModeDir | 0o700, UID: 0, Links: 2}
				}
				r, err = (&Server{Settings: set, System: sys}).Authenticate(context.Background(), conn, p, methods)
			}
			if perr := <-played; perr != nil {
				t.Errorf("%s: %v", l.Note, perr)
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.Identity.Method != tt.method || r.Identity.FQU() != tt.fqu {
				t.Errorf("%+v, want %v and %q", r.Identity, tt.method, tt.fqu)
			}
			failed := ""
			for _, a := range r.Failed {
				failed += a.Method.String() + ": " + a.Err.Error()
			}
			before, after, _ := strings.Cut(tt.failed, ": ")
			if (failed == "") != (tt.failed == "") || !strings.HasPrefix(failed, before) || !strings.Contains(failed, after) {
				t.Errorf("failed %q, want %q", failed, tt.failed)
			}
		})
	}
}
