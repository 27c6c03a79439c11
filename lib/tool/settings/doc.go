// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package settings says what a configuration is set to, in the words of HTCondor's
// condor_config_val: the value of a name, where it was set, as it stands in the file,
// its default; what a template holds; all names that match; a configuration written
// out again. It owns these texts, byte for byte those of HTCondor's tool. What a
// configuration means is lib/config's. It must never read a file, find out the
// machine or ask a daemon, nor change a configuration: it is handed a
// config.Snapshot, or what a daemon saved of its own.
package settings
