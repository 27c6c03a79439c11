// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/slot"
)

// logFacts writes what a reading of the machine found, for who has asked for
// everything.
func (n *node) logFacts(s machine.Sample) {
	ctx, log := context.Background(), n.o.Log
	if !log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	log.Debug("swap space", "free_kib", s.FreeSwapKiB)
	if s.Has(machine.ReadDisk) {
		reserved, _ := n.o.Config.Int("RESERVED_DISK") // checked when it was loaded
		log.Debug("disk space", "free_kib", s.FreeDiskKiB, "reserved_kib", reserved<<10)
	}
	log.Debug("load average", "load", s.LoadAvg)
	idle := []any{"keyboard_s", int64(s.KeyboardIdle / time.Second)}
	if s.HasConsole {
		idle = append(idle, "console_s", int64(s.ConsoleIdle/time.Second))
	}
	log.Debug("idle time", idle...)
	for v := range n.eng.Views() {
		ad := n.eng.SlotAd(v.ID)
		load, _ := ad.EvalReal("LoadAvg", nil)
		own, _ := ad.EvalReal("CondorLoadAvg", nil)
		log.Debug("load", "slot", v.Name, "SystemLoad", load, "CondorLoad", own, "OwnerLoad", load-own)
		log.Debug("state", "slot", v.Name, "State", v.Pair.State.String(), "Activity", v.Pair.Activity.String())
	}
}

// logAds writes the ads of the slots when the EP ends, if the owner wants them.
func (n *node) logAds() {
	if yes, err := n.o.Config.Bool("STARTD_PRINT_ADS_ON_SHUTDOWN"); err != nil || !yes {
		return
	}
	wanted := n.o.Config.List("STARTD_PRINT_ADS_FILTER")
	shown := func(k slot.Kind) bool {
		return len(wanted) == 0 || slices.ContainsFunc(wanted, func(w string) bool { return strings.EqualFold(w, k.String()) })
	}
	n.o.Log.Info("*** BEGIN AD DUMP ***")
	for v := range n.eng.Views() {
		if !shown(v.Kind) {
			continue
		}
		for line := range strings.Lines(n.eng.SlotAd(v.ID).Text(classad.Old)) {
			n.o.Log.Info(strings.TrimSpace(line), "slot", v.Name)
		}
	}
	n.o.Log.Info("*** END AD DUMP ***")
}
