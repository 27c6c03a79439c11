// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

var update = flag.Bool("update", false, "write docs/commands.md")

// TestPage compares the page with the table.
func TestPage(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "commands.md")
	want := Page()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/commands.md is not what go generate ./bin/internal/commands makes (%v)", err)
	}
}

// TestTable holds what makes help readable: it fits a terminal, every option is
// there once and explained, and a status says something.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, p := range All() {
		for _, c := range p.Commands {
			who := strings.TrimSpace(p.Name + " " + c.Name)
			for line := range strings.Lines(p.Help(c.Name)) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s: a line of %d letters: %q", who, n, line)
				}
			}
			seen := make(map[string]bool)
			for _, o := range c.Options {
				for _, name := range append([]string{o.Name}, o.Also...) {
					if name != "" && seen[name] || o.Text == "" || strings.HasPrefix(name, "-") {
						t.Errorf("%s: -%s stands there twice, or without a text", who, name)
					}
					seen[name] = true
				}
			}
			last := -1
			for _, s := range c.Statuses {
				if s.Code <= last || s.Says == "" {
					t.Errorf("%s: status %d: %q", who, s.Code, s.Says)
				}
				last = s.Code
			}
			if last < 0 {
				t.Errorf("%s has no exit status", who)
			}
		}
	}
}

// small is a program to parse for.
var small = Program{Name: "tool", Commands: []Command{{
	Name: "run", Synopsis: []string{"[-json] [-limit N] FILE"}, Does: "Run.", Options: []Option{{Name: "json", Text: "so"}, {Name: "limit", Arg: "N", Text: "so many"}},
	Statuses: []Status{{0, "done"}},
}, {Name: "pair one", Synopsis: []string{""}}, {Name: "pair two", Synopsis: []string{"X"}}}}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args, out, errOut string
		status            int
	}{
		{"-json -limit 3 x", "", "", OK},
		{"x -json", "", "", OK},
		{"x -limit 3 y -json z", "", "", OK},
		{"x -jsno", "", "tool run: unknown option -jsno; did you mean -json?\ntool run -help shows the options\n", Misused},
		{"x -help", small.Help("run"), "", OK},
		{"-- -x", "", "", OK},
		{"-help", "Usage: tool run [-json] [-limit N] FILE\n\nRun.\n\n  -json     so\n  -limit N  so many\n\nExit status:\n   0  done\n", "", OK},
		{"-h", small.Help("run"), "", OK},
		{"--help", small.Help("run"), "", OK},
		{"-jsno", "", "tool run: unknown option -jsno; did you mean -json?\ntool run -help shows the options\n", Misused},
		{"-x", "", "tool run: unknown option -x\ntool run -help shows the options\n", Misused},
		{"-limit x", "", "tool run: invalid value \"x\" for flag -limit: parse error\ntool run -help shows the options\n", Misused},
		{"-limit", "", "tool run: flag needs an argument: -limit\ntool run -help shows the options\n", Misused},
	} {
		var out, errOut bytes.Buffer
		fs := small.Flags("run", &out, &errOut)
		fs.Bool("json", false, "")
		fs.Int("limit", 0, "")
		err := fs.Parse(strings.Fields(tt.args))
		if out.String() != tt.out || errOut.String() != tt.errOut || StatusOf(err) != tt.status {
			t.Errorf("%s: %v\n%q\n%q", tt.args, err, out.String(), errOut.String())
		}
	}
	for _, tt := range []struct{ args, want string }{
		{"", "[] false 0"}, {"x", "[x] false 0"}, {"x -json", "[x] true 0"}, {"x -limit 3 y -json z", "[x y z] true 3"}, {"- -json -", "[- -] true 0"},
		{"-json -- -limit 3", "[-limit 3] true 0"}, {"x -- y -json", "[x y -json] false 0"}, {"--", "[] false 0"},
	} {
		fs := small.Flags("run", io.Discard, io.Discard)
		asJSON, limit := fs.Bool("json", false, ""), fs.Int("limit", 0, "")
		err := fs.Parse(strings.Fields(tt.args))
		if got := fmt.Sprint(fs.Args(), *asJSON, *limit); err != nil || got != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.args, got, err, tt.want)
		}
	}
	first := small
	first.Commands = []Command{{Name: "run", OptionsFirst: true, Options: small.Commands[0].Options}}
	fs := first.Flags("run", io.Discard, io.Discard)
	fs.Bool("json", false, "")
	fs.Int("limit", 0, "")
	if err := fs.Parse([]string{"-json", "1", "-1"}); err != nil || fmt.Sprint(fs.Args()) != "[1 -1]" {
		t.Errorf("%v, %v", fs.Args(), err)
	}
	if got := StatusOf(errors.New("x")); got != Misused {
		t.Error(got)
	}
}

// TestDashesAsValue: -- behind an option that takes a value is that value, and does not
// end the options.
func TestDashesAsValue(t *testing.T) {
	t.Parallel()
	p := Program{Name: "tool", Commands: []Command{{Name: "run", Options: []Option{{Name: "json", Text: "so"}, {Name: "name", Arg: "S", Text: "so called"}}}}}
	for _, tt := range []struct{ args, want string }{
		{"-name -- x -json", "[x] true --"}, {"-name=-- -- -json", "[-json] false --"}, {"-json -- --", "[--] true "}, {"-json -- x -name y", "[x -name y] true "},
		{"x -name -- y -json", "[x y] true --"}, {"--name -- -- -json", "[-json] false --"},
	} {
		fs := p.Flags("run", io.Discard, io.Discard)
		asJSON, name := fs.Bool("json", false, ""), fs.String("name", "", "")
		err := fs.Parse(strings.Fields(tt.args))
		if got := fmt.Sprint(fs.Args(), *asJSON, " ", *name); err != nil || got != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.args, got, err, tt.want)
		}
	}
}

// A flag without a row, or a row without a flag, is found as soon as the
// command is used.
func TestUnlisted(t *testing.T) {
	t.Parallel()
	for _, define := range []func(*Flags){
		func(fs *Flags) { fs.Bool("json", false, "") },
		func(fs *Flags) { fs.Bool("json", false, ""); fs.Bool("limit", false, "") },
		func(fs *Flags) { fs.Bool("json", false, ""); fs.Int("limit", 0, ""); fs.Bool("more", false, "") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("not noticed")
				}
			}()
			fs := small.Flags("run", nil, nil)
			define(fs)
			_ = fs.Parse(nil)
		}()
	}
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ group, word, want string }{
		{"", "rnu", "tool: unknown command \"rnu\"; did you mean run?\ntool -help shows them\n"},
		{"", "fly", "tool: unknown command \"fly\"; there are run, pair\ntool -help shows them\n"},
		{"pair", "tow", "tool pair: unknown command \"tow\"; did you mean two?\ntool pair -help shows them\n"},
	} {
		var b bytes.Buffer
		if status := small.Unknown(&b, tt.group, tt.word); status != Misused || b.String() != tt.want {
			t.Errorf("%d %q", status, b.String())
		}
	}
	if got, want := small.Group("pair"), "Usage: tool pair one\n       tool pair two X\n\ntool pair COMMAND -help shows the options of a command.\n"; got != want {
		t.Errorf("%q", got)
	}
}

func TestPlatform(t *testing.T) {
	t.Parallel()
	for _, tt := range [][3]string{{"amd64", "linux", "X86_64-Linux"}, {"arm64", "linux", "aarch64-Linux"}, {"amd64", "windows", "X86_64-Windows"}, {"riscv64", "plan9", "riscv64-plan9"}} {
		if got := platform(tt[0], tt[1]); got != "$CondorPlatform: "+tt[2]+" $" {
			t.Error(got)
		}
	}
	if behavesAs != config.Version {
		t.Errorf("the programs say that they behave as %s, the configuration language says %s", behavesAs, config.Version)
	}
	if want := "execpoint-" + Version; protocol.Program != want {
		t.Errorf("startds and starters say that they are %s, this is %s", protocol.Program, want)
	}
	var b bytes.Buffer
	if PrintVersion(&b) != OK || !strings.HasPrefix(b.String(), CondorVersion+"\n$CondorPlatform: ") {
		t.Errorf("%q", b.String())
	}
}
