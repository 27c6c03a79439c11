// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/pool/ads"
	"github.com/execpoint/execpoint/lib/pool/engine"
)

// toldOfClaims are the attributes of a slot that say what goes on under its
// claim.
var toldOfClaims = [...]string{
	"ClientMachine", "CurrentRank", "GlobalJobId", "JobId", "JobStart", "NumPids", "PublicClaimId", "RemoteOwner", "RemoteUser",
	"TotalJobRunTime", "TotalJobSuspendTime",
}

// LocateStarter answers CA_LOCATE_STARTER, with what such an answer says: it tells a shadow that has lost its starter, or that is another
// one than before, where the starter is. The access point may have another
// address by now, at which it is asked about the claim from then on.
func (s *Server) LocateStarter(ctx context.Context, c *listen.Call, ad *classad.Ad) (result, why string, more *classad.Ad, err error) {
	text, ok := ad.EvalString(ads.AttrClaimID, nil)
	job, ok2 := ad.EvalString("GlobalJobId", nil)
	schedd, ok3 := ad.EvalString("ScheddIpAddr", nil)
	if !ok || !ok2 || !ok3 {
		return ads.ResultInvalid, "CA_LOCATE_STARTER needs ClaimId, GlobalJobId and ScheddIpAddr", nil, nil
	}
	id, err := claim.ParseID(text)
	if err != nil {
		return ads.ResultFailure, "no such claim", nil, nil
	}
	more = classad.NewAd()
	if err := s.cfg.Owner.Do(ctx, func(t engine.Turn) {
		v, known := claimView(t.Engine, id)
		switch {
		case !known:
			why = "no such claim"
		case v.Activation == "":
			why = "no starter runs under the claim"
		case v.GlobalJobID != job:
			why = "another job runs under the claim"
		case v.StarterAddress == "":
			why = "the starter cannot be reached yet"
		default:
			more.SetString("StarterIpAddr", v.StarterAddress)
			slot := t.Engine.SlotAd(v.ID)
			for _, name := range toldOfClaims {
				if e, ok := slot.Lookup(name); ok {
					more.Set(name, e)
				}
			}
		}
	}); err != nil {
		return "", "", nil, err
	}
	if why != "" {
		c.Log.Info("no starter to be located", "claim", id.String(), "job", listen.Shown(job), "why", why)
		return ads.ResultFailure, why, nil, nil
	}
	if _, err := cedar.ParseSinful(schedd); err != nil {
		c.Log.Warn("the access point names an address that is none", "claim", id.String(), "err", err)
	} else {
		s.keepalives.move(id, schedd)
	}
	return ads.ResultSuccess, "", more, nil
}
