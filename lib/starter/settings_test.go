// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"testing"

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
