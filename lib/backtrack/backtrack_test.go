// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package backtrack_test

import (
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/backtrack"
)

// find returns the match as text, with its groups: "[all one two]", and "-"
// for a group that took no part.
func find(t testing.TB, pattern, text string, o backtrack.Options) string {
	t.Helper()
	p, err := backtrack.Compile(pattern, o)
	if err != nil {
		return "error"
	}
	steps := 1_000_000
	loc, ok := p.Find(text, 0, &steps)
	switch {
	case !ok:
		return "steps"
	case loc == nil:
		return "no"
	}
	var all []string
	for i := 0; i < len(loc); i += 2 {
		if loc[i] < 0 {
			all = append(all, "-")
		} else {
			all = append(all, text[loc[i]:loc[i+1]])
		}
	}
	return fmt.Sprint(all)
}

// The answers are PCRE2's, as pcre2test gives them for patterns without UTF.
func TestWhatRE2Refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		options       backtrack.Options
		want          string
	}{
		{`a(?=b)`, "ab", 0, "[a]"},
		{`a(?=b)`, "ac", 0, "no"},
		{`a(?!b)`, "abac", 0, "[a]"},
		{`^(?!test)\w+$`, "slot1", 0, "[slot1]"},
		{`^(?!test)\w+$`, "test1", 0, "no"},
		{`^(?=.*\d)(?=.*[a-z])\S{4,}$`, "ab12", 0, "[ab12]"},
		{`^(?=.*\d)(?=.*[a-z])\S{4,}$`, "abcd", 0, "no"},
		{`(?<=a)b`, "cbab", 0, "[b]"},
		{`(?<=ab)c`, "bacabc", 0, "[c]"},
		{`(?<=a|bc)d`, "cdbcd", 0, "[d]"},
		{`(?<!a)b`, "abcb", 0, "[b]"},
		{`(?<!^)b`, "bb", 0, "[b]"},
		{`(?<=(a)(b))c`, "abc", 0, "[c a b]"},
		{`(?<=\d{3})x`, "12x123x", 0, "[x]"},
		{`(a)\1`, "aa", 0, "[aa a]"},
		{`(a)\1`, "ab", 0, "no"},
		{`(\w+) \1`, "the the", 0, "[the the the]"},
		{`(?i)(a)\1`, "aA", 0, "[aA a]"},
		{`(a)\1`, "aA", backtrack.Caseless, "[aA a]"},
		{`(a)?\1b`, "b", 0, "no"}, // a group that took no part matches nothing
		{`(?:(a)|b)*\1`, "abab", 0, "[aba a]"},
		{`(?<n>a)\k<n>`, "aa", 0, "[aa a]"},
		{`(?P<n>a)\k<n>`, "aa", 0, "[aa a]"},
		{`(?>a+)b`, "aab", 0, "[aab]"},
		{`(?>a+)ab`, "aab", 0, "no"},
		{`(?>a|ab)c`, "abc", 0, "no"},
		{`a*+a`, "aaa", 0, "no"},
		{`a++b`, "aaab", 0, "[aaab]"},
		{`(?:ab)++c`, "ababc", 0, "[ababc]"},
		{`[ab]{2,3}+a`, "aba", 0, "no"},
		{`[ab]{2,3}+a`, "abba", 0, "[abba]"},
		{`(a)?(?(1)b|c)`, "ab", 0, "[ab a]"},
		{`^(a)?(?(1)b|c)$`, "c", 0, "[c -]"},
		{`^(a)?(?(1)b|c)$`, "ac", 0, "no"},
		{`(\1a|\b){0,2}`, "a", 0, "[a a]"}, // the first time it takes nothing
		{`(\1a|\b)*`, "a", 0, "[ ]"},
		{`(\1a|\b){2,}`, "a", 0, "[a ]"},
		{`^(?>.{2,}){2,}$`, "abcd", 0, "no"}, // two repetitions, of which the inner one gives nothing back
		{`^(?:\b(?>.+)*){2}$(?=)`, "a ", 0, "[a ]"},
		{`(?>\d+)?5`, "55", 0, "[5]"},
		{`(?:\d++)?5`, "55", 0, "[5]"},
		{`(?i:\d++)?5`, "55", 0, "[5]"},
		{`(?(?=a)ab|cd)`, "cd", 0, "[cd]"},
		{`(?(?=a)a|b)(c)`, "ac", 0, "[ac c]"},
		{`(?(?=(a))(a)|b)(c)\3`, "acc", 0, "[acc a a c]"},
		{`(?(?<!(x))a|b)(c)`, "ac", 0, "[ac - c]"},
		{`(?(?!b|c)(a)|b)(?(?=(?<n>c))c|d)(d)`, "acd", 0, "[acd a c d]"},
		{`(?(?=a)ab|cd)`, "ab", 0, "[ab]"},
		{`(?(?!a)cd|ab)`, "ab", 0, "[ab]"},
		{`a{1001}`, strings.Repeat("a", 1001), 0, "[" + strings.Repeat("a", 1001) + "]"},
		{`(?=(\w+))\1:`, "abc:", 0, "[abc: abc]"},
		{`(?!(a)b)a.`, "ac", 0, "[ac -]"},
		{`(a(?=b(*F)))`, "ab", 0, "error"},
		{`(?=a)*b`, "b", 0, "[b]"},
		{`(?:(?=a)){2}a`, "a", 0, "[a]"},
		{`(a|ab)(?=c)`, "abc", 0, "[ab ab]"},
		{`^(?=(a+?))\1b`, "aab", 0, "no"}, // an assertion does not try again
		{`(?m)(?<=^)b$`, "a\nb\nc", 0, "[b]"},
		{`(?s)a(?=.)`, "a\n", 0, "[a]"},
		{`a(?=.)`, "a\n", 0, "no"},
		{`(?x) a (?= b )  # comment`, "ab", 0, "[a]"},
		{`(?:)(?=)`, "", 0, "[]"},
		{"(?=\u00e9).", "\xe9", 0, "[\xe9]"}, // a byte is a character
		{`\w(?=.)`, "\xe9a", 0, "no"},
		{`(?!)`, "a", 0, "no"},
		{`(?U)a+(?=b)`, "aab", 0, "error"},
		{`(?r)a(?=b)`, "ab", 0, "error"},
		{`(a)(?<b-1>c)`, "ac", 0, "error"},
		{`\3(a)`, "a", 0, "error"},
		{`(?=a`, "a", 0, "error"},
		{`a{2,1}(?=b)`, "aab", 0, "error"},
		{`(((a{99}){99}){99}){9}(?=b)`, "a", 0, "error"},
		{strings.Repeat("(", 3000) + strings.Repeat(")", 3000), "a", 0, "error"},
		{`^(?:(?=a)a+)+b\1?$`, "a", 0, "error"},
		{`(?<=(a)\1)b`, "aab", 0, "error"}, // read backwards, the reference would come first
		{`(?<=(a)(?=\1))a`, "aa", 0, "error"},
		{`(a)(?<=\1)b`, "ab", 0, "[ab a]"},
		{`(?<=(a|b){2})c`, "abc", 0, "error"}, // which of the two is the last?
		{`(?<=(?:a|b){2})c`, "abc", 0, "[c]"},
		{`(?<=a(?=(b|c){2}))`, "abc", 0, "[ c]"},
		{`(?(abc)x|y)`, "y", 0, "error"},
		{`(?(DEFINE)x)y`, "y", 0, "error"},
		{`(?(R)x|y)(?=)`, "y", 0, "error"},
		{`(a)(?(-1)b|c)`, "ab", 0, "error"},
		{`(?(?>a)b|c)`, "ab", 0, "error"},
		{`(?<n>a)?(?(n)b|c)`, "c", 0, "[c -]"},
		{`(?P<n>a)?(?(n)b|c)`, "ab", 0, "[ab a]"},
		{`(?(?<=a)b|c)`, "ab", 0, "[b]"},
		{`(?(?<!a)c|b)`, "ab", 0, "[b]"},
		{`(?<n>a)|(?<n>b)\k<n>`, "bb", 0, "error"},
		{`(?:(?<n>a)){2}(?=b)`, "aab", 0, "[aa a]"},
		{`a{65536}(?=b)`, "a", 0, "error"},
		{`(?:ab){65536}(?=b)`, "a", 0, "error"},
		{`a{65535}(?=b)`, "a", 0, "no"},
		{`(?xx)(?=.)[a b]`, " ", 0, "error"},
		{`[(?r)](?=c)`, "rc", 0, "[r]"},
		{`[](?r)](?=c)`, "]c", 0, "[]]"},
		{`[^[:alpha:](?r](?=c)`, "?1c", 0, "[1]"},
		{`^(a+)+(?!b)$`, strings.Repeat("a", 40) + "b", 0, "steps"},
		{`^(?=(\w|\w\w)*-)`, strings.Repeat("a", 60), 0, "steps"},
		{`(x+x+)+(?=y)`, strings.Repeat("x", 60), 0, "steps"},
	} {
		if got := find(t, c.pattern, c.text, c.options); got != c.want {
			t.Errorf("%q in %q: %s, want %s", c.pattern, c.text, got, c.want)
		}
	}
}

// What the parser makes of these is not what PCRE finds. They must go on being
// different, so that a change is noticed.
func TestNotAsPCRE(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pattern, text, want, pcre string }{
		// Letters beyond ASCII have two cases.
		{"(?i)(?=.)\u00e9", "\xc9", "[\xc9]", "no"},
	} {
		if got := find(t, c.pattern, c.text, 0); got != c.want || got == c.pcre {
			t.Errorf("%q in %q: %s, want %s, which is not PCRE's %s", c.pattern, c.text, got, c.want, c.pcre)
		}
	}
}

// A search that begins later still sees the text before.
func TestFindFrom(t *testing.T) {
	t.Parallel()
	p, err := backtrack.Compile(`(?<=a)b`, 0)
	if err != nil {
		t.Fatal(err)
	}
	steps := 1000
	if loc, ok := p.Find("abab", 1, &steps); !ok || !slices.Equal(loc, []int{1, 2}) {
		t.Errorf("from 1: %v", loc)
	}
	if loc, ok := p.Find("abab", 2, &steps); !ok || !slices.Equal(loc, []int{3, 4}) {
		t.Errorf("from 2: %v", loc)
	}
	if loc, ok := p.Find("abab", 4, &steps); !ok || loc != nil {
		t.Errorf("from 4: %v", loc)
	}
	if steps < 900 || steps >= 1000 {
		t.Errorf("%d of 1000 steps are left", steps)
	}
	steps = 3
	if _, ok := p.Find("abab", 0, &steps); ok {
		t.Error("a match with three steps")
	}
}

// What a search does is paid for, also where it is no instruction of its own:
// the bytes of a repetition that turns out too short, and the assignments that
// every assertion around another one keeps.
func TestWorkIsPaidFor(t *testing.T) {
	t.Parallel()
	const n = 1000
	for _, tt := range []struct {
		pattern string
		least   int // steps
	}{
		{fmt.Sprintf(`(?=.)a{%d}`, n+1), n * n / 2},
		{fmt.Sprintf(`(?=.)a{%d}?`, n+1), n * n / 2},
		{fmt.Sprintf(`(?=.)a{%d}+`, n+1), n * n / 2},
		{strings.Repeat(`(?=`, 100) + `(?:(a))*b?` + strings.Repeat(`)`, 100), 100 * 2 * n},
	} {
		p, err := backtrack.Compile(tt.pattern, 0)
		if err != nil {
			t.Fatal(err)
		}
		const granted = 10_000_000
		steps := granted
		if _, ok := p.Find(strings.Repeat("a", n), 0, &steps); !ok || granted-steps < tt.least {
			t.Errorf("%.20s takes %d steps, want %d or more", tt.pattern, granted-steps, tt.least)
		}
	}
}

// A search keeps 16 bytes for a step at most.
func TestMemoryOfASearch(t *testing.T) {
	p, err := backtrack.Compile(`(?=(?:(((((((a)))))))|b)*)`, 0)
	if err != nil {
		t.Fatal(err)
	}
	const granted = 1_000_000
	text, steps := strings.Repeat("a", granted), granted
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, ok := p.Find(text, 0, &steps); ok {
		t.Fatal("the text is too short")
	}
	runtime.ReadMemStats(&after)
	// A slice that grows by a quarter was copied from smaller ones, which are four
	// times as large together.
	if got := after.TotalAlloc - before.TotalAlloc; got > 6*16*granted {
		t.Errorf("%d bytes for %d steps", got, granted)
	}
}

// against holds the machine against RE2 where both can do a pattern. RE2's
// matches are PCRE's there; its groups in a repetition of nothing are not.
func against(t *testing.T, pattern, text string) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return
	}
	p, err := backtrack.Compile(pattern, 0)
	if err != nil {
		return
	}
	steps := 200_000
	got, ok := p.Find(text, 0, &steps)
	if !ok {
		return
	}
	if want := re.FindStringIndex(text); !slices.Equal(got[:min(2, len(got))], want) {
		t.Errorf("%q in %q: %v, RE2 has %v", pattern, text, got, want)
	}
}

func TestLikeRE2(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{
		`a|ab|abc`, `(a|ab)(c|bcd)`, `(a*)(b*)`, `(a+?)(a*)`, `a{2,3}?`, `(ab){1,2}c`, `x*`, `(x*)*y`, `(?:a|b)*c`,
		`^a.c$`, `\bfoo\b`, `[^a-c]+`, `(?i)HeLLo`, `((a)|(b))*`, `(a)(b)?(c)??`, `\d{2}-\d{2}`, `(?m)^b`, `(?s).+`,
		`[[:alpha:]]+`, `\Aab\z`, `a(bc|b)c`, `(|a)+b`, `(a|)+b`, `.*?b`, `(foo|foobar)(bar)?`,
	} {
		for _, text := range []string{"", "a", "ab", "abc", "aaab", "xxy", "ababc", "foobar", "a foo b", "HELLO", "12-34", "a\nb", "bcbcbc", "aabbcc"} {
			against(t, pattern, text)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add(`a(?=b)`, "ab")
	f.Add(`(?<=a|bc)d`, "bcd")
	f.Add(`(\w+) \1`, "the the")
	f.Add(`(?>a+)b|(?(?=a)b|c)`, "aab")
	f.Add(`^(a+)+(?!b)$`, "aaaaaaaaaaaaab")
	f.Add(`((a{9}){9}){9}`, "a")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		p, err := backtrack.Compile(pattern, 0)
		if err != nil {
			return
		}
		steps := 20_000
		if loc, ok := p.Find(text, 0, &steps); ok && loc != nil {
			for i := 0; i < len(loc); i += 2 {
				if loc[i] > loc[i+1] || loc[i+1] > len(text) || (loc[i] < 0) != (loc[i+1] < 0) {
					t.Fatalf("%q in %q: %v", pattern, text, loc)
				}
			}
		}
		if isASCII(pattern) && isASCII(text) && !strings.ContainsAny(pattern, `\(^$`) {
			against(t, pattern, text)
		}
	})
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}

func BenchmarkFind(b *testing.B) {
	p, err := backtrack.Compile(`^slot\d+(?:_\d+)?@(?!worker1[0-4])worker\d+\.`, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		steps := 10_000
		if loc, ok := p.Find("slot1_12@worker17.example.org", 0, &steps); loc == nil || !ok {
			b.Fatal("no match")
		}
	}
}
