// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// Facts returns what the language knows of the machine, and whether that changed by what
// the configuration says; snap is nil at first.
type Facts func(snap *config.Snapshot) (facts map[string]string, changed bool)

// Load reads a configuration, a second time where it changes what is known of the
// machine, and prints its problems in the words of HTCondor's tool. Without ok it cannot
// be used, which was printed.
func (p *Printer) Load(o config.Options, facts Facts) (snap *config.Snapshot, ok bool) {
	o.Facts, _ = facts(nil)
	snap, err := config.Load(o)
	if err == nil {
		if changed, again := facts(snap); again {
			o.Facts, o.Trace = changed, nil
			snap, err = config.Load(o)
		}
	}
	if err != nil {
		p.refused(o.Root, err)
		return nil, false
	}
	for _, one := range snap.Met() {
		if one.Class != config.Suspicious && one.Class != config.SetTwice { // HTCondor's tool says nothing of these, condor_ep check does
			p.Report(one)
		}
	}
	return snap, true
}

// refused prints why a configuration cannot be used.
func (p *Printer) refused(root string, err error) {
	p.ReportAll(err)
	for _, one := range p.Reported {
		if one.Severity != config.Error || one.Class == config.RootMissing {
			continue
		}
		line := one.EndLine
		if len(one.Within) > 0 {
			line = one.Within[0].EndLine
		}
		fmt.Fprintf(p.Err, "Configuration Error Line %d while reading config source %s\n", line, root)
		return
	}
}

// Text says how Names takes names.
type Text int

// The ways.
const (
	Names  Text = iota // names of settings
	Macros             // texts with macros, to be expanded
	Paths              // the same, and what they come to as a path in its shortest form
)

// Names answers for each name, for each template, which begins with ^, or for each text
// as said. It reports whether all are defined.
func (p *Printer) Names(snap *config.Snapshot, names []string, as Text) (defined bool) {
	defined = true
	for _, name := range names {
		ok := true
		switch {
		case strings.HasPrefix(name, "^"):
			p.Template(name[1:])
		case as != Names:
			ok = p.Macro(snap, name, as == Paths)
		default:
			ok = p.Print(name, Look(snap, name))
		}
		defined = defined && (ok || p.Info) // with -info HTCondor's tool counts all as defined
	}
	return defined
}
