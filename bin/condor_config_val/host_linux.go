// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"maps"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/platform/linux"
	"github.com/execpoint/execpoint/platform/linux/detect"
)

// newFacts detects the machine once and says what the language knows of it.
// What cannot be found out is left to the table of defaults.
func newFacts(tilde string) func(snap *config.Snapshot) (map[string]string, bool) {
	var inv *machine.Inventory
	return func(snap *config.Snapshot) (map[string]string, bool) {
		changed := false
		if inv == nil {
			inv, _ = machine.Scan(context.Background(), time.Now(), append(detect.Scanners(detect.Host(linux.DefaultRoot())), machine.EnvScanner(os.Environ()))...)
		} else if snap != nil {
			changed, _ = inv.Prefer(snap)
		}
		facts := machine.ConfigFacts(inv)
		maps.Copy(facts, processFacts(tilde))
		return facts, changed
	}
}

// processFacts are the facts about this process.
func processFacts(tilde string) map[string]string {
	facts := map[string]string{
		"PID": strconv.Itoa(os.Getpid()), "PPID": strconv.Itoa(os.Getppid()),
		"REAL_UID": strconv.Itoa(os.Getuid()), "REAL_GID": strconv.Itoa(os.Getgid()),
		"CondorIsAdmin": strconv.FormatBool(os.Geteuid() == 0),
	}
	if u, err := user.Current(); err == nil {
		facts["USERNAME"] = u.Username
	}
	if tilde != "" {
		facts["TILDE"] = tilde
	}
	return facts
}

func registry(string) (string, bool) { return "", false }
