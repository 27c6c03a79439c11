// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package syslog writes the log of a daemon to that of the system, as
// LOG_TO_SYSLOG wants. It owns one connection to the system's logger. It must
// never choose what is logged, and never fail a daemon whose logger is away.
//
//	log := syslog.New("condor_startd")
//	fmt.Fprintln(log, "slot1: Changing state: Owner -> Unclaimed")
package syslog

import (
	"log/syslog"
	"sync"
)

// maxRecord bounds one record in bytes; the system's loggers take less.
const maxRecord = 32 << 10

// Log is an io.WriteCloser: every Write is one record of facility daemon and
// severity info, as HTCondor's are, with the program's name and process id. It
// is safe for concurrent use. While no logger listens records are lost, as they
// are with syslog(3); each Write looks for one again.
type Log struct {
	network, place string // "" for the usual places
	tag            string

	mu sync.Mutex
	to *syslog.Writer // nil until a logger was found
}

// New returns the log of the program named tag. It connects at the first
// record.
func New(tag string) *Log { return &Log{tag: tag} }

// Write implements io.Writer. It always takes all of record.
func (l *Log) Write(record []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to == nil {
		to, err := syslog.Dial(l.network, l.place, syslog.LOG_DAEMON|syslog.LOG_INFO, l.tag)
		if err != nil {
			return len(record), nil
		}
		l.to = to
	}
	_, _ = l.to.Write(record[:min(len(record), maxRecord)]) // which connects anew if it has to
	return len(record), nil
}

// Close ends the connection.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to == nil {
		return nil
	}
	to := l.to
	l.to = nil
	return to.Close()
}
