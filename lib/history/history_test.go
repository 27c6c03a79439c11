// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func job(t testing.TB, n int, more string) *classad.Ad {
	t.Helper()
	ad, err := classad.ParseAd(fmt.Sprintf("ClusterId = %d\nProcId = 0\nOwner = \"alice\"\nCompletionDate = %d\n%s", n, noon.Unix(), more), classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

// read lists what a file holds, newest first, as ids or errors.
func read(t testing.TB, data []byte) []string {
	t.Helper()
	var out []string
	for r, err := range Backwards(bytes.NewReader(data), int64(len(data))) {
		switch {
		case err != nil:
			t.Fatal(err)
		case r.Err != nil:
			out = append(out, fmt.Sprintf("at %d: %v", r.Offset, r.Err))
		default:
			n, _ := r.Ad.EvalInt("ClusterId", nil)
			out = append(out, fmt.Sprint(n))
		}
	}
	return out
}

// field returns what a banner says of name, such as ClusterId; "" if nothing.
func field(r Record, name string) string {
	_, rest, ok := strings.Cut(r.Banner, " "+name+" = ")
	if !ok {
		return ""
	}
	value, _, _ := strings.Cut(rest, " ")
	return value
}

// TestRecorded reads a file that the original has written, and writes the same
// again.
//
// row: S4-019
func TestRecorded(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("testdata", "policy-history-01"))
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, data); !cmp.Equal(got, []string{"2", "1"}) {
		t.Fatalf("read %q", got)
	}
	path := filepath.Join(t.TempDir(), "startd_history")
	o := Options{Path: path, Rotate: true, MaxBytes: 1 << 20, Keep: 2}
	var ads []*classad.Ad
	for r := range Backwards(bytes.NewReader(data), int64(len(data))) {
		ads = append(ads, r.Ad)
		if field(r, "ClusterId") == "" || field(r, "Owner") != `"${USER}"` || field(r, "Nothing") != "" {
			t.Errorf("banner %q", r.Banner)
		}
	}
	for i := len(ads) - 1; i >= 0; i-- {
		if err := o.Append(ads[i], noon); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Lengths differ where the recording has a placeholder: all but the banners
	// must be the same.
	attrs := func(b []byte) []string {
		var out []string
		for _, line := range strings.Split(string(b), "\n") {
			if !strings.HasPrefix(line, mark) {
				// A time that the recording replaced reads as a sum.
				out = append(out, strings.ReplaceAll(line, " = T + ", " = T+"))
			}
		}
		return out
	}
	if d := cmp.Diff(attrs(data), spaced(attrs(got))); d != "" {
		t.Error(d)
	}
	if !bytes.Contains(got, []byte("\n*** Offset = 0 ClusterId = 1 ProcId = 0 Owner = \"${USER}\" CompletionDate = ")) {
		t.Errorf("banner:\n%s", got)
	}
	// The second banner says where the first one is.
	first := bytes.Index(got, []byte(mark))
	if want := fmt.Sprintf("*** Offset = %d ClusterId = 2 ", first); !bytes.Contains(got, []byte(want)) {
		t.Errorf("no %q", want)
	}
}

// spaced writes T+4 as the recording has it.
func spaced(lines []string) []string {
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], " = T - ", " = T-")
	}
	return lines
}

func TestDamaged(t *testing.T) {
	t.Parallel()
	rec := func(n int) string { return fmt.Sprintf("ClusterId = %d\n*** Offset = 0 ClusterId = %d\n", n, n) }
	for _, tt := range []struct {
		name, file string
		want       []string
	}{
		{"empty", "", nil},
		{"two", rec(1) + rec(2), []string{"2", "1"}},
		{"torn at the end", rec(1) + "ClusterId = 2\nProc", []string{"at 43: a record without its last line", "1"}},
		{"the last banner without an end", rec(1) + strings.TrimSuffix(rec(2), "\n"), []string{"2", "1"}},
		{"no banner at all", "ClusterId = 2\n", []string{"at 0: a record without its last line"}},
		{"a record that is no ad", rec(1) + "((\n*** x\n" + rec(3), []string{"3", "at 43: 1:1", "1"}},
		{"an empty record", rec(1) + "*** x\n", []string{"0", "1"}},
		{"stars within a line", "A = \"x *** y\"\n" + rec(5), []string{"5"}},
		{"lines of Windows", "ClusterId = 4\r\n*** Offset = 0\r\n", []string{"4"}},
		{"zeros", "\x00\x00\x00", []string{"at 0: a record without its last line"}},
	} {
		got := read(t, []byte(tt.file))
		if len(got) != len(tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], tt.want[i]) {
				t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
			}
		}
	}
}

// A history is longer than what is read at once, and so may be a record.
func TestLong(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	var want []string
	for n := range 200 {
		size := n * 37 % 3000
		if n%50 == 49 {
			size = 3 * chunk
		}
		fmt.Fprintf(&b, "ClusterId = %d\nX = %q\n*** Offset = 0 ClusterId = %d\n", n+1, strings.Repeat("x", size), n+1)
		want = append([]string{fmt.Sprint(n + 1)}, want...)
	}
	if d := cmp.Diff(want, read(t, []byte(b.String()))); d != "" {
		t.Error(d)
	}
	fmt.Fprintf(&b, "X = %q\n*** x\n", strings.Repeat("x", maxRecord))
	if got := read(t, []byte(b.String())); len(got) != 201 || !strings.Contains(got[0], "longer than") {
		t.Errorf("a record of %d bytes: %q", maxRecord, got[:2])
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "h")
	o := Options{Path: path, Rotate: true, MaxBytes: 400, Keep: 2}
	ids := func() []string {
		t.Helper()
		files, err := Files(path)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		err = (&Query{}).Search(t.Context(), files, func(r Record) bool { out = append(out, field(r, "ClusterId")); return true },
			func(path string, at int64, err error) { t.Error(path, at, err) })
		if err != nil {
			t.Fatal(err)
		}
		return append(out, fmt.Sprint(len(files), " files"))
	}
	for n := range 9 {
		// All within one second: no file takes another's place.
		if err := o.Append(job(t, n+1, ""), noon); err != nil {
			t.Fatal(err)
		}
	}
	// Two records make 400 bytes; one file and two rotated ones hold six.
	if got := ids(); !cmp.Equal(got, []string{"9", "8", "7", "6", "5", "3 files"}) {
		t.Errorf("%q", got)
	}
	names, err := rotatedFiles(path)
	if err != nil || len(names) != 2 || filepath.Base(names[1]) != "h.20261120T120003" {
		t.Errorf("%q %v", names, err)
	}
	o.Rotate = false
	for range 5 {
		if err := o.Append(job(t, 10, ""), noon); err != nil {
			t.Fatal(err)
		}
	}
	if got := ids(); len(got) != 11 {
		t.Errorf("with rotation off: %q", got)
	}
	// By the day and by the month: the file is of today, the record of later.
	for _, tt := range []struct {
		name           string
		daily, monthly bool
		later          time.Duration
		want           string
	}{
		{"the same day", true, true, 0, "1 files"},
		{"a day later", true, false, 24 * time.Hour, "2 files"},
		{"a day later, by the month", false, true, 0, "1 files"},
		{"a month later", false, true, 31 * 24 * time.Hour, "2 files"},
	} {
		path = filepath.Join(t.TempDir(), "h")
		o := Options{Path: path, Rotate: true, MaxBytes: 1 << 20, Keep: 1, Daily: tt.daily, Monthly: tt.monthly}
		for _, at := range []time.Time{noon, noon.Add(tt.later)} {
			if err := o.Append(job(t, 1, ""), at); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, noon, noon); err != nil {
				t.Fatal(err)
			}
		}
		if got := ids(); got[len(got)-1] != tt.want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// A job cannot forge a record, nor show what is secret.
func TestHostileJob(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "h")
	ad := job(t, 1, "")
	ad.SetString("X", "\n*** Offset = 0 ClusterId = 666 Owner = \"root\"\nClusterId = 666\n")
	ad.SetString("Owner", "mal\"lory\n*** x")
	ad.SetString("ClaimId", "<1>#2#3#secret")
	ad.SetString("Environment", "A=b")
	o := Options{Path: path, HideEnvironment: true}
	if err := o.Append(ad, noon); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, data); !cmp.Equal(got, []string{"1"}) || bytes.Contains(data, []byte("secret")) || bytes.Contains(data, []byte("A=b")) {
		t.Errorf("%q\n%s", got, data)
	}
	ad.SetString("Huge", strings.Repeat("x", maxRecord))
	if err := o.Append(ad, noon); !errs.Is(err, errs.Exhausted) {
		t.Errorf("a record without end: %v", err)
	}
}

func TestPerJob(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := Options{PerJob: dir}
	if err := o.Append(job(t, 1, "GlobalJobId = \"ap#1.0#17\"\n"), noon); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "history.ap#1.0#17" {
		t.Errorf("%v %v", entries, err)
	}
	for _, id := range []string{"", "../x", strings.Repeat("x", 300)} {
		if err := o.Append(job(t, 1, fmt.Sprintf("GlobalJobId = %q\n", id)), noon); err == nil {
			t.Errorf("%q got a file", id)
		}
	}
	gone := Options{Path: filepath.Join(dir, "no", "such"), PerJob: filepath.Join(dir, "none")}
	if err := gone.Append(job(t, 1, "GlobalJobId = \"x\"\n"), noon); err == nil || !strings.Contains(err.Error(), "such") {
		t.Errorf("%v", err)
	}
}

func TestQuery(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "h")
	o := Options{Path: path}
	for n := range 20 {
		if err := o.Append(job(t, n+1, fmt.Sprintf("ExitCode = %d\n", n%3)), noon); err != nil {
			t.Fatal(err)
		}
	}
	files, err := Files(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	q := Query{Limit: 3, Constraint: classad.MustParseExpr("ExitCode == 2")}
	err = q.Search(t.Context(), append([]string{path + ".gone"}, files...), func(r Record) bool { got = append(got, field(r, "ClusterId")); return true }, nil)
	if err != nil || !cmp.Equal(got, []string{"18", "15", "12"}) {
		t.Errorf("%q %v", got, err)
	}
	for _, tt := range []struct {
		q    Query
		want []string
	}{
		{Query{Scan: 4}, []string{"20", "19", "18", "17"}},
		{Query{Scan: 4, Constraint: classad.MustParseExpr("ExitCode == 2")}, []string{"18"}},
		{Query{Since: classad.MustParseExpr("ClusterId == 18")}, []string{"20", "19"}},
		{Query{Since: classad.MustParseExpr("ClusterId <= 14"), Constraint: classad.MustParseExpr("ExitCode == 2")}, []string{"18", "15"}}, // 14 is looked at, and not wanted
		{Query{Since: classad.MustParseExpr("NoSuch == 1"), Limit: 2}, []string{"20", "19"}},
	} {
		got = nil
		if err := tt.q.Search(t.Context(), files, func(r Record) bool { got = append(got, field(r, "ClusterId")); return true }, nil); err != nil || !cmp.Equal(got, tt.want) {
			t.Errorf("%+v: %q %v, want %q", tt.q, got, err, tt.want)
		}
	}
	got = nil
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("nobody waits for it")
	got = nil
	all := Query{}
	err = all.Search(ctx, files, func(r Record) bool { got = append(got, field(r, "ClusterId")); cancel(why); return true }, nil)
	if !errors.Is(err, why) || !cmp.Equal(got, []string{"20"}) {
		t.Errorf("a search that was ended: %q %v", got, err)
	}
	if _, err := Files(filepath.Join(t.TempDir(), "none")); !errs.Is(err, errs.NotFound) {
		t.Errorf("%v", err)
	}
	if err := q.Search(t.Context(), []string{t.TempDir()}, nil, nil); err == nil {
		t.Error("a directory was read")
	}
}

// A constraint comes from whoever asks: it does not cost more than it was
// given, and nothing is read any more for one who has gone.
func TestQueryEnds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "h")
	o := Options{Path: path}
	for n := range 20 {
		if err := o.Append(job(t, n+1, ""), noon); err != nil {
			t.Fatal(err)
		}
	}
	budget := classad.NewBudget(50)
	q := Query{Constraint: classad.MustParseExpr("ClusterId + 0 + 0 + 0 + 0 < 0"), Env: classad.Env{Budget: budget}}
	if err := q.Search(t.Context(), []string{path}, nil, nil); !errs.Is(err, errs.Exhausted) || budget.Left() >= 0 || budget.Left() < -50 {
		t.Errorf("%v with %d steps left of 50", err, budget.Left())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q = Query{Constraint: classad.MustParseExpr("ClusterId < 0"), Env: classad.Env{Budget: classad.NewBudget(1000)}}
	if err := q.Search(ctx, []string{path}, nil, nil); !errors.Is(err, context.Canceled) || q.Env.Budget.Left() != 1000 {
		t.Errorf("%v with %d steps left of 1000", err, q.Env.Budget.Left())
	}
}

func TestOptionsFrom(t *testing.T) {
	t.Parallel()
	get := func(text string) (Options, error) {
		s, err := config.Parse("ep.conf", text, config.Options{Subsystem: "STARTD"})
		if err != nil {
			t.Fatal(err)
		}
		return OptionsFrom(s)
	}
	o, err := get("LOG = /log\n")
	want := Options{Path: "/log/startd_history", Rotate: true, MaxBytes: 20 << 20, Keep: 2}
	if d := cmp.Diff(want, o); d != "" || err != nil {
		t.Error(d, err)
	}
	o, err = get("STARTD_HISTORY = /h\nENABLE_HISTORY_ROTATION = false\nMAX_HISTORY_LOG = 5\nMAX_HISTORY_ROTATIONS = 7\nROTATE_HISTORY_DAILY = true\n" +
		"ROTATE_HISTORY_MONTHLY = true\nHISTORY_CONTAINS_JOB_ENVIRONMENT = false\nSTARTD_PER_JOB_HISTORY_DIR = /d\n")
	want = Options{Path: "/h", MaxBytes: 5, Keep: 7, Daily: true, Monthly: true, PerJob: "/d", HideEnvironment: true}
	if d := cmp.Diff(want, o); d != "" || err != nil {
		t.Error(d, err)
	}
	if _, err = get("MAX_HISTORY_LOG = much\nROTATE_HISTORY_DAILY = perhaps\n"); err == nil ||
		!strings.Contains(err.Error(), "MAX_HISTORY_LOG") || !strings.Contains(err.Error(), "ROTATE_HISTORY_DAILY") {
		t.Errorf("%v", err)
	}
}

// shrinking is a file that is cut while it is read.
type shrinking struct{ left int }

func (s *shrinking) ReadAt(p []byte, _ int64) (int, error) {
	if s.left--; s.left < 0 {
		return 0, errors.New("gone")
	}
	return copy(p, strings.Repeat("x", len(p))), nil
}

func TestReadError(t *testing.T) {
	t.Parallel()
	for left := range 4 {
		var last error
		for _, err := range Backwards(&shrinking{left}, 3*chunk) {
			last = err
		}
		if left < 3 && last == nil {
			t.Errorf("after %d reads: no error", left)
		}
	}
}

func FuzzBackwards(f *testing.F) {
	data, err := os.ReadFile(filepath.Join("testdata", "policy-history-01"))
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{string(data), "", "*** ", "\n*** ", "A = 1\n*** x\n*** y\n", "*** x\nA = 1", "\x00*** \n\n*** "} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		end := int64(len(data)) + 1
		for r, err := range Backwards(bytes.NewReader(data), int64(len(data))) {
			if err != nil {
				t.Fatal(err)
			}
			if (r.Ad == nil) == (r.Err == nil) {
				t.Fatalf("%+v", r)
			}
			if r.Offset >= end && r.Offset > 0 {
				t.Fatalf("record at %d after one at %d", r.Offset, end)
			}
			end = r.Offset
		}
	})
}

func BenchmarkBackwards(b *testing.B) {
	data, err := os.ReadFile(filepath.Join("testdata", "policy-history-01"))
	if err != nil {
		b.Fatal(err)
	}
	all := bytes.Repeat(data, 500)
	b.SetBytes(int64(len(all)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for range Backwards(bytes.NewReader(all), int64(len(all))) {
			n++
		}
		if n != 1000 {
			b.Fatal(n)
		}
	}
}
