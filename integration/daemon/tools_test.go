// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
)

// has fails unless a tool's words have all that is wanted.
func has(t *testing.T, what, said string, err error, want ...string) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	for _, w := range want {
		if !strings.Contains(said, w) {
			t.Errorf("%s said, without %q:\n%s", what, w, said)
		}
	}
}

func TestRealTools(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	c := s.live()
	public, ok := c.door.Public()
	if !ok {
		t.Fatal("no address")
	}
	addr := public.String()

	out, err := s.tool("condor_ping", "-verbose", "-address", addr, "ADMINISTRATOR", "READ", "DC_NOP_DAEMON")
	has(t, "condor_ping", out, err, "Authorized:", "TRUE", "Authenticated using:")
	if s.Version.AtLeast(23, 10, 0) { // before, there is no encryption without authentication
		has(t, "condor_ping READ", out, err, "Authentication:              none")
	}
	out, err = s.tool("condor_ping", "-verbose", "-address", addr, "NEGOTIATOR")
	if err == nil || !strings.Contains(c.log.String(), "NEGOTIATOR") {
		t.Errorf("condor_ping NEGOTIATOR, which nobody here may: %v\n%s", err, out)
	}

	out, err = s.tool("condor_config_val", "-address", addr, "-startd", "OUR_KNOB")
	has(t, "condor_config_val", out, err, "a value")
	out, err = s.tool("condor_config_val", "-address", addr, "-startd", "-verbose", "OUR_KNOB")
	has(t, "condor_config_val -verbose", out, err, "OUR_KNOB = a value", s.Config)
	out, err = s.tool("condor_config_val", "-address", addr, "-startd", "-dump", "OUR_K")
	has(t, "condor_config_val -dump", out, err, "OUR_KNOB = a value")
	out, err = s.tool("condor_config_val", "-address", addr, "-startd", "NO_SUCH_KNOB")
	has(t, "condor_config_val NO_SUCH_KNOB", out, err, "Not defined")

	s.Must(os.WriteFile(filepath.Join(s.Dir, "log", "StartLog"), []byte("first line\nlast line\n"), 0o644))
	out, err = s.tool("condor_fetchlog", addr, "STARTD")
	has(t, "condor_fetchlog", out, err, "first line\nlast line\n")

	out, err = s.tool("condor_reconfig", "-startd", "-addr", addr)
	has(t, "condor_reconfig", out, err, `Sent "Reconfig" command`)
	s.eventually("the order to reconfigure", func() error {
		if got := c.ordered(); !strings.HasPrefix(got, "reconfigure") {
			return os.ErrNotExist
		}
		return nil
	})
}

// By the address file a tool on this machine finds the daemon with no
// collector.
func TestRealToolsFindTheAddressFile(t *testing.T) {
	t.Parallel()
	s := newSite(t, "COLLECTOR_HOST = 127.0.0.1:1\n")
	s.live()
	out, err := s.tool("condor_ping", "-type", "STARTD", "READ")
	has(t, "condor_ping -type STARTD", out, err, "READ command using")
}

// Behind a real condor_shared_port.
func TestRealSharedPort(t *testing.T) {
	t.Parallel()
	s := newSite(t, "USE_SHARED_PORT = true\n")
	s.Start("condor_shared_port", "-p", strconv.Itoa(s.Port))
	s.eventually("the shared port's ad", func() error {
		_, err := os.Stat(filepath.Join(s.Dir, "lock", "shared_port_ad"))
		return err
	})
	c := s.live()
	s.eventually("the address", func() error {
		if _, ok := c.door.Public(); !ok {
			return os.ErrNotExist
		}
		return nil
	})
	public, _ := c.door.Public()
	if public.SockID == "" || public.Port == 0 {
		t.Fatalf("the address is %s", public)
	}
	out, err := s.tool("condor_ping", "-verbose", "-address", public.String(), "ADMINISTRATOR")
	has(t, "condor_ping through the shared port", out, err, "Authorized:", "TRUE")
	out, err = s.tool("condor_config_val", "-address", public.String(), "-startd", "OUR_KNOB")
	has(t, "condor_config_val through the shared port", out, err, "a value")
	if !strings.Contains(c.log.String(), "127.0.0.1:") {
		t.Error("the log does not tell where the tool came from")
	}
}

// Behind a real broker, the one in condor_collector.
func TestRealBroker(t *testing.T) {
	t.Parallel()
	s := newSite(t, "CCB_ADDRESS = $(COLLECTOR_HOST)\nCOLLECTOR.CCB_ADDRESS =\nALLOW_DAEMON = *\nSEC_DEFAULT_AUTHENTICATION = OPTIONAL\n")
	s.Start("condor_collector", "-p", strconv.Itoa(s.Port))
	s.eventually("the collector", func() error {
		_, err := s.tool("condor_ping", "-type", "COLLECTOR", "READ")
		return err
	})
	c := s.live()
	s.eventually("the registration", func() error {
		if public, _ := c.door.Public(); len(public.CCB) == 0 {
			return os.ErrNotExist
		}
		return nil
	})
	public, _ := c.door.Public()
	// Nobody listens at the port that is told: only the broker leads there.
	public.Port = 1
	public.Addrs = nil
	out, err := s.tool("condor_ping", "-verbose", "-address", public.String(), "READ")
	has(t, "condor_ping through the broker", out, err, "Authorized:", "TRUE")
	out, err = s.tool("condor_config_val", "-address", public.String(), "-startd", "OUR_KNOB")
	has(t, "condor_config_val through the broker", out, err, "a value")

	// Another daemon of ours goes the same way, and is connected to by the
	// first.
	other := s.live()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, session, err := other.client.Command(ctx, public, command.DCConfigVal, security.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.PutString("OUR_KNOB")
	if err := conn.EndMessage(); err != nil {
		t.Fatal(err)
	}
	if value, err := conn.String(); value != "a value" {
		t.Errorf("through the broker, under %+v: %q, %v", session.Peer, value, err)
	}
}
