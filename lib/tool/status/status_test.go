// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/observe"
)

// TestDrain: every way a drain can stand has its words.
func TestDrain(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	until := now.Add(3 * time.Minute)
	for _, tt := range []struct {
		name string
		d    observe.Draining
		want string
	}{
		{"no job is left", observe.Draining{Then: "resume"}, "  draining (graceful, id 7) for 42 s: upgrade; then resume\n"},
		{"drained", observe.Draining{Drained: true, Then: "exit"}, "  draining (graceful, id 7) for 42 s: upgrade; drained; then exit\n"},
		{"one job", observe.Draining{Jobs: 1, Then: "nothing"}, "  draining (graceful, id 7) for 42 s: upgrade; 1 job left, until they end; then nothing\n"},
		{"a limit", observe.Draining{Jobs: 2, Until: &until, Then: "exit"}, "  draining (graceful, id 7) for 42 s: upgrade; 2 jobs left, for at most 3 min 0 s; then exit\n"},
		{"by whom", observe.Draining{By: "root", Then: "exit"}, "  draining (graceful, id 7) by root for 42 s: upgrade; then exit\n"},
		{"the reason says by whom", observe.Draining{By: "upgrade", Then: "exit"}, "  draining (graceful, id 7) for 42 s: upgrade; then exit\n"},
		{"who may come", observe.Draining{Then: "exit", Start: "Owner == \"bob\""},
			"  draining (graceful, id 7) for 42 s: upgrade; then exit\n  lets in meanwhile: Owner == \"bob\"\n"},
	} {
		tt.d.ID, tt.d.How, tt.d.Reason, tt.d.Since = "7", "graceful", "upgrade", now.Add(-42*time.Second)
		var b strings.Builder
		Print(&b, &observe.Status{Draining: &tt.d}, now)
		if got := b.String(); !strings.HasSuffix(got, "USER\n"+tt.want) {
			t.Errorf("%s: got\n%swant\n%s", tt.name, got, tt.want)
		}
	}
}

// TestForeignTexts: what a job, a user or another who may drain called things moves no
// cursor and makes no line or column of its own.
func TestForeignTexts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	const evil = "a\x1b[2J\tb\nc"
	var b strings.Builder
	Print(&b, &observe.Status{Name: evil, Program: evil, Ending: evil, Started: now, Slots: []observe.Slot{{Name: evil, Job: evil, User: evil, Broken: evil, Since: now}},
		Draining: &observe.Draining{ID: evil, How: evil, By: evil, Reason: "x" + evil[1:], Then: evil, Start: evil, Since: now}}, now)
	if got := b.String(); strings.ContainsAny(got, "\x1b\t") || strings.Count(got, "\n") != 7 || strings.Count(got, `a\x1b[2J\tb\nc`) != 13 {
		t.Errorf("%q", got)
	}
}

// TestPrint: a broken slot and an end are said below the table, and nobody's status
// is nothing.
func TestPrint(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	var b strings.Builder
	Print(&b, nil, now)
	if b.Len() > 0 {
		t.Errorf("no status is %q", &b)
	}
	Print(&b, &observe.Status{Name: "a", PID: 1, Started: now, Slots: []observe.Slot{{Name: "slot1", Broken: "no memory"}}, NotContained: []string{"Memory: none\x1b"}, Ending: "told to"}, now)
	if want := "  slot1 is broken: no memory\n  not contained: Memory: none\\x1b\n  ending: told to\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("got\n%swant at the end\n%s", &b, want)
	}
}
