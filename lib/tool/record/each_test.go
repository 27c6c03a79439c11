// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// TestMovesOfWhatIsNone: a line that is too long or no record is answered in its place,
// and does not end the reading.
func TestMovesOfWhatIsNone(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	unanswered, err := Moves(strings.NewReader("nonsense\n\n"+strings.Repeat("x", MaxRun+1)+"\n[]"), &out)
	want := `{"id":"","transitions":[],"error":"not a record: invalid character 'o' in literal null (expecting 'u')"}
{"id":"","transitions":[],"error":"longer than 8 MiB"}
{"id":"","transitions":[],"error":"not a record: json: cannot unmarshal array into Go value of type simulate.Record"}
`
	if err != nil || unanswered != 3 || out.String() != want {
		t.Errorf("%d, %v\ngot  %swant %s", unanswered, err, &out, want)
	}
	if _, err := Moves(strings.NewReader("x"), closed{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a closed output: %v", err)
	}
}

// TestSlotsOfWhatIsNone: what a record may not hold is refused before anything is made.
func TestSlotsOfWhatIsNone(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"id":"a","args":["-x"]}`:               "arguments [\"-x\"]: want -n NAME or none",
		`{"id":"a","query_delay_s":301}`:         "query_delay_s is 301: want 0 to 300",
		`{"id":"a","query_delay_s":-1}`:          "query_delay_s is -1: want 0 to 300",
		`{"id":"a","scripts":{"../x":"#!"}}`:     "want the name of a file, without directories",
		`{"id":"a","detected":{"cpus":"many"}}`:  "not a record: ",
		strings.Repeat(" ", 10) + `{"id":`:       "not a record: ",
		`"` + strings.Repeat("x", MaxQuestion+1): "longer than 4 MiB",
	} {
		var out strings.Builder
		if unanswered, err := Slots(strings.NewReader(in), &out, Host{}); err != nil || unanswered != 1 || !strings.Contains(strings.ReplaceAll(out.String(), `\"`, `"`), want) {
			t.Errorf("%.60s: %d, %v, %s, want %q", in, unanswered, err, &out, want)
		}
	}
}

// closed takes nothing.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
