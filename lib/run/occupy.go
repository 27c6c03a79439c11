// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

const (
	// OccupyPatience is how long a startd waits for one that is just ending, as
	// the one that condor_master started before. After that condor_master tries
	// again, later each time.
	OccupyPatience = 5 * time.Second
	// occupyStep is how often it looks.
	occupyStep = 100 * time.Millisecond
	// touchEvery is how often lock files are given the present time:
	// condor_preen takes whatever is half an hour old out of an EXECUTE whose
	// slots are idle, and a lock on a file without a name locks nobody out.
	touchEvery = 10 * time.Minute
)

// Place is what two Execution Points must not use at the same time.
type Place struct {
	Knob  string // which knob to change if somebody else uses it: "EXECUTE"
	Value string // its value
	File  string // the file whose lock stands for it
}

// ExecutePlace is a directory of sandboxes.
func ExecutePlace(knob, dir string) Place {
	return Place{Knob: knob, Value: dir, File: filepath.Join(dir, ".execpoint.lock")}
}

// LogPlace is the log of a daemon. Two daemons may have different logs in one
// directory.
func LogPlace(knob, path string) Place {
	return Place{Knob: knob, Value: path, File: filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock")}
}

// NamePlace is the name by which the pool knows a daemon; lock is LOCK.
func NamePlace(knob, name, lock string) Place {
	file := ".startd_" + url.PathEscape(name)
	return Place{Knob: knob, Value: name, File: filepath.Join(lock, file[:min(len(file), 200)]+".lock")}
}

// Occupation says how places are occupied.
type Occupation struct {
	Lock     host.Locker // nil where the system has no locks
	Share    host.Share
	Me       host.Holder
	Patience time.Duration // how long to wait for who holds one
	Log      *slog.Logger
}

// Occupied are places that nobody else uses until they are released or the
// process ends, however it ends.
type Occupied struct {
	locks []host.Lock
	log   *slog.Logger
}

// Occupy takes the locks of all places. One that somebody else holds for longer
// than the patience is a Conflict, which names who; then none is kept. One that
// cannot be locked is told in the log, and used.
func Occupy(ctx context.Context, o Occupation, places ...Place) (*Occupied, error) {
	all := &Occupied{log: o.Log}
	if o.Lock == nil {
		return all, nil
	}
	limit := time.Now().Add(o.Patience)
	for _, p := range places {
		lock, err := o.take(ctx, p, limit)
		switch {
		case errs.Is(err, errs.Conflict):
			return nil, errors.Join(err, all.Release())
		case err != nil:
			o.Log.Warn("cannot be locked; if another Execution Point uses it, neither will notice", "knob", p.Knob, "value", p.Value, "err", err)
		default:
			all.locks = append(all.locks, lock)
		}
	}
	return all, nil
}

// take takes one lock.
func (o *Occupation) take(ctx context.Context, p Place, limit time.Time) (host.Lock, error) {
	told := false
	for {
		lock, err := o.Lock(p.File, o.Share, o.Me)
		if !errs.Is(err, errs.Conflict) {
			return lock, err
		}
		left := time.Until(limit)
		if left <= 0 || ctx.Err() != nil {
			var held *host.HeldError
			if errors.As(err, &held) {
				err = held
			}
			return nil, errs.E("run.Occupy", errs.Conflict, p.Knob,
				fmt.Errorf("%s: %w; two would take one another for gone: end that one, or give this one another %s", p.Value, err, p.Knob))
		}
		if !told {
			o.Log.Info("waiting for who uses it now", "knob", p.Knob, "value", p.Value, "at_most", left.Round(time.Second), "err", err)
			told = true
		}
		step := time.NewTimer(min(left, occupyStep))
		select {
		case <-step.C:
		case <-ctx.Done():
			step.Stop()
		}
	}
}

// Keep keeps the lock files from being taken for old ones until ctx ends.
func (o *Occupied) Keep(ctx context.Context) {
	tick := time.NewTicker(touchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, l := range o.locks {
			if err := l.Touch(); err != nil {
				o.log.Warn("a lock's file may be taken for an old one and removed", "err", err)
			}
		}
	}
}

// Release gives all places up.
func (o *Occupied) Release() error {
	var err error
	for _, l := range o.locks {
		err = errors.Join(err, l.Close())
	}
	o.locks = nil
	return err
}
