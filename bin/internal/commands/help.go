// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/spelling"
)

// width is that of help on a terminal.
const width = 79

// Help is what -help of a command prints. It panics for a name that is not in
// the table: the name is written in the program.
func (p *Program) Help(name string) string {
	c := p.must(name)
	var b strings.Builder
	b.WriteString(p.Usage(name))
	if c.Does != "" {
		b.WriteString("\n" + wrap(c.Does, 0, width))
	}
	column := 0
	for _, o := range c.Options {
		if n := len(o.shown()); n <= 22 {
			column = max(column, n)
		}
	}
	for i, o := range c.Options {
		if o.Name == "" {
			b.WriteString("\n" + wrap(o.Text, 0, width))
			continue
		}
		if i == 0 {
			b.WriteByte('\n')
		}
		b.WriteString(o.line(column))
	}
	if len(c.Statuses) > 0 {
		b.WriteString("\nExit status:\n")
		for _, s := range c.Statuses {
			text := wrap(s.Says, 6, width)
			fmt.Fprintf(&b, "  %2d  %s", s.Code, text[6:])
		}
	}
	return b.String()
}

// shown is an option as it is written, with the other ways to write it.
func (o Option) shown() string {
	s := "-" + o.Name
	for _, also := range o.Also {
		s += ", -" + also
	}
	switch {
	case o.Arg == "":
		return s
	case strings.HasPrefix(o.Arg, ":"), strings.HasPrefix(o.Arg, "[:"):
		return s + o.Arg
	}
	return s + " " + o.Arg
}

func (o Option) line(column int) string {
	indent := column + 4
	text := wrap(o.Text, indent, width)
	if s := o.shown(); len(s) <= column {
		return fmt.Sprintf("  %-*s  %s", column, s, text[indent:])
	}
	return "  " + o.shown() + "\n" + text
}

// Usage is the ways to write a command, which follow a misuse of it.
func (p *Program) Usage(name string) string {
	c := p.must(name)
	var b strings.Builder
	head := "Usage: "
	for _, s := range c.Synopsis {
		line := strings.TrimSpace(p.Name + " " + c.Name + " ")
		indent := len(head) + len(line) + 1
		text := wrap(s, min(indent, 30), width)
		b.WriteString(head + line)
		if rest := text[min(indent, 30):]; rest != "\n" {
			b.WriteString(" " + rest)
		} else {
			b.WriteByte('\n')
		}
		head = "       "
	}
	return b.String()
}

// Overview is what a program of several commands prints about itself.
func (p *Program) Overview() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s COMMAND [OPTIONS]\n\n%s\n", p.Name, wrap(sentence(p.Does), 0, width))
	column := 0
	for _, c := range p.Commands {
		column = max(column, len(c.Name))
	}
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "  %-*s  %s\n", column, c.Name, c.Brief)
	}
	fmt.Fprintf(&b, "\n%s COMMAND -help shows the options and the exit status of a command.\n%s -version prints the version.\n", p.Name, p.Name)
	if p.More != "" {
		b.WriteString("\n" + wrap(p.More, 0, width))
	}
	return b.String()
}

// Group is the overview of the commands whose names begin with a word.
func (p *Program) Group(word string) string {
	var b strings.Builder
	for i, name := range p.group(word) {
		usage := p.Usage(name)
		if i > 0 {
			usage = "       " + strings.TrimPrefix(usage, "Usage: ")
		}
		b.WriteString(usage)
	}
	fmt.Fprintf(&b, "\n%s %s COMMAND -help shows the options of a command.\n", p.Name, word)
	return b.String()
}

func (p *Program) group(word string) []string {
	var names []string
	for _, c := range p.Commands {
		if strings.HasPrefix(c.Name, word+" ") {
			names = append(names, c.Name)
		}
	}
	return names
}

// Unknown says that a program or a group of its commands has no such command,
// with the one that was probably meant, and returns the status to exit with.
func (p *Program) Unknown(stderr io.Writer, group, word string) int {
	var words []string
	for _, c := range p.Commands {
		first, second, _ := strings.Cut(c.Name, " ")
		switch {
		case group == "" && !slices.Contains(words, first):
			words = append(words, first)
		case group == first && second != "":
			words = append(words, second)
		}
	}
	who := strings.TrimSpace(p.Name + " " + group)
	if near := spelling.Nearest(word, words); near != "" {
		fmt.Fprintf(stderr, "%s: unknown command %q; did you mean %s?\n", who, word, near)
	} else {
		fmt.Fprintf(stderr, "%s: unknown command %q; there are %s\n", who, word, strings.Join(words, ", "))
	}
	fmt.Fprintf(stderr, "%s -help shows them\n", who)
	return Misused
}

// OptionNames are the options of a command, without their dashes.
func (p *Program) OptionNames(name string) []string {
	var names []string
	for _, o := range p.must(name).Options {
		if o.Name != "" {
			names = append(append(names, o.Name), o.Also...)
		}
	}
	return names
}

// NearestOption is the option of a command that was probably meant, "" if none
// is near.
func (p *Program) NearestOption(name, word string) string {
	return spelling.Nearest(strings.TrimLeft(word, "-"), p.OptionNames(name))
}

// UnknownOption is the error of an option that a command does not have.
func (p *Program) UnknownOption(name, word string) error {
	if near := p.NearestOption(name, word); near != "" {
		return fmt.Errorf("unknown option %s; did you mean -%s?", word, near)
	}
	return fmt.Errorf("unknown option %s", word)
}

// Misuse says what is wrong with a command line, and how it is written, and
// returns the status to exit with.
func (p *Program) Misuse(stderr io.Writer, name, format string, args ...any) int {
	who := strings.TrimSpace(p.Name + " " + name)
	fmt.Fprintf(stderr, "%s: %s\n\n%s%s -help says more\n", who, fmt.Sprintf(format, args...), p.Usage(name), who)
	return Misused
}

func (p *Program) must(name string) *Command {
	c := p.find(name)
	if c == nil {
		panic("commands: " + p.Name + " has no command " + name)
	}
	return c
}

// wrap breaks paragraphs into lines. A line of text that begins with a space
// stays as it is.
func wrap(text string, indent, width int) string {
	var b strings.Builder
	pad := strings.Repeat(" ", indent)
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, " ") {
			b.WriteString(pad + line + "\n")
			continue
		}
		at := 0
		for word := range pieces(line) {
			switch {
			case at > 0 && indent+at+1+len(word) > width:
				b.WriteByte('\n')
				at = 0
				fallthrough
			case at == 0:
				b.WriteString(pad + word)
				at = len(word)
			default:
				b.WriteString(" " + word)
				at += 1 + len(word)
			}
		}
		if at == 0 {
			b.WriteString(pad)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// pieces yields the words of a line. What stands in brackets is one.
func pieces(line string) func(func(string) bool) {
	return func(yield func(string) bool) {
		depth, begin := 0, 0
		for i, r := range line {
			switch r {
			case '[':
				depth++
			case ']':
				depth--
			case ' ':
				if depth > 0 {
					continue
				}
				if begin < i && !yield(line[begin:i]) {
					return
				}
				begin = i + 1
			}
		}
		if begin < len(line) {
			yield(line[begin:])
		}
	}
}

// sentence makes one of a text that lacks capital and stop.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
