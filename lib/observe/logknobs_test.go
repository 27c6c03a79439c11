// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/config"
)

func TestLogSettingsFrom(t *testing.T) {
	t.Parallel()
	read := func(text string) (LogSettings, error) {
		s, err := config.Parse("test.conf", text, config.Options{Subsystem: "STARTD"})
		if err != nil {
			t.Fatal(err)
		}
		return LogSettingsFrom(s, "STARTD")
	}
	got, err := read("LOG = /var/log/condor\n")
	if err != nil || got.Path != "/var/log/condor/StartLog" || got.Limit != (LogLimit{Bytes: 10 << 20}) || got.Keep != 1 || got.Debug.Timestamp {
		t.Errorf("by default: %+v, %v", got, err)
	}
	got, err = read("ALL_DEBUG = D_CAT\nSTARTD_DEBUG = D_FULLDEBUG D_WHAT\nMAX_STARTD_LOG = 2 days\nMAX_NUM_STARTD_LOG = 5\nLOGS_USE_TIMESTAMP = true\n")
	if err != nil || got.Limit != (LogLimit{Age: 48 * time.Hour}) || got.Keep != 5 || !got.Debug.Timestamp || !got.Debug.Category || len(got.Unknown) != 1 {
		t.Errorf("as configured: %+v, %v", got, err)
	}
	if _, verbose := got.Debug.Shows("D_ALWAYS"); !verbose {
		t.Error("D_FULLDEBUG shows nothing more")
	}
	if got, err = read("DEFAULT_DEBUG = D_SECURITY\n"); err != nil {
		t.Error(err)
	} else if basic, _ := got.Debug.Shows("D_SECURITY"); !basic {
		t.Error("DEFAULT_DEBUG does not count")
	}
	for text, want := range map[string]string{
		"MAX_STARTD_LOG = much\n":      "test.conf:1: MAX_STARTD_LOG",
		"MAX_NUM_STARTD_LOG = -3\n":    "want 0 to 10000",
		"LOGS_USE_TIMESTAMP = often\n": "LOGS_USE_TIMESTAMP",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want an error with %q", text, err, want)
		}
	}
}
