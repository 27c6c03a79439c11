// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/tool/progress"
	"github.com/execpoint/execpoint/lib/tool/words"
	"github.com/execpoint/execpoint/platform/confio"
)

// giveUp is how long a start that was told to end may take to do so. What it
// waits for then cannot be hurried, such as a file server that is gone.
const giveUp = 3 * time.Second

// errToldToEnd ends a run before it had begun.
var errToldToEnd = errors.New("told to end during the start")

// beginning is the start of a run, until its slots are there. It says what is
// waited for if that takes long, and Ctrl-C breaks it off: no job has begun that
// could be given time.
type beginning struct {
	show   progress.Reporter
	cancel context.CancelFunc
	exit   func() // ends the program, whatever it waits for

	mu           sync.Mutex
	step, told   string // what is done now, and what of it was last told
	over, broken bool
}

// during does one step of the start. If it takes long it is said what is waited
// for; of steps within steps, the inner one.
func (b *beginning) during(step string, f func()) {
	outer := b.enter(step)
	defer b.enter(outer)
	defer observe.Waiting(b.tell)()
	f()
}

// enter notes which step is done now, and returns the one before.
func (b *beginning) enter(step string) (before string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, b.step = b.step, step
	return before
}

// tell says what is waited for, once for each step.
func (b *beginning) tell() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.step != "" && b.step != b.told && !b.broken {
		b.told = b.step
		b.show.Note(progress.Waiting, b.step)
	}
}

// waiting says what lib/run waits for.
func (b *beginning) waiting(what string) {
	b.enter(what)
	b.tell()
}

// settled ends the start: what Ctrl-C means is now decided by the run.
func (b *beginning) settled() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
}

// brokenOff reports whether the start was ended by Ctrl-C.
func (b *beginning) brokenOff() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.broken
}

// breakOff ends the start, and reports whether it was not over yet. A second time
// it does not wait for what is under way.
func (b *beginning) breakOff() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.over:
		return false
	case b.broken:
		b.exit()
	}
	b.broken = true
	b.cancel()
	b.show.Leaving("told to end: no job has begun; a second Ctrl-C (or SIGTERM) waits for nothing", ep.ShutdownView{Manner: ep.Fast})
	time.AfterFunc(giveUp, b.exit)
	return true
}

// interrupts turns Ctrl-C and the service manager's SIGTERM into the end of the
// start, and after it into the two steps in which a run ends.
func (b *beginning) interrupts() <-chan struct{} {
	sig := make(chan os.Signal, 4)
	signal.Notify(sig, os.Interrupt, syscall.SIGTERM)
	out := make(chan struct{}, 4)
	go func() {
		for range sig {
			if !b.breakOff() {
				out <- struct{}{}
			}
		}
	}()
	return out
}

// command runs a command of the configuration, which may take its time.
func (b *beginning) command(ctx context.Context) func(string) ([]byte, error) {
	return func(command string) (out []byte, err error) {
		const shown = 200 // characters of it
		b.during(fmt.Sprintf("the command %s of the configuration", words.Fit(command, shown)), func() { out, err = confio.RunUntil(ctx)(command) })
		return out, err
	}
}

// watched are scanners of which it is said which one is waited for.
func (b *beginning) watched(all []machine.Scanner) []machine.Scanner {
	var out []machine.Scanner
	for _, s := range all {
		out = append(out, watched{s, b})
	}
	return out
}

type watched struct {
	machine.Scanner
	b *beginning
}

// Scan implements machine.Scanner.
func (w watched) Scan(ctx context.Context, inv *machine.Inventory) (err error) {
	w.b.during("what this machine has ("+w.Name()+")", func() { err = w.Scanner.Scan(ctx, inv) })
	return err
}
