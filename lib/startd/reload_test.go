// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/config"
)

// mute is a name server that does not answer.
type mute struct{}

func (mute) LookupAddr(ctx context.Context, _ string) ([]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (mute) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// muted is an endpoint whose server of names does not answer.
func muted() *endpoint.Endpoint {
	e := endpoint.New(endpoint.Config{Subsystem: subsystem})
	e.Names.Resolver = mute{}
	return e
}

// A reload waits for the names of the hosts that its configuration lets in, though
// not for ever: with those that no server of names knows in time, nobody comes in.
func TestReloadWaitsForNamesOnlySoLong(t *testing.T) {
	t.Parallel()
	s, err := config.Parse("test.conf", "ALLOW_READ = one.example, two.example, three.example, 192.0.2.7\nALLOW_WRITE = four.example, five.example, six.example\n",
		config.Options{Subsystem: "STARTD", Facts: map[string]string{"FULL_HOSTNAME": "ep.example"}})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		d := &daemonState{wire: wire{endpoint: muted()}, logs: &logs{given: true}}
		began := time.Now()
		p, err := d.prepare(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != namesPatience {
			t.Errorf("six names take %v, want %v", took, namesPatience)
		}
		for addr, want := range map[string]bool{"192.0.2.7": true, "192.0.2.8": false} {
			asker := security.Asker{Peer: security.Peer{User: security.Unauthenticated}, Addr: netip.MustParseAddr(addr)}
			if v := p.security.settings.Authorizer.Allowed(security.Read, asker); v.OK != want {
				t.Errorf("%s may read: %t, want %t", addr, v.OK, want)
			}
		}
	})
}

// A start that waits for names says so, and ends when it is told to.
func TestStartSaysThatItWaitsForNames(t *testing.T) {
	t.Parallel()
	s, err := config.Parse("test.conf", "ALLOW_READ = one.example, two.example, three.example\n", config.Options{Subsystem: "STARTD", Facts: map[string]string{"FULL_HOSTNAME": "ep.example"}})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		d := &daemonState{o: Options{Early: &said}, wire: wire{endpoint: muted()}, conf: configuration{atStart: s}}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		_, err := d.firstSecurity(ctx)
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 3*time.Second {
			t.Errorf("it ends with %v after %v", err, took)
		}
		synctest.Wait()
		if !strings.Contains(said.String(), "waiting for the names of the hosts") {
			t.Errorf("it says %q", said.String())
		}
	})
}

// Everything that cannot be used is told at once.
func TestPrepareTellsAll(t *testing.T) {
	t.Parallel()
	s, err := config.Parse("test.conf", "SEC_READ_ENCRYPTION = MAYBE\nENABLE_STARTD_DAEMON_AD = perhaps\nMAX_STARTD_LOG = much\n",
		config.Options{Subsystem: "STARTD", Facts: map[string]string{"FULL_HOSTNAME": "ep.example"}})
	if err != nil {
		t.Fatal(err)
	}
	d := &daemonState{wire: wire{endpoint: muted()}, logs: &logs{given: true}}
	_, err = d.prepare(t.Context(), s)
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, want := range []string{"SEC_READ_ENCRYPTION", "ENABLE_STARTD_DAEMON_AD", "MAX_STARTD_LOG"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not told: %v", want, err)
		}
	}
}
