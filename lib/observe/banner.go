// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Banner is what a daemon says of itself at its beginning. condor_who, and
// people's scripts, look for these lines in logs, from the last one back.
type Banner struct {
	Program string // "condor_startd"
	Version string // "$CondorVersion: ... $", "" if it is not known
	PID     int
	UID     int       // of the process, -1 where there are none
	Touched time.Time // when the log was last written before, zero for a new one
}

const stars = "******************************************************"

// Begin writes the banner. What comes with it stands behind the first of its
// words.
func (b Banner) Begin(log *slog.Logger, with ...any) {
	log.Info(stars)
	log.Info(fmt.Sprintf("** %s (CONDOR_%s) STARTING UP", b.Program, b.subsystem()), with...)
	if b.Version != "" {
		log.Info("** " + b.Version)
	}
	who := fmt.Sprintf("** PID = %d", b.PID)
	if b.UID >= 0 {
		who += fmt.Sprintf(" RealUID = %d", b.UID)
	}
	log.Info(who)
	if b.Touched.IsZero() {
		log.Info("** Log last touched time unavailable (No such file or directory)")
	} else {
		log.Info("** Log last touched " + b.Touched.Format("1/2 15:04:05"))
	}
	log.Info(stars)
}

// End writes that the process ends, and how.
func (b Banner) End(log *slog.Logger, status int) {
	log.Info(fmt.Sprintf("**** %s (condor_%s) pid %d EXITING WITH STATUS %d", b.Program, b.subsystem(), b.PID, status))
}

func (b Banner) subsystem() string {
	return strings.ToUpper(strings.TrimPrefix(b.Program, "condor_"))
}

// Touched is when the log was last written before it was opened, zero for one
// that was not there.
func (l *LogFile) Touched() time.Time { return l.touched }
