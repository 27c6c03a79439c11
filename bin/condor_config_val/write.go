// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/config"
)

// kind is one sort of rows of -writeconfig.
type kind struct {
	show, comment bool
}

// writeOptions are the words behind -writeconfig: and -summary:.
type writeOptions struct {
	only                                      bool // only what the other words name
	defaults, matching, detected, environment kind
	duplicates                                bool // defaults behind settings of the same name
	source                                    bool
	sorted                                    bool
	header                                    bool
	hideObsolete                              bool
}

func parseWriteOptions(words []string) writeOptions {
	if len(words) == 0 {
		return writeOptions{matching: kind{show: true, comment: true}}
	}
	var o writeOptions
	comment := false
	for _, w := range words {
		switch {
		case isPrefix(w, "comment", 3):
			comment = true
		case isPrefix(w, "default", 3):
			o.defaults = kind{true, comment}
		case isPrefix(w, "matches_default", 5):
			o.matching = kind{true, comment}
		case isPrefix(w, "detected", 3):
			o.detected = kind{true, comment}
		case isPrefix(w, "environment", 3):
			o.environment = kind{true, comment}
		case w == "only":
			o.only = true
		case w == "file":
			o.only = false
		case isPrefix(w, "duplicate", 3):
			o.duplicates = true
		case isPrefix(w, "source", 3):
			o.source = true
		case isPrefix(w, "sort", 3):
			o.sorted = true
		case isPrefix(w, "upgrade", 3):
			o.hideObsolete = true
		}
	}
	return o
}

// files reports whether settings of files are shown: always, unless only some
// other kind was asked for.
func (o *writeOptions) files() bool {
	return !o.only || !(o.defaults.show || o.matching.show || o.detected.show || o.environment.show || o.duplicates)
}

// choose says whether a row is written and what comes before it.
func (o *writeOptions) choose(row config.Row) (comment string, ok bool) {
	mark := func(k kind, text string) (string, bool) {
		if k.show && k.comment {
			return text, true
		}
		return "", k.show
	}
	switch {
	case row.Origin.Kind == config.Detected && !row.MatchesDefault:
		if comment, ok := mark(o.detected, "#detected#"); ok {
			return comment, true
		}
		return mark(o.defaults, "#def#")
	case row.Origin.Kind == config.Default:
		return mark(o.defaults, "#def#")
	case row.MatchesDefault:
		return mark(o.matching, "#")
	case row.Origin.Kind == config.Environment:
		return commentOf(o.environment, "#env#"), !o.only || o.environment.show
	}
	return "", o.files() && !(o.hideObsolete && isDiscarded(row))
}

func commentOf(k kind, text string) string {
	if k.comment {
		return text
	}
	return ""
}

// discarded are settings of old configurations that an upgrade leaves out,
// whatever their value.
var discarded = [...]string{
	"LeaseManager", "LeaseManger_ADDRESS_FILE", "LeaseManager_LOG", "LeaseManager_DEBUG", "MAX_LeaseManager_LOG",
	"LeaseManager.GETADS_INTERVAL", "LeaseManager.PRUNE_INTERVAL", "LeaseManager.DEBUG_ADS", "LeaseManager.CLASSAD_LOG",
	"STORK", "STORK_ADDRESS_FILE", "STORK_LOG_BASE", "STORK_LOG", "STORK_DEBUG", "MAX_STORK_LOG", "STORK_PORT", "STORK_ARGS",
	"DEFRAG_STATE_FILE",
}

// discardedValues are settings that an upgrade leaves out when they have the
// value that was once the default.
var discardedValues = [...]string{
	"RESERVED_DISK=5", "ALL_DEBUG=", "MAX_COLLECTOR_LOG=1000000", "MAX_KBDD_LOG=1000000", "MAX_MASTER_LOG=1000000",
	"MAX_NEGOTIATOR_LOG=1000000", "MAX_NEGOTIATOR_MATCH_LOG=1000000", "MAX_SCHEDD_LOG=1000000", "MAX_SHADOW_LOG=1000000",
	"MAX_SHARED_PORT_LOG=1000000", "MAX_STARTD_LOG=1000000", "MAX_STARTER_LOG=1000000", "MAX_JOB_ROUTER_LOG=1000000",
	"MAX_REPLICATION_LOG=1000000", "MAX_ROOSTER_LOG=1000000", "MAX_HAD_LOG=1000000", "MAX_TRANSFERER_LOG=1000000",
	"MAX_GRIDMANAGER_LOG=1000000", "MAX_C_GAHP_LOG=1000000", "MAX_VM_GAHP_LOG=1000000", "MAX_CREDD_LOG=4000000",
	"QUEUE_SUPER_USERS=root, condor",
}

func isDiscarded(row config.Row) bool {
	value := strings.ToUpper(row.Name) + "=" + row.Raw
	return slices.ContainsFunc(discarded[:], func(s string) bool { return strings.EqualFold(s, row.Name) }) ||
		slices.Contains(discardedValues[:], value)
}

// statement is one row to be written, with where it stands.
type statement struct {
	source, line int
	heading      string
	text         string
}

// Places of what is no file, among the sources.
const (
	sourceDetected = iota
	sourceDefault
	sourceFirst // of the files
	sourceLast  = 1 << 30
)

func (r *run) writeConfiguration() error {
	o := &r.writeOpts
	var all []statement
	last := ""
	sources := r.snap.Sources()
	for _, row := range r.snap.Rows() {
		comment, ok := o.choose(row)
		if !ok || strings.EqualFold(row.Name, last) && !o.duplicates {
			continue
		}
		last = row.Name
		indent := "   "
		if comment != "" {
			indent = "#   "
		}
		s := statement{text: comment + row.Name + " " + assigned(row.Raw, indent), line: row.Origin.EndLine}
		at := row.Origin.Location()
		switch row.Origin.Kind {
		case config.Detected:
			s.source, s.heading = sourceDetected, at
		case config.Default:
			s.source, s.heading = sourceDefault, at
			at = fmt.Sprintf("%s, item %d", at, row.Knob)
		case config.Environment, config.CommandLine:
			s.source, s.heading = sourceLast, at
		default:
			s.source, s.heading = sourceFirst, row.Origin.File
			for i, name := range sources {
				if name == row.Origin.File {
					s.source = sourceFirst + i
				}
			}
		}
		if o.source && o.sorted {
			s.text += "\n # at: " + at
		} else if o.source {
			s.text += "\n" + at
		}
		all = append(all, s)
	}

	var b bytes.Buffer
	if !o.sorted {
		slices.SortStableFunc(all, func(x, y statement) int { return cmp.Or(cmp.Compare(x.source, y.source), cmp.Compare(x.line, y.line)) })
	}
	if o.header && !o.sorted && len(all) > 0 {
		fmt.Fprintf(&b, "# condor_config_val %s\n", commands.CondorVersion)
	}
	source := -1
	for _, s := range all {
		if s.source != source && !o.sorted {
			fmt.Fprintf(&b, "\n#\n# from %s\n#\n", s.heading)
			source = s.source
		}
		fmt.Fprintln(&b, s.text)
	}
	if r.write == "-" {
		_, err := r.stdout.Write(b.Bytes())
		return err
	}
	if err := r.writeFile(r.write, b.Bytes()); err != nil {
		return fmt.Errorf("failed to create configuration file %s: %w", r.write, err)
	}
	return nil
}
