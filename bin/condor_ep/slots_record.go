// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/tool/slots"
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
	Delay float64 `json:"query_delay_s"` // seconds from the start of the daemon to the question
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

	// Warnings are what the daemon would log and go on.
	Warnings []string `json:"warnings,omitempty"`
}

// exitFatal is how the daemon ends over a configuration it cannot start with.
const exitFatal = 4

// quiet is the configuration under every record.
const quiet = "RunBenchmarks = False\nSTARTD_DETECT_GPUS = false\n"

// maxSlotsRecord is the length of the longest line that is read.
const maxSlotsRecord = 4 << 20

// somebodyElse is the load of the machine of a record, which does not say: as on
// those that were recorded, the slots are not alone there.
const somebodyElse = 1.0

// maxDelay is the longest time for which periodic programs are run.
const maxDelay = 300 // seconds

// answerSlots answers records, one to a line. A record that cannot be answered
// gets an error in its answer; the status then is exitSomeFailed.
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
			status = exitSomeFailed
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
	if err := errors.Join(os.Mkdir(logs, 0o755), r.install(dir)); err != nil {
		return a, err
	}
	p, err := thishost.Visit()
	if err != nil {
		return a, err
	}
	m := &slots.Machine{
		Host: "${HOST}", Cpus: r.Detected.Cpus, MemoryMiB: r.Detected.MemoryMiB, SwapKiB: r.Detected.MemoryMiB << 10, Source: "record",
	}
	hooks := p.Hooks(logs)
	d, err := slots.Divide(context.Background(), slots.Origin{
		Now: time.Now(), Location: time.Local,
		Load: func(inv *machine.Inventory) (*config.Snapshot, error) {
			facts := machine.ConfigFacts(inv)
			facts["LOCAL_DIR"] = dir
			return config.Parse("config", strings.ReplaceAll(text, "${DIR}", dir), config.Options{Subsystem: "STARTD", Facts: facts})
		},
		Scanners: []machine.Scanner{m}, Volume: volumeOf(p), Hooks: hooks, Beside: filepath.Dir(p.Self),
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
		a.Slots = append(a.Slots, texts(shown, dir))
	}
	daemon := d.Ads.Daemon(d.Problems, d.Now)
	overlay(daemon)
	a.Daemon = texts(daemon, dir)
	for _, w := range d.Warnings {
		if text := strings.ReplaceAll(w.Error(), dir, "${DIR}"); !slices.Contains(a.Warnings, text) {
			a.Warnings = append(a.Warnings, text)
		}
	}
	return a, nil
}

// install writes the scripts of a record into the directory scripts below dir.
func (r slotsRecord) install(dir string) error {
	if len(r.Scripts) == 0 {
		return nil
	}
	place := filepath.Join(dir, "scripts")
	if err := os.Mkdir(place, 0o755); err != nil {
		return err
	}
	// A process that is begun meanwhile would hold a script open for writing,
	// and what is open for writing cannot be executed.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	for name, text := range r.Scripts {
		if name != filepath.Base(name) || !filepath.IsLocal(name) {
			return fmt.Errorf("script %q: want the name of a file, without directories", name)
		}
		if err := os.WriteFile(filepath.Join(place, name), []byte(strings.ReplaceAll(text, "${DIR}", dir)), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// texts is an ad as attributes and the texts of their expressions.
func texts(ad *classad.Ad, dir string) map[string]string {
	out := make(map[string]string, ad.Len())
	for name, e := range ad.All() {
		out[name] = strings.ReplaceAll(e.Text(classad.Old), dir, "${DIR}")
	}
	return out
}
