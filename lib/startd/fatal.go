// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/observe"
)

// program is the name of the daemon in its log.
const program = "condor_startd"

// failureFile is where HTCondor's daemons say that their log cannot be written.
const failureFile = "dprintf_failure." + subsystem

// Lines are the sentences in which an error is told: one for each problem of a
// configuration, and one for any other error.
func Lines(err error) []string {
	var problems config.Problems
	if !errors.As(err, &problems) {
		return []string{err.Error()}
	}
	var all []string
	for _, p := range problems {
		all = append(all, p.Error())
	}
	return all
}

// TellFatal writes why the daemon ends before it has begun where that stays:
// into the daemon's log, whose last lines condor_master mails to the
// administrator, or into the system's log if there is no such file yet or it
// cannot be written. Under condor_master standard error is read by no program. snap is
// what could be read of the configuration, and may be nil. Nothing is made but
// the log itself: a configuration that is wrong may name any directory.
func TellFatal(cause error, status int, snap *config.Snapshot, p SystemLog, pid int) {
	w, debug, err := fatalLog(snap, p)
	if err != nil {
		return // standard error has it
	}
	log := slog.New(observe.NewDebugHandler(w, debug, pid)).With(observe.CategoryKey, "D_ERROR")
	for _, line := range Lines(cause) {
		log.Info(fmt.Sprintf("ERROR %q", line))
	}
	observe.Banner{Program: program, PID: pid}.End(log, status)
	_ = w.Close() // there is nowhere else to tell
}

// fatalLog opens where a fatal error is told.
func fatalLog(snap *config.Snapshot, p SystemLog) (io.WriteCloser, observe.Debug, error) {
	debug, _ := observe.ParseDebug()
	if snap != nil {
		set, err := observe.LogSettingsFrom(snap, subsystem)
		if err != nil { // that may be what is wrong
			set = observe.LogSettings{Path: snap.String(subsystem + "_LOG"), Debug: debug}
		}
		path := logPath(snap, set)
		if _, err := os.Stat(filepath.Dir(path)); err == nil && filepath.IsAbs(path) && !set.Syslog {
			if f, err := observe.OpenLog(path, observe.LogLimit{}, 1, time.Now); err == nil {
				return f, set.Debug, nil
			}
			leaveFailure(snap.String("LOG"), path)
		}
	}
	debug.Bare = true
	w, err := p.Syslog("condor_startd")
	return w, debug, err
}

// leaveFailure leaves word in LOG that the log cannot be written, as HTCondor's
// daemons do. LOG may be another user's: a link there leads nowhere else.
func leaveFailure(dir, path string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return
	}
	defer root.Close()
	text := fmt.Sprintf("dprintf() had a fatal error in pid %d\nCan't open %q euid: %d, ruid: %d\n", os.Getpid(), path, os.Geteuid(), os.Getuid())
	_ = root.WriteFile(failureFile, []byte(text), 0o644) // the system's log says it as well
}
