// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/tool/slots"
)

// Host is what Slots needs of the machine on which it runs.
type Host struct {
	Hooks  func(logs string) *hook.Runner // runs the programs of a record
	Volume func(*config.Snapshot) machine.Scanner
	Beside string // the folder where the GPU discovery program may be

	// Install writes a program that can be executed at once.
	Install func(path, text string) error

	Now      func() time.Time
	Location *time.Location // in which expressions tell the hour
}

// Question is one of condor_ep slots -record: a configuration and the machine it is
// for. ${DIR} in it is a directory made for the record.
type Question struct {
	ID       string            `json:"id"`
	Config   string            `json:"config"`
	Scripts  map[string]string `json:"scripts"`
	Args     []string          `json:"args"`
	Detected struct {
		Cpus      int   `json:"cpus"`
		MemoryMiB int64 `json:"memory_mb"`
	} `json:"detected"`
	Delay float64 `json:"query_delay_s"` // seconds from the start of the daemon to the question
}

// Answer is what the daemon would publish: attributes and the text of
// their expressions. Exit is the status it would end with at once, nil if it
// goes on.
type Answer struct {
	ID     string              `json:"id"`
	Slots  []map[string]string `json:"slots"`
	Daemon map[string]string   `json:"daemon"`
	Exit   *int                `json:"exit"`
	Error  string              `json:"error,omitempty"`

	// Warnings are what the daemon would log and go on.
	Warnings []string `json:"warnings,omitempty"`
}

// exitFatal is how the daemon ends over a configuration it cannot start with.
const exitFatal = 4

// quiet is the configuration under every record.
const quiet = "RunBenchmarks = False\nSTARTD_DETECT_GPUS = false\n"

// MaxQuestion bounds a line of Slots, in bytes.
const MaxQuestion = 4 << 20

// somebodyElse is the load of the machine of a record, which does not say: as on
// those that were recorded, the slots are not alone there.
const somebodyElse = 1.0

// maxDelay is the longest time for which periodic programs are run.
const maxDelay = 300 // seconds

// Slots answers questions, one to a line, until the input ends. One that cannot be
// answered gets an error in its answer, and is counted. The error is the reader's or
// the writer's.
func Slots(in io.Reader, out io.Writer, h Host) (unanswered int, err error) {
	return each(in, out, MaxQuestion, func(line []byte) (any, error) {
		var q Question
		if err := json.Unmarshal(line, &q); err != nil {
			return Answer{Error: notARecord(err)}, err
		}
		a, err := q.answer(h)
		if err != nil {
			a.Error = err.Error()
		}
		return a, err
	}, func(why string) any { return Answer{Error: why} })
}

func (r Question) answer(h Host) (a Answer, err error) {
	a = Answer{ID: r.ID, Slots: []map[string]string{}, Daemon: map[string]string{}}
	text := quiet + r.Config + "\n"
	switch {
	case len(r.Args) == 2 && r.Args[0] == "-n":
		text += "STARTD_NAME = " + r.Args[1] + "\n"
	case len(r.Args) > 0:
		return a, fmt.Errorf("arguments %q: want -n NAME or none", r.Args)
	case !(r.Delay >= 0 && r.Delay <= maxDelay):
		return a, fmt.Errorf("query_delay_s is %v: want 0 to %d", r.Delay, maxDelay)
	}
	dir, err := os.MkdirTemp("", "slots-")
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	logs := filepath.Join(dir, "log")
	if err := errors.Join(os.Mkdir(logs, 0o755), r.install(dir, h)); err != nil {
		return a, err
	}
	m := &slots.Machine{
		Host: "${HOST}", Cpus: r.Detected.Cpus, MemoryMiB: r.Detected.MemoryMiB, SwapKiB: r.Detected.MemoryMiB << 10, Source: "record",
	}
	hooks := h.Hooks(logs)
	d, err := slots.Divide(context.Background(), slots.Origin{
		Now: h.Now(), Location: h.Location,
		Load: func(inv *machine.Inventory) (*config.Snapshot, error) {
			facts := machine.ConfigFacts(inv)
			facts["LOCAL_DIR"] = dir
			return config.Parse("config", strings.ReplaceAll(text, "${DIR}", dir), config.Options{Subsystem: "STARTD", Facts: facts})
		},
		Scanners: []machine.Scanner{m}, Volume: h.Volume, Hooks: hooks, Beside: h.Beside,
		Sample: machine.Sample{LoadAvg: somebodyElse},
	})
	if errors.Is(err, machine.ErrNoMemory) || errors.Is(err, hook.ErrInventory) {
		a.Exit, a.Warnings = new(int), []string{strings.ReplaceAll(err.Error(), dir, "${DIR}")}
		*a.Exit = exitFatal
		return a, nil
	}
	if err != nil {
		return a, err
	}
	for _, problem := range d.Problems {
		if problem.Fatal {
			a.Exit = new(int)
			*a.Exit = exitFatal
			return a, nil
		}
	}
	overlay := d.Rehearse(hooks, time.Duration(r.Delay*float64(time.Second)))
	d.Owners()
	for _, shown := range d.Each {
		a.Slots = append(a.Slots, Texts(shown, dir))
	}
	daemon := d.Ads.Daemon(d.Problems, d.Now)
	overlay(daemon)
	a.Daemon = Texts(daemon, dir)
	for _, w := range d.Warnings {
		if text := strings.ReplaceAll(w.Error(), dir, "${DIR}"); !slices.Contains(a.Warnings, text) {
			a.Warnings = append(a.Warnings, text)
		}
	}
	return a, nil
}

// install writes the scripts of a record into the directory scripts below dir.
func (r Question) install(dir string, h Host) error {
	if len(r.Scripts) == 0 {
		return nil
	}
	place := filepath.Join(dir, "scripts")
	if err := os.Mkdir(place, 0o755); err != nil {
		return err
	}
	for name, text := range r.Scripts {
		if name != filepath.Base(name) || !filepath.IsLocal(name) {
			return fmt.Errorf("script %q: want the name of a file, without directories", name)
		}
		if err := h.Install(filepath.Join(place, name), strings.ReplaceAll(text, "${DIR}", dir)); err != nil {
			return err
		}
	}
	return nil
}

// Texts is an ad as attributes and the texts of their expressions, with ${DIR} for dir.
func Texts(ad *classad.Ad, dir string) map[string]string {
	out := make(map[string]string, ad.Len())
	for name, e := range ad.All() {
		out[name] = strings.ReplaceAll(e.Text(classad.Old), dir, "${DIR}")
	}
	return out
}
