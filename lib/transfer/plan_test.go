// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

func parse(t testing.TB, ad string) *classad.Ad {
	t.Helper()
	a, err := classad.ParseAd(ad, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestWanted(t *testing.T) {
	t.Parallel()
	for ad, want := range map[string]bool{
		`ShouldTransferFiles = "YES"`: true, `ShouldTransferFiles = "yes"`: true, `ShouldTransferFiles = "NO"`: false,
		`ShouldTransferFiles = "IF_NEEDED"`: false, "": false,
	} {
		if got := Wanted(parse(t, ad)); got != want {
			t.Errorf("%s: %v", ad, got)
		}
	}
}

// row: S1-032
func TestInputOf(t *testing.T) {
	t.Parallel()
	const all = "Cmd = \"prog\"\nIn = \"data/in\"\nTransferInput = \"a, /abs/b ,dir/,tree\"\n"
	items := []Item{
		{"/sub/prog", "prog", true}, {"/sub/data/in", "in", false}, {"/sub/a", "a", false}, {"/abs/b", "b", false},
		{"/sub/dir", "", false}, {"/sub/tree", "tree", false},
	}
	for _, c := range []struct {
		ad   string
		want []Item
	}{
		{all, items},
		{all + "TransferExecutable = false\n", items[1:]},
		{all + "TransferIn = false\n", append(append([]Item{}, items[0]), items[2:]...)},
		{"Cmd = \"/bin/x\"\nIn = \"/dev/null\"\n", []Item{{"/bin/x", "x", true}}},
		{"TransferInput = \"\"\n", nil},
	} {
		in, err := InputOf(parse(t, c.ad), "/sub")
		if diff := cmp.Diff(c.want, in.Items); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", c.ad, err, diff)
		}
	}
	if _, err := InputOf(parse(t, `TransferInput = "https://x/y"`), "/sub"); !errs.Is(err, errs.Unsupported) {
		t.Errorf("a URL: %v", err)
	}
}

func TestOutputOf(t *testing.T) {
	t.Parallel()
	out, err := OutputOf(parse(t, "TransferOutput = \"a,sub/b\"\nTransferOutputRemaps = \"a = /abs/A; b=res/B\"\n"), "/sub")
	if err != nil || !out.Listed || !cmp.Equal(out.Names, []string{"a", "sub/b"}) {
		t.Fatalf("%+v, %v", out, err)
	}
	for name, want := range map[string]string{"a": "/abs/A", "./a": "/abs/A", "sub/b": "/sub/res/B", "c": "/sub/c", "d/e/": "/sub/e"} {
		if got := out.Destination(name); got != want {
			t.Errorf("%s goes to %s, want %s", name, got, want)
		}
	}
	if out, err := OutputOf(parse(t, ""), "/sub"); err != nil || out.Listed {
		t.Errorf("without a list: %+v, %v", out, err)
	}
	if out, err := OutputOf(parse(t, `TransferOutput = ""`), "/sub"); err != nil || !out.Listed || len(out.Names) != 0 {
		t.Errorf("with an empty list: %+v, %v", out, err)
	}
	if _, err := OutputOf(parse(t, `TransferOutputRemaps = "a b"`), "/sub"); !errs.Is(err, errs.Invalid) {
		t.Errorf("remaps without =: %v", err)
	}
}

var remapCases = []struct {
	text string
	want map[string]string
	bad  string
}{
	{"", map[string]string{}, ""},
	{"a=b", map[string]string{"a": "b"}, ""},
	{" a = b ; c = d/e ;", map[string]string{"a": "b", "c": "d/e"}, ""},
	{`a\;b=c\=d`, map[string]string{"a;b": "c=d"}, ""},
	{`a\\=b`, map[string]string{`a\`: "b"}, ""},
	{`a\x=b`, map[string]string{`a\x`: "b"}, ""},
	{"a=b=c", map[string]string{"a": "b=c"}, ""},
	{"a", nil, "has no ="},
	{"=b", nil, "lacks a name"},
	{"a=;b=c", nil, "lacks a name"},
}

func TestParseRemaps(t *testing.T) {
	t.Parallel()
	for _, c := range remapCases {
		got, err := ParseRemaps(c.text)
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != (c.bad != "") || err != nil && !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%q: %v\n%s", c.text, err, diff)
		}
	}
}

func FuzzParseRemaps(f *testing.F) {
	for _, c := range remapCases {
		f.Add(c.text)
	}
	escape := strings.NewReplacer(`\`, `\\`, ";", `\;`, "=", `\=`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseRemaps(text)
		if err != nil {
			return
		}
		for from, to := range got {
			again, err := ParseRemaps(escape.Replace(from) + "=" + escape.Replace(to))
			if err != nil || len(again) != 1 || again[from] != to {
				t.Errorf("%q = %q written down and read again is %q, %v", from, to, again, err)
			}
		}
	})
}
