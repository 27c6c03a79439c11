// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// listFile is the list of the tests.
var listFile = filepath.Join("testdata", "tests.tsv")

// listHead names the columns of the list.
const listHead = "test\tgroup\tquick\tseconds\tcases\tstarts\tneeds\tours\twhy\tabout"

// peerTest is a test of HTCondor's, as the list has it.
type peerTest struct {
	Name     string
	Group    string
	Quick    bool
	Seconds  int // with the original
	Cases    int // 0 where the test does not count them
	Startds  int
	Starters int
	Needs    []string
	Ours     expectation
	Why      string // why it is not to pass with ours
	About    string
}

// expectation is what is expected of a test with our Execution Point.
type expectation string

const (
	expectPass   expectation = "pass"
	expectFail   expectation = "fail"
	expectEither expectation = "either"
)

// groups are those of the list. groupMore is outside of the 142.
var groups = []string{"slots", "job", "files", "net", "life", groupMore}

const groupMore = "more"

// limit is how long a test may take: tests that wait for what never comes have
// limits of their own, most of them of five minutes.
func (t peerTest) limit() time.Duration {
	return max(340*time.Second, time.Duration(4*t.Seconds)*time.Second)
}

// files are the dependencies that the list adds to those of the source tree.
func (t peerTest) files() []string {
	var all []string
	for _, need := range t.Needs {
		if path, ok := strings.CutPrefix(need, "file:"); ok {
			all = append(all, path)
		}
	}
	return all
}

// parseList reads the list. name is the file's, for errors.
func parseList(name, text string) ([]peerTest, error) {
	var all []peerTest
	seen := map[string]bool{}
	head, n := false, 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" || line[0] == '#':
			continue
		case !head:
			if line != listHead {
				return nil, fmt.Errorf("%s:%d: the columns are %q, want %q", name, n, line, listHead)
			}
			head = true
			continue
		}
		one, err := parseTest(strings.Split(line, "\t"))
		if err == nil && seen[one.Name] {
			err = fmt.Errorf("%s stands there twice", one.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		seen[one.Name] = true
		all = append(all, one)
	}
	return all, nil
}

// parseTest reads the columns of a line.
func parseTest(f []string) (peerTest, error) {
	if want := strings.Count(listHead, "\t") + 1; len(f) != want {
		return peerTest{}, fmt.Errorf("%d columns, want %d", len(f), want)
	}
	for i, v := range f {
		if f[i] = strings.TrimSpace(v); f[i] == "" {
			return peerTest{}, fmt.Errorf("column %d is empty; a dash stands for nothing", i+1)
		}
		if v == "-" {
			f[i] = ""
		}
	}
	t := peerTest{Name: f[0], Group: f[1], Quick: f[2] == "quick", Ours: expectation(f[7]), Why: f[8], About: f[9]}
	if f[6] != "" {
		t.Needs = strings.Split(f[6], ",")
	}
	var bad error
	number := func(s string) int {
		if s == "" {
			return 0
		}
		v, err := strconv.Atoi(s)
		if err != nil || v < 0 {
			bad = fmt.Errorf("%q is not a number", s)
		}
		return v
	}
	startds, starters, _ := strings.Cut(f[5], "/")
	t.Seconds, t.Cases, t.Startds, t.Starters = number(f[3]), number(f[4]), number(startds), number(starters)
	switch {
	case bad != nil:
		return t, bad
	case !slices.Contains(groups, t.Group):
		return t, fmt.Errorf("group %q; want one of %s", t.Group, strings.Join(groups, ", "))
	case f[2] != "" && !t.Quick:
		return t, fmt.Errorf("%q; want quick or a dash", f[2])
	case t.Ours != expectPass && t.Ours != expectFail && t.Ours != expectEither:
		return t, fmt.Errorf("expectation %q; want pass, fail or either", t.Ours)
	case t.Ours != expectPass && t.Why == "":
		return t, fmt.Errorf("%s is not expected to pass, and no reason is given", t.Name)
	}
	return t, nil
}

// choose returns the tests of a list that words ask for: quick, all, or names
// with commas between them.
func choose(list []peerTest, words string) ([]peerTest, error) {
	var chosen []peerTest
	switch words {
	case "", "quick":
		for _, t := range list {
			if t.Quick {
				chosen = append(chosen, t)
			}
		}
		return chosen, nil
	case "all":
		return list, nil
	}
	for name := range strings.SplitSeq(words, ",") {
		i := slices.IndexFunc(list, func(t peerTest) bool { return t.Name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("EXECPOINT_PEER=%s: %q is neither quick, all, nor the name of a test in %s", words, name, listFile)
		}
		chosen = append(chosen, list[i])
	}
	return chosen, nil
}

// readList reads the list of this package.
func readList(t *testing.T) []peerTest {
	t.Helper()
	b, err := os.ReadFile(listFile)
	if err != nil {
		t.Fatal(err)
	}
	list, err := parseList(listFile, string(b))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestList(t *testing.T) {
	t.Parallel()
	list := readList(t)
	count := map[bool]int{}
	quick := 0
	for _, one := range list {
		count[one.Group == groupMore]++
		if one.Quick {
			quick++
		}
	}
	if count[false] != 142 || quick != 36 {
		t.Errorf("%d tests and %d more, %d quick; want 142 without the group more, and 36 quick", count[false], count[true], quick)
	}
}

func TestParseList(t *testing.T) {
	t.Parallel()
	const good = "a\tjob\tquick\t12\t3\t1/2\tlog,file:src/x\tpass\t-\twords\n"
	list, err := parseList("f", "# about\n"+listHead+"\n\n"+good)
	if err != nil {
		t.Fatal(err)
	}
	a := list[0]
	if a.Name != "a" || !a.Quick || a.Seconds != 12 || a.Cases != 3 || a.Startds != 1 || a.Starters != 2 || a.Why != "" || !slices.Equal(a.files(), []string{"src/x"}) {
		t.Errorf("got %+v", a)
	}
	for _, tt := range []struct{ text, want string }{
		{"test\tgroup\n", `f:1: the columns are "test\tgroup", want "` + strings.ReplaceAll(listHead, "\t", `\t`) + `"`},
		{listHead + "\na\tjob\n", "f:2: 2 columns, want 10"},
		{listHead + "\n" + good + good, "f:3: a stands there twice"},
		{listHead + "\n" + strings.Replace(good, "job", "jobs", 1), `f:2: group "jobs"; want one of slots, job, files, net, life, more`},
		{listHead + "\n" + strings.Replace(good, "12", "twelve", 1), `f:2: "twelve" is not a number`},
		{listHead + "\n" + strings.Replace(good, "quick", "slow", 1), `f:2: "slow"; want quick or a dash`},
		{listHead + "\n" + strings.Replace(good, "pass", "maybe", 1), `f:2: expectation "maybe"; want pass, fail or either`},
		{listHead + "\n" + strings.Replace(good, "pass", "fail", 1), "f:2: a is not expected to pass, and no reason is given"},
		{listHead + "\n" + strings.Replace(good, "\t-\t", "\t\t", 1), "f:2: column 9 is empty; a dash stands for nothing"},
	} {
		if _, err := parseList("f", tt.text); err == nil || err.Error() != tt.want {
			t.Errorf("%q\ngot  %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	list := []peerTest{{Name: "a", Quick: true}, {Name: "b"}, {Name: "c", Quick: true}}
	for _, tt := range []struct{ words, want string }{
		{"", "a c"}, {"quick", "a c"}, {"all", "a b c"}, {"b", "b"}, {"c, b", "c b"},
		{"b,d", `EXECPOINT_PEER=b,d: "d" is neither quick, all, nor the name of a test in testdata/tests.tsv`},
	} {
		chosen, err := choose(list, tt.words)
		var names []string
		for _, one := range chosen {
			names = append(names, one.Name)
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.words, got, tt.want)
		}
	}
}
