// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package space

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// Verb is what a Step does.
type Verb uint8

// The verbs.
const (
	Leave    Verb = iota + 1 // the namespaces of the process that the step names
	Slave                    // no mount of the thread's is seen outside; those of outside go on to come in
	Bind                     // Source is seen at Target
	Memory                   // an empty file system in memory is seen at Target
	ReadOnly                 // nothing below Target may be written
	Loopback                 // the interface lo is up
)

// Step is one thing to do on the family's thread.
type Step struct {
	Verb           Verb
	PIDs, Network  bool // Leave: these namespaces, beside that of mounts
	Mounts         bool // Leave: that of mounts
	Source, Target string
	Size           int64
	Mode           uint32
}

// String tells the step in a few words: "bind /scratch/tmp on /tmp".
func (s Step) String() string {
	switch s.Verb {
	case Leave:
		var names []string
		for _, n := range []struct {
			name string
			is   bool
		}{{"mounts", s.Mounts}, {"processes", s.PIDs}, {"the network", s.Network}} {
			if n.is {
				names = append(names, n.name)
			}
		}
		return "make namespaces of " + strings.Join(names, ", ")
	case Slave:
		return "keep mounts from the machine"
	case Bind:
		return fmt.Sprintf("bind %s on %s", s.Source, s.Target)
	case Memory:
		return fmt.Sprintf("mount a file system in memory (%s) on %s", s.options(), s.Target)
	case ReadOnly:
		return "make " + s.Target + " read-only"
	case Loopback:
		return "bring up lo"
	}
	return "nothing"
}

// options are those of a file system in memory.
func (s Step) options() string {
	o := fmt.Sprintf("mode=%04o", s.Mode)
	if s.Size > 0 {
		o += fmt.Sprintf(",size=%d", s.Size)
	}
	return o
}

// PlanOf lists the steps to s, none for the space of the process itself.
func PlanOf(s host.Space) ([]Step, error) {
	const op = "space.PlanOf"
	if s.IsZero() {
		return nil, nil
	}
	if s.Root != "" && !path.IsAbs(s.Root) {
		return nil, errs.E(op, errs.Invalid, s.Root, errors.New("the root directory is no absolute path"))
	}
	leave := Step{Verb: Leave, PIDs: s.PIDs, Network: s.NoNetwork, Mounts: s.PIDs || len(s.Mounts) > 0}
	var steps []Step
	if leave.Mounts || leave.Network {
		steps = append(steps, leave)
	}
	if leave.Mounts {
		steps = append(steps, Step{Verb: Slave})
	}
	for _, m := range s.Mounts {
		switch {
		case !path.IsAbs(m.Target):
			return nil, errs.E(op, errs.Invalid, m.Target, errors.New("the place of a mount is no absolute path"))
		case m.Source != "" && !path.IsAbs(m.Source):
			return nil, errs.E(op, errs.Invalid, m.Source, errors.New("the source of a mount is no absolute path"))
		}
		at := path.Join("/", s.Root, path.Join("/", m.Target)) // no .. leads out of the root
		if m.Source != "" {
			steps = append(steps, Step{Verb: Bind, Source: m.Source, Target: at})
		} else {
			steps = append(steps, Step{Verb: Memory, Target: at, Size: m.Size, Mode: m.Mode})
		}
		if m.ReadOnly {
			steps = append(steps, Step{Verb: ReadOnly, Target: at})
		}
	}
	if s.NoNetwork {
		steps = append(steps, Step{Verb: Loopback})
	}
	return steps, nil
}
