// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

const modern = "$CondorVersion: 25.14.0 2026-11-20 TEST $"

// plainFiles reads every file, whoever may read it.
type plainFiles struct{}

func (plainFiles) ReadPrivate(path string, limit int64) ([]byte, error) {
	b, err := os.ReadFile(path)
	switch {
	case os.IsNotExist(err):
		return nil, errs.E("test", errs.NotFound, path, err)
	case err != nil:
		return nil, errs.E("test", errs.Broken, path, err)
	case int64(len(b)) > limit:
		return nil, errs.E("test", errs.Exhausted, path, fmt.Errorf("%d bytes", len(b)))
	}
	return b, nil
}

// memory is a file system and the users of a machine.
type memory struct {
	mu      sync.Mutex
	entries map[string]host.Entry
	users   map[uint32]string
	as      uint32 // who makes directories
	made    []string
	removed []string
	deny    error // MakeDir's answer
}

func newMemory() *memory {
	return &memory{entries: map[string]host.Entry{}, users: map[uint32]string{0: "root", 1000: "alice", 1001: "condor"}, as: 1000}
}

func (m *memory) Entry(path string) (host.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.entries[path]; ok {
		return e, nil
	}
	return host.Entry{}, errs.E("test", errs.NotFound, path, fs.ErrNotExist)
}

func (m *memory) UserName(uid uint32) (string, error) {
	if name, ok := m.users[uid]; ok {
		return name, nil
	}
	return "", errs.E("test", errs.NotFound, fmt.Sprint(uid), fs.ErrNotExist)
}

func (m *memory) MakeDir(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.deny != nil {
		return m.deny
	}
	if _, ok := m.entries[path]; ok {
		return errs.E("test", errs.Conflict, path, fs.ErrExist)
	}
	m.entries[path] = host.Entry{Mode: fs.ModeDir | 0o700, UID: m.as, Links: 2}
	m.made = append(m.made, path)
	return nil
}

func (m *memory) RemoveDir(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, path)
	m.removed = append(m.removed, path)
	return nil
}

func write(t testing.TB, dir, name string, contents []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, contents, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// noon is when tests take place.
func noon() time.Time { return time.Unix(1_795_188_694, 0) }

// pair is a client and a server of one pool in one memory.
func pair(t testing.TB) (*Client, *Server) {
	t.Helper()
	dir := t.TempDir()
	keys, tokens := filepath.Join(dir, "keys"), filepath.Join(dir, "tokens")
	for _, d := range []string{keys, tokens} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	pool := write(t, keys, PoolKey, Scramble(bytes.Repeat([]byte("pool key "), 7)))
	write(t, keys, "key2", Scramble([]byte("another key of this pool")))
	set := Settings{
		UIDDomain: "Users.test", TrustDomain: "pool.test", Subsystem: "STARTD",
		FSDir: "/tmp", FSBinding: true, FSRootToCondor: true,
		PoolKeyFile: pool, KeyDir: keys, PasswordFile: pool, TokenDirs: []string{tokens},
		ClaimToBeDomain: true,
	}
	sys := System{Files: plainFiles{}, Owners: newMemory(), User: "alice", Condor: "condor", Now: noon}
	return &Client{Settings: set, System: sys}, &Server{Settings: set, System: sys}
}

// ends are the addresses of the two sides, which a connection in memory does
// not have.
func ends() (client, server Peer) {
	at := netip.MustParseAddrPort("192.0.2.7:9618")
	from := netip.MustParseAddrPort("192.0.2.8:40000")
	return Peer{Version: modern, Remote: at, Local: from, TrustDomain: "pool.test", IssuerKeys: []string{PoolKey, "key2"}, Alias: "ep.pool.test"},
		Peer{Version: modern, Remote: from, Local: at}
}

type outcome struct {
	Result
	err error
}

// meet lets a client and a server authenticate each other.
func meet(t testing.TB, c *Client, s *Server, clients, servers []Method) (client, server outcome) {
	t.Helper()
	cp, sp := ends()
	return meetAs(t, c, s, cp, sp, clients, servers)
}

func meetAs(t testing.TB, c *Client, s *Server, cp, sp Peer, clients, servers []Method) (client, server outcome) {
	t.Helper()
	a, b := cedartest.Pipe()
	left, right := cedar.NewConn(a, cedar.Limits{Timeout: 10 * time.Second}), cedar.NewConn(b, cedar.Limits{Timeout: 10 * time.Second})
	defer left.Close()
	done := make(chan outcome, 1)
	go func() {
		r, err := s.Authenticate(context.Background(), right, sp, servers)
		if err != nil {
			_ = right.Close() // as Authenticate asks for
		}
		done <- outcome{r, err}
	}()
	r, err := c.Authenticate(context.Background(), left, cp, clients)
	if err != nil {
		_ = left.Close()
	}
	server = <-done
	_ = right.Close()
	return outcome{r, err}, server
}

// zeros is randomness that is none.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

var _ io.Reader = zeros{}

func (m *memory) dirOf(uid uint32) host.Entry {
	return host.Entry{Mode: fs.ModeDir | 0o700, UID: uid, Links: 2}
}

// extra is one more file among others.
type extra struct {
	host.PrivateFiles
	path     string
	contents []byte
}

func (e extra) ReadPrivate(path string, limit int64) ([]byte, error) {
	if path == e.path {
		return e.contents, nil
	}
	return e.PrivateFiles.ReadPrivate(path, limit)
}

// writeEmpty makes the name of a file that extra has.
func writeEmpty(path string) {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		panic(err)
	}
}

func sprint(v any) string { return fmt.Sprint(v) }
