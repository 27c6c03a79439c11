// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// row: S0-320
func TestAppendXML(t *testing.T) {
	t.Parallel()
	h := Header{Cluster: 7, Proc: 2, Time: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	const head = "Cluster = 7\nEventTime = \"2026-03-04T05:06:07\"\nProc = 2\nSubproc = 0\n"
	usage := Usage{User: 90061 * time.Second, System: time.Second}
	for _, c := range []struct {
		ev   Event
		want string
	}{
		{Execute{Host: "<1.2.3.4:5?a=b&c>"}, "EventTypeNumber = 1\nExecuteHost = \"<1.2.3.4:5?a=b&c>\"\nMyType = \"ExecuteEvent\"\n"},
		{Terminated{Exit: Exit{Status: 3}, Local: usage, Sent: 4}, "EventTypeNumber = 5\nMyType = \"JobTerminatedEvent\"\nReceivedBytes = 0.0\nReturnValue = 3\n" +
			"RunLocalUsage = \"Usr 1 01:01:01, Sys 0 00:00:01\"\nRunRemoteUsage = \"Usr 0 00:00:00, Sys 0 00:00:00\"\nSentBytes = 4.0\nTerminatedNormally = true\n" +
			"TotalLocalUsage = \"Usr 0 00:00:00, Sys 0 00:00:00\"\nTotalReceivedBytes = 0.0\nTotalRemoteUsage = \"Usr 0 00:00:00, Sys 0 00:00:00\"\nTotalSentBytes = 0.0\n"},
		{Evicted{Reason: `<a n="x">`, ReasonCode: 1}, "Checkpointed = false\nEventTypeNumber = 4\nMyType = \"JobEvictedEvent\"\nReason = \"<a n=\\\"x\\\">\"\nReasonCode = 1\nReasonSubCode = 0\n" +
			"ReceivedBytes = 0.0\nRunLocalUsage = \"Usr 0 00:00:00, Sys 0 00:00:00\"\nRunRemoteUsage = \"Usr 0 00:00:00, Sys 0 00:00:00\"\nSentBytes = 0.0\nTerminatedAndRequeued = false\nTerminatedNormally = false\n"},
		{Suspended{Processes: 2}, "EventTypeNumber = 10\nMyType = \"JobSuspendedEvent\"\nNumberOfPIDs = 2\n"},
		{Unsuspended{}, "EventTypeNumber = 11\nMyType = \"JobUnsuspendedEvent\"\n"},
		{RemoteError{Daemon: "starter", Host: "h", Text: "no", ReasonCode: 6}, "Daemon = \"starter\"\nErrorMsg = \"no\"\nEventTypeNumber = 21\nExecuteHost = \"h\"\nHoldReasonCode = 6\nHoldReasonSubCode = 0\nMyType = \"RemoteErrorEvent\"\n"},
	} {
		text, err := AppendXML([]byte("before"), h, c.ev)
		if err != nil || !strings.HasPrefix(string(text), "before<c>\n    <a n=\"") || !strings.HasSuffix(string(text), "</a>\n</c>\n") {
			t.Errorf("%T: %v, %s", c.ev, err, text)
			continue
		}
		ad, err := classad.ParseXML(strings.TrimPrefix(string(text), "before"))
		if err != nil {
			t.Errorf("%T: %v in %s", c.ev, err, text)
			continue
		}
		want, err := classad.ParseAd(head+c.want, classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Text(classad.Old), ad.Text(classad.Old)); diff != "" {
			t.Errorf("%T (-want +got):\n%s", c.ev, diff)
		}
	}
	h.Time = h.Time.Add(89_123_456)
	if text, err := AppendXML(nil, h, Unsuspended{}); err != nil || !strings.Contains(string(text), "<s>2026-03-04T05:06:07.089</s>") {
		t.Errorf("milliseconds: %v, %s", err, text)
	}
	if text, err := AppendXML(nil, h, Submit{}); !errs.Is(err, errs.Unsupported) || len(text) != 0 {
		t.Errorf("an event of an access point: %q, %v", text, err)
	}
}
