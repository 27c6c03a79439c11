// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
)

// collector takes the ads of daemons, and keeps all of them.
type collector struct {
	t  *testing.T
	at string

	mu  sync.Mutex
	ads []*classad.Ad
}

// newCollector listens until the test ends.
func newCollector(t *testing.T) *collector {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{t: t, at: l.Addr().String()}
	row := func(number int, name string) listen.Command {
		return listen.Command{Row: command.Row{Number: number, Name: name, Terms: command.Terms{Level: security.Read}}, Handle: c.take}
	}
	table, err := listen.NewTable(row(command.UpdateStartdAd, "UPDATE_STARTD_AD"), row(command.InvalidateStartdAds, "INVALIDATE_STARTD_ADS"))
	if err != nil {
		t.Fatal(err)
	}
	conf, err := config.Parse("collector", common, config.Options{Subsystem: "COLLECTOR"})
	if err != nil {
		t.Fatal(err)
	}
	set, err := security.SettingsFrom(conf, security.Sources{Subsystem: "COLLECTOR"})
	if err != nil {
		t.Fatal(err)
	}
	methods, err := authn.SettingsFrom(conf, "COLLECTOR")
	if err != nil {
		t.Fatal(err)
	}
	server := &security.Server{
		Commands: table.Security(), Sessions: security.NewSessions(clock.System(), 0), Clock: clock.System(),
		Version: "$CondorVersion: 25.14.0 2026-11-20 test $", Host: "collector", PID: os.Getpid(),
	}
	server.Configure(set, &authn.Server{Settings: methods, System: authn.System{User: "someone"}, Self: func() cedar.Sinful { return cedar.Sinful{} }})
	port := &listen.Server{Table: table, Security: server}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- port.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		port.Wait(ctx)
	})
	return c
}

func (c *collector) take(_ context.Context, call *listen.Call) error {
	ad, err := call.Conn.Ad(cedar.AdOptions{})
	if err == nil && call.Conn.More() {
		_, err = call.Conn.Ad(cedar.AdOptions{}) // the private one
	}
	if err == nil {
		err = call.Conn.EndOfMessage()
	}
	if err != nil {
		return err
	}
	if kind, _ := ad.EvalString("MyType", nil); kind == "Machine" {
		c.mu.Lock()
		c.ads = append(c.ads, ad)
		c.mu.Unlock()
	}
	return nil
}

// told are all ads of slots that came, in order.
func (c *collector) told() []*classad.Ad {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ads)
}

// hears waits until the last ad says that its starters have these methods.
func (c *collector) hears(methods string) *classad.Ad {
	c.t.Helper()
	var last *classad.Ad
	eventually(c.t, "the collector hears of "+methods, func() error {
		all := c.told()
		if len(all) == 0 {
			return fmt.Errorf("no ad")
		}
		last = all[len(all)-1]
		if got, _ := last.EvalString("HasFileTransferPluginMethods", nil); got != methods {
			return fmt.Errorf("methods %q after %d ads", got, len(all))
		}
		return nil
	})
	return last
}
