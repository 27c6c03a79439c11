// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// maxInventory is the size of the largest inventory that is read, in bytes.
const maxInventory = 4 << 20

const inventoryPrefix = "MACHINE_RESOURCE_INVENTORY_"

// Script is a program that tells what the machine has of a custom resource.
type Script struct {
	Resource string
	Path     string
	Args     []string // the whole vector, the path first
	Origin   config.Origin

	// Discovery marks the program that looks for GPUs. A machine without it
	// has none.
	Discovery bool
}

// ScriptsFrom reads MACHINE_RESOURCE_INVENTORY_<name> of all resources, by
// name. Where nothing is said of GPUs, STARTD_DETECT_GPUS are the arguments of
// the program that looks for them. Programs of resources that
// MACHINE_RESOURCE_NAMES leaves out run as well: the slots have nothing of
// them, but their ads tell what was found, as HTCondor's do.
func ScriptsFrom(cfg *config.Snapshot) ([]Script, config.Problems) {
	r := reader{cfg: cfg}
	allowed := cfg.List("MACHINE_RESOURCE_NAMES")
	var out []Script
	for _, knob := range cfg.Names() {
		if len(knob) <= len(inventoryPrefix) || !strings.EqualFold(knob[:len(inventoryPrefix)], inventoryPrefix) {
			continue
		}
		name := knob[len(inventoryPrefix):]
		text := r.text(knob)
		if text == "" {
			continue
		}
		listed := len(allowed) == 0 || slices.ContainsFunc(allowed, func(s string) bool { return strings.EqualFold(s, name) })
		args, err := splitArgs(text)
		switch {
		case !listed && (!attrName(name) || err != nil || len(args) == 0):
			continue // it does no harm
		case !attrName(name):
			r.problem(knob, name+" cannot be the name of a resource", "letters, digits and _", config.Error)
			continue
		case err != nil:
			r.problem(knob, err.Error(), "a path and arguments", config.Error)
			continue
		case len(args) == 0:
			r.problem(knob, "no program", "a path and arguments", config.Error)
			continue
		}
		s, _ := cfg.Lookup(knob)
		script := Script{Resource: name, Path: args[0], Args: args, Origin: s.Origin, Discovery: args[0] == r.discovery()}
		if script.Discovery && s.Origin.Kind == config.Template {
			script.Args = append(script.Args, r.extra()...)
		}
		out = append(out, script)
	}
	if s, ok := r.detect(); ok {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Script) int {
		return strings.Compare(strings.ToLower(a.Resource), strings.ToLower(b.Resource))
	})
	return out, r.problems
}

// Inventory is what a script said of a resource.
type Inventory struct {
	Resource string
	Count    float64  // usable ones: without those that are offline
	IDs      []string // names of the usable instances, in the script's order; nil when they are only counted
	Offline  []string // names of the instances out of use

	// Properties are those of each instance by its name: what Common says, and
	// over it what the instance's own ad says, without id.
	Properties map[string]*classad.Ad

	// Ad is all that the script said; nil if nothing of it counts.
	Ad *classad.Ad

	// Attrs is what else the ad of a slot shows: Detected<name> as the script
	// wrote it, and everything that is not the properties of an instance.
	Attrs *classad.Ad

	// Doubtful says what was left out: offline names that do not exist.
	Doubtful []error
}

// none is an inventory without anything.
func none(resource string) Inventory {
	inv := Inventory{Resource: resource, Attrs: classad.NewAd()}
	inv.Attrs.SetInt("Detected"+resource, 0)
	return inv
}

// ParseInventory reads the output of an inventory script: an ad in the old
// syntax with Detected<name>, a number or a list of instances; optionally
// Offline<name>; nested ads with the properties of instances, named by their id
// or after them, and one called Common for all. offline is
// OFFLINE_MACHINE_RESOURCE_<name>, which counts if the script does not say.
// One line that cannot be read makes all worthless: the error says which, and
// the inventory is one of nothing.
func ParseInventory(resource string, output []byte, offline string) (Inventory, error) {
	const op = "hook.Inventory"
	ad := classad.NewAd()
	number := 0
	for line := range bytes.Lines(output) {
		number++
		text := string(bytes.TrimRight(line, "\r\n"))
		var err error
		switch t := strings.TrimSpace(text); {
		case strings.IndexByte(t, 0) >= 0 || !utf8.ValidString(t):
			err = fmt.Errorf("the output is not text")
		case len(t) > maxLine:
			err = fmt.Errorf("longer than %d bytes", maxLine)
		case t == "" || t[0] == '#':
		default:
			err = insert(ad, "", t)
		}
		if err != nil {
			return none(resource), errs.E(op, errs.Invalid, resource,
				fmt.Errorf("nothing of the output counts: %w", BadLine{Number: number, Text: shorten(text), Err: err}))
		}
	}
	inv := Inventory{Resource: resource, Ad: ad.Clone(), Attrs: ad, Properties: map[string]*classad.Ad{}}
	if text, ok := ad.EvalString("Offline"+resource, nil); ok {
		offline = text
	}
	off, offIDs := countOrNames(offline)
	detected := "Detected" + resource
	if text, ok := ad.EvalString(detected, nil); ok {
		inv.Count, inv.IDs = countOrNames(text)
	} else if n, ok := ad.EvalReal(detected, nil); ok && n >= 0 {
		inv.Count = n
	} else {
		inv.Doubtful = append(inv.Doubtful, errs.E(op, errs.Invalid, resource, fmt.Errorf("%s is neither a number nor a list of names; nothing is there", detected)))
	}
	if inv.IDs != nil {
		inv.name(offIDs)
	} else {
		inv.Count = max(inv.Count-off, 0)
	}
	inv.properties()
	ad.Delete(resource)
	ad.Delete("Offline" + resource)
	return inv, nil
}

// name sorts the instances into usable ones and others. One that is listed
// twice is two: so a script shares a device among jobs.
func (inv *Inventory) name(offline []string) {
	const op = "hook.Inventory"
	listed := inv.IDs
	inv.IDs = []string{}
	for _, id := range listed {
		if slices.Contains(offline, id) {
			inv.Offline = append(inv.Offline, id)
		} else {
			inv.IDs = append(inv.IDs, id)
		}
	}
	for _, id := range offline {
		if !slices.Contains(listed, id) {
			inv.Doubtful = append(inv.Doubtful, errs.E(op, errs.NotFound, inv.Resource, fmt.Errorf("the offline instance %q does not exist", id)))
		}
	}
	inv.Count = float64(len(inv.IDs))
}

// properties moves the nested ads of instances out of Attrs.
func (inv *Inventory) properties() {
	nested := map[string]*classad.Ad{}
	for name, e := range inv.Attrs.All() {
		if sub, ok := e.Eval(nil).AsAd(); ok && strings.HasPrefix(strings.TrimSpace(e.Text(classad.New)), "[") {
			nested[name] = sub
		}
	}
	all := append(slices.Clone(inv.IDs), inv.Offline...)
	for name, sub := range nested {
		if strings.EqualFold(name, "Common") {
			for _, id := range all {
				inv.property(id, sub, false)
			}
			inv.Attrs.Delete(name)
			delete(nested, name)
		}
	}
	for name, sub := range nested {
		id, ok := sub.EvalString("id", nil)
		if !ok {
			id = name
		}
		if slices.Contains(all, id) {
			inv.property(id, sub, true)
			inv.Attrs.Delete(name)
		}
	}
}

func (inv *Inventory) property(id string, from *classad.Ad, own bool) {
	into := inv.Properties[id]
	if into == nil {
		into = classad.NewAd()
		inv.Properties[id] = into
	}
	for name, e := range from.All() {
		if !own || !strings.EqualFold(name, "id") {
			into.Set(name, e)
		}
	}
}

// countOrNames reads a number, an expression that is one, or else a list of
// names.
func countOrNames(text string) (float64, []string) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, nil
	}
	if e, err := classad.ParseExpr(text, classad.Old); err == nil {
		if v, ok := e.Eval(nil).AsNumber(); ok && v == v {
			return max(v, 0), nil
		}
	}
	names := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
	return float64(len(names)), names
}

// Inventory runs a script and reads what it says. How it ends does not matter;
// that it ends does: when ctx is over its family is ended and nothing counts.
// offline is as for ParseInventory. A script that cannot be started is an error
// of kind NotFound or what the system says, one that does not end is Expired,
// one with too much output or other than ads Invalid. With every error comes an
// inventory of nothing.
func (r *Runner) Inventory(ctx context.Context, s Script, offline string) (Inventory, error) {
	const op = "hook.Inventory"
	var output []byte
	var tooMuch error
	limited := collect(&output, maxInventory)
	run := &Run{runner: r, done: make(chan struct{}), report: Report{Job: s.Resource}}
	spec := host.SpawnSpec{Path: s.Path, Args: s.Args, Env: r.environ(nil), Dir: r.Dir, Bond: host.Bound}
	err := r.start(ctx, run, spec, func(piece []byte) error {
		tooMuch = limited(piece)
		return tooMuch
	}, func() {})
	if err != nil {
		return none(s.Resource), err
	}
	report := run.Report()
	switch {
	case tooMuch != nil:
		return none(s.Resource), errs.E(op, errs.Invalid, s.Resource, fmt.Errorf("%s printed more than %d bytes", s.Path, maxInventory))
	case errors.Is(report.Err, context.DeadlineExceeded) || ctx.Err() != nil && report.Err != nil:
		return none(s.Resource), report.Err
	}
	return ParseInventory(s.Resource, output, offline)
}
