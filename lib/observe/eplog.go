// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// EPEvent is one event of the log of an EP's own doings (STARTD_EVENTLOG).
type EPEvent struct {
	Kind EPEventKind
	// Slot and Sub are the numbers of the slot that it is about, 0 for none.
	Slot, Sub int
	At        time.Time
	Attrs     *classad.Ad // may be nil
}

// EPEventKind is the field's number of an event.
type EPEventKind int

// The events.
const (
	EPStartup EPEventKind = iota + 100
	EPReady
	EPReconfig
	EPShutdown
	EPRequestClaim
	EPReleaseClaim
	EPActivateClaim
	EPDeactivateClaim
	EPVacateClaim
	EPDrain
	EPResourceBreak
	EPResourceMend
)

var epEventNames = [...]string{"EP_STARTUP", "EP_READY", "EP_RECONFIG", "EP_SHUTDOWN", "EP_REQUEST_CLAIM", "EP_RELEASE_CLAIM",
	"EP_ACTIVATE_CLAIM", "EP_DEACTIVATE_CLAIM", "EP_VACATE_CLAIM", "EP_DRAIN", "EP_RESOURCE_BREAK", "EP_RESOURCE_MEND"}

// String returns the name in the log.
func (k EPEventKind) String() string {
	if i := int(k - EPStartup); i >= 0 && i < len(epEventNames) {
		return epEventNames[i]
	}
	return fmt.Sprintf("EP_EVENT_%d", int(k))
}

// Text is the event as the log has it: a header with number, slot, local time
// and name, one attribute to a line, and three dots.
func (e *EPEvent) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%03d (%03d.%03d.000) %s %v\n", int(e.Kind), e.Slot, e.Sub, e.At.Format("2006-01-02 15:04:05.000"), e.Kind)
	if e.Attrs != nil {
		names := e.Attrs.Names()
		slices.Sort(names)
		for _, name := range names {
			if x, ok := e.Attrs.Lookup(name); ok && !classad.IsPrivate(name) {
				// A line break would end the attribute, or the event.
				fmt.Fprintf(&b, "  %s = %s\n", name, strings.NewReplacer("\n", " ", "\r", " ").Replace(x.Text(classad.Old)))
			}
		}
	}
	b.WriteString("...\n")
	return b.String()
}

// AppendEPEvent adds an event to the log at path. A log that would become
// longer than most bytes is put aside as path.old first; 0 is no limit.
func AppendEPEvent(path string, most int64, e *EPEvent) error {
	const op = "observe.AppendEPEvent"
	text := e.Text()
	var bad []error
	if info, err := os.Stat(path); err == nil && most > 0 && info.Size() > 0 && info.Size()+int64(len(text)) > most {
		bad = append(bad, os.Rename(path, path+".old"))
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return errs.E(op, errs.Transient, path, errors.Join(append(bad, err)...))
	}
	_, err = f.WriteString(text)
	if err = errors.Join(append(bad, err, f.Close())...); err != nil {
		return errs.E(op, errs.Transient, path, err)
	}
	return nil
}
