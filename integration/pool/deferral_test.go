// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"strconv"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/eventlog"
)

// A vanilla job with cron times begins at the time that the schedd has worked out for
// it, one whose time has passed is held as too late, and one with remote_initialdir
// begins there: with our starter as with the original.
func TestTimeAndPlace(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	const plain = "executable = job.sh\noutput = out\n"
	says := func(script string) func(dir string) {
		return func(dir string) { r.files(dir, map[string]string{"job.sh": "#!/bin/sh\n" + script + "\n"}) }
	}
	type of struct{ cron, late, place *job }
	var jobs [2]of
	for i, s := range r.sides {
		jobs[i] = of{
			cron:  s.submit(t, "cron", plain+"should_transfer_files = YES\ncron_minute = *\ncron_prep_time = 60\ncron_window = 30\n", "", says("date +%s; cat .job.ad | grep ^DeferralTime")),
			late:  s.submit(t, "late", plain+"should_transfer_files = YES\nhold = true\ndeferral_time = CurrentTime - 60\ndeferral_window = 10\n", "", says("date")),
			place: s.submit(t, "place", plain+"should_transfer_files = NO\nremote_initialdir = /usr\n", "", says("pwd")),
		}
	}
	for i, s := range r.sides {
		j := jobs[i].late
		j.tool("condor_qedit", j.id(), "Requirements", `TARGET.Rig == "`+s.name+`"`) // condor_submit writes one that is never true
		j.tool("condor_release", j.id())
		j.wait(eventlog.CodeReleased, 1)
	}
	for i, s := range r.sides {
		cron := jobs[i].cron
		cron.until("end", 3*patience, func() bool { return cron.count(eventlog.CodeTerminated) > 0 })
		at, text, _ := strings.Cut(strings.TrimSpace(cron.content("out")), "\n")
		ran, err := strconv.ParseInt(at, 10, 64)
		ad, perr := classad.ParseAd(text, classad.Old)
		if err != nil || perr != nil {
			t.Fatalf("%s: it printed %q: %v, %v", s.name, cron.content("out"), err, perr)
		}
		due, _ := ad.EvalInt("DeferralTime", nil)
		if due == 0 || due%60 != 0 || ran < due || ran > due+10 {
			t.Errorf("%s: it ran at %d, due at %d", s.name, ran, due)
		}
		late := jobs[i].late
		late.over()
		if final := late.final()[0]; final.Eval("HoldReasonCode", nil).Text(classad.Old) != "20" || late.has("out") && late.content("out") != "" {
			t.Errorf("%s: the job that came late: HoldReasonCode %v, HoldReason %v", s.name, final.Eval("HoldReasonCode", nil), final.Eval("HoldReason", nil))
		}
		place := jobs[i].place
		place.over()
		if got := place.content("out"); got != "/usr\n" {
			t.Errorf("%s: it began in %q", s.name, got)
		}
	}
	if a, b := jobs[0].late.codes(), jobs[1].late.codes(); a != b {
		t.Errorf("the job that came late: the original writes %s, ours %s", a, b)
	}
}
