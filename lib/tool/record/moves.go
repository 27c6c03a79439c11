// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"io"
	"os"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/simulate"
)

// Replayed is what the slots of a recorded run do here.
type Replayed struct {
	ID          string           `json:"id"`
	Transitions []simulate.Moved `json:"transitions"`
	Error       string           `json:"error,omitempty"`
}

// MaxRun bounds a line of Moves, in bytes.
const MaxRun = 8 << 20

// Moves plays recorded runs, one to a line, until the input ends. One that cannot be
// played gets an error in its answer, besides the moves up to then, and is counted. The
// error is the reader's or the writer's.
func Moves(in io.Reader, out io.Writer) (unanswered int, err error) {
	return each(in, out, MaxRun, func(line []byte) (any, error) {
		var r simulate.Record
		a := Replayed{Transitions: []simulate.Moved{}}
		if err := json.Unmarshal(line, &r); err != nil {
			a.Error = notARecord(err)
			return a, err
		}
		a.ID = r.ID
		moves, err := simulate.Replay(&r, recordConfig)
		a.Transitions = append(a.Transitions, moves...)
		if err != nil {
			a.Error = err.Error()
		}
		return a, err
	}, func(why string) any { return Replayed{Transitions: []simulate.Moved{}, Error: why} })
}

// recordConfig reads the configuration of a record, whose own directory is not
// there.
func recordConfig(inv *machine.Inventory, text string) (*config.Snapshot, error) {
	facts := machine.ConfigFacts(inv)
	facts["LOCAL_DIR"] = os.TempDir()
	return config.Parse("config", text, config.Options{Subsystem: "STARTD", Facts: facts})
}
