// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// said is a Block as text.
type said struct {
	Tag    string
	Update Update
	Ad     string
}

func saidOf(blocks []Block) []said {
	var out []said
	for _, b := range blocks {
		out = append(out, said{b.Tag, b.Update, b.Ad.Text(classad.Old)})
	}
	return out
}

// parseAll reads text in pieces as reader hands them out.
func parseAll(p *Parser, text string) []Block {
	var out []Block
	r := iotest.OneByteReader(strings.NewReader(text))
	buf := make([]byte, 8)
	for {
		n, err := r.Read(buf)
		out = append(out, p.Feed(buf[:n])...)
		if err != nil {
			return append(out, p.End()...)
		}
	}
}

var outputs = []struct {
	name, prefix, text string
	want               []said
	bad                []string // parts of the errors, in order
}{
	{name: "nothing"},
	{name: "only separators", text: "-\n- a\n-\n"},
	{name: "no separator", text: "A = 1\nB=\"x\"", want: []said{{Ad: "A = 1\nB = \"x\"\n"}}},
	{name: "line ends of Windows", text: "A = 1\r\n-\r\n", want: []said{{Ad: "A = 1\n"}}},
	{name: "tags", text: "A=1\n-s1\nA=2\n- s2 update:true\nA=3\n-  s3   update:false  \n",
		want: []said{{"s1", Unsaid, "A = 1\n"}, {"s2", UpdateNow, "A = 2\n"}, {"s3", NoUpdate, "A = 3\n"}}},
	{name: "update without tag", text: "A=1\n- update:true\n", want: []said{{"", UpdateNow, "A = 1\n"}}},
	{name: "update alone behind a tag", text: "A=1\n- x UPDATE\n", want: []said{{"x", UpdateNow, "A = 1\n"}}},
	{name: "update by an expression", text: "A=1\n- x update:A>5\n", want: []said{{"x", NoUpdate, "A = 1\n"}}},
	{name: "update of nonsense", text: "A=1\n- x update:maybe\n", want: []said{{"x", UpdateNow, "A = 1\n"}}, bad: []string{"line 2"}},
	{name: "prefix", prefix: "test_", text: "abc=1\nSlotId=2\n-\n", want: []said{{Ad: "test_SlotId = 2\ntest_abc = 1\n"}}},
	{name: "bad lines among good ones", text: "what is this\nA=1\n1x=2\nB=\n=3\nC=)\nD=2\n",
		want: []said{{Ad: "A = 1\nD = 2\n"}}, bad: []string{"line 1", "line 3", "line 4", "line 5", "line 6"}},
	{name: "nothing but bad lines", text: "x\n- t\nA=1\n", want: []said{{Ad: "A = 1\n"}}, bad: []string{"line 1"}},
	{name: "a long line", text: "A=1\nB=\"" + strings.Repeat("x", maxLine) + "\"\nC=2\n-\n", want: []said{{Ad: "A = 1\nC = 2\n"}}, bad: []string{"longer than 65536 bytes"}},
	{name: "a long tag", text: "A=1\n- " + strings.Repeat("t", maxTag+1) + "\nB=1\n- t\n", want: []said{{Tag: "t", Ad: "B = 1\n"}}, bad: []string{"a tag longer than 200 bytes"}},
	{name: "not UTF-8", text: "A=\"\xff\"\nB=1\n", want: []said{{Ad: "B = 1\n"}}, bad: []string{"UTF-8"}},
}

// row: S0-239
func TestParser(t *testing.T) {
	t.Parallel()
	for _, c := range outputs {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &Parser{Prefix: c.prefix}
			got := append(p.Feed([]byte(c.text)), p.End()...)
			if d := cmp.Diff(c.want, saidOf(got)); d != "" {
				t.Error(d)
			}
			if len(p.Bad) != len(c.bad) {
				t.Fatalf("bad lines %v", p.Bad)
			}
			for i, part := range c.bad {
				if !strings.Contains(p.Bad[i].Error(), part) {
					t.Errorf("%v does not say %q", p.Bad[i], part)
				}
			}
			if len(c.text) > 1000 {
				return
			}
			if d := cmp.Diff(c.want, saidOf(parseAll(&Parser{Prefix: c.prefix}, c.text))); d != "" {
				t.Error("byte by byte: ", d)
			}
		})
	}
}

func TestParserRefusesBinary(t *testing.T) {
	t.Parallel()
	p := &Parser{}
	got := append(p.Feed([]byte("A=1\n- good\nB=1\n\x7fELF\x00\x01\nC=2\n-\nD=1\n")), p.End()...)
	if d := cmp.Diff([]said{{Tag: "good", Ad: "A = 1\n"}}, saidOf(got)); d != "" {
		t.Error(d)
	}
	if err := p.Refused(); !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "line 4") {
		t.Errorf("refused: %v", err)
	}
}

func TestParserBounds(t *testing.T) {
	t.Parallel()
	p := &Parser{}
	line := "A=\"" + strings.Repeat("x", 60000) + "\"\n"
	got := p.Feed([]byte(strings.Repeat(line, 30) + "- huge\nB=1\n- small\n"))
	if d := cmp.Diff([]said{{Tag: "small", Ad: "B = 1\n"}}, saidOf(got)); d != "" {
		t.Error(d)
	}
	if len(p.Bad) != 1 || !strings.Contains(p.Bad[0].Error(), "larger than") {
		t.Errorf("bad lines %v", p.Bad)
	}
	p.Feed([]byte(strings.Repeat("rubbish\n", 100)))
	if len(p.Bad) != maxBad || p.More != 81 {
		t.Errorf("%d bad lines kept, %d more", len(p.Bad), p.More)
	}
}

func FuzzParser(f *testing.F) {
	for _, c := range outputs {
		if len(c.text) < 1000 { // long ones take the engine minutes to shorten
			f.Add(c.prefix, c.text)
		}
	}
	f.Add("", "\x00")
	f.Fuzz(func(t *testing.T, prefix, text string) {
		whole, single := &Parser{Prefix: prefix}, &Parser{Prefix: prefix}
		a := append(whole.Feed([]byte(text)), whole.End()...)
		if len(text) < 4096 {
			b := parseAll(single, text)
			if d := cmp.Diff(saidOf(a), saidOf(b)); d != "" {
				t.Error(d)
			}
		}
		for _, block := range a {
			if block.Ad.Len() == 0 {
				t.Error("a block without attributes")
			}
			for name := range block.Ad.All() {
				if !strings.HasPrefix(strings.ToLower(name), strings.ToLower(prefix)) {
					t.Errorf("%s lacks the prefix", name)
				}
			}
		}
		if len(whole.Bad) > maxBad {
			t.Errorf("%d bad lines are kept", len(whole.Bad))
		}
	})
}

func FuzzInventory(f *testing.F) {
	f.Add("DetectedGPUs=2\n", "")
	f.Add("DetectedGPUs=\"a, b a\"\nOfflineGPUs=\"b\"\nCommon=[x=1]\na=[id=\"a\";y=2]\n", "c")
	f.Fuzz(func(t *testing.T, text, offline string) {
		inv, err := ParseInventory("GPUs", []byte(text), offline)
		if err != nil && inv.Count != 0 {
			t.Errorf("%v, but %v are there", err, inv.Count)
		}
		if inv.IDs != nil && float64(len(inv.IDs)) != inv.Count || inv.Count < 0 {
			t.Errorf("%v of %q", inv.Count, inv.IDs)
		}
	})
}

func BenchmarkParser(b *testing.B) {
	text := []byte(strings.Repeat("SomeAttribute = 12345\nOther = \"some text\"\nThird = A + B * 2\n", 30) + "-\n")
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		p := &Parser{Prefix: "p_"}
		if len(p.Feed(text)) != 1 {
			b.Fatal("no block")
		}
	}
}
