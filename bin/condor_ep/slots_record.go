// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
)

// slotsRecord is one question of condor_ep slots -record: a configuration and
// the machine it is for. ${DIR} in it is a directory made for the record.
type slotsRecord struct {
	ID       string            `json:"id"`
	Config   string            `json:"config"`
	Scripts  map[string]string `json:"scripts"`
	Args     []string          `json:"args"`
	Detected struct {
		Cpus      int   `json:"cpus"`
		MemoryMiB int64 `json:"memory_mb"`
	} `json:"detected"`
}

// slotsAnswer is what the daemon would publish: attributes and the text of
// their expressions. Exit is the status it would end with at once, nil if it
// goes on.
type slotsAnswer struct {
	ID     string              `json:"id"`
	Slots  []map[string]string `json:"slots"`
	Daemon map[string]string   `json:"daemon"`
	Exit   *int                `json:"exit"`
	Error  string              `json:"error,omitempty"`
}

// exitFatal is how the daemon ends over a configuration it cannot start with.
const exitFatal = 4

// quiet is the configuration under every record.
const quiet = "RunBenchmarks = False\nSTARTD_DETECT_GPUS = false\n"

// maxSlotsRecord is the length of the longest line that is read.
const maxSlotsRecord = 4 << 20

// answerSlots answers records, one to a line. A record that cannot be answered
// gets an error in its answer; the status then is exitUndivided.
func answerSlots(stdin io.Reader, stdout io.Writer) (status int, err error) {
	lines := bufio.NewScanner(stdin)
	lines.Buffer(nil, maxSlotsRecord)
	out := json.NewEncoder(stdout)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		if len(strings.TrimSpace(lines.Text())) == 0 {
			continue
		}
		var r slotsRecord
		a := slotsAnswer{}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			a.Error = "not a record: " + err.Error()
		} else if a, err = r.answer(); err != nil {
			a.Error = err.Error()
		}
		if a.Error != "" {
			status = exitUndivided
		}
		if err := out.Encode(a); err != nil {
			return exitUsage, err
		}
	}
	return status, lines.Err()
}

func (r slotsRecord) answer() (a slotsAnswer, err error) {
	a = slotsAnswer{ID: r.ID, Slots: []map[string]string{}, Daemon: map[string]string{}}
	text := quiet + r.Config + "\n"
	switch {
	case len(r.Scripts) > 0:
		return a, errors.New("records with scripts cannot be answered")
	case len(r.Args) == 2 && r.Args[0] == "-n":
		text += "STARTD_NAME = " + r.Args[1] + "\n"
	case len(r.Args) > 0:
		return a, fmt.Errorf("arguments %q: want -n NAME or none", r.Args)
	}
	dir, err := os.MkdirTemp("", "slots-")
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := newPlatform()
	if err != nil {
		return a, err
	}
	m := &describedMachine{
		Host: "${HOST}", Cpus: r.Detected.Cpus, MemoryMiB: r.Detected.MemoryMiB, SwapKiB: r.Detected.MemoryMiB << 10, file: "record",
	}
	load := func(inv *machine.Inventory) (*config.Snapshot, error) {
		facts := machine.ConfigFacts(inv)
		facts["LOCAL_DIR"] = dir
		return config.Parse("config", strings.ReplaceAll(text, "${DIR}", dir), config.Options{Subsystem: "STARTD", Facts: facts})
	}
	d, err := divide(load, nil, []machine.Scanner{m}, p.volume)
	if err != nil {
		if errors.Is(err, machine.ErrNoMemory) {
			a.Exit = new(int)
			*a.Exit = exitFatal
			return a, nil
		}
		return a, err
	}
	for _, problem := range d.problems {
		if problem.Fatal {
			a.Exit = new(int)
			*a.Exit = exitFatal
			return a, nil
		}
	}
	for _, shown := range d.each {
		a.Slots = append(a.Slots, texts(shown, dir))
	}
	a.Daemon = texts(d.ads.Daemon(d.problems, d.now), dir)
	return a, nil
}

// texts is an ad as attributes and the texts of their expressions.
func texts(ad *classad.Ad, dir string) map[string]string {
	out := make(map[string]string, ad.Len())
	for name, e := range ad.All() {
		out[name] = strings.ReplaceAll(e.Text(classad.Old), dir, "${DIR}")
	}
	return out
}
