// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/localuniverse"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/platform/linux"
	"github.com/execpoint/execpoint/platform/linux/account"
	"github.com/execpoint/execpoint/platform/linux/asstarter"
)

// LocalUniverse is the whole life of a starter that a schedd started itself; the
// caller exits with what it returns. It has the process for itself.
func LocalUniverse(args []string) int {
	log := slog.New(observe.NewLogHandler(os.Stderr, slog.LevelInfo))
	status, err := localUniverse(context.Background(), args, log)
	if err != nil {
		fmt.Fprintf(os.Stderr, "condor_starter: %v\n", err)
	}
	return status
}

func localUniverse(ctx context.Context, args []string, log *slog.Logger) (int, error) {
	signals := make(chan localuniverse.Signal, 8)
	relay(signals) // first: a schedd may change its mind at once
	o, err := localuniverse.Parse(args)
	if err != nil {
		return localuniverse.Failed, err
	}
	h, err := asstarter.Host()
	if err != nil {
		return localuniverse.Failed, err
	}
	root, err := RootFile("")
	if err != nil {
		return localuniverse.Failed, err
	}
	s, err := Configuration{File: root}.starter(ctx)
	if err != nil {
		return localuniverse.Failed, err
	}
	if plan, err := localuniverse.Log(s); err == nil && plan != nil && h.OpenLog != nil {
		if opened, _, err := h.OpenLog(*plan); err == nil {
			log = opened
		}
	}
	sys := &System{root: linux.DefaultRoot()}
	kin, err := sys.Kin(s.String("CONDOR_IDS"))
	if err != nil {
		return localuniverse.Failed, err
	}
	queue := &localuniverse.Queue{
		Config: s, Env: os.Getenv, Version: fmt.Sprintf("$CondorVersion: %s execpoint-%s $", config.Version, version), System: asstarter.Credentials(),
		Kin: kin, Reuse: linux.ReuseAddress, Named: sys.Named, Log: log,
	}
	if err := queue.Open(ctx, o.Schedd); err != nil {
		log.Error("the schedd cannot be spoken to", "job", o.ID.String(), "err", err)
		return localuniverse.Failed, err
	}
	c := localuniverse.Config{
		Env: daemon.Scrub(os.Environ()), Stdin: os.Stdin, PID: os.Getpid(), Config: s, Host: h, Signals: signals, Orphaned: orphaned(os.Getppid()),
		Update: queue.Update, Status: queue.Status, Address: o.Schedd.String(), Log: log,
	}
	if port, err := queue.Port(ctx, c.PID, signals); err != nil {
		log.Warn("there is no command port: the job ends no sooner when it is vacated", "err", err)
	} else {
		c.Address = port.Address()
		go func() {
			if err := port.Serve(ctx); err != nil {
				log.Warn("the command port", "err", err)
			}
		}()
	}
	if os.Geteuid() == 0 {
		c.Account = account.Lookup
	}
	return c.Run(ctx, o), nil
}

// starter reads the configuration as a starter.
func (c Configuration) starter(ctx context.Context) (*config.Snapshot, error) {
	o, err := c.Options(ctx, nil)
	if err != nil {
		return nil, err
	}
	o.Subsystem = protocol.Subsystem
	snap, err := config.LoadPartly(o)
	if err != nil {
		return nil, err
	}
	if fatal, _ := snap.Sort(); fatal.Failed() {
		return nil, fatal
	}
	return snap, nil
}

// relay hands on what a schedd sends to a starter of its own.
func relay(to chan<- localuniverse.Signal) {
	in := make(chan os.Signal, 8)
	signal.Notify(in, syscall.SIGUSR1, syscall.SIGTERM, syscall.SIGQUIT, os.Interrupt)
	go func() {
		for s := range in {
			switch s {
			case syscall.SIGUSR1:
				to <- localuniverse.Leave
			case syscall.SIGTERM:
				to <- localuniverse.Vacate
			default:
				to <- localuniverse.VacateNow
			}
		}
	}()
}

// parentLook is how often a starter looks whether its schedd is there, which tells it
// nothing when it is killed.
const parentLook = 5 * time.Second

// orphaned is closed when the parent of this process is no longer that one.
func orphaned(parent int) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		for os.Getppid() == parent {
			time.Sleep(parentLook)
		}
		close(gone)
	}()
	return gone
}
