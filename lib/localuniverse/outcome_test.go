// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package localuniverse

import (
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/eventlog"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/jobpolicy"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// What the schedd is told of each end: the status that it knows, the event that
// HTCondor's starter writes, and the attributes that the queue needs.
func TestEnded(t *testing.T) {
	t.Parallel()
	zero, three := host.ExitStatus{Exited: true}, host.ExitStatus{Exited: true, Code: 3}
	began := time.Unix(1_000_000, 0)
	for _, c := range []struct {
		name, ad string
		rec      protocol.ExitRecord
		told     bool
		status   int
		event    string // how its text begins behind the header
		attrs    string // that are there among others; !Name is one that is not
	}{
		{"done", "", protocol.ExitRecord{Status: three, Started: began}, false, Done, "Job terminated.", "ExitCode = 3;ExitBySignal = false;NumJobCompletions = 1;RemoteUserCpu = 0.0"},
		{"by a signal", "", protocol.ExitRecord{Status: host.ExitStatus{Signal: 9}, Started: began}, false, Done, "Job terminated.", "ExitSignal = 9;ExitBySignal = true;!ExitCode"},
		{"not done yet", "OnExitRemove = ExitCode == 0", protocol.ExitRecord{Status: three, Started: began}, false, Requeue, "Job was evicted.\n\t(0) Job terminated and was requeued", "NumJobCompletions = 1;!ExitCode;!HoldReason"},
		{"done now", "OnExitRemove = ExitCode == 0", protocol.ExitRecord{Status: zero, Started: began}, false, Done, "Job terminated.", "ExitCode = 0"},
		{"retried", "NumJobCompletions = 1\nOnExitRemove = NumJobCompletions > 2 || ExitCode == 0", protocol.ExitRecord{Status: three, Started: began}, false, Requeue, "Job was evicted.", "NumJobCompletions = 2"},
		{"often enough", "NumJobCompletions = 2\nOnExitRemove = NumJobCompletions > 2 || ExitCode == 0", protocol.ExitRecord{Status: three, Started: began}, false, Done, "Job terminated.", "NumJobCompletions = 3"},
		{"held for its end", "OnExitHold = ExitCode == 3\nOnExitHoldReason = \"three\"\nOnExitHoldSubCode = 33", protocol.ExitRecord{Status: three, Started: began}, false, ShouldHold, "Job was evicted.", "HoldReason = \"three\";HoldReasonCode = 3;HoldReasonSubCode = 33;ExitCode = 3"},
		{"held for what it used", "PeriodicHold = RemoteUserCpu > 5", protocol.ExitRecord{Status: zero, Started: began, Usage: host.Usage{UserCPU: 7 * time.Second}}, false, ShouldHold, "Job was evicted.", "HoldReasonCode = 3;RemoteUserCpu = 7.0"},
		{"held here", "", protocol.ExitRecord{Held: &protocol.Hold{Code: 6, Subcode: 2, Reason: "no program"}}, false, ShouldHold, "Job was evicted.", "HoldReason = \"no program\";HoldReasonCode = 6;HoldReasonSubCode = 2;!RemoteUserCpu"},
		{"too late", "", protocol.ExitRecord{Held: &protocol.Hold{Code: int(reason.MissedDeferredTime), Reason: "late"}}, false, MissedItsTime, "Job was evicted.", "!HoldReason"},
		{"told to go", "", protocol.ExitRecord{Evicted: true, Status: host.ExitStatus{Signal: 15}, Started: began}, true, ShouldRemove, "Job was evicted.", "!VacateReason;!ExitSignal"},
		{"it went by itself, told", "OnExitRemove = false", protocol.ExitRecord{Status: zero, Started: began}, true, ShouldRemove, "Job was evicted.", "!ExitCode"},
		{"vacated", "", protocol.ExitRecord{Evicted: true, Reason: "Job vacated by schedd", Code: 1022, Status: host.ExitStatus{Signal: 15}, Started: began}, false, Requeue, "Job was evicted.\n\t(0) Job terminated and was requeued", "VacateReason = \"Job vacated by schedd\";VacateReasonCode = 1022"},
		{"never began", "", protocol.ExitRecord{Evicted: true, Reason: "no space", Code: 1007}, false, Requeue, "Job was evicted.", "VacateReason = \"no space\""},
	} {
		ad, err := classad.ParseAd("JobStatus = 2\n"+c.ad, classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		before := ad.Text(classad.Old)
		got := Ended(ad, new(jobpolicy.System), &c.rec, c.told, began.Add(time.Minute))
		_, text, _ := strings.Cut(string(eventlog.Append(nil, eventlog.Header{Cluster: 1, Time: began.UTC()}, got.Event)), "13:46:40 ")
		if got.Status != c.status || !strings.HasPrefix(text, c.event) {
			t.Errorf("%s: status %d, event %q", c.name, got.Status, text)
		}
		for _, want := range strings.Split(c.attrs, ";") {
			name, value, _ := strings.Cut(want, " = ")
			name, absent := strings.CutPrefix(name, "!")
			e, ok := got.Attrs.Lookup(name)
			if absent && ok || !absent && (!ok || e.Text(classad.Old) != value) {
				t.Errorf("%s: want %s among\n%s", c.name, want, got.Attrs.Text(classad.Old))
			}
		}
		if ad.Text(classad.Old) != before {
			t.Errorf("%s: the job's ad was changed", c.name)
		}
	}
}
