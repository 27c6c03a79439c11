// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// fromStartd and fromStarter are a line of each kind, with every field set.
func fromStartd(t testing.TB) []Line {
	why := Leave{Manner: MannerHold, Asked: "startd", Reason: "a \"b\"\n<c>", Code: 1011, Subcode: -4}
	return []Line{
		{Message: StartdHello{Program: "p", Heard: 7}},
		{Message: Heard{Report: 1 << 60}},
		{ID: 1, Message: &Plan{
			Activation: "slot1#1", Orphan: OrphanStay, JobAd: "A = \"\\\"x\"\n", RunAs: &host.Identity{Name: "u", UID: 7},
			Shadow: &ShadowSide{Claim: claim.Secret("<1.2.3.4:5>#1#2#secret"), Family: claim.Secret("f"), Split: claim.Secret("<1.2.3.4:5>#1#3#more"), Address: "<1.2.3.4:5>"}, Log: &LogPlan{Path: "/l"},
			Settings: configured(t, "JOB_RENICE_INCREMENT = TARGET.'a b'\n"),
		}},
		{ID: 2, Message: Suspend{}},
		{ID: 3, Message: Continue{}},
		{ID: 4, Message: SoftKill{Leave: why, Final: true, Deadline: time.Second}},
		{ID: 5, Message: HardKill{Leave: why, OutputLimit: time.Hour}},
		{ID: 6, Message: Checkpoint{}},
		{ID: 7, Message: SlotAd{Slot: "A = 1\n", Usage: "B = undefined\n"}},
		{ID: 8, Message: Cataloged{Why: "w"}},
		{ID: 1 << 63, Message: Ping{}},
	}
}

func fromStarter() []Line {
	proc := host.ProcID{PID: 812, Start: 52133}
	return []Line{
		{Message: StarterHello{Program: "p", Proc: proc, Activation: "a", State: JobRuns, Taken: 3, Lost: 2}},
		{Message: Taken{Order: 4}},
		{Message: Busy{PID: 9}},
		{ID: 1, At: at, Message: Sandbox{Dir: "/x \"y\""}},
		{ID: 2, At: at, Message: TransferInStart{}},
		{ID: 3, At: at, Message: TransferInDone{Files: 1, Bytes: 2}},
		{ID: 4, At: at, Message: Running{Proc: proc}},
		{ID: 5, At: at, Message: Usage{Usage: host.Usage{UserCPU: 3}, DiskKiB: 4}},
		{ID: 6, At: at, Message: Suspended{Count: 3}},
		{ID: 7, At: at, Message: Continued{}},
		{ID: 8, At: at, Message: TransferOutStart{}},
		{ID: 9, At: at, Message: OutputMoved{Bytes: 5}},
		{ID: 10, At: at, Message: TransferOutDone{Files: 1, Bytes: 2}},
		{ID: 11, At: at, Message: Held{Hold: Hold{Code: 1, Subcode: 2, Reason: "r"}}},
		{ID: 12, At: at, Message: Contact{Address: "<1.2.3.4:5>"}},
		{ID: 13, At: at, Message: Refused{Order: "checkpoint", Why: "w"}},
		{ID: 14, At: at, Message: Attributes{Ad: "A = 1\n", Delayed: true}},
		{ID: 15, At: at, Message: Event{Text: "a\nline"}},
		{ID: 17, At: at, Message: Catalog{Ad: "A = 1\n"}},
		{ID: 18, At: at, Message: Color{Ad: "B = 1\n"}},
		{ID: 16, At: at, Message: Ended{Record: ExitRecord{Activation: "a", Evicted: true, Held: &Hold{Code: 1}, Ended: at, Problems: []string{"p\n"}, Fault: &Fault{Kind: FaultSpawn}}}},
	}
}

// Every message is one line and is read as what it was.
func TestLines(t *testing.T) {
	t.Parallel()
	for _, side := range []struct {
		from  Speaker
		lines []Line
	}{{Startd, fromStartd(t)}, {Starter, fromStarter()}} {
		said := map[string]bool{}
		for _, want := range side.lines {
			said[want.Message.Kind()] = true
			text, err := Append([]byte("before"), want)
			if err != nil {
				t.Error(err)
				continue
			}
			line, appended := bytes.CutPrefix(text, []byte("before"))
			line, ended := bytes.CutSuffix(line, []byte("\n"))
			if !appended || !ended || bytes.Contains(line, []byte("\n")) {
				t.Errorf("not one line: %q", text)
			}
			got, err := side.from.Reader().Read(line)
			if err != nil {
				t.Errorf("%s: %v", line, err)
				continue
			}
			again, err := Append(nil, got)
			if err != nil || string(again) != string(line)+"\n" {
				t.Errorf("%s was read as %s, %v", line, again, err)
			}
			if _, plan := want.Message.(*Plan); plan {
				continue // expressions of its settings are compared as text
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: (-want +got):\n%s", line, diff)
			}
		}
		for kind := range side.from.kinds {
			if !said[kind] {
				t.Errorf("no line is a %q", kind)
			}
		}
		if len(said) != len(side.from.kinds) {
			t.Errorf("%d kinds are said, %d are known", len(said), len(side.from.kinds))
		}
	}
}

// What is wrong with a line is said, another version in any case.
func TestNoLine(t *testing.T) {
	t.Parallel()
	const other = errs.Unsupported
	for _, c := range []struct {
		line string
		kind errs.Kind
		says string
	}{
		{``, errs.Invalid, "no object"},
		{`nonsense`, errs.Invalid, `"nonsense"`},
		{`{"v":1,"id":1,"kind":"suspend","body":{}`, errs.Invalid, "EOF"},
		{`{"v":1,"id":1,"kind":"suspend","body":{}}{}`, errs.Invalid, "follows"},
		{`{"v":1,"id":1,"kind":"suspend","body":{},"why":"x"}`, errs.Invalid, "why"},
		{`{"v":1,"id":1,"kind":"suspend","body":{"reason":"x"}}`, errs.Invalid, "reason"},
		{`{"v":1,"id":1,"kind":"suspend"}`, errs.Invalid, "no object"},
		{`{"v":1,"id":1,"kind":"suspend","body":null}`, errs.Invalid, "no object"},
		{`{"v":1,"id":1,"kind":"plan","body":null}`, errs.Invalid, "no object"},
		{`{"v":1,"id":-1,"kind":"suspend","body":{}}`, errs.Invalid, "-1"},
		{`{"v":1,"kind":"suspend","body":{}}`, errs.Invalid, "number is 0"},
		{`{"v":1,"id":2,"kind":"hello","body":{}}`, errs.Invalid, "number is 2"},
		{`{"v":1,"id":1,"kind":"dance","body":{}}`, errs.Invalid, "dance"},
		{`{"v":1,"id":1,"kind":"running","body":{}}`, errs.Invalid, "running"}, // it is the starter's
		{`{"v":1,"id":1,"kind":"plan","body":{"shadow":{"claim":"c","family":"f","new":1}}}`, errs.Invalid, "new"},
		{`{"op":"plan","plan":{"activation":"a"}}`, other, "no version"},
		{`{}`, other, "no version"},
		{`{"v":2,"kind":"hello","body":{"program":"execpoint-2","mood":"good"}}`, other, `version 2 ("execpoint-2")`},
		{`{"v":2,"sort":"hello"}`, other, "version 2 of"},
		{`{"v":"two"}`, other, "no version"},
	} {
		_, err := Startd.Reader().Read([]byte(c.line))
		if errs.KindOf(err) != c.kind || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v; want %q", c.line, err, c.says)
		}
		var o *OtherVersion
		if is := errors.As(err, &o); is != (c.kind == other) || is && !strings.Contains(err.Error(), Program) {
			t.Errorf("%s: %v does not name both", c.line, err)
		}
	}
}

// A line has an end.
func TestTooLong(t *testing.T) {
	t.Parallel()
	if line, err := Append(nil, Line{ID: 1, Message: SlotAd{Slot: strings.Repeat("x", MaxLine-10)}}); !errs.Is(err, errs.Invalid) || len(line) != 0 {
		t.Errorf("%d bytes, %v", len(line), err)
	}
	line, err := Append(nil, Line{ID: 1, Message: SlotAd{Slot: strings.Repeat("x", MaxLine-300)}})
	if err != nil || len(line) > MaxLine {
		t.Errorf("%d bytes, %v", len(line), err)
	}
}

func FuzzStartd(f *testing.F) {
	fuzz(f, Startd, append(fromStartd(f), fromStarter()...))
}

func FuzzStarter(f *testing.F) {
	fuzz(f, Starter, append(fromStarter(), fromStartd(f)...))
}

// fuzz looks that whatever is read can be said, and is read as the same again.
func fuzz(f *testing.F, from Speaker, lines []Line) {
	for _, l := range lines {
		text, err := Append(nil, l)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{"", "{", "[]", "null", `{"v":1}`, `{"v":2,"kind":"hello","body":{"program":7}}`, `{"v":1,"V":2,"id":1,"kind":"ping","body":{}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := from.Reader().Read(text)
		if err != nil {
			if k := errs.KindOf(err); k != errs.Invalid && k != errs.Unsupported {
				t.Errorf("%v is %v", err, k)
			}
			return
		}
		said, err := Append(nil, l)
		if err != nil {
			return // longer than a line: it was escaped
		}
		again, err := from.Reader().Read(bytes.TrimSuffix(said, []byte("\n")))
		if err != nil {
			t.Fatalf("%s was read, and %s was not: %v", text, said, err)
		}
		if twice, err := Append(nil, again); err != nil || !bytes.Equal(said, twice) {
			t.Errorf("%s became %s, %v", said, twice, err)
		}
	})
}
