// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/local"
)

// TestReporters shows one run in each way.
func TestReporters(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_780_000_000, 0).UTC()
	for name, tt := range map[string]struct {
		show func(w *strings.Builder) Reporter
		want string
	}{
		"lines": {func(w *strings.Builder) Reporter { return Lines(w) }, `waiting for the disk
warning: a\tb
cluster 7: 2 jobs from x.sub
0.0 started on slot1_1
0.0 done: exited with status 0 after 5.0 s, output in out
0.0 and 2 other jobs wait: START would be TRUE if so
0.0 can never run here: too large
told to end
2 jobs: 1 done, 1 held in 90 s
kept: /tmp/kept
`},
		"live": {func(w *strings.Builder) Reporter { return Live(w, begin, func() int { return 40 }) },
			"\r\x1b[Kwaiting for the disk\n\r\x1b[Kwarning: a\\tb\n\r\x1b[Kcluster 7: 2 jobs from x.sub\n" +
				"\r\x1b[K0.0 done: exited with status 0 after 5.0 s, output in out\n" +
				"\r\x1b[K[####-----] 1/2 done, 1 running, 0 idle" +
				"\r\x1b[K0.0 and 2 other jobs wait: START would be TRUE if so\n[####-----] 1/2 done, 1 running, 0 idle" +
				"\r\x1b[K0.0 can never run here: too large\n[####-----] 1/2 done, 1 running, 0 idle" +
				"\r\x1b[Ktold to end\n[####-----] 1/2 done, 1 running, 0 idle" +
				"\r\x1b[K2 jobs: 1 done, 1 held in 90 s\nkept: /tmp/kept\n"},
		"objects": {func(w *strings.Builder) Reporter { return Objects(w) }, `{"detail":"the disk","event":"waiting"}
{"detail":"a\tb","event":"warning"}
{"cluster":7,"event":"submitted","jobs":2,"source":"x.sub"}
{"event":"started","job":"0.0","at":"0001-01-01T00:00:00Z","status":"running","slot":"slot1_1"}
{"event":"completed","job":"0.0","at":"0001-01-01T00:00:00Z","status":"running","detail":"exited with status 0","output":"out","wall_seconds":5,"exit_code":0}
{"event":"waiting","job":"0.0","at":"0001-01-01T00:00:00Z","status":"running","detail":"START would be TRUE if so","others":2}
{"event":"impossible","job":"0.0","at":"0001-01-01T00:00:00Z","status":"running","detail":"too large"}
{"detail":"told to end","event":"ending","manner":"graceful","running":1,"seconds":60,"sending":0}
{"done":1,"event":"finished","failed":0,"held":1,"impossible":0,"kept":"/tmp/kept","removed":0,"seconds":90,"total":2,"unfinished":0}
`},
	} {
		var b strings.Builder
		r := tt.show(&b)
		r.Note(Waiting, "the disk")
		r.Note(Warning, "a\tb")
		r.Begin(7, 2, "x.sub")
		c := local.Change{Status: local.Running}
		c.What, c.Slot = "started", "slot1_1"
		r.Change(c)
		c.What, c.Slot, c.Detail, c.Wall, c.Output = "completed", "", "exited with status 0", 5*time.Second, "out"
		r.Change(c)
		r.Counts(begin.Add(time.Minute), local.Counts{Total: 2, Done: 1, Running: 1})
		c = local.Change{Status: local.Running, What: "waiting", Others: 2, Detail: "START would be TRUE if so"}
		r.Change(c)
		r.Change(local.Change{Status: local.Running, What: "impossible", Detail: "too large"})
		r.Leaving("told to end", ep.ShutdownView{Manner: ep.Graceful, Jobs: 1, Left: time.Minute})
		r.End(local.Counts{Total: 2, Done: 1, Held: 1}, 90*time.Second, "/tmp/kept")
		if d := cmp.Diff(tt.want, b.String()); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
	}
}
