// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/platform/linux"
)

// fakeIdle is a person who was last seen some time ago.
type fakeIdle struct {
	idle machine.Idle
	err  error
}

func (f *fakeIdle) Idle(clock.Instant) (machine.Idle, error) { return f.idle, f.err }

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSampler(t *testing.T) {
	t.Parallel()
	root := linux.RootAt(t.TempDir())
	write(t, root.Proc+"/loadavg", "1.50 1.00 0.50 3/93 14908\n")
	write(t, root.Proc+"/meminfo", "MemTotal: 1000000 kB\nSwapTotal: 500000 kB\nSwapFree: 400000 kB\n")
	statfs, stat := fakeStatfs(t, "1000 250 4096 8:1")
	person := &fakeIdle{idle: machine.Idle{Keyboard: 34 * time.Second, Console: time.Hour, HasConsole: true}}
	fake := clock.NewFake(time.Unix(1_800_000_000, 0))
	s := NewSampler(System{Root: root, Statfs: statfs, Stat: stat}, fake, person, execute)
	defer s.Close()
	check := func(step string, want machine.Sample, words ...string) {
		t.Helper()
		got, err := s.Sample(t.Context())
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", step, diff)
		}
		if (err != nil) != (len(words) > 0) {
			t.Errorf("%s: error %v", step, err)
		}
		for _, w := range words {
			if err != nil && !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q is not in %v", step, w, err)
			}
		}
	}
	want := machine.Sample{At: fake.Now(), Fresh: machine.AllReadings, LoadAvg: 1.5, KeyboardIdle: 34 * time.Second, ConsoleIdle: time.Hour,
		HasConsole: true, FreeSwapKiB: 1_400_000, FreeDiskKiB: 1000, TotalDiskKiB: 4000}
	check("first", want)

	// The files are read anew although they stay open.
	write(t, root.Proc+"/loadavg", "0.25 0.00 0.00 1/9 2\n")
	write(t, root.Proc+"/meminfo", "MemTotal: 1000000 kB\n")
	want.At, want.LoadAvg, want.FreeSwapKiB = fake.Advance(5*time.Second), 0.25, 1_000_000
	check("changed", want)

	// What fails keeps its last value and is not fresh.
	write(t, root.Proc+"/loadavg", "busy\n")
	write(t, root.Proc+"/meminfo", "SwapFree: 3 kB\n")
	person.err = errs.E("idle.read", errs.Denied, "/run/utmp", unix.EACCES)
	s.disk.sys.Statfs = func(string, *unix.Statfs_t) error { return unix.ENOENT }
	want.At, want.Fresh = fake.Advance(5*time.Second), 0
	check("failed", want, "loadavg", "meminfo", "/run/utmp", execute)

	write(t, root.Proc+"/loadavg", "9.00 0.00 0.00 1/9 2\n")
	write(t, root.Proc+"/meminfo", "MemTotal: 5 kB\n")
	person.err, s.disk.sys.Statfs = nil, statfs
	want.At, want.Fresh, want.LoadAvg, want.FreeSwapKiB = fake.Advance(5*time.Second), machine.AllReadings, 9, 5
	check("back", want)
}

func TestSamplerOfNothing(t *testing.T) {
	t.Parallel()
	s := NewSampler(System{Root: linux.RootAt(t.TempDir())}, clock.NewFake(time.Unix(1_800_000_000, 0)), nil, "")
	got, err := s.Sample(t.Context())
	if err == nil || got.Fresh != 0 || got.KeyboardIdle != 1_800_000_000*time.Second || got.HasConsole {
		t.Errorf("%+v, %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A file system that hangs is waited for once, then reported at once, and
// believed again when it answers.
func TestHungVolume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan error)
		var asked atomic.Int32
		v := &volume{path: execute, name: true, sys: System{
			Statfs: func(_ string, fs *unix.Statfs_t) error {
				asked.Add(1)
				err := <-answer
				fs.Blocks, fs.Bavail, fs.Bsize = 100, 40, 1024
				return err
			},
			Stat: func(string, *unix.Stat_t) error { return unix.EIO },
		}}
		measure := func(want time.Duration, wantErr error) space {
			t.Helper()
			start := time.Now()
			s, err := v.measure(t.Context())
			if took := time.Since(start); took != want || !errors.Is(err, wantErr) {
				t.Errorf("took %v, error %v, want %v, %v", took, err, want, wantErr)
			}
			return s
		}
		measure(hangLimit, ErrHung)
		measure(0, ErrHung)
		time.Sleep(time.Hour)
		measure(0, ErrHung)
		if n := asked.Load(); n != 1 {
			t.Errorf("asked %d times while the first question is open", n)
		}
		answer <- nil
		synctest.Wait()
		if s := measure(0, nil); s.totalKiB != 100 || s.availableKiB != 40 || s.device != "" {
			t.Errorf("late answer %+v", s)
		}
		// It hangs a second time, then fails.
		measure(hangLimit, ErrHung)
		answer <- unix.ESTALE
		synctest.Wait()
		measure(0, unix.ESTALE)
		if n := asked.Load(); n != 2 {
			t.Errorf("asked %d times in all", n)
		}
	})
}

func TestMeasureStopsWhenTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		v := &volume{path: execute, name: true, sys: System{
			Statfs: func(string, *unix.Statfs_t) error { <-answer; return nil },
			Stat:   func(string, *unix.Stat_t) error { return nil },
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := v.measure(ctx); !errors.Is(err, context.DeadlineExceeded) || !errs.Is(err, errs.Transient) {
			t.Errorf("%v", err)
		}
		close(answer)
		synctest.Wait()
		if _, err := v.measure(ctx); err != nil {
			t.Errorf("the answer that came later: %v", err)
		}
	})
}

func TestKib(t *testing.T) {
	t.Parallel()
	const most = 1 << 60
	for _, tt := range []struct {
		blocks, size uint64
		want         int64
	}{
		{0, 4096, 0}, {3, 512, 1}, {1000, 1024, 1000}, {1 << 40, 65536, 1 << 46}, {1 << 60, 1024, most}, {1<<64 - 1, 1<<64 - 1, most}, {1<<64 - 1, 0, 0},
	} {
		if got := kib(tt.blocks, tt.size); got != tt.want {
			t.Errorf("kib(%d, %d) = %d, want %d", tt.blocks, tt.size, got, tt.want)
		}
	}
	for _, tt := range []struct {
		frsize, bsize int64
		want          uint64
	}{{4096, 1 << 20, 4096}, {0, 512, 512}, {-1, 512, 512}, {0, -512, 0}} {
		if got := blockSize(&unix.Statfs_t{Frsize: tt.frsize, Bsize: tt.bsize}); got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
	}
}

func TestThisMachineIsSampled(t *testing.T) {
	t.Parallel()
	s := NewSampler(Host(linux.DefaultRoot()), linux.Clock(), nil, t.TempDir())
	defer s.Close()
	for range 2 {
		got, err := s.Sample(t.Context())
		if err != nil || got.Fresh != machine.AllReadings&^machine.ReadIdle || got.LoadAvg < 0 || got.FreeSwapKiB <= 0 || got.FreeDiskKiB < 0 || got.TotalDiskKiB <= 0 {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// A sample is taken every few seconds for years.
func BenchmarkSample(b *testing.B) {
	s := NewSampler(Host(linux.DefaultRoot()), linux.Clock(), nil, b.TempDir())
	defer s.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Sample(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
