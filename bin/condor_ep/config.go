// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/user"
	"strings"

	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/platform/linux/system"
)

// recordedRuns lists the runs of this user that are recorded on this machine.
func recordedRuns(p *thishost.Platform) ([]run.Dir, []run.Owner, error) {
	base, err := p.RunBase()
	if err != nil {
		return nil, nil, err
	}
	return run.Dirs(p.Private(), base)
}

// loadConfig reads the configuration of root, or else of CONDOR_CONFIG. Without a file all of the machine is one
// partitionable slot and any job runs. What the configuration does not say
// about places is put below dir.
func loadConfig(root, localName, dir string, inv *machine.Inventory) (*config.Snapshot, error) {
	return loadConfigBy(nil, root, localName, dir, inv)
}

// loadConfigBy is loadConfig with another way to run what the configuration
// names.
func loadConfigBy(command func(string) ([]byte, error), root, localName, dir string, inv *machine.Inventory) (*config.Snapshot, error) {
	return loadConfigWithin(context.Background(), command, root, localName, dir, inv)
}

// loadConfigWithin is loadConfigBy, until ctx ends.
func loadConfigWithin(ctx context.Context, command func(string) ([]byte, error), root, localName, dir string, inv *machine.Inventory) (*config.Snapshot, error) {
	c := system.Configuration{File: orFromEnv(root), Dir: dir, LocalName: localName, Command: command}
	return c.Read(ctx, inv, nil)
}

// orFromEnv is root, or where there is none what CONDOR_CONFIG names.
func orFromEnv(root string) string {
	if root == "" {
		root = os.Getenv(config.RootKnob)
	}
	if strings.EqualFold(root, "ONLY_ENV") {
		return ""
	}
	return root
}

// saveConfig writes what was configured, and what of it was used, for
// condor_config_val -snapshot.
func saveConfig(snap *config.Snapshot, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(snap.Save(f), f.Close())
}

// warningText is what a warning says, without the word itself: the line it is
// shown in begins with it.
func warningText(w error) string { return strings.Replace(w.Error(), " warning:", "", 1) }

// currentUser names who runs this as "user@domain".
func currentUser(snap *config.Snapshot, inv *machine.Inventory) (string, error) {
	u, err := user.Current()
	if err != nil {
		return "", err
	}
	domain := snap.String("UID_DOMAIN")
	if domain == "" {
		domain = inv.FullHostname
	}
	return u.Username + "@" + domain, nil
}
