// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// smallCommands are what a startd is asked besides, and what it is asked in
// vain here: a clear refusal keeps peers from waiting and from trying again.
func (p *Pool) smallCommands() []listen.Command {
	return []listen.Command{
		{Number: 427, Name: "X_EVENT_NOTIFICATION", Level: security.Allow, Keep: true, Handle: p.touched},
		{Number: 429, Name: "GET_HISTORY", Level: security.Read, Handle: p.getHistory},
		{Number: 501, Name: "DELEGATE_GSI_CRED_STARTD", Level: security.Daemon, Handle: p.delegate},
		{Number: 522, Name: "COALESCE_SLOTS", Level: security.Daemon, Handle: p.coalesceSlots},
		{Number: 562, Name: "REHOME", Level: security.Administrator, Handle: p.rehome},
	}
}

// touched hears of somebody at the keyboard. Only this machine's own
// condor_kbdd is believed; it keeps its connection.
func (p *Pool) touched(_ context.Context, c *listen.Call) error {
	if err := c.Conn.EndOfMessage(); err != nil {
		return err
	}
	if !fromHere(c) {
		return errs.E("pool.X_EVENT_NOTIFICATION", errs.Denied, "", errors.New("it does not come from this machine"))
	}
	if p.cfg.Touched != nil {
		p.cfg.Touched()
	}
	return nil
}

// fromHere reports whether a connection begins and ends on this machine.
func fromHere(c *listen.Call) bool {
	if !c.Addr.IsValid() {
		return false
	}
	from := c.Addr.Addr().Unmap()
	if from.IsLoopback() {
		return true
	}
	local, ok := c.Conn.NetConn().LocalAddr().(*net.TCPAddr)
	return ok && local.AddrPort().Addr().Unmap() == from
}

// delegate refuses a proxy that no starter asks for any more.
func (p *Pool) delegate(_ context.Context, c *listen.Call) error {
	c.Conn.DiscardMessage()
	c.Conn.PutInt(replyNotOK)
	return c.Conn.EndMessage()
}

// resultInvalidState has a schedd try again later.
const resultInvalidState = "InvalidState"

// mostCoalesced bounds how many claims may be named to be made one.
const mostCoalesced = 1 << 12

// coalesceSlots refuses to make one slot of several claimed ones. What was
// claimed stays as it is.
func (p *Pool) coalesceSlots(ctx context.Context, c *listen.Call) error {
	bound(c.Conn, jobLength)
	ad, err := c.Conn.Ad(cedar.AdOptions{})
	if err != nil {
		return err
	}
	if _, err := readAd(c); err != nil { // the request, which no slot is made for
		return err
	}
	list, ok := ad.EvalString(attrClaimIDList, nil)
	names := strings.FieldsFunc(list, isListSeparator)
	if !ok || len(names) == 0 || len(names) > mostCoalesced {
		return errs.E("pool.COALESCE_SLOTS", errs.Invalid, attrClaimIDList, errors.New("want a list of claim ids"))
	}
	result, why := resultInvalidState, "this Execution Point does not coalesce slots"
	if err := p.cfg.Owner.Do(ctx, func(t Turn) {
		for _, name := range names {
			id, _ := claim.ParseID(name)
			s, found := t.Engine.SlotOf(id)
			if v, ok := t.Engine.SlotView(s); !found || !ok || !v.Claimed || v.Claim.Public != id.Public {
				result, why = resultInvalid, "can't find slot with given claim ID"
			}
		}
	}); err != nil {
		return err
	}
	c.Log.Info("refused to coalesce slots", "claims", len(names), "why", why)
	reply := classad.NewAd()
	reply.SetString(attrResult, result)
	reply.SetString(attrErrorString, why)
	c.Conn.PutAd(reply, cedar.AdOptions{})
	c.Conn.PutAd(classad.NewAd(), cedar.AdOptions{})
	return c.Conn.EndMessage()
}

// rehome refuses to go over to another access point by command.
func (p *Pool) rehome(_ context.Context, c *listen.Call) error {
	ad, err := readAd(c)
	if err != nil {
		return err
	}
	why := "this Execution Point is not rehomed by command; set STARTD_DIRECT_ATTACH_SCHEDD_NAME and reconfigure it"
	if name, ok := ad.EvalString("ScheddName", nil); !ok || name == "" {
		why = "ScheddName not specified"
	}
	c.Log.Info("rehome refused", "user", c.Request.Peer.User, "why", why)
	reply := classad.NewAd()
	reply.SetBool(attrResult, false)
	reply.SetString(attrErrorString, why)
	c.Conn.PutAd(reply, cedar.AdOptions{})
	return c.Conn.EndMessage()
}
