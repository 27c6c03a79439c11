// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/execpoint/execpoint/lib/eventlog"
)

// The log of a job says when it is done. What is torn or of another kind does not
// end the reading.
func ExampleReader() {
	var log bytes.Buffer
	w := eventlog.NewWriter(&log)
	at := time.Date(2026, 11, 23, 14, 0, 0, 0, time.UTC)
	for i, ev := range []eventlog.Event{
		eventlog.Submit{Host: "<127.0.0.1:9618>"},
		eventlog.Held{Reason: "no room", ReasonCode: 34},
		eventlog.Terminated{Exit: eventlog.Exit{Status: 3}},
	} {
		if err := w.Write(eventlog.Header{Cluster: 7, Time: at.Add(time.Duration(i) * time.Minute)}, ev); err != nil {
			fmt.Println(err)
			return
		}
	}
	r := eventlog.NewReader(&log, eventlog.ReaderOptions{})
	for {
		record, err := r.Next()
		var bad *eventlog.BadRecord
		switch {
		case errors.Is(err, io.EOF):
			return
		case errors.As(err, &bad):
			fmt.Println("left out:", bad)
			continue
		case err != nil:
			fmt.Println(err)
			return
		}
		switch ev := record.Event.(type) {
		case eventlog.Held:
			fmt.Println(record.Header.Time.Format(time.TimeOnly), "held:", ev.Reason)
		case eventlog.Terminated:
			fmt.Println(record.Header.Time.Format(time.TimeOnly), "done with", ev.Exit.Status)
		}
	}
	// Output:
	// 14:01:00 held: no room
	// 14:02:00 done with 3
}
