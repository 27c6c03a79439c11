// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/tool/settings"
)

// options is a command line, read.
type options struct {
	names  []string         // asked for; a template begins with ^
	show   settings.Printer // how, with neither of its writers
	what   what
	read   read
	write  write
	daemon daemon

	help, version bool
}

// what is printed besides names.
type what struct {
	dump, trace      bool
	macro, macroPath bool
	sources          bool   // -config
	condition        string // of -check-if
	hasCondition     bool
	owner, home      bool
}

// read is what is read, and as whom.
type read struct {
	subsystem, localName string
	root                 string // of -root-config
	rootGiven            bool
	snapshot             string
}

// write is what is written.
type write struct {
	file    string // - for stdout, "" for none
	summary bool
	how     settings.WriteOptions
}

// daemon is the daemon that is asked.
type daemon struct {
	asked   bool
	kind    string // "" for any
	address string // where it is
	pool    string // the collectors that know it
	name    string // what it is called
	change  string // the option that would change what it has, "" for none
}

// isPrefix reports whether arg is a beginning of word with at least least
// letters; -1 asks for all of them.
func isPrefix(arg, word string, least int) bool {
	if least < 0 {
		return arg == word
	}
	return len(arg) >= least && len(arg) > 0 && strings.HasPrefix(word, arg)
}

// usageError is a command line that cannot be read. The usage follows it.
type usageError struct {
	message string
	brief   bool // no usage after it
}

func (e *usageError) Error() string { return e.message }

// option is one option: its name and how many letters of it are enough.
type option struct {
	word  string
	least int
	arg   bool // the next argument belongs to it
	colon bool // ":words" may follow
	two   bool // it may begin with two dashes
	do    func(o *options, word, arg string, sub []string) error
}

func flagOf(set func(o *options)) func(*options, string, string, []string) error {
	return func(o *options, _, _ string, _ []string) error { set(o); return nil }
}

func askKind(o *options, word, _ string, _ []string) error {
	o.daemon.kind, o.daemon.asked = word, true
	return nil
}

func change(o *options, word, _ string, _ []string) error {
	o.daemon.change = word
	return nil
}

// table is in the order in which abbreviations are tried.
func table() []option {
	return []option{
		{word: "name", least: 1, arg: true, do: func(o *options, _, arg string, _ []string) error {
			o.daemon.name, o.daemon.asked = arg, true
			return nil
		}},
		{word: "address", least: 1, arg: true, do: func(o *options, _, arg string, _ []string) error {
			o.daemon.address, o.daemon.asked = arg, true
			return nil
		}},
		{word: "pool", least: 1, arg: true, do: func(o *options, _, arg string, _ []string) error { o.daemon.pool = arg; return nil }},
		{word: "local-name", least: 2, arg: true, do: func(o *options, _, arg string, _ []string) error { o.read.localName = arg; return nil }},
		{word: "subsystem", least: 3, arg: true, do: func(o *options, _, arg string, _ []string) error { o.read.subsystem = arg; return nil }},
		{word: "owner", least: 1, do: flagOf(func(o *options) { o.what.owner = true })},
		{word: "tilde", least: 1, do: flagOf(func(o *options) { o.what.home = true })},
		{word: "master", least: 2, do: askKind},
		{word: "schedd", least: 2, do: askKind},
		{word: "startd", least: 2, do: askKind},
		{word: "collector", least: 3, do: askKind},
		{word: "negotiator", least: 3, do: askKind},
		{word: "set", least: 2, do: change},
		{word: "unset", least: 3, do: change},
		{word: "rset", least: 3, do: change},
		{word: "runset", least: 5, do: change},
		{word: "mixedcase", least: 2, do: flagOf(func(*options) {})},
		{word: "raw", least: 3, do: flagOf(func(o *options) { o.show.Raw = true })},
		{word: "default", least: 3, do: func(o *options, _, _ string, _ []string) error {
			o.show.Default = true
			return o.contradiction()
		}},
		{word: "config", least: 2, do: flagOf(func(o *options) { o.what.sources = true })},
		{word: "verbose", least: 1, colon: true, do: func(o *options, _, _ string, _ []string) error {
			o.show.Verbose = true
			return o.contradiction()
		}},
		{word: "dump", least: 1, do: flagOf(func(o *options) { o.what.dump = true })},
		{word: "trace", least: 2, do: flagOf(func(o *options) { o.what.trace = true })},
		{word: "info", least: 3, colon: true, do: flagOf(func(o *options) { o.show.Info, o.show.Verbose = true, true })},
		{word: "expanded", least: 2, do: flagOf(func(o *options) { o.show.Expand = true })},
		{word: "macro", least: 3, colon: true, do: func(o *options, _, _ string, sub []string) error {
			o.what.macro = true
			o.what.macroPath = len(sub) > 0 && isPrefix(sub[0], "path", 4)
			return nil
		}},
		{word: "evaluate", least: 2, do: flagOf(func(o *options) { o.show.Evaluate = true })},
		{word: "unused", least: 4, do: flagOf(func(o *options) { o.show.Used, o.show.Unused = false, true })},
		{word: "used", least: 2, do: flagOf(func(o *options) { o.show.Used, o.show.Unused = true, false })},
		{word: "summary", least: 3, colon: true, do: summary},
		{word: "writeconfig", least: 3, arg: true, colon: true, do: writeConfig},
		{word: "root-config", least: 4, arg: true, two: true, do: func(o *options, _, arg string, _ []string) error {
			o.read.root, o.read.rootGiven = arg, true
			return nil
		}},
		{word: "snapshot", least: 2, arg: true, two: true, do: func(o *options, _, arg string, _ []string) error { o.read.snapshot = arg; return nil }},
		{word: "debug", least: 2, colon: true, do: flagOf(func(*options) {})},
		{word: "help", least: 2, two: true, do: flagOf(func(o *options) { o.help = true })},
		{word: "version", least: 3, two: true, do: flagOf(func(o *options) { o.version = true })},
		{word: "check-if", least: -1, arg: true, two: true, do: func(o *options, _, arg string, _ []string) error {
			o.what.condition, o.what.hasCondition = arg, true
			return nil
		}},
	}
}

func (o *options) contradiction() error {
	if o.show.Default && o.show.Verbose {
		return &usageError{message: "-default cannot be used with -verbose"}
	}
	return nil
}

func summary(o *options, _, _ string, sub []string) error {
	if o.write.file != "" && !o.write.summary {
		return &usageError{message: "-summary cannot be used with -writeconfig"}
	}
	o.write.how = settings.WriteOptions{HideObsolete: true, Header: commands.CondorVersion}
	o.write.summary, o.write.file = true, "-"
	for _, word := range sub {
		o.write.how.Detected.Show = o.write.how.Detected.Show || isPrefix(word, "detected", 3)
	}
	return nil
}

func writeConfig(o *options, _, arg string, sub []string) error {
	if o.write.summary {
		return &usageError{message: "-writeconfig cannot be used with -summary"}
	}
	o.write.file = arg
	o.write.how = parseWriteOptions(sub)
	return nil
}

// parseWriteOptions reads the words behind -writeconfig: and -summary:.
func parseWriteOptions(words []string) settings.WriteOptions {
	if len(words) == 0 {
		return settings.WriteOptions{Matching: settings.Kind{Show: true, Comment: true}}
	}
	var o settings.WriteOptions
	comment := false
	for _, w := range words {
		switch {
		case isPrefix(w, "comment", 3):
			comment = true
		case isPrefix(w, "default", 3):
			o.Defaults = settings.Kind{Show: true, Comment: comment}
		case isPrefix(w, "matches_default", 5):
			o.Matching = settings.Kind{Show: true, Comment: comment}
		case isPrefix(w, "detected", 3):
			o.Detected = settings.Kind{Show: true, Comment: comment}
		case isPrefix(w, "environment", 3):
			o.Environment = settings.Kind{Show: true, Comment: comment}
		case w == "only":
			o.Only = true
		case w == "file":
			o.Only = false
		case isPrefix(w, "duplicate", 3):
			o.Duplicates = true
		case isPrefix(w, "source", 3):
			o.Source = true
		case isPrefix(w, "sort", 3):
			o.Sorted = true
		case isPrefix(w, "upgrade", 3):
			o.HideObsolete = true
		}
	}
	return o
}

// parse reads a command line. note is told of what is wrong without ending it.
func parse(args []string, note func(string)) (*options, error) {
	o := &options{read: read{subsystem: "TOOL"}}
	all := table()
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if !strings.HasPrefix(arg, "-") {
			if !strings.EqualFold(arg, "use") {
				o.names = append(o.names, arg)
				continue
			}
			template := ""
			if i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++
				template = args[i]
			} else {
				note("use should be followed by a category or category:option argument")
			}
			o.names = append(o.names, "^"+template)
			continue
		}
		word, rest, hasColon := strings.Cut(arg[1:], ":")
		two := strings.HasPrefix(word, "-")
		word = strings.TrimPrefix(word, "-")
		found := false
		for _, opt := range all {
			if !isPrefix(word, opt.word, opt.least) || two && !opt.two || hasColon && !opt.colon {
				continue
			}
			value := ""
			if opt.arg {
				if i++; i >= len(args) {
					return nil, &usageError{message: fmt.Sprintf("-%s requires an argument", opt.word), brief: true}
				}
				value = args[i]
			}
			var sub []string
			if hasColon {
				sub = strings.FieldsFunc(rest, func(r rune) bool { return r == ':' || r == ',' })
			}
			if err := opt.do(o, opt.word, value, sub); err != nil {
				return nil, err
			}
			found = true
			break
		}
		if !found {
			message := arg + " is not a valid argument"
			if near := commands.ConfigVal.NearestOption("", word); near != "" {
				message += "; did you mean -" + near + "?"
			}
			return nil, &usageError{message: message}
		}
	}
	return o, nil
}
