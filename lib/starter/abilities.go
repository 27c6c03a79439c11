// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/runner"
	"github.com/execpoint/execpoint/lib/starter/shadowjob"
)

// abilities are the attributes by which jobs ask for what a starter can do,
// whatever runs them. Only what this one really does stands here.
var abilities = [...]string{"HasFileTransfer"}

// shadowAbilities are those for jobs that come from a shadow.
var shadowAbilities = [...]string{
	"HasIOProxy", "HasJobDeferral", "HasOsUser", "HasPerFileEncryption", "HasReconnect", "HasSelfCheckpointTransfers",
	"HasTransferInputRemaps",
}

// able is what starters and their runners can do for every job.
func able() []string {
	all := abilities[:]
	for _, o := range runner.Offers() {
		all = append(all[:len(all):len(all)], o.Abilities...)
	}
	return all
}

// Runs says whether this starter runs any jobs of a kind: whether there is a runner
// for them. A job that asks for another kind by other means than Requirements is held,
// see runner.Choose.
func Runs(k machine.Kind) bool {
	return slices.ContainsFunc(runner.Offers(), func(o runner.Offer) bool { return slices.Contains(o.Programs, k) })
}

// The other attributes that Advertise and AdvertiseForPool write.
const (
	attrAbilities  = "StarterAbilityList"
	attrHasPlugins = "HasJobTransferPlugins"
	attrMethods    = "HasFileTransferPluginMethods"
	attrCommon     = "HasCommonFilesTransfer"
	attrMapping    = "MappingMethod"
)

// Advertise adds to a machine's ad what its starters can do: an attribute that
// is true for each ability, and StarterAbilityList, before what the machine's
// scanners put there.
func Advertise(ad *classad.Ad) { advertise(ad, able()) }

// AdvertiseForPool adds what starters can do besides for the jobs of a pool.
// methods are the schemes of the URLs that they can move, none when
// URLs are not moved at all. mapping is how files that jobs share are mapped, ""
// if they are not.
func AdvertiseForPool(ad *classad.Ad, methods []string, mapping protocol.Mapping) {
	list := shadowAbilities[:]
	if mapping != "" {
		list = append(list[:len(list):len(list)], attrCommon)
	}
	if len(methods) > 0 {
		list = append(list[:len(list):len(list)], attrHasPlugins)
		ad.SetString(attrMethods, strings.Join(methods, ","))
	}
	advertise(ad, list)
	if mapping != "" {
		ad.SetInt(attrCommon, shadowjob.CommonFiles) // a version, which is true, too
		ad.SetString(attrMapping, string(mapping))
	}
}

// attrOffline names the methods that plugins have and that do not work now.
const attrOffline = "OfflineFileTransferPluginMethods"

// AdvertiseOffline adds the schemes of URLs that plugins say they move, and did not when
// they were tried; none adds nothing.
func AdvertiseOffline(ad *classad.Ad, methods []string) {
	if len(methods) > 0 {
		ad.SetString(attrOffline, strings.Join(methods, ","))
	}
}

// attrNetworking is true where jobs have the machine's network.
const attrNetworking = "HasJobNetworking"

// WithoutNetwork says in an ad that Advertise has written that no job has a network
// (NO_JOB_NETWORKING): then only jobs that do without, WantJobNetworking = false, fit.
func WithoutNetwork(ad *classad.Ad) {
	list, _ := ad.EvalString(attrAbilities, nil)
	names := slices.DeleteFunc(strings.Split(list, ","), func(name string) bool { return name == attrNetworking })
	ad.SetString(attrAbilities, strings.Join(names, ","))
	ad.SetBool(attrNetworking, false)
}

// Withdraw takes out of ad what Advertise and AdvertiseForPool put there.
func Withdraw(ad *classad.Ad) {
	ad.Delete(attrOffline)
	ours := slices.Concat(able(), shadowAbilities[:], []string{attrHasPlugins, attrCommon})
	for _, name := range append(ours, attrMethods, attrMapping) {
		ad.Delete(name)
	}
	found, _ := ad.EvalString(attrAbilities, nil)
	var rest []string
	for _, name := range strings.Split(found, ",") {
		if name != "" && !slices.Contains(ours, name) {
			rest = append(rest, name)
		}
	}
	if len(rest) == 0 {
		ad.Delete(attrAbilities)
	} else {
		ad.SetString(attrAbilities, strings.Join(rest, ","))
	}
}

func advertise(ad *classad.Ad, names []string) {
	list := slices.Clone(names)
	for _, name := range names {
		ad.SetBool(name, true)
	}
	if found, ok := ad.EvalString(attrAbilities, nil); ok {
		for _, name := range strings.Split(found, ",") {
			if !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	ad.SetString(attrAbilities, strings.Join(list, ","))
}
