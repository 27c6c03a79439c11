// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package localjob

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/eventlog"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// userLog is the event log that a starter itself writes for its job (StarterUserLog), as
// the job's user: that it begins, is suspended and goes on, cannot be run, has ended or
// was made to leave. What only an access point knows is in none of its events.
type userLog struct {
	path      string // "" writes none
	xml       bool   // StarterUserLogUseXML
	header    eventlog.Header
	address   string // of the machine
	as        func(func() error) error
	suspended bool // by the last event
	failed    bool // that the job cannot be run was written
}

// openUserLog reads what the job's ad says of its log, and tries to write it: a job
// whose log cannot be written does not run. A relative path is below the job's
// directory. Where files are moved the log is in the scratch directory, whose other
// files come back with it.
func (j *Job) openUserLog() error {
	of := j.place.Job
	name := of.Text("StarterUserLog")
	if name == "" {
		return nil
	}
	l := &j.log
	l.as = j.AsUser
	if l.path = job.Under(of.Iwd, name); of.Moves {
		l.path = filepath.Join(j.place.Box.Scratch(), filepath.Base(name))
	}
	l.xml, _ = of.Ad.EvalBool("StarterUserLogUseXML", nil)
	number := func(attr string, otherwise int64) int {
		if n, ok := of.Ad.EvalInt(attr, nil); ok {
			return int(n)
		}
		return int(otherwise)
	}
	l.header.Cluster, l.header.Proc, l.header.Subproc = number("ClusterId", 1), number("ProcId", 0), number("Node", 0)
	l.address = "<" + j.Plan.SlotFullName + ">"
	if machine, err := classad.ParseAd(j.Plan.MachineAd, classad.Old); err == nil {
		if at, ok := machine.EvalString("MyAddress", nil); ok && at != "" {
			l.address = at
		}
	}
	return l.write(nil)
}

// write appends the record of an event, or none. The file is opened each time: nothing
// that belongs to the job's user is kept open with other rights.
func (l *userLog) write(ev eventlog.Event) error {
	if l.path == "" {
		return nil
	}
	l.header.Time = time.Now()
	return l.as(func() error {
		if l.xml {
			return l.writeXML(ev)
		}
		w, err := eventlog.Open(l.path)
		if err != nil {
			return err
		}
		if ev != nil {
			err = w.Write(l.header, ev)
		}
		return errors.Join(err, w.Close())
	})
}

// writeXML appends the record as an ad in XML, in one write.
func (l *userLog) writeXML(ev eventlog.Event) error {
	file, err := os.OpenFile(l.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644) // a pipe that is only written to would hold us up
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() && info.Mode()&os.ModeDevice == 0 {
		err = fmt.Errorf("a job event log must be a file, not %s", info.Mode().Type())
	}
	if err == nil && ev != nil {
		var text []byte
		if text, err = eventlog.AppendXML(nil, l.header, ev); err == nil {
			_, err = file.Write(text)
		}
	}
	return errors.Join(err, file.Close())
}

// logEvent writes an event. A log that can no longer be written stops nothing.
func (j *Job) logEvent(ev eventlog.Event) {
	if err := j.log.write(ev); err != nil {
		j.Log.Warn("the job's event log cannot be written", "path", j.log.path, "err", err)
		j.log.path = "" // it is said once
	}
}

// logState writes that the job was suspended or goes on, if that is news.
func (j *Job) logState(s job.State) {
	switch is := s.Moment == job.Suspended; {
	case s.Moment != job.Runs && s.Moment != job.Suspended || is == j.log.suspended:
	case is:
		j.log.suspended = true
		j.logEvent(eventlog.Suspended{Processes: max(1, s.Usage.Procs)})
	default:
		j.log.suspended = false
		j.logEvent(eventlog.Unsuspended{})
	}
}

// logEnd writes how the job's stay ended.
func (j *Job) logEnd(s job.State) {
	used := eventlog.Usage{User: s.Usage.UserCPU, System: s.Usage.SysCPU}
	if s.Evicted != nil || !s.Status.Ended() {
		j.logEvent(eventlog.Evicted{Local: used})
		return
	}
	j.logEvent(eventlog.Terminated{Exit: eventlog.Exit{Signal: s.Status.Signal, Status: s.Status.Code}, Local: used})
}

// logError writes that the job cannot be run.
func (j *Job) logError(h protocol.Hold) {
	if !j.log.failed {
		j.log.failed = true
		j.logEvent(eventlog.RemoteError{Daemon: "starter", Host: j.log.address, Text: h.Reason, ReasonCode: h.Code, ReasonSubcode: h.Subcode})
	}
}
