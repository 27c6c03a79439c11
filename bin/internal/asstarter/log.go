// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package asstarter

import (
	"log/slog"
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/starter"
)

// openLog opens a starter's log for the rest of the process's life.
func openLog(p starter.LogPlan) (*slog.Logger, error) {
	file, err := observe.OpenLog(p.Path, observe.LogLimit{Bytes: p.MaxBytes, Age: p.MaxAge}, p.Keep, time.Now)
	if err != nil {
		return nil, err
	}
	debug, _ := observe.ParseDebug(p.Debug...) // the daemon has complained of unknown words
	debug.TimeFormat = p.TimeFormat
	debug.Timestamp = debug.Timestamp || p.Stamps
	return slog.New(observe.NewDebugHandler(file, debug, os.Getpid())), nil
}
