// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// Kind says what becomes of one sort of settings that no file has.
type Kind struct {
	Show    bool // they are written
	Comment bool // as comments
}

// WriteOptions say what Write writes. The settings of files that are not their
// defaults are always written, unless Only is set and another kind is shown.
type WriteOptions struct {
	Only bool // only what the other options name

	Defaults    Kind // defaults
	Matching    Kind // what is set to its default
	Detected    Kind // facts of the machine
	Environment Kind // what the environment sets

	Duplicates   bool // defaults behind settings of the same name
	Source       bool // with the place of each setting
	Sorted       bool // by name rather than by place
	HideObsolete bool // without what an upgrade leaves out

	// Header is the version of HTCondor for a first line that names it; "" for none.
	Header string
}

// files reports whether settings of files are shown: always, unless only some
// other kind was asked for.
func (o *WriteOptions) files() bool {
	return !o.Only || !(o.Defaults.Show || o.Matching.Show || o.Detected.Show || o.Environment.Show || o.Duplicates)
}

// choose says whether a row is written and what comes before it.
func (o *WriteOptions) choose(row config.Row) (comment string, ok bool) {
	mark := func(k Kind, text string) (string, bool) {
		if k.Show && k.Comment {
			return text, true
		}
		return "", k.Show
	}
	switch {
	case row.Origin.Kind == config.Detected && !row.MatchesDefault:
		if comment, ok := mark(o.Detected, "#detected#"); ok {
			return comment, true
		}
		return mark(o.Defaults, "#def#")
	case row.Origin.Kind == config.Default:
		return mark(o.Defaults, "#def#")
	case row.MatchesDefault:
		return mark(o.Matching, "#")
	case row.Origin.Kind == config.Environment:
		return commentOf(o.Environment, "#env#"), !o.Only || o.Environment.Show
	}
	return "", o.files() && !(o.HideObsolete && isDiscarded(row))
}

func commentOf(k Kind, text string) string {
	if k.Comment {
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

// Write writes a configuration so that it can be read again. The error is the
// writer's.
func Write(w io.Writer, snap *config.Snapshot, o WriteOptions) error {
	var all []statement
	last := ""
	sources := snap.Sources()
	for _, row := range snap.Rows() {
		comment, ok := o.choose(row)
		if !ok || strings.EqualFold(row.Name, last) && !o.Duplicates {
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
		if o.Source && o.Sorted {
			s.text += "\n # at: " + at
		} else if o.Source {
			s.text += "\n" + at
		}
		all = append(all, s)
	}

	var b bytes.Buffer
	if !o.Sorted {
		slices.SortStableFunc(all, func(x, y statement) int { return cmp.Or(cmp.Compare(x.source, y.source), cmp.Compare(x.line, y.line)) })
	}
	if o.Header != "" && !o.Sorted && len(all) > 0 {
		fmt.Fprintf(&b, "# condor_config_val %s\n", o.Header)
	}
	source := -1
	for _, s := range all {
		if s.source != source && !o.Sorted {
			fmt.Fprintf(&b, "\n#\n# from %s\n#\n", s.heading)
			source = s.source
		}
		fmt.Fprintln(&b, s.text)
	}
	_, err := w.Write(b.Bytes())
	return err
}
