// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/execpoint/execpoint/lib/host"
)

// Report is what a starter tells its startd: one of the types of this file.
type Report interface {
	// Kind names the report, on the wire and in logs.
	Kind() string
	report()
}

// Told is a report with its number, which counts from 1, and when it was made.
type Told struct {
	ID   uint64
	At   time.Time
	What Report
}

// Sandbox says that the job has a scratch directory.
type Sandbox struct {
	Dir string `json:"dir"`
}

// The beginning of a transfer, and its end with what was moved.
type (
	TransferInStart struct{}
	TransferInDone  struct {
		Files int   `json:"files,omitempty"`
		Bytes int64 `json:"bytes,omitempty"`
	}
	TransferOutStart struct{}
	TransferOutDone  struct {
		Files int   `json:"files,omitempty"`
		Bytes int64 `json:"bytes,omitempty"`
	}
)

// Running names the job's main process.
type Running struct {
	Proc host.ProcID `json:"proc"`
}

// Usage is a measurement. DiskKiB is what the scratch directory holds.
type Usage struct {
	Usage   host.Usage `json:"usage"`
	DiskKiB int64      `json:"disk_kib,omitempty"`
}

// Suspended says how many processes were stopped, Continued that they go on.
type (
	Suspended struct {
		Count int `json:"count,omitempty"`
	}
	Continued struct{}
)

// OutputMoved says that the program has ended by itself, and that so many bytes more
// of its output were sent since the last one.
type OutputMoved struct {
	Bytes int64 `json:"bytes,omitempty"`
}

// Held says why the job has to be held, before Ended says it again.
type Held struct {
	Hold Hold `json:"hold"`
}

// Contact is where the starter is reached, a sinful: it has an address of its own.
type Contact struct {
	Address string `json:"address"`
}

// Refused is an order that this starter cannot carry out. Nothing has changed.
type Refused struct {
	Order string `json:"order"` // its kind
	Why   string `json:"why"`
}

// What a job without a shadow says by Chirp: Attributes sets attributes of its ad,
// an ad in old syntax; those that were Delayed waited for an update, and no event
// tells of them. Event has a line for its event log.
type (
	Attributes struct {
		Ad      string `json:"ad"`
		Delayed bool   `json:"delayed,omitempty"`
	}
	Event struct {
		Text string `json:"text"`
	}
)

// Catalog has the slots of the machine show a catalog of files that jobs share, an ad
// in old syntax, for as long as the claim lasts. Cataloged is the answer.
type Catalog struct {
	Ad string `json:"ad"`
}

// Color has the slots of the machine show an ad, in old syntax, for as long as the
// claim lasts, in place of the last one.
type Color struct {
	Ad string `json:"ad"`
}

// Ended is the last word.
type Ended struct {
	Record ExitRecord `json:"record"`
}

// Kind implements Report.
func (Sandbox) Kind() string          { return "sandbox" }
func (TransferInStart) Kind() string  { return "transfer-in-start" }
func (TransferInDone) Kind() string   { return "transfer-in-done" }
func (Running) Kind() string          { return "running" }
func (Usage) Kind() string            { return "usage" }
func (Suspended) Kind() string        { return "suspended" }
func (Continued) Kind() string        { return "continued" }
func (TransferOutStart) Kind() string { return "transfer-out-start" }
func (OutputMoved) Kind() string      { return "output-moved" }
func (TransferOutDone) Kind() string  { return "transfer-out-done" }
func (Held) Kind() string             { return "held" }
func (Contact) Kind() string          { return "contact" }
func (Refused) Kind() string          { return "refused" }
func (Attributes) Kind() string       { return "attributes" }
func (Event) Kind() string            { return "event" }
func (Catalog) Kind() string          { return "catalog" }
func (Color) Kind() string            { return "color" }
func (Ended) Kind() string            { return "ended" }

func (Sandbox) report()          {}
func (TransferInStart) report()  {}
func (TransferInDone) report()   {}
func (Running) report()          {}
func (Usage) report()            {}
func (Suspended) report()        {}
func (Continued) report()        {}
func (TransferOutStart) report() {}
func (OutputMoved) report()      {}
func (TransferOutDone) report()  {}
func (Held) report()             {}
func (Contact) report()          {}
func (Refused) report()          {}
func (Attributes) report()       {}
func (Event) report()            {}
func (Catalog) report()          {}
func (Color) report()            {}
func (Ended) report()            {}

// Hold is why the job cannot go on without its owner: HTCondor's hold reason
// with its code and subcode (an errno mostly).
type Hold struct {
	Code    int    `json:"code"`
	Subcode int    `json:"subcode"`
	Reason  string `json:"reason"`
}

// ExitRecord is how an activation ended. Where the sandbox may outlive the
// report (OrphanStay, Keep) it is written there first, so that it is found
// even if nobody was there to listen.
type ExitRecord struct {
	Activation string          `json:"activation"`
	Status     host.ExitStatus `json:"status"`            // of the job's main process; has not ended if it never ran
	Evicted    bool            `json:"evicted"`           // ended because of an order or because the startd went away
	Asked      string          `json:"asked,omitempty"`   // who asked for the eviction
	Reason     string          `json:"reason,omitempty"`  // why it was evicted
	Code       int             `json:"code,omitempty"`    // vacate code
	Subcode    int             `json:"subcode,omitempty"` //
	Usage      host.Usage      `json:"usage"`
	Started    time.Time       `json:"started,omitzero"` // when the job's main process began; zero if it never ran
	Ended      time.Time       `json:"ended"`
	BytesIn    int64           `json:"bytes_in"`
	BytesOut   int64           `json:"bytes_out"`
	DiskKiB    int64           `json:"disk_kib"`       // scratch directory at the end
	Leftovers  int             `json:"leftovers"`      // processes that outlived the main one and were killed
	Held       *Hold           `json:"held,omitempty"` // set when the job has to be held
	Problems   []string        `json:"problems,omitempty"`
	// Lost says that the starter gave up because its shadow was away for longer
	// than the lease of the job.
	Lost bool `json:"lost,omitempty"`
	// Fault is set when the job's program never ran and the machine is, or may
	// be, to blame.
	Fault *Fault `json:"fault,omitempty"`
	Ran   Ran    `json:"ran,omitzero"`
	Left  Left   `json:"left,omitzero"`
}

// The kinds of a Fault.
const (
	FaultExecute = "execute" // EXECUTE cannot be used
	FaultSpawn   = "spawn"   // no process can be started
)

// Fault says that a job could not be started because of the machine, so that
// the startd starts no more until that is mended.
type Fault struct {
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
	// Doubtful says that the job itself may have caused it: it may have brought
	// more files than the disk has room for.
	Doubtful bool `json:"doubtful,omitempty"`
}
