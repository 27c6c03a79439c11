// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Where the parts of a source tree are.
const (
	testsFolder   = "src/condor_tests"
	scriptsFolder = "src/condor_scripts"
	testsList     = testsFolder + "/CMakeLists.txt"
	driver        = testsFolder + "/ctest_driver.py"
)

// pytestFiles are what every test for pytest needs beside it.
var pytestFiles = []string{testsFolder + "/ornithology", testsFolder + "/conftest.py"}

// perlFiles are the scripts and modules that tests in Perl share: the first are
// with the scripts, and every module of the tests is wanted too.
var perlFiles = []string{"run_test.pl", "Condor.pm", "CondorTest.pm", "CondorPersonal.pm", "CondorUtils.pm"}

// sourceTree is HTCondor's, of which only two folders are read.
type sourceTree struct {
	Dir     string
	depends map[string][]string // of the tests that name some
}

// openSource reads what the tests of a tree depend on.
func openSource(dir string) (sourceTree, error) {
	for _, name := range []string{driver, path.Join(scriptsFolder, perlFiles[0])} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return sourceTree{}, fmt.Errorf("%s is not an HTCondor source tree with tests: %w", dir, err)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, testsList))
	if err != nil {
		return sourceTree{}, err
	}
	return sourceTree{Dir: dir, depends: dependencies(string(b))}, nil
}

// test finds the file of a test, relative to the tree.
func (s sourceTree) test(name string) (string, error) {
	for _, suffix := range []string{".run", ".py"} {
		file := path.Join(testsFolder, name+suffix)
		if _, err := os.Stat(filepath.Join(s.Dir, file)); err == nil {
			return file, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("%s has no test %s", s.Dir, name)
}

// wants are the files that a test wants beside it, as the tree names them and
// the list adds to them.
func (s sourceTree) wants(t peerTest) ([]string, error) {
	file, err := s.test(t.Name)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(s.depends[t.Name], t.files())
	if strings.HasSuffix(file, ".py") {
		all = append(all, pytestFiles...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// dependencies are what the calls of condor_pl_test in a CMake file name after
// DEPENDS, by the name of the test. Where a test is named more than once, for
// other systems say, it has all of them.
func dependencies(text string) map[string][]string {
	all := map[string][]string{}
	for _, args := range calls(text, "condor_pl_test") {
		if len(args) == 0 {
			continue
		}
		i := slices.Index(args, "DEPENDS")
		if i < 0 {
			continue
		}
		for _, arg := range args[i+1:] {
			for entry := range strings.SplitSeq(arg, ";") {
				if entry != "" && !slices.Contains(all[args[0]], entry) {
					all[args[0]] = append(all[args[0]], entry)
				}
			}
		}
	}
	return all
}

// calls are the arguments of each call of a command in a CMake file. Comments
// are no calls.
func calls(text, command string) [][]string {
	var all [][]string
	for text != "" {
		word, rest := token(text)
		if word != command {
			text = rest
			continue
		}
		if word, text = token(rest); word != "(" {
			continue
		}
		var args []string
		for depth := 1; depth > 0 && text != ""; {
			switch word, text = token(text); word {
			case "(":
				depth++
			case ")":
				depth--
			case "":
			default:
				args = append(args, strings.TrimPrefix(word, `"`))
			}
		}
		all = append(all, args)
	}
	return all
}

// token cuts the next word, bracket or quoted text off a CMake text. Quoted text
// keeps the quote before it, so that it is never taken for a command.
func token(text string) (word, rest string) {
	for text != "" {
		switch {
		case strings.ContainsRune(" \t\r\n", rune(text[0])):
			text = text[1:]
		case text[0] == '#':
			_, text, _ = strings.Cut(text, "\n")
		case text[0] == '(' || text[0] == ')':
			return text[:1], text[1:]
		case text[0] == '"':
			for i := 1; i < len(text); i++ {
				switch text[i] {
				case '\\':
					i++
				case '"':
					return text[:i], text[i+1:]
				}
			}
			return text, ""
		default:
			end := strings.IndexAny(text, " \t\r\n()#\"")
			if end < 0 {
				end = len(text)
			}
			return text[:end], text[end:]
		}
	}
	return "", ""
}

// standIn makes what a tree has only after it was built: a file with the size
// of a generated one, and a job of our own in place of a compiled one. It
// returns the file to give to the driver.
func standIn(dir, entry string) (string, error) {
	name := strings.TrimSuffix(path.Base(entry), ">")
	if _, target, ok := strings.Cut(name, ":"); ok {
		name = target
	}
	switch name {
	case "param_info_tables.h":
		file := filepath.Join(dir, name)
		return file, os.WriteFile(file, []byte(strings.Repeat("nothing in particular\n", 50000)), 0o644)
	case "job_core_bigenv":
		b, err := os.ReadFile(filepath.Join("testdata", "bigenv.sh"))
		if err != nil {
			return "", err
		}
		file := filepath.Join(dir, name+".exe")
		return file, os.WriteFile(file, b, 0o755)
	}
	return "", fmt.Errorf("it needs %s, which only a built tree has", entry)
}

// built says whether an entry is something that only a built tree has.
func built(entry string) bool { return strings.Contains(entry, "$<") || strings.Contains(entry, "${") }

func TestDependencies(t *testing.T) {
	t.Parallel()
	const text = `# condor_pl_test(no "a comment" "x" DEPENDS y)
if (LINUX)
	condor_pl_test( one "words (and more)" "quick;ctest" CTEST DEPENDS "src/a;src/b")
	condor_pl_test (two "it says \"hello\"" "quick" CTEST)
	message("condor_pl_test(three)") # condor_pl_test(four "" DEPENDS z)
else()
	condor_pl_test(one "again" "quick;ctest" CTEST
		DEPENDS src/b;src/c)
	condor_pl_test(five "" "" DEPENDS "$<TARGET_FILE:five_exe>;${CMAKE_BINARY_DIR}/src/h.h")
endif()
condor_pl_test(six`
	got := dependencies(text)
	want := map[string]string{"one": "src/a src/b src/c", "five": "$<TARGET_FILE:five_exe> ${CMAKE_BINARY_DIR}/src/h.h"}
	for name, entries := range want {
		if have := strings.Join(got[name], " "); have != entries {
			t.Errorf("%s: got %q, want %q", name, have, entries)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %q", got)
	}
	for _, entry := range got["five"] {
		if !built(entry) {
			t.Errorf("%s is taken for a file of the tree", entry)
		}
	}
}

func TestSourceTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := openSource(dir); err == nil || !strings.Contains(err.Error(), "is not an HTCondor source tree with tests") {
		t.Errorf("an empty directory: %v", err)
	}
	for name, text := range map[string]string{
		driver: "", path.Join(scriptsFolder, "run_test.pl"): "", testsList: "condor_pl_test(a x y DEPENDS src/condor_tests/conftest.py;src/f)",
		testsFolder + "/a.py": "", testsFolder + "/b.run": "",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	tree, err := openSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		test peerTest
		want string
	}{
		{peerTest{Name: "a"}, "src/condor_tests/conftest.py src/condor_tests/ornithology src/f"},
		{peerTest{Name: "b", Needs: []string{"log", "file:src/g"}}, "src/g"},
		{peerTest{Name: "c"}, dir + " has no test c"},
	} {
		entries, err := tree.wants(tt.test)
		got := strings.Join(entries, " ")
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.test.Name, got, tt.want)
		}
	}
}

func TestStandIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for entry, want := range map[string]string{
		"$<TARGET_FILE:job_core_bigenv>":                           "job_core_bigenv.exe",
		"${CMAKE_BINARY_DIR}/src/condor_utils/param_info_tables.h": "param_info_tables.h",
	} {
		file, err := standIn(dir, entry)
		if err != nil || filepath.Base(file) != want {
			t.Errorf("%s: got %s, %v", entry, file, err)
		}
	}
	if _, err := standIn(dir, "$<TARGET_FILE:other>"); err == nil || err.Error() != "it needs $<TARGET_FILE:other>, which only a built tree has" {
		t.Errorf("got %v", err)
	}
}

// write makes a file and its folder.
func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
