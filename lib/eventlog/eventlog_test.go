// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func readAll(t *testing.T, text string) []Record {
	t.Helper()
	var list []Record
	r := NewReader(strings.NewReader(text), ReaderOptions{})
	for {
		rec, err := r.Next()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, rec)
	}
}

func write(list []Record) string {
	var b []byte
	for _, rec := range list {
		b = Append(b, rec.Header, rec.Event)
	}
	return string(b)
}

// The log a real access point wrote is read and written again byte for byte.
func TestSampleLog(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/sample-event-log.txt")
	if err != nil {
		t.Fatal(err)
	}
	list := readAll(t, string(data))
	if d := cmp.Diff(string(data), write(list)); d != "" {
		t.Error(d)
	}
	if len(list) != 24 {
		t.Errorf("%d records, want 24", len(list))
	}
	last, ok := list[len(list)-1].Event.(Terminated)
	if !ok {
		t.Fatalf("last event is %T", list[len(list)-1].Event)
	}
	want := Terminated{Sent: 1578, TotalSent: 1578, Resources: []Resource{
		{Name: "Cpus", Usage: "0", Request: "2", Allocated: "2"},
		{Name: "Disk", Usage: "16", Request: "5000", Allocated: "5120"},
		{Name: "GPUs", Allocated: "0"},
		{Name: "Memory", Usage: "0", Request: "1000", Allocated: "1024"},
		{Name: "TimeExecute", Usage: "2"},
		{Name: "TimeSlotBusy", Usage: "3"},
	}}
	if d := cmp.Diff(want, last); d != "" {
		t.Error(d)
	}
	if got := list[len(list)-1]; got.Line != 106 || got.Proc != 2 || !got.Time.Equal(time.Date(2026, 11, 20, 14, 1, 9, 0, time.UTC)) {
		t.Errorf("last header: %+v", got)
	}
}

func lines(t *testing.T, file string, each func([]byte)) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		each(sc.Bytes())
	}
	if sc.Err() != nil {
		t.Fatal(sc.Err())
	}
}

// Every kind of event text seen in the runs under a root installation is read
// into its own type and written again byte for byte.
func TestStarterEvents(t *testing.T) {
	t.Parallel()
	seen := map[Code]int{}
	lines(t, "testdata/starter-events.jsonl", func(line []byte) {
		var e struct{ ID, Raw string }
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		raw := strings.ReplaceAll(e.Raw, "${TIME}", "2026-11-20 14:00:56") + "...\n"
		list := readAll(t, raw)
		if len(list) != 1 {
			t.Fatalf("%s: %d records", e.ID, len(list))
		}
		if d := cmp.Diff(raw, write(list)); d != "" {
			t.Errorf("%s: %s", e.ID, d)
		}
		if o, ok := list[0].Event.(Other); ok {
			t.Errorf("%s: no type for %s", e.ID, o.Number)
		}
		seen[list[0].Event.Code()]++
	})
	for _, c := range []Code{0, 1, 4, 5, 6, 8, 9, 10, 11, 12, 21, 22, 24, 33, 40} {
		if seen[c] == 0 {
			t.Errorf("no event %s among the goldens", c)
		}
	}
}

// The policy runs give names, texts and detail lines (usage and byte counts
// left out, blanks around lines trimmed).
func TestPolicyEvents(t *testing.T) {
	t.Parallel()
	const usage = "\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  "
	lines(t, "testdata/policy-events.jsonl", func(line []byte) {
		var e struct {
			ID, Name, Text string
			Code           int
			Detail         []string
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		raw := string(appendPadded(nil, e.Code)) + " (001.000.000) 2026-11-20 14:00:56 " + e.Text + "\n"
		inTable := false
		for i, d := range e.Detail {
			switch {
			case inTable:
				raw += "\t   " + d
			case e.Code >= 22 && e.Code <= 24:
				raw += "    " + d
			default:
				raw += "\t" + d
			}
			raw += "\n"
			inTable = inTable || strings.HasPrefix(d, "Partitionable")
			if i == 0 && (e.Code == 4 || e.Code == 5) && !strings.HasPrefix(d, "(0) Abn") || strings.Contains(d, "ore file") || strings.Contains(d, "Corefile") {
				raw += usage + "Run Remote Usage\n" + usage + "Run Local Usage\n"
				if e.Code == 5 {
					raw += usage + "Total Remote Usage\n" + usage + "Total Local Usage\n"
				}
			}
		}
		list := readAll(t, raw+"...\n")
		if len(list) != 1 || list[0].Event.Code().String() != e.Name {
			t.Fatalf("%s: %+v, want one %s", e.ID, list, e.Name)
		}
		if o, ok := list[0].Event.(Other); ok {
			t.Errorf("%s: no type for %s", e.ID, o.Number)
		}
		got := strings.Split(strings.TrimSuffix(write(list), "\n...\n"), "\n")
		if _, text, _ := strings.Cut(got[0], "14:00:56 "); text != e.Text {
			t.Errorf("%s: text %q, want %q", e.ID, text, e.Text)
		}
		detail := []string{}
		for _, l := range got[1:] {
			if !strings.Contains(l, " Usage  ") && strings.HasSuffix(l, " Usage") || strings.Contains(l, " Bytes ") {
				continue
			}
			detail = append(detail, strings.TrimSpace(l))
		}
		if d := cmp.Diff(e.Detail, detail); d != "" {
			t.Errorf("%s %s: %s", e.ID, e.Name, d)
		}
	})
}

// Texts no golden has: every field that may be there or not.
func TestEventTexts(t *testing.T) {
	t.Parallel()
	usage := Usage{User: 90061*time.Second + 900*time.Millisecond, System: 59 * time.Second}
	for _, tt := range []struct {
		ev   Event
		want string
	}{
		{Submit{Host: "<a>", LogNotes: "DAG Node: A", UserNotes: "mine", Warning: "w"},
			"Job submitted from host: <a>\n    DAG Node: A\n    mine\n    WARNING: Committed job submission into the queue with the following warning(s): w\n"},
		{Execute{Host: "<a>", SlotName: "slot1@h", Props: []Property{{"Memory", "128"}, {"cpus", "1"}, {"CondorScratchDir", Quote(`C:\x "y"`)}}},
			"Job executing on host: <a>\n\tSlotName: slot1@h\n\tCondorScratchDir = \"C:\\\\x \\\"y\\\"\"\n\tcpus = 1\n\tMemory = 128\n"},
		{ExecutableError{NotExecutable}, "(0) Job file not executable.\n"},
		{ExecutableError{BadLink}, "(1) Job not properly linked for Condor.\n"},
		{Terminated{Exit: Exit{Signal: 9}, Remote: usage}, "Job terminated.\n\t(0) Abnormal termination (signal 9)\n\t(0) No core file\n" +
			"\t\tUsr 1 01:01:01, Sys 0 00:00:59  -  Run Remote Usage\n" +
			"\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage\n" +
			"\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Total Remote Usage\n" +
			"\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Total Local Usage\n" +
			"\t0  -  Run Bytes Sent By Job\n\t0  -  Run Bytes Received By Job\n\t0  -  Total Bytes Sent By Job\n\t0  -  Total Bytes Received By Job\n"},
		{Evicted{Requeued: &Exit{Status: 3}, Reason: "why", Sent: 5}, "Job was evicted.\n\t(0) Job terminated and was requeued\n" +
			"\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage\n\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage\n" +
			"\t5  -  Run Bytes Sent By Job\n\t0  -  Run Bytes Received By Job\n\t(1) Normal termination (return value 3)\n\twhy\n"},
		{Evicted{Checkpointed: true, ReasonCode: 1022}, "Job was evicted. Code 1022 Subcode 0\n\t(1) Job was checkpointed.\n" +
			"\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage\n\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage\n" +
			"\t0  -  Run Bytes Sent By Job\n\t0  -  Run Bytes Received By Job\n"},
		{ImageSize{Size: 7, MemoryUsage: -1, ResidentSetSize: -1}, "Image size of job updated: 7\n"},
		{ImageSize{Size: 7, ProportionalSetSize: 3}, "Image size of job updated: 7\n\t0  -  MemoryUsage of job (MB)\n\t0  -  ResidentSetSize of job (KB)\n\t3  -  ProportionalSetSize of job (KB)\n"},
		{ShadowException{Message: "m", Sent: 1, Received: 2}, "Shadow exception!\n\tm\n\t1  -  Run Bytes Sent By Job\n\t2  -  Run Bytes Received By Job\n"},
		{Aborted{}, "Job was aborted.\n"},
		{Held{}, "Job was held.\n\tReason unspecified\n\tCode 0 Subcode 0\n"},
		{Released{Reason: "via condor_release"}, "Job was released.\n\tvia condor_release\n"},
		{Released{}, "Job was released.\n"},
		{RemoteError{Daemon: "starter", Host: "slot1@h", Message: true, Text: "one\ntwo"}, "Message from starter on slot1@h:\n\tone\n\ttwo\n"},
		{RemoteError{Daemon: "starter", Host: "slot1@h", ReasonCode: 6, ReasonSubcode: 2}, "Error from starter on slot1@h:\n\tCode 6 Subcode 2\n"},
		{Reconnected{"slot1@h", "<a>", "<b>"}, "Job reconnected to slot1@h\n    startd address: <a>\n    starter address: <b>\n"},
		{AttributeUpdate{Name: "A", Value: "1"}, "Setting job attribute A to 1\n"},
		{FileTransfer{Step: OutputStarted, Queued: true, QueueDelay: 3 * time.Second, Host: "<a>"}, "Started transferring output files\n\tSeconds spent in queue: 3\n\tTransferring to host: <a>\n"},
		{Other{Number: 28, Head: "Job ad information event triggered.", Lines: []string{"Proc = 0", "Cluster = 1"}}, "Job ad information event triggered.\nProc = 0\nCluster = 1\n"},
	} {
		rec := Record{Header: Header{Cluster: 1234, Proc: 1, Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}, Event: tt.ev}
		got := write([]Record{rec})
		want := string(appendPadded(nil, int(tt.ev.Code()))) + " (1234.001.000) 2026-01-02 03:04:05 " + tt.want + "...\n"
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%T: %s", tt.ev, d)
			continue
		}
		if again := write(readAll(t, got)); again != got {
			t.Errorf("%T: written again:\n%s\nwant:\n%s", tt.ev, again, got)
		}
	}
}

// The columns grow with their cells and integers stand left of the fraction.
func TestResourceTable(t *testing.T) {
	t.Parallel()
	list := []Resource{
		{Name: "Memory", Usage: Number(103), Request: "256", Allocated: "256"},
		{Name: "Disk", Usage: "16", Request: "1000", Allocated: "123456789012"},
		{Name: "Cpus", Usage: Number(0.834), Request: "1", Allocated: "1"},
		{Name: "VeryLongResourceName", Usage: "", Request: "2", Allocated: "2", Assigned: `"f1,f2"`},
	}
	want := "" +
		"\tPartitionable Resources :    Usage  Request    Allocated Assigned\n" +
		"\t   Cpus                         :     0.83        1            1 \n" +
		"\t   Disk (KB)                    :    16        1000 123456789012 \n" +
		"\t   Memory (MB)                  :   103         256          256 \n" +
		"\t   VeryLongResourceName         :                 2            2 \"f1,f2\"\n"
	got := string(appendResources(nil, list))
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if list[0].Name != "Memory" {
		t.Error("the caller's list was sorted")
	}
	for in, want := range map[float64]string{0: "0", 1.5: "1.50", 0.001: "0.00", 27593204: "27593204", -2: "-2"} {
		if got := Number(in); got != want {
			t.Errorf("Number(%v) = %q, want %q", in, got, want)
		}
	}
}

// No text that comes from outside can end a record or start one.
func TestNoForgery(t *testing.T) {
	t.Parallel()
	evil := "x\n...\n005 (001.000.000) 2026-11-20 14:00:56 Job terminated.\r\n...\n"
	for _, ev := range []Event{
		Submit{Host: evil, LogNotes: evil, UserNotes: evil, Warning: evil},
		Execute{Host: evil, SlotName: evil, Props: []Property{{evil, evil}}},
		Terminated{Exit: Exit{Signal: 1, CoreFile: evil}, Resources: []Resource{{evil, evil, evil, evil, evil}}},
		Evicted{Reason: evil}, ShadowException{Message: evil}, Generic{evil}, Generic{"..."}, Aborted{evil},
		Held{Reason: evil}, Released{evil}, RemoteError{Daemon: evil, Host: evil, Text: evil},
		Disconnected{evil, evil, evil}, Reconnected{evil, evil, evil}, ReconnectFailed{evil, evil},
		AttributeUpdate{evil, evil, evil}, FileTransfer{Step: InputStarted, Host: evil},
		Other{Number: 99, Head: evil, Lines: []string{evil, "...", "005 (001.000.000) 2026-11-20 14:00:56 Job terminated."}},
	} {
		text := string(Append(nil, Header{Cluster: 1}, ev))
		r := NewReader(strings.NewReader(text), ReaderOptions{})
		rec, err := r.Next()
		if err == nil && rec.Event.Code() != ev.Code() {
			t.Errorf("%T read as %s", ev, rec.Event.Code())
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("%T: more than one record:\n%s", ev, text)
		}
	}
}

func TestBadRecords(t *testing.T) {
	t.Parallel()
	const ok = "011 (001.000.000) 2026-11-20 14:00:56 Job was unsuspended.\n...\n"
	const head = " (001.000.000) 2026-11-20 14:00:56 "
	for _, tt := range []struct {
		text string
		line int // of the mistake, in text
		msg  string
	}{
		{"hello\n...\n", 1, "starts like 005"},
		{"005 (001.000) 2026-11-20 14:00:56 Job terminated.\n...\n", 1, "a job id"},
		{"005 (001.x.000) 2026-11-20 14:00:56 Job terminated.\n...\n", 1, "a job id"},
		{"005 (001.000.000) 2026-13-20 14:00:56 Job terminated.\n...\n", 1, "a time like"},
		{"005 (001.000.000) 11/20 14:00:56 Job terminated.\n...\n", 1, "a date with a year"},
		{"005" + head + "Job ended.\n...\n", 1, "Job terminated."},
		{"005" + head + "Job terminated.\n...\n", 2, "Normal termination"},
		{"005" + head + "Job terminated.\n\t(2) What\n...\n", 2, "Normal termination"},
		{"005" + head + "Job terminated.\n\t(1) Normal termination (return value 0)\n\t\tUsr 0 25:00:00, Sys 0 00:00:00  -  Run Remote Usage\n...\n", 3, "Run Remote Usage"},
		{"010" + head + "Job was suspended.\n\tsome\n...\n", 2, "Number of processes"},
		{"001" + head + "Job executing on host: <a>\n\tSlotName: s\n\tCpus\n...\n", 3, "Name = Value"},
		{"022" + head + "Job disconnected, attempting to reconnect\n    why\n...\n", 3, "Trying to reconnect"},
		{"040" + head + "Began transferring\n...\n", 1, "a step of file transfer"},
	} {
		r := NewReader(strings.NewReader(ok+tt.text+ok), ReaderOptions{})
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		_, err := r.Next()
		var bad *BadRecord
		if !errors.As(err, &bad) || !strings.Contains(bad.Error(), tt.msg) {
			t.Errorf("%q: got %v, want %q", tt.text, err, tt.msg)
		} else if bad.Line != tt.line+2 {
			t.Errorf("%q: line %d, want %d", tt.text, bad.Line, tt.line+2)
		}
		rec, err := r.Next()
		if err != nil || rec.Event != (Unsuspended{}) {
			t.Errorf("%q: after it got %+v, %v", tt.text, rec, err)
		}
	}
}

func TestReaderEdges(t *testing.T) {
	t.Parallel()
	const ok = "011 (001.000.000) 2026-11-20 14:00:56 Job was unsuspended.\n...\n"
	// A torn record before a new one, at the end, and one without bounds.
	r := NewReader(strings.NewReader("005 (001.000.000) 2026-11-20 14:00:56 Job terminated.\n"+ok+"012 (001.000.000) 2026-11-20"), ReaderOptions{})
	if _, err := r.Next(); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("torn record: %v", err)
	}
	if rec, err := r.Next(); err != nil || rec.Line != 2 {
		t.Errorf("after the torn record: %+v, %v", rec, err)
	}
	if _, err := r.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("unfinished record: %v", err)
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("end: %v", err)
	}
	long := "008 (001.000.000) 2026-11-20 14:00:56 x\n" + strings.Repeat("\t"+strings.Repeat("y", 100000)+"\n", 20) + "...\n" + ok
	r = NewReader(strings.NewReader(long), ReaderOptions{})
	var bad *BadRecord
	if _, err := r.Next(); !errors.As(err, &bad) || bad.Line != 1 {
		t.Errorf("long record: %v", err)
	}
	if rec, err := r.Next(); err != nil || rec.Line != 23 {
		t.Errorf("after the long record: %+v, %v", rec, err)
	}
	// Other layouts of the time.
	cet := time.FixedZone("CET", 3600)
	for text, want := range map[string]time.Time{
		"11/20 14:00:56":           time.Date(2025, 11, 20, 14, 0, 56, 0, cet),
		"2026-11-20T14:00:56":      time.Date(2026, 11, 20, 14, 0, 56, 0, cet),
		"2026-11-20 14:00:56.789":  time.Date(2026, 11, 20, 14, 0, 56, 789e6, cet),
		"2026-11-20 14:00:56.789Z": time.Date(2026, 11, 20, 14, 0, 56, 789e6, time.UTC),
	} {
		r := NewReader(strings.NewReader("011 (1.0.0) "+text+" Job was unsuspended.\r\n...\r\n"), ReaderOptions{Location: cet, Year: 2025})
		if rec, err := r.Next(); err != nil || !rec.Time.Equal(want) {
			t.Errorf("%s: %v, %v", text, rec.Time, err)
		}
	}
}

// shortWriter takes n bytes of each write and then fails.
type shortWriter struct{ n int }

func (w shortWriter) Write(p []byte) (int, error) { return min(w.n, len(p)), io.ErrShortWrite }

func TestWriter(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	at := Header{Cluster: 1, Time: time.Date(2026, 11, 20, 14, 0, 56, 0, time.UTC)}
	for _, reason := range []string{"first", "second"} {
		w, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Write(at, Held{Reason: reason}), w.Write(at, Unsuspended{}), w.Sync(), w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if list := readAll(t, string(data)); len(list) != 4 || list[2].Event != (Held{Reason: "second"}) {
		t.Errorf("%+v", list)
	}

	// A record torn by a crash is ended before new ones are written.
	if err := os.WriteFile(path, data[:len(data)-10], 0o644); err != nil {
		t.Fatal(err)
	}
	w, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(at, Aborted{}), w.Close()); err != nil {
		t.Fatal(err)
	}
	torn, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(torn, []byte("\n...\n009 (001.000.000) 2026-11-20 14:00:56 Job was aborted.\n...\n")) {
		t.Errorf("log after a torn record:\n%s", torn)
	}

	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a directory was opened as a log")
	}
	if _, err := Open(filepath.Join(t.TempDir(), "no", "such")); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("missing directory: %v", err)
	}
	if err := NewWriter(shortWriter{3}).Write(at, Aborted{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("short write: %v", err)
	}
}

// countWriter counts writes and checks that each is one whole record.
type countWriter struct {
	t *testing.T
	n int
}

func (w *countWriter) Write(p []byte) (int, error) {
	w.n++
	if !bytes.HasSuffix(p, []byte("\n...\n")) || bytes.Count(p, []byte("\n...\n")) != 1 {
		w.t.Errorf("a write of %q", p)
	}
	return len(p), nil
}

func TestOneWritePerEvent(t *testing.T) {
	t.Parallel()
	list := readAllFile(t)
	cw := &countWriter{t: t}
	w := NewWriter(cw)
	for _, rec := range list {
		if err := w.Write(rec.Header, rec.Event); err != nil {
			t.Fatal(err)
		}
	}
	if cw.n != len(list) {
		t.Errorf("%d writes for %d events", cw.n, len(list))
	}
}

func readAllFile(t *testing.T) []Record {
	t.Helper()
	data, err := os.ReadFile("testdata/sample-event-log.txt")
	if err != nil {
		t.Fatal(err)
	}
	return readAll(t, string(data))
}

func FuzzReader(f *testing.F) {
	data, err := os.ReadFile("testdata/sample-event-log.txt")
	if err != nil {
		f.Fatal(err)
	}
	for rec := range strings.SplitAfterSeq(string(data), "\n...\n") {
		f.Add(rec)
	}
	f.Add("004 (1.0.0) 11/20 14:00:56 Job was evicted. Code 1 Subcode 2\n\t(0) Job terminated and was requeued\n...\n")
	f.Fuzz(func(t *testing.T, text string) {
		r := NewReader(strings.NewReader(text), ReaderOptions{Year: 2026})
		for range len(text) + 2 {
			rec, err := r.Next()
			var bad *BadRecord
			if errors.As(err, &bad) {
				continue
			}
			if err != nil {
				if err != io.EOF {
					t.Fatal(err)
				}
				return
			}
			if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' || c == 0x7f }) {
				continue // written as blanks, which may change an order
			}
			// What was understood is understood the same when written again.
			once := string(Append(nil, rec.Header, rec.Event))
			again, err := NewReader(strings.NewReader(once), ReaderOptions{}).Next()
			if err != nil {
				t.Fatalf("%q written as %q: %v", text, once, err)
			}
			if twice := string(Append(nil, again.Header, again.Event)); twice != once {
				t.Fatalf("%q written as %q, then as %q", text, once, twice)
			}
		}
		t.Fatal("the reader does not come to an end")
	})
}

func BenchmarkAppendTerminated(b *testing.B) {
	ev := Terminated{Sent: 1578, TotalSent: 1578, Resources: []Resource{
		{Name: "Cpus", Usage: "0.83", Request: "2", Allocated: "2"},
		{Name: "Disk", Usage: "16", Request: "5000", Allocated: "5120"},
		{Name: "Memory", Usage: "0", Request: "1000", Allocated: "1024"},
		{Name: "TimeExecute", Usage: "2"},
	}}
	h := Header{Cluster: 1, Time: time.Date(2026, 11, 20, 14, 0, 56, 0, time.UTC)}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = Append(buf[:0], h, ev)
	}
	b.SetBytes(int64(len(buf)))
}

func BenchmarkWriteFile(b *testing.B) {
	w, err := Open(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	h := Header{Cluster: 1, Time: time.Date(2026, 11, 20, 14, 0, 56, 0, time.UTC)}
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Write(h, FileTransfer{Step: InputStarted, Host: "<127.0.0.1:40407>"}); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkReader(b *testing.B) {
	data, err := os.ReadFile("testdata/sample-event-log.txt")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(bytes.NewReader(data), ReaderOptions{})
		n := 0
		for {
			if _, err := r.Next(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 24 {
			b.Fatal(n)
		}
	}
}
