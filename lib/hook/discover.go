// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/slot"
)

// InventoryPatience is how long an inventory script may take. The daemon starts
// without what one has to say that takes longer.
const InventoryPatience = 30 * time.Second

// The program that looks for GPUs, and the resource that it finds.
const (
	discoveryProgram = "condor_gpu_discovery"
	gpus             = "GPUs"
)

// discovery is where the program that looks for GPUs is to be.
func (r *reader) discovery() string { return r.text("LIBEXEC") + "/" + discoveryProgram }

// extra are the arguments that GPU_DISCOVERY_EXTRA adds to the discovery
// program. A value that the owner gave is in the command line already, since
// both forms of that name the macro; the default is not, since the macro
// language does not know it.
func (r *reader) extra() []string {
	s, ok := r.cfg.Lookup("GPU_DISCOVERY_EXTRA")
	if !ok || !s.IsDefault || !s.Implied {
		return nil
	}
	return strings.Fields(s.Value)
}

// detect reads STARTD_DETECT_GPUS, the arguments of the GPU discovery program
// for a machine whose owner says nothing of GPUs. Empty, false and 0 switch it
// off.
func (r *reader) detect() (Script, bool) {
	const knob = "STARTD_DETECT_GPUS"
	for _, own := range [...]string{"MACHINE_RESOURCE_" + gpus, inventoryPrefix + gpus} {
		if s, ok := r.cfg.Lookup(own); ok && !s.IsDefault {
			return Script{}, false
		}
	}
	text := r.text(knob)
	switch strings.ToLower(text) {
	case "", "false", "0":
		return Script{}, false
	case "true", "1":
		r.problem(knob, "these are no arguments; no GPUs are looked for", "the arguments of "+discoveryProgram+", or false", config.Warning)
		return Script{}, false
	}
	args, err := splitArgs(text)
	if err != nil {
		r.problem(knob, err.Error()+"; no GPUs are looked for", "the arguments of "+discoveryProgram+", or false", config.Error)
		return Script{}, false
	}
	program := r.discovery()
	args = append([]string{program}, args...)
	s, _ := r.cfg.Lookup(knob)
	if s.IsDefault {
		args = append(args, r.extra()...)
	}
	return Script{Resource: gpus, Path: program, Args: args, Origin: s.Origin, Discovery: true}, true
}

// ErrInventory is in the error of Fatal: the daemon ends with exit status 4.
var ErrInventory = errors.New("the machine's inventory is not known")

// Findings are what inventory scripts said.
type Findings struct {
	// Inventories are for slot.LayoutFrom, one of each script that could be
	// started, by the names of the resources.
	Inventories []slot.Inventory

	Missing  []error // of scripts that could not be started
	Failed   []error // of scripts whose output is worth nothing: there is nothing of their resource
	Doubtful []error // of output that was believed but for this
}

// All returns everything that was not as it should be.
func (f *Findings) All() []error { return slices.Concat(f.Missing, f.Failed, f.Doubtful) }

// Fatal says why the daemon cannot start, nil if it can: a script that cannot
// be started is fatal in every mode, other failures where the owner wants the
// daemon to end over what cannot be made.
func (f *Findings) Fatal(mode slot.FailureMode) error {
	bad := slices.Clone(f.Missing)
	if mode == slot.FailAbort {
		bad = append(bad, f.Failed...)
		for _, err := range f.Doubtful {
			if !errs.Is(err, errs.NotFound) { // what is offline need not exist
				bad = append(bad, err)
			}
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return errs.E("hook.Discover", errs.Invalid, "", fmt.Errorf("%w: %w", ErrInventory, errors.Join(bad...)))
}

// Discover runs the inventory scripts of a configuration, all at once and each
// for at most the patience, and the GPU discovery program. beside is where that
// program is looked for when it is not at its place in LIBEXEC; a machine that
// has it nowhere has no GPUs, which only matters if the owner asked for them.
func (r *Runner) Discover(ctx context.Context, cfg *config.Snapshot, patience time.Duration, beside string) Findings {
	var f Findings
	scripts, problems := ScriptsFrom(cfg)
	for _, p := range problems {
		f.Doubtful = append(f.Doubtful, p)
	}
	type outcome struct {
		inv Inventory
		err error
	}
	outcomes := make([]outcome, len(scripts))
	var all sync.WaitGroup
	for i, s := range scripts {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			offline := cfg.String("OFFLINE_MACHINE_RESOURCE_" + s.Resource)
			inv, err := r.Inventory(ctx, s, offline)
			if s.Discovery && errs.Is(err, errs.NotFound) && beside != "" {
				s.Path = path.Join(beside, discoveryProgram)
				inv, err = r.Inventory(ctx, s, offline)
			}
			outcomes[i] = outcome{inv, err}
		})
	}
	all.Wait()
	for i, o := range outcomes {
		s := scripts[i]
		found := slot.Inventory{Resource: s.Resource, Ad: o.inv.Ad}
		var start *NotStarted
		switch {
		case o.err == nil:
			f.Doubtful = append(f.Doubtful, o.inv.Doubtful...)
		case s.Discovery && errs.Is(o.err, errs.NotFound):
			if s.Origin.Kind == config.Default {
				continue // nobody asked
			}
			f.Doubtful = append(f.Doubtful, fmt.Errorf("%w: %s is nowhere, so there are no GPUs", o.err, discoveryProgram))
		case errors.As(o.err, &start):
			f.Missing = append(f.Missing, fmt.Errorf("%v: %s%s: %w", s.Origin, inventoryPrefix, s.Resource, o.err))
			continue
		default:
			f.Failed = append(f.Failed, fmt.Errorf("%v: %s%s: %w", s.Origin, inventoryPrefix, s.Resource, o.err))
		}
		if found.Ad == nil && o.inv.Attrs != nil {
			found.Ad = o.inv.Attrs // Detected<name> = 0
		}
		f.Inventories = append(f.Inventories, found)
	}
	return f
}

// NotStarted says that a program could not be started.
type NotStarted struct {
	Path string
	Err  error
}

func (e *NotStarted) Error() string { return e.Path + " cannot be started: " + e.Err.Error() }

// Unwrap returns the system's error.
func (e *NotStarted) Unwrap() error { return e.Err }
