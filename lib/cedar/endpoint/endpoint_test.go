// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// What the settings say counts for all that dials.
func TestDialerOfSettings(t *testing.T) {
	t.Parallel()
	reuse := func(*net.Dialer) func(error) bool { return nil }
	for _, on := range []bool{true, false} {
		n := Network{PrivateName: "lab", Out: listen.Ports{Low: 20000, High: 20010}, NoRelay: on, Reuse: on}
		source := listen.Source{V4: netip.MustParseAddr("192.0.2.5")}
		e := New(Config{Subsystem: "STARTER", Version: "$CondorVersion: x $", Network: n, Source: source, Reuse: reuse})
		d := e.Dialer
		if d.PrivateNetwork != "lab" || d.Ports != n.Out || d.Source != source || d.Reuse != nil != on || d.Reverse != e.Reverser || e.Reverser.NoRelay != on {
			t.Errorf("%+v\n%+v", d, e.Reverser)
		}
		sessions := security.NewSessions(clock.System(), 1)
		c, s := e.Client(sessions), e.Server("host", sessions)
		if c.PID != os.Getpid() || s.PID != c.PID || c.Version != e.Version || s.Version != e.Version || c.Subsystem != "STARTER" || s.Host != "host" || c.Address() != "" ||
			c.Sessions != sessions || s.Sessions != sessions || c.Names == nil || s.Names == nil || c.Log == nil || c.Clock == nil {
			t.Errorf("%+v\n%+v", c, s)
		}
		if c.Post != nil || c.Kin != nil || c.Local != nil {
			t.Error("a client sends datagrams, or the session of the family, that was not told to")
		}
	}
}

// Both commands to brokers go by the client that Brokers names.
func TestBrokersClient(t *testing.T) {
	t.Parallel()
	to, err := cedar.ParseSinful("<127.0.0.1:1>")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{}).Register(t.Context(), to); !errs.Is(err, errs.Unsupported) {
		t.Errorf("without a client: %v", err)
	}
	bad := errors.New("no settings")
	e := New(Config{Brokers: func() (*security.Client, error) { return nil, bad }})
	if _, err := e.Register(t.Context(), to); !errors.Is(err, bad) {
		t.Errorf("register: %v, want %v", err, bad)
	}
	if _, err := e.Reverser.Open(t.Context(), to); !errors.Is(err, bad) {
		t.Errorf("request: %v, want %v", err, bad)
	}
	var client *security.Client
	e = New(Config{Brokers: func() (*security.Client, error) { return client, nil }})
	var dialled []string
	unreachable := errors.New("nobody is there")
	e.Dialer.Connect = func(_ context.Context, at string) (net.Conn, error) {
		dialled = append(dialled, at)
		return nil, unreachable
	}
	client = e.Client(security.NewSessions(e.Clock, 1))
	client.Configure(&security.Settings{Authorizer: &security.Authorizer{}, StepTimeout: time.Second, Deadline: time.Second}, nil)
	_, err = e.Register(t.Context(), to)
	_, err2 := e.Reverser.Open(t.Context(), to)
	if !errors.Is(err, unreachable) || !errors.Is(err2, unreachable) || !slices.Equal(dialled, []string{"127.0.0.1:1", "127.0.0.1:1"}) {
		t.Errorf("%v and %v, dialled %q", err, err2, dialled)
	}
}

func TestSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "map"), []byte("* /./ x"), 0o600); err != nil {
		t.Fatal(err)
	}
	from := New(Config{Subsystem: "STARTD"}).Sources(t.Context())
	names, err := from.ReadDir(dir)
	if err != nil || !slices.Equal(names, []string{"map"}) || from.Subsystem != "STARTD" {
		t.Errorf("%q, %v", names, err)
	}
	if text, err := from.ReadFile(filepath.Join(dir, "map")); err != nil || string(text) != "* /./ x" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := from.ReadDir(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if !from.Hosts.Local(netip.MustParseAddr("127.0.0.1")) || from.Hosts.Local(netip.MustParseAddr("192.0.2.77")) {
		t.Error("who is of this machine")
	}
}
