// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/pool/ads"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/slot"
)

// identity is what is the same in all ads of one moment that collectors are sent.
type identity struct {
	ads.Identity
	// attached is the access point that has this EP to itself: no other one may use
	// it through a collector.
	attached   string
	old        bool // collectors are sent what they were sent before there were daemon ads
	capability string
}

// identity is that of now.
func (u *Updates) identity() identity {
	s := u.settings.Load()
	return identity{Identity: u.cfg.Ads.Identity(), attached: s.Attached, old: s.DaemonAd == DaemonAdNever, capability: u.administration()}
}

// secret adds to the public ad what only collectors are sent.
func (id *identity) secret(ad *classad.Ad) {
	if id.attached != "" {
		ad.SetString(ads.AttrStart, "Directly attached to schedd "+id.attached)
	}
	if id.capability != "" {
		ad.SetString(ads.AttrRemoteAdmin, id.capability)
	}
}

// private makes the ad with the ids by which a slot can be claimed. parts are
// the ids by which those of a partitionable slot can be.
func (id *identity) private(v *ep.SlotView, public *classad.Ad, parts []claim.ID) *classad.Ad {
	ad := classad.NewAd()
	ad.SetString(ads.AttrMyType, ads.TypeSlot)
	ad.SetString(ads.AttrName, v.FullName)
	ad.SetString(ads.AttrMyAddress, id.Address)
	ad.SetString(ads.AttrStartdIPAddr, id.Address)
	ad.SetString(ads.AttrClaimID, v.NextClaim.Wire())
	if id.old {
		_ = ad.SetText(ads.AttrCapability, ads.AttrClaimID) // a name
	}
	if v.Kind != slot.Partitionable {
		return ad
	}
	if _, consumes := public.Lookup("ConsumptionCpus"); consumes {
		// A negotiator takes these, and not ClaimId.
		var list strings.Builder
		for _, id := range v.FurtherClaims {
			list.WriteString(" " + id.Wire())
		}
		ad.SetString(ads.AttrClaimIDList, list.String())
		ad.SetInt(ads.AttrNumClaims, int64(len(v.FurtherClaims)))
	}
	ids := make([]*classad.Expr, len(parts))
	for i, part := range parts {
		ids[i] = classad.Literal(classad.String(part.Wire()))
	}
	ad.SetValue(ads.AttrChildClaimIDs, classad.List(ids...))
	ad.SetInt(ads.AttrNumDynamicSlots, int64(len(parts)))
	return ad
}

// partsOf returns the ids by which the dynamic slots of a partitionable one
// can be claimed next, in order.
func partsOf(e engine.Slots, id slot.ID) []claim.ID {
	var ids []claim.ID
	for v := range e.After(id) {
		if v.ID.N != id.N {
			break
		}
		ids = append(ids, v.NextClaim)
	}
	return ids
}

// withdrawal makes the query by which a collector forgets an ad.
func withdrawal(kind, name, address string) *classad.Ad {
	ad := classad.NewAd()
	ad.SetString(ads.AttrMyType, ads.TypeQuery)
	ad.SetString(ads.AttrTargetType, kind)
	var quoted strings.Builder
	quoted.Write(classad.Literal(classad.String(name)).AppendText(nil, classad.Old))
	_ = ad.SetText(ads.AttrRequirements, "TARGET."+ads.AttrName+" == "+quoted.String()) // a literal
	ad.SetString(ads.AttrName, name)
	ad.SetString(ads.AttrMyAddress, address)
	return ad
}

// put writes a message to a collector: the number of the command, unless the
// stream was opened for it, the ads and the end.
func (u *update) put(conn *cedar.Conn, opened bool, s secrets) error {
	if !opened {
		conn.PutInt(int64(u.command))
	}
	u.payload(conn, s)
	return conn.EndMessage()
}
