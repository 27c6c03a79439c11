// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
)

// goldenDir holds the recorded answers of HTCondor.
const goldenDir = "../../classad/testdata/"

// inputs are the fields of a recording that are no answers. "ub" is a remark:
// the answer rests on undefined behaviour of C++.
var inputs = []string{"id", "group", "my", "target", "expr", "syntax", "tz", "config", "depth", "old", "new", "json_in", "ub"}

// divergent lists the recordings that are answered differently on purpose; see
// the tests of lib/classad.
var divergent = []string{"subscript-2851213bc7"}

// field is one member of a JSON object, as it is written.
type field struct {
	name string
	raw  json.RawMessage
}

// fields takes a JSON object apart, in order.
func fields(t testing.TB, line []byte) []field {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(line))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	var all []field
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		f := field{name: name.(string)}
		if err := dec.Decode(&f.raw); err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}

func object(all []field) string {
	var b strings.Builder
	for i, f := range all {
		sep := ","
		if i == 0 {
			sep = "{"
		}
		fmt.Fprintf(&b, "%s%q:%s", sep, f.name, f.raw)
	}
	return b.String() + "}"
}

func goldenLines(t testing.TB, name string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(goldenDir + name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(data), []byte("\n"))
}

// questions turns recordings into what a batch asks, and into the lines that
// must come back.
func questions(t testing.TB) (ask, want []string) {
	t.Helper()
	for _, line := range goldenLines(t, "classad.jsonl") {
		var in, out []field
		var names []string
		for _, f := range fields(t, line) {
			if slices.Contains(inputs, f.name) {
				in = append(in, f)
			} else {
				out = append(out, f)
				names = append(names, f.name)
			}
		}
		list, err := json.Marshal(names)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, object(append(in[:1:1], out...)))
		ask = append(ask, object(append(in, field{"want", list})))
	}
	return ask, want
}

// world is that of the recordings.
var world = World{Env: func() classad.Env {
	return classad.Env{Now: time.Now(), Location: time.UTC, Rand: rand.New(rand.NewPCG(1, 2)).Float64}
}, Zone: time.LoadLocation}

// answers are those of eval or match to a text, and how many records could not be read.
func answers(t testing.TB, command, in string) (unread int, out string) {
	t.Helper()
	var b strings.Builder
	answer := Eval
	if command == "match" {
		answer = Match
	}
	unread, err := answer(strings.NewReader(in), &b, world)
	if err != nil {
		t.Fatal(err)
	}
	return unread, b.String()
}

func id(t testing.TB, line string) string {
	t.Helper()
	var rec struct{ ID string }
	if err := json.Unmarshal([]byte(line), &rec); err != nil {
		t.Fatal(err)
	}
	return rec.ID
}

func TestEvalBatchGolden(t *testing.T) {
	t.Parallel()
	ask, want := questions(t)
	unread, stdout := answers(t, "eval", strings.Join(ask, "\n")+"\n")
	if unread != 0 {
		t.Errorf("%d records could not be read", unread)
	}
	got := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d answers to %d records", len(got), len(want))
	}
	for i := range want {
		same, known := got[i] == want[i], slices.Contains(divergent, id(t, want[i]))
		switch {
		case same && known:
			t.Errorf("%s no longer diverges", want[i])
		case !same && !known && !strings.Contains(ask[i], `,"ub":true`):
			t.Errorf("%s\ngot  %s\nwant %s", ask[i], got[i], want[i])
		}
	}
}

func TestMatchBatchGolden(t *testing.T) {
	t.Parallel()
	var ask, want strings.Builder
	for _, line := range goldenLines(t, "match.jsonl") {
		var in, out []field
		for _, f := range fields(t, line) {
			switch f.name {
			case "machine", "job":
				in = append(in, f)
			case "id":
				in = append(in, f)
				out = append(out, f)
			default:
				out = append(out, f)
			}
		}
		ask.WriteString(object(in) + "\n")
		want.WriteString(object(out) + "\n")
	}
	unread, stdout := answers(t, "match", ask.String())
	if unread != 0 {
		t.Errorf("%d records could not be read", unread)
	}
	if d := cmp.Diff(want.String(), stdout); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestBatchAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, command, in, want string
	}{
		{
			name: "all answers of one expression", command: "eval",
			in:   `{"id":"a","group":"quirk","my":"A = 1.5","expr":"A + TARGET.B","want":["type","value","value_old","canonical_new","canonical_old","ok","internal","external","external_full","flatten","inline"]}`,
			want: `{"id":"a","type":"undefined","value":"undefined","value_old":"undefined","canonical_new":"A + TARGET.B","canonical_old":"A + TARGET.B","ok":true,"internal":["A"],"external":["B"],"external_full":["TARGET.B"],"flatten":{"type":"expr","value":"1.500000000000000E+00 + TARGET.B"},"inline":{"type":"expr","value":"1.500000000000000E+00 + TARGET.B"}}`,
		}, {
			name: "answers in the order wanted", command: "eval",
			in:   `{"id":"a","expr":"2.5","want":["value_old","type","value"]}`,
			want: `{"id":"a","value_old":"2.5","type":"real","value":"2.500000000000000E+00"}`,
		}, {
			name: "no group needed for an ad", command: "eval",
			in:   `{"id":"a","old":"B = 1\nAA = 2","want":["canonical_old","canonical_old_all","type"]}`,
			want: `{"id":"a","canonical_old":"AA = 2\nB = 1\n","canonical_old_all":"B = 1\nAA = 2\n"}`,
		}, {
			name: "what does not parse", command: "eval",
			in:   `{"id":"a","group":"flatten","expr":"1 +","want":["type","flatten","ok","internal","canonical_new","value"]}`,
			want: `{"id":"a","type":"parseerror","flatten":{"type":"parseerror","value":""},"ok":false,"value":""}`,
		}, {
			name: "an ad that does not parse", command: "eval",
			in:   `{"id":"a","my":"A = ","expr":"1","want":["type","value"]}` + "\n" + `{"id":"b","json_in":"{","want":["json","type"]}`,
			want: `{"id":"a","type":"badad","value":""}` + "\n" + `{"id":"b","type":"badad"}`,
		}, {
			name: "bytes that are no UTF-8", command: "eval",
			in:   `{"id":"a","expr_b64":"Iv8i","want":["type","value_old","value","flatten"]}`,
			want: `{"id":"a","type":"string","value_old_b64":"Iv8i","value":"\"\\377\"","flatten":{"type":"string","value":"\"\\377\""}}`,
		}, {
			name: "escapes", command: "eval",
			in:   `{"id":"\u0001é\"\\\/<","expr":"\"\u007f\t\u2028<&>\"","want":["value_old"]}`,
			want: `{"id":"\u0001é\"\\/<","value_old":"\"` + "\x7f" + `\t` + "\u2028" + `<&>\""}`,
		}, {
			name: "pairs of surrogates", command: "eval",
			in:   `{"id":"\ud83d\ude00","expr":"\"\\ud83d\"","want":["type"]}`,
			want: `{"id":"😀","type":"string"}`,
		}, {
			name: "records that cannot be read", command: "eval",
			in: strings.Join([]string{
				`nothing`,
				``,
				`[1]`,
				`{"id":"c","expr":5,"want":["type"]}`,
				`{"expr":"1","want":["type"]}`,
				`{"id":"e","expr":"1"}`,
				`{"id":"f","want":["value"]}`,
				`{"id":"g","expr":"1","want":["xml"]}`,
				`{"id":"h","expr":"1","want":["valu"]}`,
				`{"id":"i","expr":"1","syntax":"odd","want":["value"]}`,
				`{"id":"j","expr":"1","tz":"Nowhere/City","want":["value"]}`,
				`{"id":"k","expr_b64":"!","want":["value"]}`,
				`{"id":"l","old":"","new":"[]","want":["json"]}`,
				`{"id":"m","expr":"1","want":["value","value"]}`,
				`{"id":"m2","expr":"1","want":["value","value_b64"]}`,
				`{"id":"n","expr":"\ud800","want":["value"]}`,
				`{"id":"o","expr":"\udc00","want":["value"]}`,
				"{\"id\":\"p\",\"expr\":\"\xff\",\"want\":[\"value\"]}",
				`{"id":"q","expr":"1","config":"include : /etc/passwd","want":["value"]}`,
				`{"id":"r","expr":"1","config":"TOOL_CLASSAD_USER_MAP_NAMES = M\nCLASSAD_USER_MAPFILE_M = /etc/passwd","want":["value"]}`,
				`{"id":"s","expr":"1","want":["value"]}`,
			}, "\n"),
			want: strings.Join([]string{
				`{"id":null,"error":"line 1: invalid character 'o' in literal null (expecting 'u')"}`,
				`{"id":null,"error":"line 3: a JSON array, want an object"}`,
				`{"id":"c","error":"line 4: expr is a JSON number, want another type"}`,
				`{"id":null,"error":"line 5: no id"}`,
				`{"id":"e","error":"line 6: no want: the list of answers asked for"}`,
				`{"id":"f","error":"line 7: value wants an expr"}`,
				`{"id":"g","error":"line 8: xml wants an ad: one of old, new and json_in"}`,
				`{"id":"h","error":"line 9: want has \"valu\", which is no answer"}`,
				`{"id":"i","error":"line 10: syntax is \"odd\", want old or new"}`,
				`{"id":"j","error":"line 11: tz: unknown time zone Nowhere/City"}`,
				`{"id":"k","error":"line 12: expr_b64: illegal base64 data at input byte 0"}`,
				`{"id":"l","error":"line 13: more than one of old, new and json_in"}`,
				`{"id":"m","error":"line 14: want has \"value\" twice"}`,
				`{"id":"m2","error":"line 15: want has \"value_b64\" twice"}`,
				`{"id":"n","error":"line 16: no valid UTF-8: a text with other bytes is given in base64, in a field with _b64 added to its name"}`,
				`{"id":"o","error":"line 17: no valid UTF-8: a text with other bytes is given in base64, in a field with _b64 added to its name"}`,
				`{"id":"p","error":"line 18: no valid UTF-8: a text with other bytes is given in base64, in a field with _b64 added to its name"}`,
				`{"id":"q","error":"line 19: config: <config>:1:11: cannot include: there is no way to read files here (value \"/etc/passwd\")"}`,
				`{"id":"r","error":"line 20: config: CLASSAD_USER_MAPDATA_M is not set, and a batch reads no file"}`,
				`{"id":"s","value":"1"}`,
			}, "\n"),
		}, {
			name: "matches that cannot be read", command: "match",
			in:   `{"id":"a","machine":""}` + "\n" + `{"id":"b","machine":"","job":"Rank = )"}` + "\n" + `{"id":"c","machine":"Requirements = true\nRank = 2","job":""}`,
			want: `{"id":"a","error":"line 1: no job"}` + "\n" + `{"id":"b","error":"line 2: job:1:8: expected a value, a name or (, found \")\" (attribute Rank)"}` + "\n" + `{"id":"c","group":"match","match":false,"machine_ok":true,"job_ok":false,"machine_requirements":{"type":"boolean","value":"true"},"job_requirements":{"type":"missing","value":""},"machine_rank":{"type":"integer","value":"2"},"job_rank":{"type":"missing","value":""},"machine_rank_number":"2.000000000000000E+00","job_rank_number":"0.0"}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			unread, stdout := answers(t, tt.command, tt.in)
			if want := strings.Count(tt.want, `"error":`); unread != want {
				t.Errorf("%d records could not be read, want %d", unread, want)
			}
			if d := cmp.Diff(strings.Split(tt.want, "\n"), strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestEachLine(t *testing.T) {
	t.Parallel()
	const limit = 100_000
	a := strings.Repeat("a", limit)
	for _, tt := range []struct {
		name, in string
		want     []string // "long" stands for a line over the limit
	}{
		{"empty", "", []string{""}},
		{"no newline at the end", "x\ny", []string{"x", "y"}},
		{"newline at the end", "x\n\n", []string{"x", "", ""}},
		{"at the limit", a + "\nx", []string{a, "x"}},
		{"over the limit", a + "b\nx\n" + a + a, []string{"long", "x", "long"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			err := EachLine(strings.NewReader(tt.in), limit, func(n int, line []byte, long bool) error {
				if n != len(got)+1 {
					t.Errorf("line %d is called %d", len(got)+1, n)
				}
				if long {
					line = []byte("long" + string(line))
				}
				got = append(got, string(line))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestBatchLongRecord(t *testing.T) {
	t.Parallel()
	in := `{"id":"a","expr":"` + strings.Repeat(" ", MaxRecord) + `"}` + "\n" + `{"id":"b","expr":"1","want":["value"]}`
	unread, stdout := answers(t, "eval", in)
	want := `{"id":null,"error":"line 1: longer than 16 MiB"}` + "\n" + `{"id":"b","value":"1"}` + "\n"
	if unread != 1 || stdout != want {
		t.Errorf("%d records could not be read, got %q, want %q", unread, stdout, want)
	}
}

// FuzzEvalBatch: whatever a line is, the answer is one line of JSON.
func FuzzEvalBatch(f *testing.F) {
	ask, _ := questions(f)
	for i := 0; i < len(ask); i += 97 {
		f.Add([]byte(ask[i]))
	}
	f.Add([]byte(`{"id":"\ud800\u00`))
	f.Add([]byte(`{"id":"a","my_b64":"/w==","expr":"1","want":["value"]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.IndexByte(line, '\n') >= 0 || len(bytes.TrimSpace(line)) == 0 {
			return
		}
		for _, command := range []string{"eval", "match"} {
			unread, stdout := answers(t, command, string(line))
			if strings.Count(stdout, "\n") != 1 || !json.Valid([]byte(stdout)) || !utf8.ValidString(stdout) {
				t.Fatalf("got %q", stdout)
			}
			if bad := strings.Contains(stdout, `,"error":`); bad != (unread == 1) {
				t.Fatalf("%d records could not be read, with %s", unread, stdout)
			}
		}
	})
}

func BenchmarkEvalBatch(b *testing.B) {
	ask, _ := questions(b)
	in := strings.Join(ask, "\n")
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		if unread, err := Eval(strings.NewReader(in), io.Discard, world); unread > 0 || err != nil {
			b.Fatal("not every record was read", unread, err)
		}
	}
	b.ReportMetric(float64(len(ask)*b.N)/b.Elapsed().Seconds(), "records/s")
}
