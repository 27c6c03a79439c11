// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"strings"

	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/pool/directory"
)

// Here is this machine, whose daemons write into files where they are.
type Here struct {
	Config *config.Snapshot // as tools read it

	// Read reads a file that a daemon of this machine has written, and no other's.
	Read func(path string) ([]byte, error)

	Root bool // who asks is root, for whom daemons have an address of its own
}

// subsystems are the prefixes of knobs about daemons of a kind.
var subsystems = map[directory.Kind]string{directory.ExecutionPoint: "STARTD", directory.AccessPoint: "SCHEDD", directory.Master: "MASTER"}

// Find looks for a daemon as HTCondor's tools do that are given no pool: one of this
// machine, which is meant by its name or by none, is where its files say. asked is the
// name to ask collectors about if it is not found here: <SUBSYS>_HOST or this machine
// where none was given.
//
// The files are, in this order, the one for root (also with USE_SUPER_PORT), the copy of
// the daemon's ad, and its address file. What a file says is not tried: where a daemon
// that ended has left it, the connection fails, as with HTCondor's tools.
func (h Here) Find(kind directory.Kind, name string) (at cedar.Sinful, asked string, ok bool) {
	subsystem := subsystems[kind]
	full := h.Config.String("FULL_HOSTNAME")
	if name == "" {
		name = h.Config.String(subsystem + "_HOST")
	}
	if name != "" && !strings.EqualFold(h.named(name), h.named(h.Config.String(subsystem+"_NAME"))) {
		return cedar.Sinful{}, name, false
	}
	if name == "" {
		name = full
	}
	files := []string{h.Config.String(subsystem + "_DAEMON_AD_FILE"), h.Config.String(subsystem + "_ADDRESS_FILE")}
	if kind == directory.AccessPoint {
		files[1] = directory.AddressFilesFrom(h.Config).Schedd // which is there without a knob, too
	}
	if super, err := h.Config.Bool("USE_SUPER_PORT"); h.Root || err == nil && super {
		files = append([]string{h.Config.String(subsystem + "_SUPER_ADDRESS_FILE")}, files...)
	}
	for _, path := range files {
		if path == "" {
			continue
		}
		text, err := h.Read(path)
		if err != nil {
			continue // another file or a collector may know
		}
		if at, err := daemon.ReadAddress(string(text)); err == nil && at.Port > 0 {
			return at, name, true
		}
	}
	return cedar.Sinful{}, name, false
}

// named is the whole name of a daemon that is configured, or called, by a name: that of
// the machine, or the name and behind it the machine.
func (h Here) named(name string) string {
	full := h.Config.String("FULL_HOSTNAME")
	if strings.EqualFold(name, h.Config.String("HOSTNAME")) || strings.EqualFold(name, full) {
		return full
	}
	return ad.DaemonName(name, full)
}
