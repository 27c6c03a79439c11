// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// jobOOMScore makes the kernel take a job before anything of the system's.
const jobOOMScore = 800

// cpuWeight is the share of one core.
const cpuWeight = 100

const mib = 1 << 20

// limited is what an activation knows of the limits of its job.
type limited struct {
	slot  protocol.SlotLimits // as they are by now
	group host.GroupLimits    // what came of them
	known bool                // they were worked out
	moved bool                // the slot has changed since
	told  bool                // what the machine lacks was said
}

// limits are those of the job.
func (a *activation) limits() (host.Limits, error) {
	core, stack := a.job.Limits()
	return a.limitsOf(&core, &stack)
}

// limitsOf are the limits of the job, or of a program before or after it, which has
// those of the slot too. An error says that a limit of the owner's is none.
func (a *activation) limitsOf(core, stack *int64) (host.Limits, error) {
	l, set := &a.limited, &a.plan.Settings.Limits
	score := jobOOMScore
	limits := host.Limits{Core: core, Stack: stack, OOMScore: &score, NoNewPrivileges: set.NoSetuid}
	if !l.known {
		l.slot = a.plan.Limits
		if l.slot.Cpus == 0 {
			l.slot.Cpus = a.plan.Cpus
		}
		group, err := a.groupLimits(l.slot)
		if err != nil {
			return host.Limits{}, err
		}
		l.group, l.known = group, true
	}
	limits.Group = l.group
	// HTCondor limits nothing where the expression is no number, and says so in the
	// same words.
	if n, said, ok := a.amount(set.AddressSpace); ok && n > 0 {
		limits.AddressSpace = &n
		if a.log != nil {
			a.log.Info(fmt.Sprintf("Setting job's virtual memory rlimit to %d megabytes", n/mib))
		}
	} else if said && !ok && a.log != nil {
		a.log.Warn("Can't evaluate STARTER_RLIMIT_AS expression " + set.AddressSpace.String())
	}
	return limits, nil
}

// groupLimits are those of the job as a whole in a slot that has this.
func (a *activation) groupLimits(slot protocol.SlotLimits) (host.GroupLimits, error) {
	memory, err := a.memoryLimits(slot)
	return host.GroupLimits{CPUWeight: cpuWeight * slot.Cpus, CPUs: slot.Cores, Memory: memory, Closed: a.closedGPUs()}, err
}

// memoryLimits follows CGROUP_MEMORY_LIMIT_POLICY as the documents have it: hard ends
// the job at the slot's Memory, and has the kernel take back what is above 90 % of it
// first. soft slows the job down there, and ends it at the memory of all slots.
// custom ends it at CGROUP_HARD_MEMORY_LIMIT_EXPR, none nowhere. HTCondor 25.14 does
// nothing for soft and has no 90 %. With a limit the swap of the job is none, or
// without DISABLE_SWAP_FOR_JOB what the slot's VirtualMemory has beyond its Memory;
// a slot without VirtualMemory may have any.
//
// A custom expression that is no number is an error. HTCondor's starter ends there,
// and its job is matched with the same slot again at once and for ever. To go on
// without a limit, or with one of our own, would let the job take what its owner did
// not promise. So the job is not started, and the machine refuses others for a while
// when that happens again. Without any expression custom limits nothing, as HTCondor.
func (a *activation) memoryLimits(slot protocol.SlotLimits) (host.MemoryLimits, error) {
	set := &a.plan.Settings.Limits
	var m host.MemoryLimits
	memory := inBytes(float64(slot.MemoryMiB))
	switch set.Memory {
	case protocol.MemoryHard:
		if memory > 0 {
			first := memory / 10 * 9
			m.Hard, m.First = &memory, &first
		}
	case protocol.MemorySoft:
		if memory > 0 {
			m.Soft = &memory
		}
		if whole := inBytes(float64(slot.WholeMiB)); whole > 0 {
			m.Hard = &whole
		}
	case protocol.MemoryCustom:
		const knob = "CGROUP_HARD_MEMORY_LIMIT_EXPR"
		hard, said, ok := a.amount(set.Hard)
		switch {
		case !said && a.log != nil:
			a.log.Warn(knob + " did not evalute to numeric, ignoring") // HTCondor's words and spelling
		case said && (!ok || hard < 0):
			return m, errs.E("starter.limits", errs.Invalid, knob, fmt.Errorf("%w: %s is no amount of MiB for this job in this slot", host.ErrLimit, set.Hard))
		case hard > 0:
			m.Hard = &hard
		}
	}
	if m.Hard != nil || m.Soft != nil {
		swap := max(slot.SwapKiB<<10-memory, 0)
		if set.NoSwap {
			swap = 0
		}
		if set.NoSwap || slot.SwapKiB > 0 {
			m.Swap = &swap
		}
	}
	// What a job is left with is no limit, and holds with none too, as HTCondor has it.
	if low, said, ok := a.amount(set.Low); ok && low > 0 {
		m.Low = &low
	} else if said && !ok && a.log != nil {
		a.log.Warn("CGROUP_LOW_MEMORY_LIMIT did not evalute to numeric, ignoring", "expression", set.Low.String())
	}
	return m, nil
}

// amount evaluates an expression in MiB over the slot (MY) and the job (TARGET) to
// bytes. said is false where there is none, ok where it is no number.
func (a *activation) amount(x *config.Expr) (bytes int64, said, ok bool) {
	if x == nil {
		return 0, false, false
	}
	machine, err := classad.ParseAd(a.plan.MachineAd, classad.Old)
	if err != nil {
		a.problem(err)
		return 0, true, false
	}
	v := x.Eval(&classad.Env{My: machine, Target: a.job.Ad, Now: time.Now()})
	n, ok := v.AsNumber()
	if !ok || math.IsNaN(n) || v.Kind() == classad.KindBoolean {
		return 0, true, false
	}
	return inBytes(n), true, true
}

// inBytes is an amount of MiB, cut to whole bytes and to what can be counted.
func inBytes(n float64) int64 {
	switch n *= mib; {
	case n >= math.MaxInt64:
		return math.MaxInt64
	case n <= math.MinInt64:
		return math.MinInt64
	}
	return int64(n)
}

// closedGPUs are the devices of this machine's NVIDIA GPUs that are not the slot's:
// their files are there and cannot be opened. With a GPU that the machine does not
// name so, as an instance of one, nothing is closed: to close its whole would take
// what is promised. HTCondor has it so too.
func (a *activation) closedGPUs() []host.Device {
	if !a.plan.Settings.Limits.HideGPUs || a.host.GPUs == nil {
		return nil
	}
	all := a.host.GPUs()
	if len(all) == 0 {
		return nil
	}
	machine, err := classad.ParseAd(a.plan.MachineAd, classad.Old)
	if err != nil {
		a.problem(err)
		return nil
	}
	var own []string
	for id := range strings.SplitSeq(sandbox.SlotGPUs(machine), ",") {
		if id == "" {
			continue
		}
		if !slices.ContainsFunc(all, func(g host.GPU) bool { return g.UUID == id }) {
			if a.log != nil {
				a.log.Warn("the GPUs of other slots are open to the job, for the machine does not say which device the slot's own is", "gpu", id)
			}
			return nil
		}
		own = append(own, id)
	}
	var closed []host.Device
	for _, g := range all {
		if !slices.Contains(own, g.UUID) {
			closed = append(closed, g.Device)
		}
	}
	return closed
}

// sayLacks writes to the log, once, what of the job's limits this machine does not
// have.
func (a *activation) sayLacks() {
	lacks := a.family.Lacks()
	if a.limited.told || len(lacks) == 0 || a.log == nil {
		return
	}
	a.limited.told = true
	for _, what := range lacks {
		a.log.Warn("a limit of the job is not kept: " + what)
	}
}

// follow gives the job that runs the limits of a slot that has changed.
func (a *activation) follow(now protocol.SlotLimits) {
	l := &a.limited
	if !l.known || reflect.DeepEqual(sized(now), sized(l.slot)) {
		return
	}
	group, err := a.groupLimits(now)
	if err != nil {
		a.problem(err)
		return
	}
	l.slot, l.group, l.moved = now, group, true
	a.relimit()
}

// sized leaves out what changes all the time: what is free of the swap is looked at
// when the slot itself changes.
func sized(s protocol.SlotLimits) protocol.SlotLimits {
	s.SwapKiB, s.WholeMiB = 0, 0
	return s
}

// relimit has the job that runs limited as the slot is by now.
func (a *activation) relimit() {
	if a.family == nil || !a.limited.moved {
		return
	}
	group := a.limited.group
	group.Closed = nil // they are
	err := a.family.Limit(group)
	switch {
	case errs.Is(err, errs.Unsupported), errs.Is(err, errs.Conflict):
	case err != nil:
		a.problem(err)
		if a.log != nil {
			a.log.Warn("the job keeps limits that its slot no longer has", "err", err)
		}
	case a.log != nil:
		a.log.Info("the job has the limits of its changed slot", "memory_mib", a.limited.slot.MemoryMiB, "cpus", a.limited.slot.Cpus)
	}
}
