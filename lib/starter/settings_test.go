// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// silent leaves out of the defaults what a machine of a test does not have.
const silent = "UID_DOMAIN = u\nFILESYSTEM_DOMAIN = f\nBASE_CGROUP =\nFILE_TRANSFER_STATS_LOG =\nFILETRANSFER_PLUGINS =\nSTARTER_SETS_HOME_ENV = false\n" +
	"BIN =\nSTARTER_NUM_THREADS_ENV_VARS =\n"

// configured are the settings of a configuration.
func configured(t testing.TB, text string) *protocol.Settings {
	t.Helper()
	startd, err := config.Parse("text", silent+text, config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := protocol.Configuration(startd, 0)
	if err != nil {
		t.Fatal(err)
	}
	set, err := protocol.SettingsFrom(c, startd, nil)
	if err != nil {
		t.Fatal(err)
	}
	if set.Pool, err = protocol.PoolSettingsFrom(c); err != nil {
		t.Fatal(err)
	}
	return set
}

// Note 34 of the recorded starter, cases lim-renice-….
func TestNice(t *testing.T) {
	t.Parallel()
	job, err := classad.ParseAd("N = 7\nPrio = 3", classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		"": 0, "0": 0, "10": 10, "N + 1": 8, "MY.N": 7, "TARGET.N": 10, "25": 19, "-5": 0, "Prio > 2 ? 19 : 0": 19, "(": 10, `"x"`: 10, "true": 1, `real("NaN")`: 10,
	} {
		if got := configured(t, "JOB_RENICE_INCREMENT = "+text+"\n").Niceness(job, time.Time{}); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
