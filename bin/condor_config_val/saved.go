// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
)

// fromSnapshot answers from what a running Execution Point wrote, as HTCondor's
// tool does when it asks a daemon.
func (r *run) fromSnapshot() int {
	if r.write != "" || r.macro || r.listSources || r.trace || r.hasCondition || r.rootGiven {
		return r.fail("-snapshot answers names and -dump; all else needs the files")
	}
	data, err := r.readFile(r.snapshot)
	if err != nil {
		return r.fail("cannot read the snapshot: " + err.Error())
	}
	saved, err := config.ReadSaved(bytes.NewReader(data))
	if err != nil {
		return r.fail(r.snapshot + ": " + err.Error())
	}
	if r.dump {
		return r.dumpSaved(saved)
	}
	if len(r.names) == 0 {
		fmt.Fprint(r.stderr, usage())
		return exitFailed
	}
	status := exitOK
	for _, name := range r.names {
		if strings.HasPrefix(name, "^") {
			return r.fail("remote query not supported for use " + name[1:])
		}
		one := findSaved(saved, name)
		text, ok := r.textOf(one)
		if !ok {
			fmt.Fprintf(r.stderr, "Not defined: %s\n", strings.ToUpper(name))
			status = exitFailed
			continue
		}
		if !r.verbose {
			fmt.Fprintln(r.stdout, text)
			continue
		}
		fmt.Fprintf(r.stdout, "%s %s\n # at: %s\n # raw: %s\n", one.Name, assigned(text, "   "), one.At, indented(one.Name+" = "+one.Raw, " #   "))
		if one.Default != nil {
			fmt.Fprintf(r.stdout, " # default: %s\n", indented(*one.Default, " #   "))
		}
		fmt.Fprintln(r.stdout)
	}
	return status
}

// findSaved returns a setting as the daemon that wrote the snapshot sees it,
// nil if there is none.
func findSaved(saved *config.Saved, name string) *config.SavedSetting {
	prefixes := []string{saved.Subsystem + ".", ""}
	if saved.LocalName != "" {
		prefixes = append([]string{saved.Subsystem + "." + saved.LocalName + ".", saved.LocalName + "."}, prefixes...)
	}
	for _, prefix := range prefixes {
		for i := range saved.Settings {
			if strings.EqualFold(saved.Settings[i].Name, prefix+name) {
				return &saved.Settings[i]
			}
		}
	}
	return nil
}

// textOf returns what the options ask for of a setting.
func (r *run) textOf(one *config.SavedSetting) (string, bool) {
	switch {
	case one == nil:
		return "", false
	case r.def && one.Default != nil:
		return *one.Default, true
	case r.def:
		return "", false
	case r.raw:
		return one.Raw, true
	case r.evaluate:
		return r.evaluated(one.Value), one.Value != ""
	}
	return one.Value, one.Value != ""
}

// evaluated returns what a text comes to as an expression; there is no ad of
// the daemon, so attributes are undefined.
func (r *run) evaluated(text string) string {
	e, err := classad.ParseExpr(text, classad.Old)
	if err != nil {
		fmt.Fprintf(r.stderr, "Warning: Failed to evaluate '%s', returning it as config value\n", text)
		return text
	}
	return e.Eval(nil).Text(classad.New)
}

func (r *run) dumpSaved(saved *config.Saved) int {
	fmt.Fprintf(r.stdout, "# Configuration from %s as of %s\n", saved.Subsystem, r.snapshot)
	patterns := r.names
	if len(patterns) == 0 {
		patterns = []string{""}
	}
	for i, re := range compile(patterns) {
		if patterns[i] != "" {
			fmt.Fprintf(r.stdout, "\n# Parameters with names that match %s:\n", patterns[i])
		}
		for j := range saved.Settings {
			one := &saved.Settings[j]
			if re == nil || !re.MatchString(one.Name) || r.used && !one.Used || r.unused && one.Used {
				continue
			}
			text := one.Raw
			if r.expand || r.def || r.evaluate {
				text, _ = r.textOf(one)
			}
			fmt.Fprintf(r.stdout, "%s %s\n", one.Name, assigned(text, "   "))
			if !r.verbose {
				continue
			}
			fmt.Fprintf(r.stdout, " # at: %s\n", one.At)
			if r.expand {
				fmt.Fprintf(r.stdout, " # raw: %s\n", indented(one.Raw, " #   "))
			} else {
				fmt.Fprintf(r.stdout, " # expanded: %s\n", indented(one.Value, " #   "))
			}
			if one.Default != nil {
				fmt.Fprintf(r.stdout, " # default: %s\n", indented(*one.Default, " #   "))
			}
		}
	}
	return exitOK
}
