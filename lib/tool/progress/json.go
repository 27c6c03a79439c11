// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"encoding/json"
	"math"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/local"
)

// jsonLines prints one object a line.
type jsonLines struct {
	mu  sync.Mutex
	enc *json.Encoder
}

type jsonChange struct {
	Event    string    `json:"event"`
	Job      string    `json:"job"`
	At       time.Time `json:"at"`
	Status   string    `json:"status"`
	Slot     string    `json:"slot,omitempty"`
	Detail   string    `json:"detail,omitempty"`
	Output   string    `json:"output,omitempty"`
	Others   int       `json:"others,omitempty"`
	Wall     float64   `json:"wall_seconds,omitempty"`
	ExitCode *int      `json:"exit_code,omitempty"`
	Signal   int       `json:"exit_signal,omitempty"`
}

// print writes v; a reader that went away is noticed by the next write of the
// process, there is nothing better to do here.
func (j *jsonLines) print(v any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.enc.Encode(v)
}

// Note implements Reporter.
func (j *jsonLines) Note(kind Kind, what string) {
	event := "warning"
	if kind == Waiting {
		event = "waiting"
	}
	j.print(map[string]any{"event": event, "detail": what})
}

// Begin implements Reporter.
func (j *jsonLines) Begin(cluster, jobs int, source string) {
	j.print(map[string]any{"event": "submitted", "cluster": cluster, "jobs": jobs, "source": source})
}

// Change implements Reporter.
func (j *jsonLines) Change(c local.Change) {
	o := jsonChange{
		Event: c.What, Job: c.Job.String(), At: c.At, Status: c.Status.String(), Slot: c.Slot, Detail: c.Detail, Others: c.Others,
		Output: c.Output, Wall: c.Wall.Seconds(), Signal: c.ExitSignal,
	}
	if c.What == "completed" && c.ExitSignal == 0 {
		o.ExitCode = &c.ExitCode
	}
	j.print(o)
}

// Counts implements Reporter.
func (j *jsonLines) Counts(time.Time, local.Counts) {}

// Leaving implements Reporter.
func (j *jsonLines) Leaving(text string, v ep.ShutdownView) {
	o := map[string]any{"event": "ending", "manner": v.Manner.String(), "running": v.Jobs, "sending": v.Sending, "detail": text}
	if v.Left <= endless {
		o["seconds"] = math.Round(v.Left.Seconds())
	}
	j.print(o)
}

// End implements Reporter.
func (j *jsonLines) End(c local.Counts, took time.Duration, kept string) {
	o := map[string]any{
		"event": "finished", "total": c.Total, "done": c.Done, "failed": c.Failed, "held": c.Held, "removed": c.Removed,
		"impossible": c.Impossible, "unfinished": c.Idle - c.Impossible + c.Running + c.Suspended, "seconds": took.Seconds(),
	}
	if kept != "" {
		o["kept"] = kept
	}
	j.print(o)
}
