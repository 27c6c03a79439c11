// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/slot"
)

// Attributes, as HTCondor spells them.
const (
	attrAddressV1        = "AddressV1"
	attrCapability       = "Capability"
	attrChildClaimIDs    = "ChildClaimIds"
	attrClaimID          = "ClaimId"
	attrClaimIDList      = "ClaimIdList"
	attrDutyCycle        = "DaemonCoreDutyCycle"
	attrLastHeardFrom    = "LastHeardFrom"
	attrLastReconfig     = "DaemonLastReconfigTime"
	attrMachine          = "Machine"
	attrMyAddress        = "MyAddress"
	attrMyType           = "MyType"
	attrName             = "Name"
	attrNumClaims        = "NumClaims"
	attrNumDynamicSlots  = "NumDynamicSlots"
	attrPrivateNetwork   = "PrivateNetworkName"
	attrRecentDutyCycle  = "RecentDaemonCoreDutyCycle"
	attrRemoteAdmin      = "_condor_PrivRemoteAdminCapability"
	attrRequirements     = "Requirements"
	attrStart            = "Start"
	attrStartTime        = "DaemonStartTime"
	attrStartdIPAddr     = "StartdIpAddr"
	attrTargetType       = "TargetType"
	attrUpdateSequenceNo = "UpdateSequenceNumber"
	typeDaemon           = "StartD"
	typeExtra            = "Machine.Extra"
	typeQuery            = "Query"
	typeSchedd           = "Scheduler"
	typeSlot             = "Machine"
	typeMaster           = "DaemonMaster"
)

// identity is what is the same in all ads of one moment.
type identity struct {
	address, addressV1 string
	network            string
	start, reread      int64
	attached           string
	old                bool // collectors are to be told as in the days without daemon ads
	capability         string
	duty               *DutyCycle
}

// DutyCycle is the share of time, from 0 to 1, during which the goroutine that
// owns the engine does not wait: since the daemon began and during the window of
// the statistics.
type DutyCycle struct{ Whole, Recent float64 }

func (p *Pool) identity() identity {
	at, s := p.cfg.Address(), p.settings.Load()
	id := identity{
		address: at.String(), addressV1: at.AddressV1(), network: s.PrivateNetwork, start: p.cfg.Start, reread: p.reread.Load(),
		attached: s.Attached, old: s.DaemonAd == DaemonAdNever,
	}
	if p.cfg.Duty != nil {
		d := p.cfg.Duty()
		id.duty = &d
	}
	return id
}

// public completes the ad of a slot as it is sent and shown: where we are and
// since when. Secrets that got into it by configuration or from a program are
// taken out.
func (id *identity) public(ad *classad.Ad) {
	for _, name := range ad.Names() {
		if classad.IsPrivate(name) {
			ad.Delete(name)
		}
	}
	ad.SetString(attrMyAddress, id.address)
	ad.SetString(attrAddressV1, id.addressV1)
	if id.network != "" {
		ad.SetString(attrPrivateNetwork, id.network)
	}
	ad.SetInt(attrStartTime, id.start)
	ad.SetInt(attrLastReconfig, id.reread)
	if id.duty != nil { // in the ads of slots too, as HTCondor has it
		ad.SetReal(attrDutyCycle, id.duty.Whole)
		ad.SetReal(attrRecentDutyCycle, id.duty.Recent)
	}
	if v, _ := ad.EvalString(attrMyType, nil); v != typeDaemon {
		ad.SetString(attrStartdIPAddr, id.address)
	}
}

// told is public for a collector, which nobody else may use the EP of an
// access point that has it to itself through.
func (id *identity) told(ad *classad.Ad) {
	id.public(ad)
	id.secret(ad)
}

// secret adds to the public ad what only collectors are told.
func (id *identity) secret(ad *classad.Ad) {
	if id.attached != "" {
		ad.SetString(attrStart, "Directly attached to schedd "+id.attached)
	}
	if id.capability != "" {
		ad.SetString(attrRemoteAdmin, id.capability)
	}
}

// private makes the ad with the ids by which a slot can be claimed. parts are
// the ids by which those of a partitionable slot can be.
func (id *identity) private(v *ep.SlotView, public *classad.Ad, parts []claim.ID) *classad.Ad {
	ad := classad.NewAd()
	ad.SetString(attrMyType, typeSlot)
	ad.SetString(attrName, v.FullName)
	ad.SetString(attrMyAddress, id.address)
	ad.SetString(attrStartdIPAddr, id.address)
	ad.SetString(attrClaimID, v.NextClaim.Wire())
	if id.old {
		_ = ad.SetText(attrCapability, attrClaimID) // a name
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
		ad.SetString(attrClaimIDList, list.String())
		ad.SetInt(attrNumClaims, int64(len(v.FurtherClaims)))
	}
	ids := make([]*classad.Expr, len(parts))
	for i, part := range parts {
		ids[i] = classad.Literal(classad.String(part.Wire()))
	}
	ad.SetValue(attrChildClaimIDs, classad.List(ids...))
	ad.SetInt(attrNumDynamicSlots, int64(len(parts)))
	return ad
}

// partsOf returns the ids by which the dynamic slots of a partitionable one
// can be claimed next, in order.
func partsOf(e *ep.Engine, id slot.ID) []claim.ID {
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
	ad.SetString(attrMyType, typeQuery)
	ad.SetString(attrTargetType, kind)
	var quoted strings.Builder
	quoted.Write(classad.Literal(classad.String(name)).AppendText(nil, classad.Old))
	_ = ad.SetText(attrRequirements, "TARGET."+attrName+" == "+quoted.String()) // a literal
	ad.SetString(attrName, name)
	ad.SetString(attrMyAddress, address)
	return ad
}

// put writes what a collector is told: the number of the command, unless the
// stream was opened for it, the ads and the end.
func (u *update) put(conn *cedar.Conn, opened bool, s secrets) error {
	if !opened {
		conn.PutInt(int64(u.command))
	}
	u.payload(conn, s)
	return conn.EndMessage()
}
