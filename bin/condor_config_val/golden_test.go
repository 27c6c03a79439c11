// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/platform/confio"
)

// goldenCase is one line of config.jsonl: files, an environment, and what
// condor_config_val said about them.
type goldenCase struct {
	ID          string
	Group       string
	Files       map[string]string
	Env         map[string]string
	Query       []string
	Exit        *int
	Stdout      string
	Pattern     string `json:"stdout_pattern"`
	StderrClass string `json:"stderr_class"`
	ErrorLine   int    `json:"error_line"`
}

// goldenCases reads the vectors that lie beside the library.
func goldenCases(t *testing.T, file string) []goldenCase {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "lib", "config", "testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var cases []goldenCase
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var c goldenCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
	return cases
}

// goldenFacts are facts of a machine. Answers that depend on them stand in the
// shape file and are only compared with a pattern.
var goldenFacts = map[string]string{
	"ARCH": "X86_64", "UNAME_ARCH": "x86_64", "OPSYS": "LINUX", "OPSYSVER": "1300", "OPSYSMAJORVER": "13", "OPSYSANDVER": "Debian13",
	"OPSYSNAME": "Debian", "OPSYSSHORTNAME": "Debian", "OPSYSLONGNAME": "Debian GNU/Linux 13 (trixie)", "OPSYSLEGACY": "LINUX",
	"UNAME_OPSYS": "Linux", "UTSNAME_SYSNAME": "Linux", "UTSNAME_MACHINE": "x86_64",
	"HOSTNAME": "host", "FULL_HOSTNAME": "host.example.org", "IP_ADDRESS": "192.0.2.1", "IPV4_ADDRESS": "192.0.2.1",
	"DETECTED_CPUS": "8", "DETECTED_CPUS_LIMIT": "8", "DETECTED_CORES": "8", "DETECTED_PHYSICAL_CPUS": "4", "DETECTED_MEMORY": "16000",
	"PID": "17", "PPID": "16", "REAL_UID": "0", "REAL_GID": "0", "USERNAME": "root", "CondorIsAdmin": "true", "TILDE": "/var/lib/condor",
}

// testSystem is a system with files below dir, which is the working directory.
func testSystem(dir string, env []string, stdout, stderr *bytes.Buffer) system {
	at := func(path string) string {
		if filepath.IsAbs(path) || strings.HasPrefix(path, "/") {
			return path
		}
		return filepath.Join(dir, path)
	}
	return system{
		stdout: stdout, stderr: stderr, env: env, tilde: "/var/lib/condor",
		readFile:   func(path string) ([]byte, error) { return os.ReadFile(at(path)) },
		readDir:    func(path string) ([]string, error) { return confio.ReadDir(at(path)) },
		writeFile:  func(path string, data []byte) error { return confio.WriteFile(at(path), data) },
		open:       func(path string) (bool, error) { return confio.IsDir(at(path)) },
		runCommand: confio.RunCommand,
		facts:      func(*config.Snapshot) (map[string]string, bool) { return goldenFacts, false },
	}
}

// ask writes the files of the case and runs the tool on them.
func (c *goldenCase) ask(t *testing.T) (out string, class string, exit, errorLine int) {
	dir := t.TempDir()
	in := func(s string) string { return strings.ReplaceAll(s, "${DIR}", dir) }
	for name, text := range c.Files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(in(text)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		env = append(env, name+"="+in(c.Env[name]))
	}
	var args []string
	for _, q := range c.Query {
		args = append(args, in(q))
	}
	var stdout, stderr bytes.Buffer
	r := &run{system: testSystem(dir, env, &stdout, &stderr)}
	exit = r.main(args)

	var words []string
	stopped := false
	for _, p := range r.Reported {
		class, stops := goldenClass(p)
		words = append(words, class...)
		if stops {
			stopped = true
			errorLine = p.EndLine
			if len(p.Within) > 0 {
				errorLine = p.Within[0].EndLine
			}
			break
		}
	}
	text := stderr.String()
	if strings.Contains(text, "Not defined:") {
		words = append(words, "not-defined")
	}
	class = strings.Join(slices.Compact(words), "+")
	switch {
	case strings.Contains(text, "Usage:"), strings.Contains(text, "use should be followed"):
		class = "usage"
	case class == "" && strings.Contains(text, "Configuration source:"):
		class = "listing"
	case class == "" && text == "":
		class = "none"
	case class == "":
		class = "unexpected: " + text
	}
	if strings.Contains(text, "Configuration Error Line") != stopped {
		t.Errorf("%s: error line %d, stderr %s", c.ID, errorLine, text)
	}
	return strings.ReplaceAll(stdout.String(), dir, "${DIR}"), class, exit, errorLine
}

// goldenClass says in the words of the vectors what kind of problem p is, and
// whether the original stops at it. What is wrong within an included file or a
// template, the original reports once more where that was asked for.
func goldenClass(p *config.Problem) (words []string, stops bool) {
	stops = p.Severity == config.Error
	word := p.Class.String()
	switch p.Class {
	case config.Suspicious:
		return nil, false // ours alone, and only shown beside an error
	case config.ColonAssignment:
		word += "-" + p.Severity.String()
	case config.Statement:
		word = p.Severity.String() + "-" + word
	case config.BadValue, config.BadFunction, config.Endless:
		stops = false
	case config.RootMissing:
		return []string{word}, false
	case config.UnclosedIf:
		return []string{"error-statement", "if-structure"}, true
	}
	words = []string{word}
	if !stops {
		return words, false
	}
	switch {
	case len(p.Within) == 0:
		return words, true
	case p.Within[0].Kind == config.Template:
		return append(words, "use"), true
	case p.Class == config.Syntax || p.Class == config.BadInclude:
		return []string{"include"}, true
	}
	return append(words, "include"), true
}

// needsCommands reports whether the case runs a program of Unix.
func (c *goldenCase) needsCommands() bool {
	for _, texts := range []map[string]string{c.Files, c.Env} {
		for _, text := range texts {
			if strings.Contains(text, "/bin/") {
				return true
			}
		}
	}
	return false
}

// endless are the recorded cases to which the original gives no answer. Ours
// must be an error that says why, and must come.
var endless = map[string]string{
	"config.func-b649d667f6":  "a choice among one: the original ends with a signal",
	"config.quirk-753467a0f0": "two names that refer to each other: the original never ends",
}

// TestGolden answers every vector: exit status, standard output and the class
// of what is complained about.
func TestGolden(t *testing.T) {
	t.Parallel()
	cases := append(goldenCases(t, "config.jsonl"), goldenCases(t, "config_shape.jsonl")...)
	if len(cases) < 900 {
		t.Fatalf("only %d cases", len(cases))
	}
	asked := 0
	for _, c := range cases {
		if c.needsCommands() && runtime.GOOS != "linux" {
			continue
		}
		asked++
		if diff := c.diff(t); diff != "" {
			t.Errorf("%s asked %q:\n%s", c.ID, c.Query, diff)
		}
	}
	t.Logf("%d cases", asked)
}

func (c *goldenCase) diff(t *testing.T) string {
	stdout, class, exit, line := c.ask(t)
	if c.StderrClass == "hang" || c.StderrClass == "crash" {
		if endless[c.ID] == "" || !strings.HasPrefix(class, "endless") && class != "macro-function" || exit != exitFailed || stdout != "" {
			return fmt.Sprintf("got %q, %s, exit %d; want an error and no answer", stdout, class, exit)
		}
		return ""
	}
	if class != c.StderrClass {
		return "got class " + class + ", want " + c.StderrClass
	}
	want := strings.NewReplacer("${FULL_HOSTNAME}", goldenFacts["FULL_HOSTNAME"], "${CONDOR_VERSION}", commands.CondorVersion).Replace(c.Stdout)
	if c.Pattern != "" && !regexp.MustCompile(c.Pattern).MatchString(stdout) || c.Pattern == "" && stdout != want {
		return fmt.Sprintf("got  %q\nwant %q%s", stdout, want, c.Pattern)
	}
	if exit != *c.Exit {
		return fmt.Sprintf("got exit %d, want %d", exit, *c.Exit)
	}
	if c.ErrorLine != 0 && line != c.ErrorLine {
		return fmt.Sprintf("got error line %d, want %d", line, c.ErrorLine)
	}
	return ""
}
