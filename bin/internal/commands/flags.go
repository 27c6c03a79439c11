// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Flags are the options of one command, as the package flag reads them.
type Flags struct {
	*flag.FlagSet
	program        *Program
	command        *Command
	stdout, stderr io.Writer
}

// Flags returns the flags of a command, none of them defined yet.
func (p *Program) Flags(name string, stdout, stderr io.Writer) *Flags {
	c := p.must(name)
	fs := flag.NewFlagSet(strings.TrimSpace(p.Name+" "+name), flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	return &Flags{fs, p, c, stdout, stderr}
}

// StatusOf is the exit status that goes with an error of Parse.
func StatusOf(err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return OK
	}
	return Misused
}

// Parse reads a command line, in which options may also stand behind other
// words, as with HTCondor's programs; behind -- there are none. It prints the
// help that was asked for, or what is wrong. It panics if the flags are not those of the table, which only a
// change to the program can bring about.
func (f *Flags) Parse(args []string) error {
	if lacks := f.compare(); lacks != "" {
		panic(lacks)
	}
	err := f.parse(args)
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
		if _, err := io.WriteString(f.stdout, f.program.Help(f.command.Name)); err != nil {
			fmt.Fprintf(f.stderr, "%s: %v\n", f.Name(), err)
			return err
		}
	default:
		fmt.Fprintf(f.stderr, "%s: %s\n%s -help shows the options\n", f.Name(), f.reason(err), f.Name())
	}
	return err
}

// parse reads options wherever they stand and leaves the other words as Args.
func (f *Flags) parse(args []string) error {
	var words []string
	for len(args) > 0 {
		if err := f.FlagSet.Parse(args); err != nil {
			return err
		}
		rest := f.Args()
		if len(rest) == 0 || f.command.OptionsFirst || f.ended(args[:len(args)-len(rest)]) {
			words = append(words, rest...)
			break
		}
		words, args = append(words, rest[0]), rest[1:]
	}
	return f.FlagSet.Parse(append([]string{"--"}, words...))
}

// ended reports whether the last of the words that were read is the -- that ends the
// options, and not the value of one.
func (f *Flags) ended(read []string) bool {
	n := len(read)
	if n == 0 || read[n-1] != "--" {
		return false
	}
	value := false // the next word is the value of the one before
	for _, word := range read[:n-1] {
		if value {
			value = false
			continue
		}
		name := strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-")
		one := f.Lookup(name) // not of -name=value
		value = one != nil && takesValue(one)
	}
	return !value
}

// takesValue reports whether an option is no switch. The package flag tells a switch by
// this method.
func takesValue(one *flag.Flag) bool {
	b, ok := one.Value.(interface{ IsBoolFlag() bool })
	return !ok || !b.IsBoolFlag()
}

// reason is what was wrong with a command line, in our words where those of
// the package flag name no option to use instead.
func (f *Flags) reason(err error) string {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return err.Error()
	}
	return f.program.UnknownOption(f.command.Name, "-"+name).Error()
}

// Misuse says what is wrong with a command line that could be parsed, and
// returns the status to exit with.
func (f *Flags) Misuse(format string, args ...any) int {
	return f.program.Misuse(f.stderr, f.command.Name, format, args...)
}

// compare holds the flags against the table and says how they differ.
func (f *Flags) compare() string {
	var defined, listed []string
	f.VisitAll(func(one *flag.Flag) {
		defined = append(defined, described(one.Name, takesValue(one)))
	})
	for _, o := range f.command.Options {
		if o.Name != "" {
			listed = append(listed, described(o.Name, o.Arg != ""))
			for _, also := range o.Also {
				listed = append(listed, described(also, o.Arg != ""))
			}
		}
	}
	slices.Sort(listed)
	slices.Sort(defined)
	if slices.Equal(defined, listed) {
		return ""
	}
	return fmt.Sprintf("commands: %s has the options %v, and in the table %v", f.Name(), defined, listed)
}

func described(name string, value bool) string {
	if value {
		return name + "="
	}
	return name
}
