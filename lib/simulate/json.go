// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"time"
)

// The result as JSON: times in seconds since the beginning.
type jsonResult struct {
	Name     string     `json:"name"`
	Start    string     `json:"start"`
	End      float64    `json:"end"`
	Down     *float64   `json:"down,omitempty"`
	Total    jsonTotals `json:"total"`
	Moves    []jsonMove `json:"transitions"`
	Jobs     []jsonJob  `json:"jobs"`
	Notes    []jsonNote `json:"notes,omitempty"`
	Warnings []jsonNote `json:"odd,omitempty"`
}

type jsonMove struct {
	T          float64  `json:"t"`
	Slot       string   `json:"slot"`
	From       string   `json:"from"`
	To         string   `json:"to"`
	Number     int      `json:"number,omitempty"`
	Job        string   `json:"job,omitempty"`
	Reason     string   `json:"reason"`
	Expression string   `json:"expression,omitempty"`
	Text       string   `json:"text,omitempty"`
	Value      string   `json:"value,omitempty"`
	Origin     string   `json:"origin,omitempty"`
	Reads      []string `json:"reads,omitempty"`
}

type jsonJob struct {
	ID        string   `json:"id"`
	Kind      string   `json:"kind"`
	State     string   `json:"state"`
	Why       string   `json:"why,omitempty"`
	Arrived   float64  `json:"arrived"`
	Began     *float64 `json:"began"`
	Ended     *float64 `json:"ended"`
	Starts    int      `json:"starts"`
	Evictions int      `json:"evictions"`
	Done      float64  `json:"done_s"`
	Lost      float64  `json:"lost_s"`
	Running   float64  `json:"running_s"`
	Suspended float64  `json:"suspended_s"`
}

type jsonTotals struct {
	Jobs        int     `json:"jobs"`
	Completed   int     `json:"completed"`
	Held        int     `json:"held"`
	Removed     int     `json:"removed"`
	Starts      int     `json:"starts"`
	Evictions   int     `json:"evictions"`
	Suspensions int     `json:"suspensions"`
	Good        float64 `json:"goodput_s"`
	Bad         float64 `json:"badput_s"`
	Running     float64 `json:"running_s"`
	Waited      float64 `json:"waited_s"`
	Transitions int     `json:"transitions"`
}

type jsonNote struct {
	T    float64 `json:"t"`
	Line int     `json:"line,omitempty"`
	Text string  `json:"text"`
}

// secs is d in seconds, to the millisecond.
func secs(d time.Duration) float64 { return float64(d.Round(time.Millisecond)/time.Millisecond) / 1000 }

func orNil(d time.Duration) *float64 {
	if d < 0 {
		return nil
	}
	s := secs(d)
	return &s
}

// MarshalJSON writes the result with times in seconds since its beginning.
func (r *Result) MarshalJSON() ([]byte, error) {
	out := jsonResult{
		Name: r.Name, Start: r.Start.Format(time.RFC3339), End: secs(r.End), Down: orNil(r.Down), Total: r.Total.json(),
		Moves: make([]jsonMove, 0, len(r.Moves)), Jobs: make([]jsonJob, 0, len(r.Jobs)),
	}
	for i := range r.Moves {
		out.Moves = append(out.Moves, r.Moves[i].json())
	}
	for _, j := range r.Jobs {
		out.Jobs = append(out.Jobs, jsonJob{
			ID: j.ID, Kind: j.Kind, State: j.State, Why: j.Why, Arrived: secs(j.Arrived), Began: orNil(j.Began), Ended: orNil(j.Ended),
			Starts: j.Starts, Evictions: j.Evictions, Done: secs(j.Done), Lost: secs(j.Lost), Running: secs(j.Running), Suspended: secs(j.Suspended),
		})
	}
	for _, n := range r.Notes {
		out.Notes = append(out.Notes, jsonNote{T: secs(n.At), Line: n.Line, Text: n.Text})
	}
	for _, n := range r.Warnings {
		out.Warnings = append(out.Warnings, jsonNote{T: secs(n.At), Text: n.Text})
	}
	return json.Marshal(out)
}

func (m *Move) json() jsonMove {
	return jsonMove{
		T: secs(m.At), Slot: m.Slot, From: m.From.String(), To: m.To.String(), Number: m.Number, Job: m.Job, Reason: m.Reason,
		Expression: m.Expression, Text: m.Text, Value: m.Value, Origin: m.Origin, Reads: m.Reads,
	}
}

func (t Totals) json() jsonTotals {
	return jsonTotals{
		Jobs: t.Jobs, Completed: t.Completed, Held: t.Held, Removed: t.Removed, Starts: t.Starts, Evictions: t.Evictions,
		Suspensions: t.Suspensions, Good: secs(t.Good), Bad: secs(t.Bad), Running: secs(t.Running), Waited: secs(t.Waited), Transitions: t.Moves,
	}
}
