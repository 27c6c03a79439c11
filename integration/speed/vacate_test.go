// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package speed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/transfer"
	"github.com/execpoint/execpoint/platform/linux/account"
)

// vacateClaim is VACATE_CLAIM, the graceful command of condor_vacate.
const vacateClaim = 465

// BenchmarkVacate vacates a slot whose job sleeps: from the command to the
// moment in which the job's process is gone, once with condor_vacate, whose own
// start counts, and once with a client of ours, authentication included the
// first time.
func BenchmarkVacate(b *testing.B) {
	s := newSite(b, slots)
	tool, err := s.toolClient()
	s.Must(err)
	seq := 0
	for _, e := range s.eps {
		b.Run(e.Name, func(b *testing.B) {
			name := "slot1_1@" + e.Host()
			var address cedar.Sinful
			for _, way := range []struct {
				name   string
				vacate func(ctx context.Context) error
			}{
				{"condor_vacate", func(ctx context.Context) error {
					_, err := s.Run(ctx, "condor_vacate", "-addr", address.String())
					return err
				}},
				{"client", func(ctx context.Context) error {
					conn, _, err := tool.Command(ctx, address, vacateClaim, security.Options{})
					if err != nil {
						return err
					}
					conn.PutString(name)
					return errors.Join(conn.EndMessage(), conn.Close())
				}},
			} {
				b.Run(way.name, func(b *testing.B) {
					var gone []float64
					for b.Loop() {
						seq++
						d := s.drive(b, e, 1)
						address = d.address
						took, err := d.vacate(b, seq, way.vacate)
						s.Must(err)
						gone = append(gone, milliseconds(took))
						s.Eventually("the claim is given back", realpool.Patience, e.Idle)
						d.claims = nil
					}
					report(b, gone, "ms-to-gone")
					b.ReportMetric(0, "ns/op")
				})
			}
		})
	}
}

// vacate runs a job and measures how long it takes to end it.
func (d *driver) vacate(b *testing.B, seq int, vacate func(context.Context) error) (time.Duration, error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), realpool.Patience)
	defer cancel()
	job := d.site.ad(b, "executable = /bin/sleep\narguments = 1000\nshould_transfer_files = NO\n")
	over := make(chan error, 1)
	go func() {
		_, _, err := d.run(ctx, d.claims[0], seq, job, transfer.SendPlan{})
		over <- err
	}()
	var fd int
	if err := realpool.Until(ctx, realpool.Patience, 20*time.Millisecond, func(context.Context) error {
		for _, one := range realpool.Below(realpool.Everything(), d.ep.PID()) {
			if one.Name == "sleep" {
				var err error
				fd, err = unix.PidfdOpen(one.PID, 0)
				return err
			}
		}
		return errors.New("the job does not run")
	}); err != nil {
		select {
		case bad := <-over:
			err = errors.Join(err, bad)
		default:
		}
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	begun := time.Now()
	told := make(chan error, 1)
	go func() { told <- vacate(ctx) }()
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := 0, error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Poll(poll, int(realpool.Patience.Milliseconds()))
	}
	took := time.Since(begun)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("the process is still there after %v: %w", took, errors.Join(err, <-told))
	}
	<-over // it was evicted, as was asked for
	return took, <-told
}

// toolClient is a client with the rights of the pool's administrator.
func (s *site) toolClient() (*security.Client, error) {
	snap, err := config.Load(config.Options{Root: s.Config, ReadFile: os.ReadFile, Subsystem: "TOOL", Home: filepath.Dir(s.Config)})
	if err != nil {
		return nil, err
	}
	settings, err := security.SettingsFrom(snap, security.Sources{Subsystem: "TOOL", ReadFile: os.ReadFile})
	if err != nil {
		return nil, err
	}
	methods, err := authn.SettingsFrom(snap, "TOOL")
	if err != nil {
		return nil, err
	}
	dialer := &listen.Dialer{Name: func() string { return "TOOL" }}
	client := &security.Client{
		Sessions: security.NewSessions(clock.System(), 0), Clock: clock.System(), Dial: dialer.Dial, Subsystem: "TOOL", PID: os.Getpid(),
		Version: "$CondorVersion: " + config.Version + " execpoint $", Address: func() string { return "" },
	}
	client.Configure(settings, &authn.Client{Settings: methods, System: authn.System{Files: account.Private{}, Owners: account.Owners{}}})
	return client, nil
}
