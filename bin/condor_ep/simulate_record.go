// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/simulate"
)

// replayAnswer is what the slots of a recorded run do here.
type replayAnswer struct {
	ID          string           `json:"id"`
	Transitions []simulate.Moved `json:"transitions"`
	Error       string           `json:"error,omitempty"`
}

// answerReplays plays records, one to a line. A record that cannot be played
// gets an error in its answer, besides the moves up to then; the status is
// exitSomeFailed then.
func answerReplays(stdin io.Reader, stdout io.Writer) (status int, err error) {
	lines := bufio.NewScanner(stdin)
	lines.Buffer(nil, maxScenario)
	out := json.NewEncoder(stdout)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var r simulate.Record
		a := replayAnswer{Transitions: []simulate.Moved{}}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			a.Error = "not a record: " + err.Error()
		} else {
			a.ID = r.ID
			moves, err := simulate.Replay(&r, recordConfig)
			a.Transitions = append(a.Transitions, moves...)
			if err != nil {
				a.Error = err.Error()
			}
		}
		if a.Error != "" {
			status = exitSomeFailed
		}
		if err := out.Encode(a); err != nil {
			return exitUsage, err
		}
	}
	return status, lines.Err()
}

// recordConfig reads the configuration of a record, whose own directory is not
// there.
func recordConfig(inv *machine.Inventory, text string) (*config.Snapshot, error) {
	facts := machine.ConfigFacts(inv)
	facts["LOCAL_DIR"] = os.TempDir()
	return config.Parse("config", text, config.Options{Subsystem: "STARTD", Facts: facts})
}
