// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestProblemPlaces shows that a problem points at the offending word, and
// that reading goes on to find the others.
func TestProblemPlaces(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"syntax", "A = 1\nthis is bad\nB = 2\n", []string{`a.conf:2:5: cannot be read as a statement (value "this is bad", want NAME = value)`}},
		{"two lines", "A-B = 1\n  C*D = 2\n", []string{
			`a.conf:1:1: is not a name of a setting (value "A-B", want letters, digits, _ and .)`,
			`a.conf:2:3: is not a name of a setting (value "C*D", want letters, digits, _ and .)`}},
		{"no name", "= 1\n", []string{`a.conf:1:1: the name of a setting is missing (want letters, digits, _ and .)`}},
		{"condition", "if  $(X) == 3\nA = 1\nendif\n", []string{
			`a.conf:1:5: complex conditionals are not supported (value "== 3", want true, false, a number, defined NAME or version >= X.Y.Z)`}},
		{"open if", "\n\nif true\nA = 1\n", []string{`a.conf:3:1: the file ends inside this if (want endif)`}},
		{"stray endif", "endif\nelse\n", []string{`a.conf:1:1: endif without if (want if before it)`, `a.conf:2:1: else without if (want if before it)`}},
		{"template", "use POLICY : Desktop Deskop_Idle\n", []string{`a.conf:1:22: there is no such template (value "POLICY:Deskop_Idle", want POLICY:DESKTOP_IDLE)`}},
		{"category", "use POLICE : Desktop\n", []string{`a.conf:1:4: there is no such category of templates (value "POLICE", want ROLE, FEATURE, POLICY or SECURITY)`}},
		{"arguments", "use FEATURE : PartitionableSlot(1, (50%)\n", []string{`a.conf:1:32: the arguments of a template cannot be read (value "(1, (50%)", want NAME or NAME(arguments))`}},
		{"in a template", "use FEATURE : Monitor(a, b)\n", []string{`a.conf:1:1: FEATURE:Monitor needs more arguments, from use FEATURE:Monitor (a.conf:1)`}},
		{"include", "X = 1\ninclude ifexist : /none\ninclude : /none\n", []string{`a.conf:3:11: cannot include: there is no way to read files here (value "/none")`}},
		{"include word", "include maybe : /none\n", []string{`a.conf:1:9: unexpected word after include (value "maybe", want ifexist, command, or command into FILE)`}},
		{"command", "include command : /bin/true\n", []string{`a.conf:1:19: cannot include: commands are not allowed as a configuration source here (value "/bin/true", want a file)`}},
		{"here-document", "A = 1\nB @=end\nx\n@End\n", []string{`a.conf:2:1: knob B: the value never ends (want a line @end)`}},
		{"continued", "A = 1\nB = 2 \\\n  3\nC! = \\\n  4\n", []string{`a.conf:4:1: is not a name of a setting (value "C!", want letters, digits, _ and .)`}},
		{"word on a continued line", "A = 1\nuse POLICY : \\\n    Desktop \\\n    Nope\n", []string{`a.conf:4:5: there is no such template (value "POLICY:Nope")`}},
		{"error statement", "if ! defined CONDOR_HOST\n  error : set CONDOR_HOST\nendif\nA-B = 1\n", []string{`a.conf:2:11: set CONDOR_HOST`}},
		{"too long", "A = " + strings.Repeat("x", 60) + "\n" + strings.Repeat("A = $(A)$(A)\n", 20), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("a.conf", tt.text, Options{})
			var ps Problems
			if !errors.As(err, &ps) {
				t.Fatalf("got error %v, want Problems", err)
			}
			var got []string
			for _, p := range ps {
				if p.Severity == Error {
					got = append(got, p.Error())
				}
			}
			if tt.want == nil {
				if ps[0].Class != TooMuch || ps[0].Line < 10 {
					t.Errorf("got %v", ps[0])
				}
				return
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestProblemsEnd shows that a file of garbage does not fill the memory with
// problems.
func TestProblemsEnd(t *testing.T) {
	t.Parallel()
	_, err := Parse("a.conf", strings.Repeat("not a statement\n", 100000), Options{})
	var ps Problems
	if !errors.As(err, &ps) || len(ps) != maxProblems+1 || ps[maxProblems].Class != TooMuch {
		t.Errorf("got %d problems", len(ps))
	}
}

// TestReadingWarnings lists what is accepted with a warning.
func TestReadingWarnings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"A : 1\n", `a.conf:1:3: warning: knob A: a colon is an obsolete way to assign (value "A : 1", want A = 1)`},
		{"A more = 1\n", `a.conf:1:3: warning: knob A: words between the name and the operator are ignored (value "more", want A = …)`},
		{"A = 1 \\\n # why\n", `a.conf:2:2: warning: this comment ends the continued value above it (want a \ at its end to go on)`},
		{"use ROLE : Execute,\n", `a.conf:1:19: warning: after a comma at the end the last template is used once more (value "Execute,", want no comma at the end)`},
		{"warning : mind the $(GAP:gap)\n", `a.conf:1:11: warning: mind the gap`},
	} {
		s, err := Parse("a.conf", tt.text, Options{})
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		var got []string
		for _, p := range s.Warnings() {
			got = append(got, p.Error())
		}
		if d := cmp.Diff([]string{tt.want}, got); d != "" {
			t.Errorf("%q: %s", tt.text, d)
		}
	}
}

// TestOrigins follows values to where they were given.
func TestOrigins(t *testing.T) {
	t.Parallel()
	files := memoryFiles{
		"/etc/root":    "A = 1\nB = 1\nB += 2\nB = $(B) 3\nuse POLICY : Desktop\n  C = \\\n   x$(A)$(UPDATE_INTERVAL)\nLOCAL_CONFIG_FILE = /etc/local\nD @=end\n1\n@end\n",
		"/etc/local":   "A = 2\ninclude : /etc/more\nuse POLICY : Hold_If_Memory_Exceeded\nSTARTD_ATTRS += X\n",
		"/etc/more":    "\nE = 1\n",
		"/etc/x/local": "",
	}
	s, err := Load(Options{
		Root: "/etc/root", ReadFile: files.read, ReadDir: files.readDir, Subsystem: "STARTD",
		Env: []string{"_CONDOR_F=1", "HOME=/"}, Overrides: []Override{{Name: "G", Value: "1", Where: "-D G=1"}},
		Facts: map[string]string{"ARCH": "X86_64"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		want    string
		earlier []string
		via     []string
	}{
		{name: "A", want: "/etc/local:1"},
		{name: "B", want: "/etc/root:4", earlier: []string{"/etc/root:2", "/etc/root:3"}},
		{name: "C", want: "/etc/root:6", via: []string{"A", "UPDATE_INTERVAL"}},
		{name: "D", want: "/etc/root:9"},
		{name: "E", want: "/etc/more:2"},
		{name: "F", want: "<environment>"},
		{name: "G", want: "<command line> -D G=1"},
		{name: "ARCH", want: "<detected>"},
		{name: "MINUTE", want: "<default>"},
		{name: "SUSPEND", want: "use POLICY:DESKTOP (/etc/root:5)"},
		{name: "KeyboardBusy", want: "use FEATURE:POLICY_EXPR_FRAGMENTS of POLICY:DESKTOP (/etc/root:5)"},
		{name: "WANT_HOLD", want: "use POLICY:WANT_HOLD_IF of POLICY:HOLD_IF_MEMORY_EXCEEDED (/etc/local:3)"},
		{name: "STARTD_ATTRS", want: "/etc/local:4"},
	} {
		set, ok := s.Lookup(tt.name)
		if !ok {
			t.Errorf("%s is not set", tt.name)
			continue
		}
		if got := set.Origin.String(); got != tt.want {
			t.Errorf("%s comes from %q, want %q", tt.name, got, tt.want)
		}
		var earlier []string
		for _, o := range set.Earlier {
			earlier = append(earlier, o.String())
		}
		if !slices.Equal(earlier, tt.earlier) {
			t.Errorf("%s was built from %q, want %q", tt.name, earlier, tt.earlier)
		}
		if tt.via != nil && !slices.Equal(set.Origin.Via, tt.via) {
			t.Errorf("%s went through %q, want %q", tt.name, set.Origin.Via, tt.via)
		}
	}
	if o := mustLookup(t, s, "D").Origin; o.Line != 9 || o.EndLine != 11 || o.Column != 1 {
		t.Errorf("here-document at %d:%d to %d, want 9:1 to 11", o.Line, o.Column, o.EndLine)
	}
	if o := mustLookup(t, s, "C").Origin; o.Line != 6 || o.EndLine != 7 || o.Column != 3 {
		t.Errorf("continued value at %d:%d to %d, want 6:3 to 7", o.Line, o.Column, o.EndLine)
	}
	if got, want := s.Sources(), []string{"/etc/root", "/etc/local", "/etc/more"}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}

func mustLookup(t *testing.T, s *Snapshot, name string) Setting {
	t.Helper()
	set, ok := s.Lookup(name)
	if !ok {
		t.Fatalf("%s is not set", name)
	}
	return set
}

// TestLocalFiles reads the files of a pool with several platforms.
//
// row: S3-001, S3-002
func TestLocalFiles(t *testing.T) {
	t.Parallel()
	files := memoryFiles{
		"/shared/condor_config":              "ETC = /shared\nAT_FIRST = $(ARCH)-$(OPSYS)-$(HOSTNAME)\nif defined HOSTNAME\nKNOWN = $(ARCH)\nendif\nX = root\nY = root\nLOCAL_CONFIG_FILE = $(ETC)/condor_config.$(ARCH).$(OPSYS), \\\n  $(ETC)/$(HOSTNAME).local\n",
		"/shared/condor_config.X86_64.LINUX": "X = platform\nY = platform\nZ = platform\n",
		"/shared/node7.local":                "Y = host\n",
	}
	s, err := Load(Options{Root: "/shared/condor_config", ReadFile: files.read, ReadDir: files.readDir, Subsystem: "STARTD",
		Facts: map[string]string{"ARCH": "X86_64", "OPSYS": "LINUX", "HOSTNAME": "node7"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"AT_FIRST": "X86_64-LINUX-node7", "KNOWN": "X86_64", "X": "platform", "Y": "host", "Z": "platform"} {
		if got := s.String(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}

// TestConditionalAppend appends only to what was set before.
//
// row: S0-036
func TestConditionalAppend(t *testing.T) {
	t.Parallel()
	const block = "if defined MACHINE_RESOURCE_NAMES\n  MACHINE_RESOURCE_NAMES = $(MACHINE_RESOURCE_NAMES) Cogs actuator\nendif\n"
	for text, want := range map[string]string{
		block: "",
		"MACHINE_RESOURCE_NAMES = gpus\n" + block: "gpus Cogs actuator",
		"MACHINE_RESOURCE_NAMES =\n" + block:      "",
	} {
		if got := mustParse(t, text).String("MACHINE_RESOURCE_NAMES"); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}

// TestEndlessNames shows that names which refer to each other end in an error
// that names them, wherever they are asked for.
func TestEndlessNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, ask, chain string }{
		{"A = $(B)\nB = $(A)\n", "A", "A → B → A"},
		{"A = $(B)\nB = x$(C)\nC = $(B:z)\n", "A", "B → C → B"},
		{"A = $INT(B)\nB = $INT(A)+1\n", "A", "A → B → A"},
		{"A = $(B$(N))\nN = 1\nB1 = -$(A)-\n", "A", "A → B1 → A"},
		{"A = 1\nSTARTD.A = $(B)\nB = $(A)\n", "A", "A → B → A"},
		{"A = $Fn(B)\nB = $Fn(A)\n", "B", "B → A → B"},
	} {
		s := mustParse(t, tt.text)
		set, ok := s.Lookup(tt.ask)
		var ps Problems
		if !ok || !errors.As(set.Err, &ps) || ps[0].Class != Endless || !strings.Contains(ps[0].Message, tt.chain) {
			t.Errorf("%q: got %q, %v, want %s", tt.text, set.Value, set.Err, tt.chain)
		}
		if _, err := s.Int(tt.ask); err == nil {
			t.Errorf("%q: no error from Int", tt.text)
		}
		if _, err := s.Expand("$(" + tt.ask + ")"); err == nil {
			t.Errorf("%q: no error from Expand", tt.text)
		}
		if ps := s.Check(); len(ps) == 0 || ps[0].Line == 0 {
			t.Errorf("%q: Check found %v", tt.text, ps)
		}
	}
}

// TestGrowth shows that a value cannot grow without bound.
func TestGrowth(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("A0 = xxxxxxxxxxxxxxxx\n")
	for i := range 40 {
		fmt.Fprintf(&b, "A%d = $(A%d)$(A%d)\n", i+1, i, i)
	}
	s := mustParse(t, b.String())
	if set := mustLookup(t, s, "A40"); set.Err == nil || len(set.Value) > maxValueBytes {
		t.Errorf("got %d bytes, error %v", len(set.Value), set.Err)
	}
	if got := len(s.String("A10")); got != 16<<10 {
		t.Errorf("A10 has %d bytes", got)
	}
}

// TestNested shows that includes and templates cannot nest without end.
func TestNested(t *testing.T) {
	t.Parallel()
	files := memoryFiles{"/a": "include : /b\n", "/b": "X = $(X)x\ninclude : /a\ninclude : /a\n"}
	_, err := Load(Options{Root: "/a", ReadFile: files.read})
	var ps Problems
	if !errors.As(err, &ps) || len(ps) != 1 || !strings.Contains(ps[0].Message, "nested too deep") || len(ps[0].Within) != maxNestedSource-1 {
		t.Errorf("got %v", err)
	}
}

// TestReload shows that there is no Snapshot with an error.
func TestReload(t *testing.T) {
	t.Parallel()
	if s, err := Parse("a", "A = 1\nbad line\n", Options{}); s != nil || err == nil {
		t.Errorf("got %v, %v", s, err)
	}
	if s, err := Load(Options{Root: "/none"}); s != nil || err == nil {
		t.Errorf("got %v, %v", s, err)
	}
	if _, err := Load(Options{}); err != nil {
		t.Errorf("nothing to read: %v", err)
	}
	if _, err := Load(Options{Overrides: []Override{{Name: "A B", Value: "1"}}}); err == nil {
		t.Error("an override of no name was taken")
	}
}

// TestAutoUse reads templates that a setting asks for.
func TestAutoUse(t *testing.T) {
	t.Parallel()
	s := mustParse(t, "AUTO_USE_POLICY_Always_Run_Jobs = $(WANT)\nWANT = true\nAUTO_USE_POLICY_Desktop = false\n")
	if got := mustLookup(t, s, "CLAIM_WORKLIFE"); got.Value != "1200" || got.Origin.String() != "use POLICY:ALWAYS_RUN_JOBS (test.conf:1)" {
		t.Errorf("got %q from %s", got.Value, got.Origin)
	}
	if got := mustLookup(t, s, "SUSPEND").Value; got != "False" {
		t.Errorf("SUSPEND = %q", got)
	}
	for _, bad := range []string{"AUTO_USE_POLICY_None = true\n", "AUTO_USE_POLICY_Desktop = perhaps\n"} {
		if _, err := Parse("a", bad, Options{}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// TestUserFile reads a person's own file after all others.
func TestUserFile(t *testing.T) {
	t.Parallel()
	files := memoryFiles{"/root": "A = root\nB = root\n", "/home/me/.condor/user_config": "A = me\n"}
	s, err := Load(Options{Root: "/root", Home: "/home/me", ReadFile: files.read})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := s.String("A"), s.String("B"); a != "me" || b != "root" {
		t.Errorf("A = %q, B = %q", a, b)
	}
}

// TestHostile reads texts made to take long. Each must end in a problem or in
// answers, without growing beyond the limits.
func TestHostile(t *testing.T) {
	t.Parallel()
	chain := strings.Builder{}
	for i := range 2000 {
		fmt.Fprintf(&chain, "N%d = $(N%d)\n", i, i+1)
	}
	for _, tt := range []struct {
		name, text string
		class      Class // of a problem in reading, or of a Lookup of A
	}{
		{"functions without end", "A = " + strings.Repeat("$INT(", 20000) + "\n", Other},
		{"dollars", "A = " + strings.Repeat("$", maxValueBytes-10) + "\n", Other},
		{"a value too long", "A = " + strings.Repeat("$", maxValueBytes+10) + "\n", TooMuch},
		{"many macros", "X = y\nA = " + strings.Repeat("$(X)", 2*maxExpandSteps) + "\n", Endless},
		{"a long chain", chain.String() + "A = $(N0)\n", TooMuch},
		{"a name too long", strings.Repeat("A", maxNameBytes+1) + " = 1\n", TooMuch},
		{"a knob-like name", strings.Repeat("SLOT_TYPE_1_", 80) + " = 1\n", Other},
		{"one line", strings.Repeat("A = \\\n", 100000), TooMuch},
		{"deep ifs", strings.Repeat("if true\n", 10000), IfStructure},
		{"growth by templates", "B = 1\n" + strings.Repeat("use POLICY : Hold_If_Memory_Exceeded\n", 5000), TooMuch},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, err := Parse("a.conf", tt.text, Options{Seed: 1})
			if err == nil {
				set, _ := s.Lookup("A")
				if err = set.Err; len(set.Value) > maxValueBytes {
					t.Errorf("a value of %d bytes", len(set.Value))
				}
				_ = s.Warnings()
			}
			var ps Problems
			if errors.As(err, &ps); tt.class == Other != (len(ps) == 0) {
				t.Fatalf("got %v, want class %s", err, tt.class)
			}
			if tt.class != Other && ps[0].Class != tt.class {
				t.Errorf("got class %s (%v), want %s", ps[0].Class, ps[0], tt.class)
			}
		})
	}
}
