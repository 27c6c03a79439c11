// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"errors"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/pool/admin"
	"github.com/execpoint/execpoint/lib/pool/claims"
	"github.com/execpoint/execpoint/lib/pool/collector"
)

// Settings are what a configuration says about the pool.
type Settings struct {
	Collector collector.Settings
	Claims    claims.Settings
	Admin     admin.Settings
	// PrivateNetwork is the network whose members reach us privately.
	PrivateNetwork string
}

// SettingsFrom reads the settings. The error names everything that is wrong.
func SettingsFrom(c *config.Snapshot) (Settings, error) {
	s := Settings{PrivateNetwork: c.String("PRIVATE_NETWORK_NAME")}
	var errs [3]error
	s.Collector, errs[0] = collector.SettingsFrom(c)
	s.Claims, errs[1] = claims.SettingsFrom(c)
	s.Admin, errs[2] = admin.SettingsFrom(c)
	s.Claims.Collectors, s.Claims.Files, s.Claims.ClearClaims = s.Collector.Collectors, s.Collector.Files, s.Collector.ClearClaims
	return s, errors.Join(errs[:]...)
}
