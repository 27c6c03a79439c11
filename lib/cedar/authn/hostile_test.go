// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"bytes"
	"context"
	"encoding/base64"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/errs"
)

// script is a peer that says what it wants to say, whatever it hears.
type script func(c *cedar.Conn)

func say(items ...any) script {
	return func(c *cedar.Conn) {
		for _, it := range items {
			switch it := it.(type) {
			case int:
				c.PutInt(int64(it))
			case string:
				c.PutString(it)
			case []byte:
				c.PutBytes(it)
			}
		}
		_ = c.EndMessage()
	}
}

// against runs one side against a script, which then closes.
func against(t *testing.T, side func(context.Context, *cedar.Conn) (Result, error), steps ...script) (Result, error) {
	t.Helper()
	a, b := cedartest.Pipe()
	peer := cedar.NewConn(b, cedar.Limits{Timeout: 10 * time.Second})
	peer.SetPacketSize(cedar.MaxPacket)
	for _, step := range steps {
		step(peer) // nothing waits: the pipe keeps it all
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	quiet := &halfClosed{Conn: a, end: b}
	return side(ctx, cedar.NewConn(quiet, cedar.Limits{Timeout: 10 * time.Second}))
}

// halfClosed is a connection whose peer has said all it has to say: once that
// is read it ends, but it can still be written to.
type halfClosed struct {
	net.Conn
	end  net.Conn
	once sync.Once
}

func (h *halfClosed) Read(b []byte) (int, error) {
	h.once.Do(func() { _ = h.end.Close() })
	return h.Conn.Read(b)
}

func (h *halfClosed) Write(b []byte) (int, error) { return len(b), nil }

func nonce(c byte) []byte { return bytes.Repeat([]byte{c}, nonceSize) }

func TestHostileClient(t *testing.T) {
	t.Parallel()
	const passwordName = "condor@password"
	huge := strings.Repeat("x", 100_000)
	tests := []struct {
		name    string
		methods []Method
		steps   []script
		says    string
	}{
		{"nothing", []Method{FS}, nil, "EOF"},
		{"no mask", []Method{FS}, []script{say("abcdefgh")}, "left in the message"},
		{"a text for a mask", []Method{FS}, []script{say(huge)}, ""},
		{"a negative mask", []Method{FS}, []script{say(-1), say(-1)}, "the client could not make"},
		{"more in the mask", []Method{FS}, []script{say(4, 4)}, "left in the message"},
		{"FS: an endless extension", []Method{FS}, []script{say(4), say(0, huge)}, ""},
		{"FS: out of the directory", []Method{FS}, []script{say(4), say(0, "/../../root")}, "another directory"},
		{"FS: no address", []Method{FS}, []script{say(4), say(0, "x")}, "is no ip:port"},
		{"FS: with a zone", []Method{FS}, []script{say(4), say(0, "[fe80::1%eth0]:9618")}, "is no ip:port"},
		{"FS: it is not there", []Method{FS}, []script{say(4), say(0)}, "not found"},
		{"PASSWORD: no name", []Method{Password}, []script{say(512), say(0, 0, "", 256, nonce(1)), say(-1, 0, "", 0, 0)}, "the client has no name"},
		{"PASSWORD: a wrong length", []Method{Password}, []script{say(512), say(0, 14, passwordName, 256, nonce(1)), say(-1, 0, "", 0, 0)}, "not as long as it says"},
		{"PASSWORD: a short challenge", []Method{Password}, []script{say(512), say(0, 15, passwordName, 255, nonce(1)[:255]), say(-1, 0, "", 0, 0)}, "a challenge of 255 bytes"},
		{"PASSWORD: a long challenge", []Method{Password}, []script{say(512), say(0, 15, passwordName, 257, append(nonce(1), 1))}, "a length of 257"},
		{"PASSWORD: a negative length", []Method{Password}, []script{say(512), say(0, 15, passwordName, -1)}, "a length of -1"},
		{"PASSWORD: a huge length", []Method{Password}, []script{say(512), say(0, 15, passwordName, 1<<40)}, "a length of 1099511627776"},
		{"PASSWORD: less than it says", []Method{Password}, []script{say(512), say(0, 15, passwordName, 256, []byte("short"))}, ""},
		{"PASSWORD: a long name", []Method{Password}, []script{say(512), say(0, 2000, strings.Repeat("a", 2000), 256, nonce(1))}, "a text of 2000 bytes"},
		{"PASSWORD: our own challenge back", []Method{Password}, []script{say(512), say(0, 15, passwordName, 256, nonce(0)), say(0, 15, passwordName, 256, nonce(0), 20, make([]byte, 20))}, "does not have the key"},
		{"PASSWORD: another challenge", []Method{Password}, []script{say(512), say(0, 15, passwordName, 256, nonce(1)), say(0, 15, passwordName, 256, nonce(9), 20, make([]byte, 20))}, "another challenge"},
		{"PASSWORD: another name in the end", []Method{Password}, []script{say(512), say(0, 15, passwordName, 256, nonce(1)), say(0, 4, "root", 256, nonce(0), 20, make([]byte, 20))}, "changed its name"},
		{"PASSWORD: an empty proof", []Method{Password}, []script{say(512), say(0, 15, passwordName, 256, nonce(1)), say(0, 15, passwordName, 256, nonce(0), 0)}, "does not have the key"},
		{"PASSWORD: a huge proof", []Method{Password}, []script{say(512), say(0, 15, passwordName, 256, nonce(1)), say(0, 15, passwordName, 256, nonce(0), 65, make([]byte, 65))}, "a length of 65"},
		{"TOKEN: no token", []Method{Token}, []script{say(2048), say(0, 3, "bob", "", 256, nonce(1)), say(-1, 0, "", 0, 0)}, "not two parts"},
		{"TOKEN: a huge one", []Method{Token}, []script{say(2048), say(0, 3, "bob", strings.Repeat("A", maxToken+1), 256, nonce(1))}, "a text of"},
		{"TOKEN: a key elsewhere", []Method{Token}, []script{say(2048), say(0, 3, "bob", signedPart(`{"alg":"HS256","kid":"../../etc/passwd"}`, `{"iss":"p","jti":"1","sub":"bob"}`), 256, nonce(1)), say(-1, 0, "", 0, 0)}, "no such signing key"},
		{"TOKEN: the name of another", []Method{Token}, []script{say(2048), say(0, 3, "eve", signedPart(poolHeader, `{"iss":"p","jti":"1","sub":"bob"}`), 256, nonce(1)), say(-1, 0, "", 0, 0)}, "not the name that belongs to the key"},
		{"TOKEN: without signature", []Method{Token}, []script{say(2048), say(0, 3, "bob", signedPart(`{"alg":"none","kid":"POOL"}`, `{"iss":"p","jti":"1","sub":"bob"}`), 256, nonce(1)), say(-1, 0, "", 0, 0)}, "only HS256"},
		{"TOKEN: not knowing it", []Method{Token}, []script{say(2048), say(0, 3, "bob", signedPart(poolHeader, `{"iss":"p","jti":"1","sub":"bob"}`), 256, nonce(1)), say(0, 3, "bob", 256, nonce(0), 20, make([]byte, 20))}, "does not have the key"},
		{"CLAIMTOBE: a long name", []Method{ClaimToBe}, []script{say(2), say(1, strings.Repeat("a", 1000))}, "a text of 1000 bytes"},
		{"CLAIMTOBE: an empty name", []Method{ClaimToBe}, []script{say(2), say(1, "")}, "no name of a user"},
		{"CLAIMTOBE: only a domain", []Method{ClaimToBe}, []script{say(2), say(1, "@there")}, "no name of a user"},
		{"CLAIMTOBE: two lines", []Method{ClaimToBe}, []script{say(2), say(1, "a\nb")}, "no name of a user"},
		{"again and again", []Method{ClaimToBe}, repeat(say(2), say(0)), "8 attempts are enough"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, s := pair(t)
			s.Rand = zeros{}
			_, sp := ends()
			r, err := against(t, func(ctx context.Context, c *cedar.Conn) (Result, error) {
				return s.Authenticate(ctx, c, sp, tt.methods)
			}, tt.steps...)
			if err == nil || r.Identity != (Identity{}) {
				t.Fatalf("it succeeded: %+v", r)
			}
			if Agreed(err) {
				t.Error("the client is believed to know")
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q", err, tt.says)
			}
		})
	}
}

func signedPart(header, payload string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))
}

func repeat(steps ...script) (all []script) {
	for range 20 {
		all = append(all, steps...)
	}
	return all
}

func TestHostileServer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		methods []Method
		steps   []script
		says    string
	}{
		{"nothing", []Method{FS}, nil, "did not choose"},
		{"one that was not offered", []Method{FS}, []script{say(128)}, "the server chose 128"},
		{"two at once", []Method{FS, Token}, []script{say(4 | 2048)}, "the server chose 2052"},
		{"beyond 32 bits", []Method{FS}, []script{say(1<<32 | 4)}, "the server chose 4294967300"},
		{"a negative one", []Method{FS}, []script{say(-4)}, "the server chose -4"},
		{"one that failed already", []Method{Anonymous, FS}, []script{say(128), say(0), say(128)}, "the server chose 128"},
		{"FS: anywhere", []Method{FS}, []script{say(4), say("/home/alice/.ssh"), say(-1), say(0)}, "no name for the directory"},
		{"FS: out of the way", []Method{FS}, []script{say(4), say("/tmp/../home/FS_1_"), say(-1), say(0)}, "no name for the directory"},
		{"FS: not absolute", []Method{FS}, []script{say(4), say("FS_192.0.2.7_9618_x_"), say(-1), say(0)}, "no name for the directory"},
		{"FS: with control characters", []Method{FS}, []script{say(4), say("/tmp/FS_\n_"), say(-1), say(0)}, "no name for the directory"},
		{"FS: for another server", []Method{FS}, []script{say(4), say("/tmp/FS_192.0.2.9_9618_abc"), say(-1), say(0)}, "is not for the address"},
		{"FS: an old name", []Method{FS}, []script{say(4), say("/tmp/FS_XXXabcdef"), say(-1), say(0)}, "is not for the address"},
		{"FS: no name", []Method{FS}, []script{say(4), say(""), say(-1), say(0)}, "could not make up a name"},
		{"FS: a long name", []Method{FS}, []script{say(4), say("/tmp/FS_" + strings.Repeat("a", 5000))}, "a text of 5008 bytes"},
		{"FS: rejected", []Method{FS}, []script{say(4), say("/tmp/FS_192.0.2.7_9618_x_"), say(-1), say(0)}, "does not accept"},
		{"PASSWORD: no key", []Method{Password}, []script{say(512), say(0, 15, "condor@password", 15, "condor@password", 256, nonce(0), 256, nonce(1), 20, make([]byte, 20)), say(0)}, "does not have the same key"},
		{"PASSWORD: somebody else", []Method{Password}, []script{say(512), say(0, 4, "root", 15, "condor@password", 256, nonce(0), 256, nonce(1), 20, make([]byte, 20)), say(0)}, "somebody else's name"},
		{"PASSWORD: another challenge", []Method{Password}, []script{say(512), say(0, 15, "condor@password", 15, "condor@password", 256, nonce(3), 256, nonce(1), 20, make([]byte, 20)), say(0)}, "somebody else's challenge"},
		{"PASSWORD: short", []Method{Password}, []script{say(512), say(0, 15, "condor@password", 15, "condor@password", 256, nonce(0), 0, 0), say(0)}, "incomplete"},
		{"PASSWORD: wrong lengths", []Method{Password}, []script{say(512), say(0, 1, "condor@password", 15, "condor@password", 256, nonce(0), 256, nonce(1), 20, make([]byte, 20)), say(0)}, "lengths"},
		{"SSL: records without end", []Method{SSL}, []script{say(256), say(0), say(2, maxTLSRecords+1)}, "a length of 1048577"},
		{"SSL: garbage", []Method{SSL}, []script{say(256), say(0), say(2, 5, []byte("hello")), say(0)}, "SSL"},
		{"SSL: not ready", []Method{SSL}, []script{say(256), say(-1), say(0)}, "not ready for SSL"},
		{"ANONYMOUS: no", []Method{Anonymous}, []script{say(128), say(7), say(0)}, "the server answered 7"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, _ := pair(t)
			c.Rand = zeros{}
			cp, _ := ends()
			r, err := against(t, func(ctx context.Context, conn *cedar.Conn) (Result, error) {
				return c.Authenticate(ctx, conn, cp, tt.methods)
			}, tt.steps...)
			if err == nil || r.Identity != (Identity{}) {
				t.Fatalf("it succeeded: %+v", r)
			}
			if Agreed(err) != strings.Contains(err.Error(), "there is no method left") {
				t.Errorf("agreed %v on %v", Agreed(err), err)
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q", err, tt.says)
			}
			for _, made := range c.Owners.(*memory).made {
				if len(c.Owners.(*memory).entries) != 0 {
					t.Errorf("%s was left behind", made)
				}
			}
		})
	}
}

// What one client proved is worth nothing in another connection.
func TestReplay(t *testing.T) {
	t.Parallel()
	for _, m := range []Method{Token, Password} {
		c, s := pair(t)
		cp, sp := ends()
		a, b := cedartest.Pipe()
		tap := &recorder{Conn: a}
		left, right := cedar.NewConn(tap, cedar.Limits{}), cedar.NewConn(b, cedar.Limits{})
		done := make(chan error, 1)
		go func() { _, err := s.Authenticate(context.Background(), right, sp, []Method{m}); done <- err }()
		if _, err := c.Authenticate(context.Background(), left, cp, []Method{m}); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		left.Close()
		right.Close()

		again, server := cedartest.Pipe()
		if _, err := again.Write(tap.sent.Bytes()); err != nil {
			t.Fatal(err)
		}
		_, err := s.Authenticate(context.Background(), cedar.NewConn(server, cedar.Limits{}), sp, []Method{m})
		again.Close()
		if !errs.Is(err, errs.Denied) || !strings.Contains(err.Error(), "another challenge") {
			t.Errorf("%v: %v", m, err)
		}
	}
}

// recorder keeps what was written.
type recorder struct {
	net.Conn
	sent bytes.Buffer
}

func (r *recorder) Write(b []byte) (int, error) {
	r.sent.Write(b)
	return r.Conn.Write(b)
}
