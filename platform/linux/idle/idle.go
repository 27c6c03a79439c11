// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package idle tells how long a Linux machine's keyboard, mouse and terminals
// have been left alone. It owns the choice of what counts as use:
//
//   - the access times of the terminals on which utmp says somebody is logged
//     in, or of every terminal with STARTD_HAS_BAD_UTMP;
//   - the access times of CONSOLE_DEVICES, which are the console as well;
//   - interrupts of a PS/2 keyboard or mouse, which are the console as well.
//
// Two things go beyond HTCondor. Where there is no utmp at all, as on new
// distributions, the pseudo-terminals and the virtual consoles in use are
// looked at, so that a login does not go unseen. And an entry of
// CONSOLE_DEVICES that begins with / (but not /dev/), ./ or ../ is a path of
// its own: any file can stand in for a keyboard, and touching it is a key
// press. USB input devices leave no trace that a file shows; that is what
// condor_kbdd is for.
//
// The package must never read input itself, only when it happened, and
// nothing but below the Root it was given and the paths of the owner.
package idle

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/platform/linux"
)

// Options are the owner's wishes.
type Options struct {
	// ConsoleDevices are the entries of CONSOLE_DEVICES. With none, nothing
	// counts as the console and HasConsole is false.
	ConsoleDevices []string
	// EveryTerminal is STARTD_HAS_BAD_UTMP: look at all terminals instead of
	// those utmp names.
	EveryTerminal bool
}

// OptionsFrom reads CONSOLE_DEVICES and STARTD_HAS_BAD_UTMP.
func OptionsFrom(snap *config.Snapshot) (Options, error) {
	every, err := snap.Bool("STARTD_HAS_BAD_UTMP")
	return Options{ConsoleDevices: snap.List("CONSOLE_DEVICES"), EveryTerminal: every}, err
}

// Watcher watches one machine. It remembers when it last saw somebody, and is
// used by one goroutine.
type Watcher struct {
	console   []device
	irqs      []irq
	terminals terminals
	nullMajor uint32
	hasNull   bool

	usedTerm, usedIRQ       clock.Instant // when somebody was last seen
	knowsTerm, knowsConsole bool
}

// device is a file whose times tell of use.
type device struct {
	path  string
	stand bool // an ordinary file in the place of a device: writing counts too
}

// New returns a watcher of the machine that root shows. Nothing is read
// before the first call of Idle, except what kind of device the null device
// is and which interrupts belong to a keyboard.
func New(root linux.Root, o Options) *Watcher {
	w := &Watcher{terminals: terminals{root: root, every: o.EveryTerminal}}
	var st unix.Stat_t
	if unix.Stat(filepath.Join(root.Dev, "null"), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR {
		w.nullMajor, w.hasNull = unix.Major(uint64(st.Rdev)), true
	}
	for _, entry := range o.ConsoleDevices {
		if entry = strings.TrimSpace(entry); entry != "" {
			w.console = append(w.console, consoleDevice(root, entry))
		}
	}
	if len(w.console) > 0 {
		w.irqs = findIRQs(root)
	}
	return w
}

// consoleDevice reads one entry of CONSOLE_DEVICES.
func consoleDevice(root linux.Root, entry string) device {
	if name, ok := strings.CutPrefix(entry, "/dev/"); ok && name != "" {
		return device{path: filepath.Join(root.Dev, name)}
	}
	if strings.HasPrefix(entry, "/") || strings.HasPrefix(entry, "./") || strings.HasPrefix(entry, "../") {
		return device{path: entry, stand: true}
	}
	return device{path: filepath.Join(root.Dev, entry)}
}

// Idle returns how long the machine has been left alone at now. It always
// returns usable times; the error names files that are there but could not be
// read.
func (w *Watcher) Idle(now clock.Instant) (machine.Idle, error) {
	var problems []error
	never := machine.NeverUsed(now)

	keyboard, seen := never, false
	paths, err := w.terminals.list()
	if err != nil {
		problems = append(problems, err)
	}
	for _, path := range paths {
		if since, ok := w.since(device{path: path}, now); ok {
			keyboard, seen = min(keyboard, since), true
		}
	}
	// After the last logout the time goes on from the last use that was seen,
	// counted on the boot clock: a jump of the wall clock is no key press.
	if seen {
		w.usedTerm, w.knowsTerm = now.Add(-keyboard), true
	} else if w.knowsTerm {
		keyboard = min(never, max(0, now.Sub(w.usedTerm)))
	}

	console := never
	for _, d := range w.console {
		if since, ok := w.since(d, now); ok {
			console = min(console, since)
		}
	}
	for i := range w.irqs {
		moved, err := w.irqs[i].moved()
		if err != nil {
			problems = append(problems, err)
		}
		if moved {
			w.usedIRQ, w.knowsConsole = now, true
		}
	}
	if w.knowsConsole {
		console = min(console, max(0, now.Sub(w.usedIRQ)))
	}
	return machine.Idle{
		Keyboard:   min(keyboard, console),
		Console:    console,
		HasConsole: len(w.console) > 0,
	}, errors.Join(problems...)
}

// since returns how long d was left alone. A device that is not there, or
// that is no more than the null device, tells nothing; one whose last use lies
// in the future was used just now.
func (w *Watcher) since(d device, now clock.Instant) (time.Duration, bool) {
	var st unix.Stat_t
	if unix.Stat(d.path, &st) != nil {
		return 0, false
	}
	if w.hasNull && st.Mode&unix.S_IFMT == unix.S_IFCHR && unix.Major(uint64(st.Rdev)) == w.nullMajor {
		return 0, false
	}
	used := time.Unix(st.Atim.Unix())
	if d.stand {
		if written := time.Unix(st.Mtim.Unix()); written.After(used) {
			used = written
		}
	}
	if used.Unix() <= 0 {
		return 0, false
	}
	return max(0, now.Wall.Sub(used)), true
}

// notThere reports whether err says that a file does not exist.
func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}

func fileError(path string, err error) error {
	kind := errs.Transient
	if errors.Is(err, os.ErrPermission) {
		kind = errs.Denied
	}
	return errs.E("idle.read", kind, path, err)
}
