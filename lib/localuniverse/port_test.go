// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package localuniverse

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// The session that a schedd hands down.
const handedDown = `h:1:1:1#[Encryption="YES";Integrity="YES";CryptoMethods="AES";]0123456789abcdef0123456789abcdef0123456789abcdef`

// Only who has the session that the schedd handed down tells the job to go, whatever
// the ALLOW lists say, and only by signals that mean something.
func TestPort(t *testing.T) {
	t.Parallel()
	s, err := config.Parse("f", "USE_SHARED_PORT = False\nNETWORK_INTERFACE = 127.0.0.1\nALLOW_DAEMON = *\nALLOW_WRITE = *\nALLOW_READ = *\nSEC_DEFAULT_AUTHENTICATION = OPTIONAL\n", config.Options{Subsystem: protocol.Subsystem})
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{daemon.InheritVariable: "4711 <127.0.0.1:9618> 0 0", daemon.PrivateInheritVariable: "SessionKey:" + handedDown}
	q := &Queue{
		Config: s, Env: func(name string) string { return env[name] }, Version: "$CondorVersion: 25.14.0 test $", Log: slog.New(slog.DiscardHandler),
		Named: func(string, string) func(string, *daemon.NamedSocket) (listen.NamedSocket, error) { return nil },
	}
	schedd, err := cedar.ParseSinful("<127.0.0.1:9618>")
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Open(t.Context(), schedd); err != nil {
		t.Fatal(err)
	}
	heard := make(chan Signal, 8)
	port, err := q.Port(t.Context(), 4712, heard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- port.Serve(ctx) }()
	defer func() { cancel(); <-served }()
	at, err := cedar.ParseSinful(port.Address())
	if err != nil {
		t.Fatal(err)
	}
	raise := func(id string, number int64) error {
		network, err := endpoint.NetworkFrom(s, "SCHEDD")
		if err != nil {
			return err
		}
		e := endpoint.New(endpoint.Config{Subsystem: "SCHEDD", Network: network})
		sessions := security.NewSessions(e.Clock, 0)
		o := security.Options{}
		if id != "" {
			key, err := security.ParseCapabilityID(id)
			if err != nil {
				return err
			}
			of, err := sessions.AddParent(key, port.Address())
			if err != nil {
				return err
			}
			o.Session = of.ID
		}
		client := e.Client(sessions)
		settings, err := security.SettingsFrom(s, e.Sources(ctx))
		if err != nil {
			return err
		}
		client.Configure(settings, &authn.Client{})
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		conn, _, err := client.Command(ctx, at, command.DCRaiseSignal, o)
		if err != nil {
			return err
		}
		defer conn.Close()
		conn.PutInt(number)
		return conn.EndMessage()
	}
	for _, number := range []int64{9, 102, 1, 10} {
		if err := raise(handedDown, number); err != nil {
			t.Fatal(err)
		}
	}
	next := func() Signal {
		select {
		case sig := <-heard:
			return sig
		case <-time.After(time.Minute):
			t.Fatal("a signal was not heard")
			return 0
		}
	}
	if a, b := next(), next(); a+b != Vacate+Leave || a == b { // each came on a connection of its own
		t.Errorf("heard %d and %d, want %d and %d", a, b, Vacate, Leave)
	}
	if err := raise("", 103); err == nil {
		t.Error("somebody without the session may tell the job to go")
	}
	_ = raise(handedDown[:len(handedDown)-4]+"0000", 103) // a wrong key is found out when the message is read
	if err := raise(handedDown, 15); err != nil {
		t.Fatal(err)
	}
	if got := next(); got != Vacate {
		t.Errorf("heard %d of a stranger", got)
	}
}
