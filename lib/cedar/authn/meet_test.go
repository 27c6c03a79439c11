// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// Every method, and both sides agree on it.
func TestMeet(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		methods []Method
		arrange func(c *Client, s *Server, cp, sp *Peer)
		server  Identity // what the client learns
		client  Identity // what the server learns
		levels  []string
	}{
		{name: "FS", methods: []Method{FS}, client: Identity{User: "alice", Domain: "users.test", Name: "alice"}},
		{
			name: "FS as root", methods: []Method{FS},
			arrange: func(c *Client, _ *Server, _, _ *Peer) { c.Owners.(*memory).as = 0 },
			client:  Identity{User: "condor", Domain: "users.test", Name: "condor"},
		},
		{
			name: "FS as root, not mapped", methods: []Method{FS},
			arrange: func(c *Client, s *Server, _, _ *Peer) { c.Owners.(*memory).as = 0; s.FSRootToCondor = false },
			client:  Identity{User: "root", Domain: "users.test", Name: "root"},
		},
		{
			name: "FS without binding", methods: []Method{FS},
			arrange: func(c *Client, _ *Server, cp, _ *Peer) { c.FSBinding = false; cp.Remote = netip.AddrPort{} },
			client:  Identity{User: "alice", Domain: "users.test", Name: "alice"},
		},
		{
			name: "FS through a shared port", methods: []Method{FS},
			arrange: func(_ *Client, s *Server, cp, sp *Peer) {
				cp.SharedPortID = "startd_1"
				sp.Local = netip.MustParseAddrPort("10.0.0.1:9618")
				s.Self = func() cedar.Sinful { return cedar.Sinful{Host: "192.0.2.7", Port: 9618, SockID: "startd_1"} }
			},
			client: Identity{User: "alice", Domain: "users.test", Name: "alice"},
		},
		{
			name: "TOKEN made from the pool's key", methods: []Method{Token},
			server: Identity{User: "condor", Domain: "password"}, client: Identity{User: "condor", Domain: "password"},
		},
		{
			name: "TOKEN made for an old server", methods: []Method{Token},
			arrange: func(_ *Client, _ *Server, cp, sp *Peer) { cp.Version, sp.Version = "", "" },
			server:  Identity{User: "condor_pool", Domain: "users.test"}, client: Identity{User: "condor_pool"},
		},
		{
			name: "TOKEN of a named key", methods: []Method{Token},
			arrange: func(_ *Client, _ *Server, cp, _ *Peer) { cp.IssuerKeys = []string{"key1", "key2"} },
			server:  Identity{User: "condor", Domain: "password"}, client: Identity{User: "condor", Domain: "password"},
		},
		{
			name: "TOKEN of a file", methods: []Method{Token},
			arrange: func(c *Client, s *Server, _, _ *Peer) {
				store(c, s, "key2", Order{Issuer: "pool.test", Subject: "bob@Elsewhere.test", Levels: []string{"READ", "ADVERTISE_STARTD"}})
			},
			server: Identity{User: "condor", Domain: "password"}, client: Identity{User: "bob", Domain: "elsewhere.test"},
			levels: []string{"READ", "ADVERTISE_STARTD"},
		},
		{
			name: "PASSWORD", methods: []Method{Password},
			server: Identity{User: "condor", Domain: "password"}, client: Identity{User: "condor", Domain: "password"},
		},
		{
			name: "PASSWORD before 23.9.0", methods: []Method{Password},
			arrange: func(c *Client, _ *Server, cp, sp *Peer) {
				cp.Version, sp.Version = "$CondorVersion: 10.0.9 2023-09-28 $", "$CondorVersion: 23.8.1 2024-06-27 $"
				c.UIDDomain = "not.the.same"
			},
			server: Identity{User: "condor_pool", Domain: "users.test"}, client: Identity{User: "condor_pool", Domain: "users.test"},
		},
		{name: "CLAIMTOBE", methods: []Method{ClaimToBe}, client: Identity{User: "alice", Domain: "users.test", Name: "alice@users.test"}},
		{
			name: "CLAIMTOBE without domain", methods: []Method{ClaimToBe},
			arrange: func(c *Client, _ *Server, _, _ *Peer) { c.ClaimToBeDomain, c.ClaimToBeUser = false, "carol" },
			client:  Identity{User: "carol", Domain: "users.test", Name: "carol@users.test"},
		},
		{
			name: "CLAIMTOBE, the server takes no domain", methods: []Method{ClaimToBe},
			arrange: func(_ *Client, s *Server, _, _ *Peer) { s.ClaimToBeDomain = false },
			client:  Identity{User: "alice@Users.test", Name: "alice@Users.test"},
		},
		{name: "ANONYMOUS", methods: []Method{Anonymous}, client: Identity{User: "CONDOR_ANONYMOUS_USER", Name: "CONDOR_ANONYMOUS_USER"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, s := pair(t)
			cp, sp := ends()
			if tt.arrange != nil {
				tt.arrange(c, s, &cp, &sp)
			}
			client, server := meetAs(t, c, s, cp, sp, tt.methods, tt.methods)
			if client.err != nil || server.err != nil {
				t.Fatalf("client: %v\nserver: %v", client.err, server.err)
			}
			got := server.Identity
			if got.Token != nil {
				if diff := cmp.Diff(tt.levels, got.Token.Limits()); diff != "" {
					t.Error(diff)
				}
				got.Token = nil
			}
			tt.client.Method, tt.server.Method = tt.methods[0], tt.methods[0]
			if got != tt.client {
				t.Errorf("client %+v, want %+v", got, tt.client)
			}
			if client.Identity != tt.server {
				t.Errorf("server %+v, want %+v", client.Identity, tt.server)
			}
			sameWrap(t, client.Result, server.Result)
		})
	}
}

// sameWrap checks that what one side wraps the other one unwraps.
func sameWrap(t *testing.T, client, server Result) {
	t.Helper()
	key := Secret("a session key of 24 byte")
	wrapped, err := server.Wrap(key)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := client.Unwrap(wrapped); err != nil || !back.Equal(key) {
		t.Errorf("the key came back as %x, %v", back.Reveal(), err)
	}
	if hidden := !key.Equal(wrapped); hidden != server.Wraps() || client.Wraps() != server.Wraps() {
		t.Errorf("hidden %v, client wraps %v, server wraps %v", hidden, client.Wraps(), server.Wraps())
	}
}

// store puts a token signed with one of the server's keys where the client
// finds it.
func store(c *Client, s *Server, key string, o Order) {
	k, err := s.keys(s.Files).Key(key)
	if err != nil {
		panic(err)
	}
	token, err := k.Issue(o, noon().Add(-time.Hour))
	if err != nil {
		panic(err)
	}
	c.Files = extra{c.Files, c.TokenDirs[0] + "/mine", append(token.Text(), '\n')}
	writeEmpty(c.TokenDirs[0] + "/mine")
}

func TestRetry(t *testing.T) {
	t.Parallel()
	c, s := pair(t)
	c.PasswordFile = ""                                                           // nothing to show
	c.Owners.(*memory).deny = errs.E("test", errs.Broken, "", errors.New("full")) // FS cannot be done
	cp, sp := ends()
	cp.IssuerKeys = nil // no token is possible
	all := []Method{Token, Password, FS, ClaimToBe, Anonymous}
	client, server := meetAs(t, c, s, cp, sp, all, all)
	if client.err != nil || server.err != nil {
		t.Fatalf("client: %v\nserver: %v", client.err, server.err)
	}
	if client.Identity.Method != ClaimToBe || server.Identity.FQU() != "alice@users.test" {
		t.Errorf("%+v %+v", client.Identity, server.Identity)
	}
	for side, r := range map[string]Result{"client": client.Result, "server": server.Result} {
		var tried []Method
		for _, a := range r.Failed {
			tried = append(tried, a.Method)
		}
		if diff := cmp.Diff([]Method{Token, Password, FS}, tried); diff != "" {
			t.Errorf("%s: %s", side, diff)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name           string
		client, server []Method
		arrange        func(c *Client, s *Server, cp, sp *Peer)
		clientSays     string
		serverSays     string
		kind           errs.Kind // of the server's error
	}{
		{"nothing in common", []Method{FS}, []Method{Token}, nil, "accepts none of FS", "offers 0x4, nothing of TOKEN", errs.Denied},
		{"nothing supported", []Method{Kerberos, Munge}, []Method{FS}, nil, "unsupported: none of the methods KERBEROS,MUNGE", "offers 0x0", errs.Denied},
		{"the server supports nothing", []Method{FS}, []Method{FSRemote}, nil, "accepts none of FS", "none of the methods FS_REMOTE is supported", errs.Unsupported},
		{"nothing to try", nil, []Method{FS}, nil, "there is no method to try", "offers 0x0", errs.Denied},
		{"FS: a link", []Method{FS}, []Method{FS}, func(c *Client, s *Server, _, _ *Peer) {
			swap(c, s, host.Entry{Mode: fs.ModeSymlink | 0o700, UID: 0, Links: 1})
		}, "does not accept the directory", "want a directory of mode 0700", errs.Denied},
		{"FS: readable by others", []Method{FS}, []Method{FS}, func(c *Client, s *Server, _, _ *Peer) {
			swap(c, s, host.Entry{Mode: fs.ModeDir | 0o755, UID: 0, Links: 2})
		}, "does not accept", "want a directory of mode 0700", errs.Denied},
		{"FS: a sticky directory", []Method{FS}, []Method{FS}, func(c *Client, s *Server, _, _ *Peer) {
			swap(c, s, host.Entry{Mode: fs.ModeDir | fs.ModeSticky | 0o700, UID: 0, Links: 2})
		}, "does not accept", "want a directory of mode 0700", errs.Denied},
		{"FS: a file", []Method{FS}, []Method{FS}, func(c *Client, s *Server, _, _ *Peer) {
			swap(c, s, host.Entry{Mode: 0o700, UID: 0, Links: 1})
		}, "does not accept", "want a directory of mode 0700", errs.Denied},
		{"FS: a directory with contents", []Method{FS}, []Method{FS}, func(c *Client, s *Server, _, _ *Peer) {
			swap(c, s, host.Entry{Mode: fs.ModeDir | 0o700, UID: 0, Links: 3})
		}, "does not accept", "with 3 names", errs.Denied},
		{"FS: nobody's", []Method{FS}, []Method{FS}, func(c *Client, s *Server, _, _ *Peer) {
			swap(c, s, host.Entry{Mode: fs.ModeDir | 0o700, UID: 77, Links: 2})
		}, "does not accept", "77", errs.NotFound},
		{"FS: another server's address", []Method{FS}, []Method{FS}, func(_ *Client, _ *Server, cp, _ *Peer) {
			cp.Remote = netip.MustParseAddrPort("192.0.2.9:9618")
		}, "does not accept", "is none of our addresses", errs.Denied},
		{"FS: another daemon behind the port", []Method{FS}, []Method{FS}, func(_ *Client, s *Server, cp, _ *Peer) {
			cp.SharedPortID = "schedd_1"
			s.Self = func() cedar.Sinful { return cedar.Sinful{Host: "192.0.2.7", Port: 9618, SockID: "startd_1"} }
		}, "does not accept", "another daemon behind the shared port", errs.Denied},
		{"TOKEN: expired in the file", []Method{Token}, []Method{Token}, func(c *Client, s *Server, cp, _ *Peer) {
			store(c, s, PoolKey, Order{Issuer: "pool.test", Subject: "bob@pool.test", Lifetime: time.Minute})
			c.KeyDir, c.PoolKeyFile = "", ""
		}, "the token is over since 2026", "nothing to show", errs.Denied},
		{"TOKEN: expired on the way", []Method{Token}, []Method{Token}, func(_ *Client, s *Server, _, _ *Peer) {
			s.Now = func() time.Time { return noon().Add(2 * time.Minute) }
		}, "could not go on", "expired 1m0s ago", errs.Expired},
		{"TOKEN: too old", []Method{Token}, []Method{Token}, func(c *Client, s *Server, _, _ *Peer) {
			store(c, s, PoolKey, Order{Issuer: "pool.test", Subject: "bob@pool.test"})
			s.Rules.MaxAge = time.Minute
		}, "could not go on", "SEC_TOKEN_MAX_AGE allows 1m0s", errs.Expired},
		{"TOKEN: of a key that the server lacks", []Method{Token}, []Method{Token}, func(_ *Client, s *Server, _, _ *Peer) {
			s.PoolKeyFile = ""
		}, "could not go on", "no such signing key", errs.NotFound},
		{"TOKEN: of another pool with a key of the same name", []Method{Token}, []Method{Token}, func(_ *Client, s *Server, _, _ *Peer) {
			s.PoolKeyFile = s.KeyDir + "/key2"
		}, "does not have the same key", "the client gave up", errs.Denied},
		{"PASSWORD: another one", []Method{Password}, []Method{Password}, func(_ *Client, s *Server, _, _ *Peer) {
			s.PasswordFile = s.KeyDir + "/key2"
		}, "does not have the same key", "the client gave up", errs.Denied},
		{"PASSWORD: an old name for a new server", []Method{Password}, []Method{Password}, func(_ *Client, _ *Server, cp, _ *Peer) {
			cp.Version = ""
		}, "could not go on", "not the name that belongs to the key", errs.Denied},
		{"CLAIMTOBE: nobody", []Method{ClaimToBe}, []Method{ClaimToBe}, func(c *Client, _ *Server, _, _ *Peer) { c.User = "" }, "no name to claim", "does not know its name", errs.Denied},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, s := pair(t)
			cp, sp := ends()
			if tt.arrange != nil {
				tt.arrange(c, s, &cp, &sp)
			}
			client, server := meetAs(t, c, s, cp, sp, tt.client, tt.server)
			if client.err == nil || !strings.Contains(client.err.Error(), tt.clientSays) {
				t.Errorf("client: %v, want %q", client.err, tt.clientSays)
			}
			if server.err == nil || !strings.Contains(server.err.Error(), tt.serverSays) {
				t.Errorf("server: %v, want %q", server.err, tt.serverSays)
			}
			var first error = server.err
			if len(server.Failed) > 0 {
				first = server.Failed[0].Err
			}
			if k := errs.KindOf(first); k != tt.kind && !(len(server.Failed) == 0 && errs.Is(server.err, tt.kind)) {
				t.Errorf("kind %v of %v, want %v", k, first, tt.kind)
			}
			// A failure that both know of is one at both ends, and then they are
			// in step.
			if !Agreed(client.err) || !Agreed(server.err) {
				t.Errorf("not agreed: %v; %v", client.err, server.err)
			}
			if server.Identity != (Identity{}) || client.Identity != (Identity{}) {
				t.Errorf("identities came of it: %+v, %+v", client.Identity, server.Identity)
			}
		})
	}
}

// swap lets the server find something else than what the client made.
func swap(c *Client, s *Server, e host.Entry) {
	s.Owners = &other{memory: c.Owners.(*memory), entry: e}
}

type other struct {
	*memory
	entry host.Entry
}

func (o *other) Entry(path string) (host.Entry, error) {
	if _, err := o.memory.Entry(path); err != nil {
		return host.Entry{}, err
	}
	return o.entry, nil
}

func TestFSUnsafe(t *testing.T) {
	t.Parallel()
	c, s := pair(t)
	s.FSUnsafe = true
	swap(c, s, host.Entry{Mode: 0o644, UID: 1000, Links: 1})
	if _, server := meet(t, c, s, []Method{FS}, []Method{FS}); server.err != nil || server.Identity.User != "alice" {
		t.Errorf("FS_ALLOW_UNSAFE: %+v, %v", server.Identity, server.err)
	}
}

// The end of the context ends an authentication on which the peer is silent.
func TestCancelled(t *testing.T) {
	t.Parallel()
	c, s := pair(t)
	for _, side := range []string{"client", "server"} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			a, _ := cedartest.Pipe()
			conn := cedar.NewConn(a, cedar.Limits{Timeout: -1})
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() {
				var err error
				if side == "client" {
					_, err = c.Authenticate(ctx, conn, Peer{}, []Method{FS})
				} else {
					_, err = s.Authenticate(ctx, conn, Peer{}, []Method{FS})
				}
				done <- err
			}()
			cancel()
			if err := <-done; err == nil {
				t.Error("it succeeded")
			}
		})
	}
}

// Agreed reports whether an error of Authenticate is a failure that both sides
// know of: no method was left, and the stream is at the same place for both.
// Where authentication is not required they may go on without. After every
// other error the stream is to be closed.
func Agreed(err error) bool {
	var a agreed
	return errors.As(err, &a)
}
