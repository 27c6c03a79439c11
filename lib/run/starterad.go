// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/starter"
	"github.com/execpoint/execpoint/lib/starter/plugins"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

// StarterAd is what a starter says it can do on this machine, with all programs asked
// that it depends on: condor_starter -classad. s is the configuration as a starter
// reads it, and ask runs the programs that move files by URL. An error is what could
// not be found out; what is there is true all the same.
//
// It has what a startd puts into its ads for its starters, by the same means. Of what
// HTCondor's starter prints it lacks what ours is not or cannot: IsDaemonCore, HasTDP,
// and the HasJIC… of jobs without a schedd.
func StarterAd(ctx context.Context, s *config.Snapshot, version string, programs machine.Scanner, ask transfer.Runner) (*classad.Ad, error) {
	set, err := protocol.SettingsFrom(s, s, nil)
	pool, err2 := protocol.PoolSettingsFrom(s)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	inv := &machine.Inventory{Attrs: classad.NewAd(), Facts: make(map[string]machine.Fact)}
	wrong := inv.Apply(ctx, time.Now(), programs)
	ways := plugins.From(pool.Plugins, ask)
	wrong = append(wrong, ways.Load(ctx)...)
	ad := inv.Attrs
	starter.Withdraw(ad)
	starter.Advertise(ad)
	if set.Space.NoNetwork {
		starter.WithoutNetwork(ad)
	}
	starter.AdvertiseForPool(ad, ways.Methods(), pool.Mapping)
	ad.Delete("StarterAbilityList") // which the startd makes of it
	ad.SetString("CondorVersion", fmt.Sprintf("$CondorVersion: %s execpoint-%s $", config.Version, version))
	return ad, errors.Join(wrong...)
}
