// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// RequestModifiers are the owner's expressions that change what a job asks
// for before a dynamic slot is sized (MODIFY_REQUEST_EXPR_*), as a rule by
// rounding it up. Expressions see the job as MY and the slot as TARGET. There
// are none for custom resources. The zero value changes nothing.
type RequestModifiers struct {
	cpus, memory, disk *classad.Expr
	must               *classad.Expr // MUST_MODIFY_REQUEST_EXPRS
}

// ModifiersFrom reads the expressions. The error is a config.Problems with
// every one that cannot be parsed; the others count all the same.
func ModifiersFrom(cfg *config.Snapshot) (RequestModifiers, error) {
	var m RequestModifiers
	r := layoutReader{cfg: cfg}
	for _, e := range []struct {
		knob string
		to   **classad.Expr
	}{
		{"MODIFY_REQUEST_EXPR_REQUESTCPUS", &m.cpus},
		{"MODIFY_REQUEST_EXPR_REQUESTMEMORY", &m.memory},
		{"MODIFY_REQUEST_EXPR_REQUESTDISK", &m.disk},
		{"MUST_MODIFY_REQUEST_EXPRS", &m.must},
	} {
		expr, err := cfg.Expr(e.knob)
		if err != nil {
			r.fail(e.knob, err)
		}
		*e.to = expr
	}
	if len(r.problems) > 0 {
		return m, r.problems
	}
	return m, nil
}

// Request returns what a dynamic slot for the job is to have. Modified
// amounts are used if the slot can still take the job with all of them;
// otherwise the job gets exactly what it asks for, unless
// MUST_MODIFY_REQUEST_EXPRS forbids that.
//
// A slot with a consumption policy says by itself what the job is to have,
// and the modifiers do not count.
//
// slotAd is the ad of the partitionable slot; its Requirements, if it has
// any, must hold for the job. env gives the time and the random source; its
// My and Target are not used. Neither ad is changed. An error of kind Invalid
// means that the job asks for nothing usable, Exhausted that the slot has not
// enough left, Denied that its Requirements refuse the job.
func (m RequestModifiers) Request(job, slotAd *classad.Ad, env *classad.Env) (Request, error) {
	const op = "slot.Request"
	e := requestEval{slot: slotAd}
	if env != nil {
		e.env = *env
	}
	if _, ok := slotAd.Lookup("ConsumptionCpus"); ok {
		r, err := e.consumed(job)
		if err == nil {
			err = e.takes(job, r)
		}
		if err != nil {
			return Request{}, errs.E(op, errs.Other, "", fmt.Errorf("as the slot's consumption policy has it: %w", err))
		}
		return r, nil
	}
	modified := classad.NewAd()
	modified.SetParent(job)
	changed := false
	for _, c := range [...]struct {
		name string
		expr *classad.Expr
	}{{"RequestCpus", m.cpus}, {"RequestDisk", m.disk}, {"RequestMemory", m.memory}} {
		if c.expr == nil {
			continue
		}
		if n, ok := whole(c.expr.Eval(e.on(modified))); ok {
			modified.SetInt(c.name, n)
			changed = true
		}
	}
	if changed {
		r, err := e.request(modified)
		if err == nil {
			err = e.takes(modified, r)
		}
		if err == nil {
			return r, nil
		}
		if m.must != nil && m.must.Eval(e.on(job)).IsTrue() {
			return Request{}, errs.E(op, errs.Other, "", fmt.Errorf("as the owner modifies it: %w", err))
		}
	}
	r, err := e.request(job)
	if err == nil {
		err = e.takes(job, r)
	}
	if err != nil {
		return Request{}, errs.E(op, errs.Other, "", err)
	}
	return r, nil
}

// requestEval evaluates a job's wishes against one slot.
type requestEval struct {
	slot *classad.Ad
	env  classad.Env
}

func (e *requestEval) on(job *classad.Ad) *classad.Env {
	env := e.env
	env.My, env.Target = job, e.slot
	return &env
}

// whole returns a number as an integer, cut toward zero.
func whole(v classad.Value) (int64, bool) {
	f, ok := v.AsNumber()
	if !ok || f != f || math.Abs(f) > maxWhole {
		return 0, false
	}
	return int64(f), true
}

// amount evaluates one wish; the access point's own word (_condor_…) counts
// before the job's.
func (e *requestEval) amount(job *classad.Ad, name string) (int64, bool) {
	env := e.on(job)
	if n, ok := whole(job.Eval("_condor_"+name, env)); ok {
		return n, true
	}
	return whole(job.Eval(name, env))
}

// unsaid is the error of a job that does not ask for an amount that it must ask for.
func unsaid(job *classad.Ad, name, what string) error {
	err := fmt.Errorf("the job does not say how much %s it needs", what)
	if e, ok := job.Lookup(name); ok {
		err = fmt.Errorf("the job does not say how much %s it needs: %s = %s is no number", what, name, strings.TrimSpace(e.Text(classad.Old)))
	}
	return errs.E("", errs.Invalid, name, err)
}

// request reads what the job asks for. Processors default to one, memory and
// disk must be said.
func (e *requestEval) request(job *classad.Ad) (Request, error) {
	cpus, ok := e.amount(job, "RequestCpus")
	if !ok {
		cpus = 1
	}
	r := Request{Cpus: float64(max(cpus, 1))}
	if r.MemoryMiB, ok = e.amount(job, "RequestMemory"); !ok {
		return Request{}, unsaid(job, "RequestMemory", "memory")
	}
	r.MemoryMiB = max(r.MemoryMiB, 1)
	if r.DiskKiB, ok = e.amount(job, "RequestDisk"); !ok {
		return Request{}, unsaid(job, "RequestDisk", "disk")
	}
	if swap, ok := e.amount(job, "RequestVirtualMemory"); ok {
		r.SwapKiB = swap
	}
	for _, name := range customNames(e.slot) {
		v, ok := job.EvalReal("Request"+name, e.on(job))
		if !ok || v == 0 {
			continue
		}
		if v != math.Trunc(v) || v < 0 || v > maxWhole {
			return Request{}, errs.E("", errs.Invalid, "Request"+name, fmt.Errorf("%v is not a number of instances", v))
		}
		r.Custom = append(r.Custom, Custom{Name: name, Count: int64(v), Require: e.required(job, name)})
	}
	slices.SortFunc(r.Custom, func(a, b Custom) int { return compareFold(a.Name, b.Name) })
	if err := r.valid(); err != nil {
		return Request{}, errs.E("", errs.Invalid, "", err)
	}
	return r, nil
}

// required is what the job wants of each instance, with the job's own values in
// it: gpus_minimum_memory makes it GlobalMemoryMb >= GPUsMinMemory, where
// GlobalMemoryMb is the instance's and GPUsMinMemory the job's.
func (e *requestEval) required(job *classad.Ad, name string) *classad.Expr {
	require, ok := job.Lookup("Require" + name)
	if !ok {
		return nil
	}
	env := e.env
	env.My, env.Target = job, nil
	if rest, ok := require.Flatten(&env); ok {
		return rest
	}
	return require
}

// customNames returns the custom resources that a slot ad lists in
// MachineResources, behind the four that every machine has. GPUs are always
// among them, so that a job that wants some is told that there are none.
func customNames(slotAd *classad.Ad) []string {
	names := []string{"GPUs"}
	list, _ := slotAd.EvalString("MachineResources", nil)
	for _, name := range strings.Fields(list) {
		same := func(s string) bool { return strings.EqualFold(s, name) }
		if !slices.ContainsFunc(standardNames[:], same) && !slices.ContainsFunc(names, same) {
			names = append(names, name)
		}
	}
	return names
}

var standardNames = [...]string{"Cpus", "Memory", "Disk", "Swap"}

// takes reports whether the slot has room for r and admits the job.
func (e *requestEval) takes(job *classad.Ad, r Request) error {
	if misfit := r.Misfit(e.free(r)); misfit != "" {
		return errs.E("", errs.Exhausted, "", fmt.Errorf("%s", misfit))
	}
	if _, ok := e.slot.Lookup("Requirements"); !ok {
		return nil
	}
	env := e.env
	env.My, env.Target = e.slot, job
	if v := e.slot.Eval("Requirements", &env); !v.IsTrue() {
		return errs.E("", errs.Denied, "", fmt.Errorf("the slot's Requirements are %s for the job", v))
	}
	return nil
}

// free reads from the ad what the slot has left. An amount that the ad does
// not show is not limited.
func (e *requestEval) free(r Request) Quantities {
	has := r.Clone()
	env := e.on(nil)
	if v, ok := e.slot.EvalReal("Cpus", env); ok {
		has.Cpus = v
	}
	for _, a := range [...]struct {
		name string
		to   *int64
	}{{"Memory", &has.MemoryMiB}, {"Disk", &has.DiskKiB}, {"VirtualMemory", &has.SwapKiB}} {
		if v, ok := e.slot.EvalInt(a.name, env); ok {
			*a.to = v
		}
	}
	for i, c := range has.Custom {
		has.Custom[i].Count, _ = e.slot.EvalInt(c.Name, env)
		if _, shown := e.slot.Lookup("Available" + c.Name); c.Require != nil && shown {
			has.Custom[i].Count = min(has.Custom[i].Count, e.suited(c))
		}
	}
	return has
}

// suited counts the instances that the slot has left and that have what is
// required of them.
func (e *requestEval) suited(c Custom) (n int64) {
	list, _ := e.slot.Eval("Available"+c.Name, &classad.Env{My: e.slot}).AsList()
	for _, ref := range list {
		props, ok := ref.Eval(&classad.Env{My: e.slot}).AsAd()
		if ok && c.Require.Eval(&classad.Env{My: props}).IsTrue() {
			n++
		}
	}
	return n
}

// consumed is what the job is to have by the slot's consumption policy. A
// policy by which the job takes nothing at all never matches; otherwise it has a
// core and a MiB of memory at least, as every dynamic slot, whatever the policy
// says of these. HTCondor takes them even where none are left, and shows less
// than nothing then; here such a job is refused.
func (e *requestEval) consumed(job *classad.Ad) (Request, error) {
	env := e.env
	env.My, env.Target = e.slot, job
	var bad error
	amount := func(resource string) float64 {
		v, ok := e.slot.EvalReal("Consumption"+resource, &env)
		if !ok || !(v >= 0 && v <= maxWhole) {
			bad = errs.E("", errs.Invalid, "Consumption"+resource, fmt.Errorf("it is %s for the job, not an amount", e.slot.Eval("Consumption"+resource, &env)))
			return 0
		}
		return v
	}
	r := Request{Cpus: roundCpus(amount("Cpus")), MemoryMiB: int64(amount("Memory")), DiskKiB: int64(amount("Disk"))}
	for _, name := range customNames(e.slot) {
		if _, ok := e.slot.Lookup("Consumption" + name); !ok {
			continue
		}
		if n := int64(amount(name)); n > 0 {
			r.Custom = append(r.Custom, Custom{Name: name, Count: n, Require: e.required(job, name)})
		}
	}
	slices.SortFunc(r.Custom, func(a, b Custom) int { return compareFold(a.Name, b.Name) })
	if bad == nil && r.IsZero() {
		bad = errs.E("", errs.Denied, "", fmt.Errorf("the job would take nothing"))
	}
	r.Cpus, r.MemoryMiB = max(r.Cpus, 1), max(r.MemoryMiB, 1)
	return r, bad
}
