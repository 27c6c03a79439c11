// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
)

// toldOfClaims are the attributes of a slot that say what goes on under its
// claim.
var toldOfClaims = [...]string{
	"ClientMachine", "CurrentRank", "GlobalJobId", "JobId", "JobStart", "NumPids", "PublicClaimId", "RemoteOwner", "RemoteUser",
	"TotalJobRunTime", "TotalJobSuspendTime",
}

// locateStarter tells a shadow that has lost its starter, or that is another
// one than before, where the starter is. The access point may have another
// address by now, at which it is asked about the claim from then on.
func (p *Pool) locateStarter(ctx context.Context, c *listen.Call, ad *classad.Ad) error {
	text, ok := ad.EvalString(attrClaimID, nil)
	job, ok2 := ad.EvalString("GlobalJobId", nil)
	schedd, ok3 := ad.EvalString("ScheddIpAddr", nil)
	if !ok || !ok2 || !ok3 {
		return p.answerCommand(ctx, c, resultInvalid, "CA_LOCATE_STARTER needs ClaimId, GlobalJobId and ScheddIpAddr", nil)
	}
	id, err := claim.ParseID(text)
	if err != nil {
		return p.answerCommand(ctx, c, resultFailure, "no such claim", nil)
	}
	more, why := classad.NewAd(), ""
	if err := p.cfg.Owner.Do(ctx, func(t Turn) {
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
		return err
	}
	if why != "" {
		c.Log.Info("no starter to be located", "claim", id.String(), "job", shown(job), "why", why)
		return p.answerCommand(ctx, c, resultFailure, why, nil)
	}
	if _, err := cedar.ParseSinful(schedd); err != nil {
		c.Log.Warn("the access point names an address that is none", "claim", id.String(), "err", err)
	} else {
		p.lives.move(id, schedd)
	}
	return p.answerCommand(ctx, c, resultSuccess, "", more)
}
