// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
)

// coresOf are the processors that the job of an activation is kept on, none for all.
//
// Where ASSIGN_CPU_AFFINITY, over the job, is true it gets as many as its slot has, of
// those that the fewest jobs have by now, the lowest first; so a core is shared only
// when there are fewer than jobs want. HTCondor assigns them when it makes a slot, and
// its p-slots have their share too.
//
// Else, where ENFORCE_CPU_AFFINITY is true, it gets those of SLOT<N>_CPU_AFFINITY, or
// the one with the slot's number less one. N is the number of the p-slot for a d-slot.
func (n *node) coresOf(e ep.StartStarter, now clock.Instant) []int {
	s := n.starterOf(e.Slot).config
	const assign = "ASSIGN_CPU_AFFINITY"
	x, err := s.Expression(assign)
	if err == nil && x != nil {
		yes, said := x.IsTrue(&classad.Env{My: e.Job, Now: now.Wall})
		if yes {
			return n.leastUsed(cpusOf(e.Given))
		}
		if !said { // HTCondor's startd ends here
			err = fmt.Errorf("%s is neither true nor false for the job, which is kept on no core: %s", assign, x)
		}
	}
	var cores []int
	if err == nil {
		cores, err = enforced(s, e.Slot.N)
	}
	if err != nil {
		n.problem(err)
	}
	return cores
}

// enforced is what ENFORCE_CPU_AFFINITY says for a slot.
func enforced(s *config.Snapshot, number int) ([]int, error) {
	yes, err := s.Bool("ENFORCE_CPU_AFFINITY")
	if err != nil || !yes || number < 1 {
		return nil, err
	}
	name := "SLOT" + strconv.Itoa(number) + "_CPU_AFFINITY"
	text, err := s.Text(name)
	if err != nil {
		return nil, err
	}
	if text == "" {
		return []int{number - 1}, nil
	}
	var cores []int
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		core, err := strconv.Atoi(word)
		if err != nil || core < 0 || core > mostCore {
			return nil, fmt.Errorf("%s has %q, which is no number of a core: the job is kept on none", name, word)
		}
		cores = append(cores, core)
	}
	slices.Sort(cores)
	return slices.Compact(cores), nil
}

// mostCore is beyond what any machine has.
const mostCore = 1 << 16

// leastUsed picks cores for a job.
func (n *node) leastUsed(count int) []int {
	if n.o.Host.Cores == nil {
		return nil
	}
	all := n.o.Host.Cores()
	used := make(map[int]int)
	for _, a := range n.starter.live {
		for _, core := range a.cores {
			used[core]++
		}
	}
	return pick(all, used, count)
}

// pick returns, in order, count of all, or as many as there are: those that are used
// least, of these the first.
func pick(all []int, used map[int]int, count int) []int {
	byUse := slices.Clone(all)
	slices.SortStableFunc(byUse, func(a, b int) int { return used[a] - used[b] })
	picked := byUse[:min(count, len(byUse))]
	slices.Sort(picked)
	return picked
}
