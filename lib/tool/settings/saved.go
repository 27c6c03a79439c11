// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
)

// Saved prints what a daemon that runs is set to, of each name. It reports whether all
// are defined; the error is about a name that is a template, of which a daemon saves
// nothing.
func (p *Printer) Saved(saved *config.Saved, names []string) (defined bool, err error) {
	defined = true
	for _, name := range names {
		if strings.HasPrefix(name, "^") {
			return false, errors.New("remote query not supported for use " + name[1:])
		}
		one := findSaved(saved, name)
		text, ok := p.textOf(one)
		if !ok {
			fmt.Fprintf(p.Err, "Not defined: %s\n", strings.ToUpper(name))
			defined = false
			continue
		}
		if !p.Verbose {
			fmt.Fprintln(p.Out, text)
			continue
		}
		fmt.Fprintf(p.Out, "%s %s\n # at: %s\n # raw: %s\n", one.Name, assigned(text, "   "), one.At, indented(one.Name+" = "+one.Raw, " #   "))
		if one.Default != nil {
			fmt.Fprintf(p.Out, " # default: %s\n", indented(*one.Default, " #   "))
		}
		fmt.Fprintln(p.Out)
	}
	return defined, nil
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
func (p *Printer) textOf(one *config.SavedSetting) (string, bool) {
	switch {
	case one == nil:
		return "", false
	case p.Default && one.Default != nil:
		return *one.Default, true
	case p.Default:
		return "", false
	case p.Raw:
		return one.Raw, true
	case p.Evaluate:
		return p.evaluated(one.Value), one.Value != ""
	}
	return one.Value, one.Value != ""
}

// evaluated returns what a text comes to as an expression; there is no ad of
// the daemon, so attributes are undefined.
func (p *Printer) evaluated(text string) string {
	e, err := classad.ParseExpr(text, classad.Old)
	if err != nil {
		fmt.Fprintf(p.Err, "Warning: Failed to evaluate '%s', returning it as config value\n", text)
		return text
	}
	return e.Eval(nil).Text(classad.New)
}

// DumpSaved prints all settings of a daemon whose names match a pattern, for each
// pattern; without patterns all settings. File is where they are from.
func (p *Printer) DumpSaved(saved *config.Saved, file string, patterns []string) {
	fmt.Fprintf(p.Out, "# Configuration from %s as of %s\n", saved.Subsystem, file)
	if len(patterns) == 0 {
		patterns = []string{""}
	}
	for i, re := range compile(patterns) {
		if patterns[i] != "" {
			fmt.Fprintf(p.Out, "\n# Parameters with names that match %s:\n", patterns[i])
		}
		for j := range saved.Settings {
			one := &saved.Settings[j]
			if !re.matches(one.Name) || p.Used && !one.Used || p.Unused && one.Used {
				continue
			}
			text := one.Raw
			if p.Expand || p.Evaluate || p.Default && one.Default != nil {
				text, _ = p.textOf(one)
			}
			fmt.Fprintf(p.Out, "%s %s\n", one.Name, assigned(text, "   "))
			if !p.Verbose {
				continue
			}
			fmt.Fprintf(p.Out, " # at: %s\n", one.At)
			if p.Expand {
				fmt.Fprintf(p.Out, " # raw: %s\n", indented(one.Raw, " #   "))
			} else {
				fmt.Fprintf(p.Out, " # expanded: %s\n", indented(one.Value, " #   "))
			}
			if one.Default != nil {
				fmt.Fprintf(p.Out, " # default: %s\n", indented(*one.Default, " #   "))
			}
		}
	}
}
