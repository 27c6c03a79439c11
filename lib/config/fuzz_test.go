// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

// FuzzParse reads anything as a configuration. It must end, within bounds, and
// what was read must answer.
func FuzzParse(f *testing.F) {
	for _, c := range goldenCases(f, "config.jsonl") {
		f.Add(c.Files["condor_config"])
	}
	f.Add("A @=x\n$(A)\n@x\nA += $(A)\nuse FEATURE:Monitor($(1),(2,[3]))\n")
	f.Fuzz(func(t *testing.T, text string) {
		files := memoryFiles{goldenDir + "/inc1": "B = from inc1\n", "/self": text}
		s, err := Parse("fuzz.conf", text, Options{Subsystem: "STARTD", LocalName: "FOO", Facts: goldenFacts, Seed: 1, ReadFile: files.read, ReadDir: files.readDir})
		if err != nil {
			ps, ok := err.(Problems)
			if !ok || !ps.Failed() || len(ps) > 3*maxProblems {
				t.Fatalf("error %T with %d problems", err, len(ps))
			}
			for _, p := range ps {
				if p.File == "" || p.Message == "" {
					t.Fatalf("a problem without place or words: %+v", p)
				}
			}
			return
		}
		lines := strings.Count(text, "\n") + 1
		for _, name := range s.Names() {
			set, ok := s.Lookup(name)
			if !ok || len(set.Value) > maxValueBytes {
				t.Fatalf("%s: found %v, %d bytes", name, ok, len(set.Value))
			}
			if o := set.Origin; o.Kind == File && o.File == "fuzz.conf" && (o.Line < 1 || o.EndLine < o.Line || o.EndLine > lines || o.Column < 1) {
				t.Fatalf("%s: impossible origin %+v in %d lines", name, o, lines)
			}
		}
		_ = s.Check()
		_ = s.Warnings()
	})
}

// FuzzExpand expands any text. It must end and stay within bounds, the same
// text must give the same result, and text without $ must stay as it is.
func FuzzExpand(f *testing.F) {
	for _, c := range goldenCases(f, "config.jsonl") {
		for line := range strings.Lines(c.Files["condor_config"]) {
			if _, value, ok := strings.Cut(line, "="); ok && strings.Contains(value, "$") {
				f.Add(strings.TrimSpace(value))
			}
		}
	}
	f.Add("$SUBSTR(S,$INT(X),-1)$RANDOM_CHOICE($(L))$INT(X,%*d)$REAL(R,%99999f)$STRING(S,%n)")
	s := mustParse(f, "X = 10\nR = 2.5\nS = some text\nL = a, b , c\nE =\nLOOP = $(POOL)\nPOOL = x$(LOOP)x\nN = X\nP = $(\nQ = )\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := s.Expand(text)
		if len(got) > max(maxValueBytes, len(text)) {
			t.Fatalf("%d bytes", len(got))
		}
		if again, _ := s.Expand(text); again != got {
			t.Fatalf("%q, then %q", got, again)
		}
		if !strings.Contains(text, "$") && (got != text || err != nil) {
			t.Fatalf("%q became %q, %v", text, got, err)
		}
	})
}

// FuzzKnobNames looks any name up.
func FuzzKnobNames(f *testing.F) {
	for k := range allKnobs() {
		f.Add(k.Name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		k, ok := LookupKnob(name)
		if ok == (k.Name == "") {
			t.Fatalf("%q: %v", name, k)
		}
		if near, found := suggest(name); found && near == name {
			t.Fatalf("%q suggested for itself", name)
		}
	})
}
