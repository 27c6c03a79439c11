// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
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

func goldenCases(t testing.TB, file string) []goldenCase {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", file))
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

// goldenDir stands for ${DIR}. Files live in a map below it.
const goldenDir = "/golden"

func inDir(s string) string { return strings.ReplaceAll(s, "${DIR}", goldenDir) }

// memoryFiles is the file system of one case.
type memoryFiles map[string]string

func (m memoryFiles) isDir(name string) bool {
	for file := range m {
		if strings.HasPrefix(file, name+"/") {
			return true
		}
	}
	return false
}

func (m memoryFiles) read(name string) ([]byte, error) {
	if !path.IsAbs(name) {
		name = goldenDir + "/" + name
	}
	name = path.Clean(name)
	if text, ok := m[name]; ok {
		return []byte(text), nil
	}
	if m.isDir(name) {
		return nil, errors.New("is a directory")
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func (m memoryFiles) readDir(name string) ([]string, error) {
	name = path.Clean(name)
	if !m.isDir(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	var names []string
	for file := range m {
		if rest, ok := strings.CutPrefix(file, name+"/"); ok && !strings.Contains(rest, "/") {
			names = append(names, rest)
		}
	}
	return names, nil
}

// run stands in for the few programs that the cases run.
func (m memoryFiles) run(command string) ([]byte, error) {
	command = strings.Trim(command, `"`)
	words := strings.Fields(command)
	rest := strings.Join(words[1:], " ")
	switch words[0] {
	case "/bin/echo":
		return []byte(rest + "\n"), nil
	case "/bin/false":
		return nil, &ExitError{Status: 1}
	case "/bin/cat":
		return m.read(words[1])
	case "/bin/sh":
		switch words[1] {
		case "-c":
			return []byte(strings.Trim(strings.TrimPrefix(rest, "-c"), " '")[len("echo "):] + "\n"), nil
		case goldenDir + "/script.sh":
			return []byte("S1 = from script " + strings.Join(words[2:], " ") + "\nS2 = two\n"), nil
		case goldenDir + "/fail.sh":
			return []byte("S1 = partial\n"), &ExitError{Status: 3}
		case goldenDir + "/silent.sh":
			return nil, nil
		}
	}
	return nil, &fs.PathError{Op: "exec", Path: words[0], Err: fs.ErrNotExist}
}

// goldenQuery is what a library can answer of a command line: names, raw or
// expanded, and texts to expand.
type goldenQuery struct {
	raw, macro    bool
	verbose       bool
	listing       bool // of the files read
	names         []string
	subsys, local string
	root          string
}

func parseQuery(args []string) (q goldenQuery, ok bool) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-raw":
			q.raw = true
		case a == "-v", a == "-verbose":
			q.verbose = true
		case a == "-config":
			q.listing = true
		case a == "-macro":
			q.macro = true
		case a == "-subsystem" && i+1 < len(args):
			i++
			q.subsys = args[i]
		case a == "-local-name" && i+1 < len(args):
			i++
			q.local = args[i]
		case a == "-root-config" && i+1 < len(args):
			i++
			q.root = args[i]
		case strings.HasPrefix(a, "-"):
			return q, false
		default:
			q.names = append(q.names, inDir(a))
		}
	}
	return q, len(q.names) > 0 || q.listing
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

// answer loads the case and answers its query. classes is the stderr_class of
// the answer, empty for none.
func (c goldenCase) answer(q goldenQuery) (stdout string, classes []string, exit, errorLine int) {
	files := memoryFiles{}
	for name, text := range c.Files {
		files[goldenDir+"/"+name] = inDir(text)
	}
	o := Options{
		Subsystem: q.subsys, LocalName: q.local, Facts: goldenFacts, Seed: 1,
		ReadFile: files.read, ReadDir: files.readDir, RunCommand: files.run,
		WriteFile: func(name string, data []byte) error { files[name] = string(data); return nil },
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		o.Env = append(o.Env, name+"="+inDir(c.Env[name]))
	}
	o.Root = inDir(c.Env["CONDOR_CONFIG"])
	if q.root != "" {
		o.Root = inDir(q.root)
	}
	if o.Root == "ONLY_ENV" {
		o.Root = ""
	}
	s, err := Load(o)
	if err != nil {
		var ps Problems
		errors.As(err, &ps)
		for _, p := range ps {
			words, failed := goldenClass(p)
			classes = append(classes, words...)
			if failed {
				return "", classes, 1, p.outerLine()
			}
		}
		return "", classes, 1, 0
	}
	for _, p := range s.warnings {
		words, _ := goldenClass(p)
		classes = append(classes, words...)
	}
	var out strings.Builder
	if q.listing {
		fmt.Fprintf(&out, "\t%s\n", strings.Join(s.Sources(), "\n\t"))
	}
	for _, name := range q.names {
		if q.macro {
			text, err := s.Expand(name)
			classes = append(classes, expandClasses(err)...)
			fmt.Fprintln(&out, text)
			continue
		}
		set, ok := s.Lookup(name)
		value := set.Value
		if q.raw {
			value = set.Raw
		} else {
			classes = append(classes, expandClasses(set.Err)...)
			ok = ok && value != ""
		}
		ok = ok && !set.Implied
		if !ok {
			classes = append(classes, "not-defined")
			exit = 1
			continue
		}
		if q.verbose {
			out.WriteString(set.verbose(q.raw))
		} else {
			fmt.Fprintln(&out, value)
		}
	}
	return out.String(), slices.Compact(classes), exit, 0
}

// verbose is what condor_config_val -verbose prints about a setting.
func (set Setting) verbose(raw bool) string {
	show := func(text string) string {
		if strings.Contains(text, "\n") {
			return set.Name + " @=end\n   " + strings.ReplaceAll(text, "\n", "\n   ") + "\n@end\n"
		}
		return set.Name + " = " + text + "\n"
	}
	at := set.Origin.Location()
	if raw {
		return show(set.Raw) + " # at: " + at + "\n\n"
	}
	text := show(set.Value) + " # at: " + at + "\n # raw: "
	if strings.Contains(set.Raw, "\n") {
		text += "\n #   "
	}
	return text + set.Name + " = " + strings.ReplaceAll(set.Raw, "\n", "\n #   ") + "\n\n"
}

// goldenClass says in the words of the vectors what kind of problem p is, and
// whether the original stops at it. What is wrong within an included file or a
// template, the original reports once more where that was asked for.
func goldenClass(p *Problem) (words []string, stops bool) {
	stops = p.Severity == Error
	word := p.Class.String()
	switch p.Class {
	case Suspicious, NearMiss, ObsoleteName:
		return nil, false
	case ColonAssignment:
		word += "-" + p.Severity.String()
	case Statement:
		word = p.Severity.String() + "-" + word
	case BadValue:
		stops = false
	case UnclosedIf:
		return []string{"error-statement", "if-structure"}, true
	}
	words = []string{word}
	if !stops {
		return words, false
	}
	switch {
	case len(p.Within) == 0:
		return words, true
	case p.Within[0].Kind == Template:
		return append(words, "use"), true
	case p.Class == Syntax || p.Class == BadInclude:
		return []string{"include"}, true
	}
	return append(words, "include"), true
}

// outerLine is the line of the outermost file that is being read.
func (p *Problem) outerLine() int {
	if len(p.Within) > 0 {
		return p.Within[0].EndLine
	}
	return p.EndLine
}

func expandClasses(err error) []string {
	var ps Problems
	errors.As(err, &ps)
	var words []string
	for _, p := range ps {
		words = append(words, p.Class.String())
	}
	return slices.Compact(words)
}

// wholeGroups are the groups in which every case is answered as in the vectors.
var wholeGroups = []string{
	"config.assign", "config.append", "config.continue", "config.ref", "config.func", "config.heredoc", "config.if", "config.include",
	"config.errstmt", "config.malformed", "config.root", "config.local", "config.subsys", "config.env", "config.predef", "config.use",
	"config.ep", "config.quirk", "config.shape",
}

// TestGolden answers the vectors of config.jsonl. Cases whose query only the
// command line tool can answer (listings, dumps, checks) are left to it.
func TestGolden(t *testing.T) {
	t.Parallel()
	type count struct{ passed, failed, tool int }
	counts := map[string]*count{}
	for _, c := range append(goldenCases(t, "config.jsonl"), goldenCases(t, "config_shape.jsonl")...) {
		n := counts[c.Group]
		if n == nil {
			n = &count{}
			counts[c.Group] = n
		}
		q, ok := parseQuery(c.Query)
		if !ok {
			n.tool++
			continue
		}
		if diff := c.diff(q); diff == "" {
			n.passed++
		} else if n.failed++; slices.Contains(wholeGroups, c.Group) {
			t.Errorf("%s %q asked %q:\n%s", c.ID, c.Files["condor_config"], c.Query, diff)
		}
	}
	for _, group := range wholeGroups {
		if n := counts[group]; n == nil || n.passed == 0 {
			t.Errorf("group %s has no case", group)
		}
	}
	for _, group := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%-16s %+v", group, *counts[group])
	}
}

// diff says how the answer differs from the vector.
func (c goldenCase) diff(q goldenQuery) string {
	stdout, classes, exit, line := c.answer(q)
	class := strings.Join(classes, "+")
	switch c.StderrClass {
	case "hang", "crash":
		// The original gives no answer. Ours must be an error, and must come.
		if !strings.HasPrefix(class, "endless") {
			return fmt.Sprintf("got %q %s, want an error of class endless", stdout, class)
		}
		return ""
	case "none", "listing":
		if class != "" {
			return "got class " + class + ", want none"
		}
	default:
		if class != c.StderrClass {
			return "got class " + class + ", want " + c.StderrClass
		}
	}
	if c.Pattern != "" && !regexp.MustCompile(c.Pattern).MatchString(stdout) || c.Pattern == "" && stdout != inDir(c.Stdout) {
		return fmt.Sprintf("got  %q\nwant %q%s", stdout, inDir(c.Stdout), c.Pattern)
	}
	if exit != *c.Exit {
		return fmt.Sprintf("got exit %d, want %d", exit, *c.Exit)
	}
	if c.ErrorLine != 0 && line != c.ErrorLine {
		return fmt.Sprintf("got error line %d, want %d", line, c.ErrorLine)
	}
	return ""
}
