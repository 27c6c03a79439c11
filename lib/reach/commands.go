// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// Attributes of requests and answers.
const (
	attrCommand     = "Command"
	attrResult      = "Result"
	attrErrorString = "ErrorString"
	attrRetry       = "Retry"
	attrClaimID     = "ClaimId"
	attrSessionInfo = "SessionInfo"
	attrVersion     = "CondorVersion"
	attrPlatform    = "CondorPlatform"
	attrStarterAddr = "StarterIpAddr"
	attrUser        = "User"
)

// Commands are those that every starter answers; Config.Commands come on top.
// docs/security.md lists them.
func (cs *CommandSocket) Commands() []listen.Command {
	return listen.Answer(command.Starter, map[int]listen.Handler{
		command.UpdateGSICred:            cs.copyProxy,
		command.DelegateGSICredStarter:   cs.delegateProxy,
		command.CACmd:                    cs.adCommand,
		command.StarterVacateJob:         cs.vacate,
		command.CreateJobOwnerSecSession: cs.createOwnerSession,
		command.StartSSHD:                cs.startSSHD,
		command.StarterPeek:              cs.peek,
		command.DCRaiseSignal:            cs.raise,
		command.DCNop:                    nop,
		command.DCQueryInstance:          cs.instance,
	})
}

func nop(_ context.Context, c *listen.Call) error { return c.Conn.EndOfMessage() }

// readAd reads the one ad that a request is.
func readAd(c *listen.Call) (*classad.Ad, error) {
	ad, err := c.Conn.Ad(cedar.AdOptions{})
	if err != nil {
		return nil, err
	}
	return ad, c.Conn.EndOfMessage()
}

// ofClaim reports whether a call comes under the session of the claim.
func (cs *CommandSocket) ofClaim(c *listen.Call) bool {
	s := c.Request.Session
	return s != nil && s.ID == cs.id.Public && c.Request.Peer.User == security.SubmitSide
}

// adCommand answers a command whose name stands in an ad.
func (cs *CommandSocket) adCommand(_ context.Context, c *listen.Call) error {
	ad, err := readAd(c)
	if err != nil {
		return err
	}
	name, ok := ad.EvalString(attrCommand, nil)
	switch {
	case !ok:
		return cs.refuseAd(c.Conn, "InvalidRequest", "the request has no "+attrCommand)
	case !strings.EqualFold(name, "CA_RECONNECT_JOB"):
		return cs.refuseAd(c.Conn, "InvalidRequest", "a starter does not support the command ("+shown(name)+"); want CA_RECONNECT_JOB")
	case !cs.ofClaim(c):
		return cs.refuseAd(c.Conn, "NotAuthorized", "CA_RECONNECT_JOB needs the session of the claim")
	}
	// The job may read the connection from another goroutine: this one must not
	// hold it then.
	conn := c.Conn
	if !c.Detach() {
		return nil
	}
	conn.SetLimits(cedar.Limits{}) // a conversation carries more than a command
	if err := cs.cfg.Job.Reconnect(cs.stopped, conn, ad); err != nil {
		err = errors.Join(err, cs.refuseAd(conn, "Failure", oneLine(err.Error())))
		_ = conn.Close()
		return err
	}
	return nil
}

// refuseAd answers that nothing came of a command in an ad.
func (cs *CommandSocket) refuseAd(conn *cedar.Conn, result, why string) error {
	ad := classad.NewAd()
	ad.SetString(attrResult, result)
	ad.SetString(attrErrorString, why)
	return putReply(conn, ad, cs.cfg.Endpoint.Version, cs.cfg.Platform)
}

// ReplyReconnect tells the shadow on conn that it has its job back. info is
// what the starter says of itself: the ad of register_starter_info, without
// SlotAd; its CondorVersion and CondorPlatform are sent as they are.
func ReplyReconnect(conn *cedar.Conn, info *classad.Ad) error {
	ad := classad.NewAd()
	if info != nil {
		ad.Update(info)
	}
	ad.Delete("SlotAd")
	ad.SetString(attrResult, "Success")
	return putReply(conn, ad, "", "")
}

// putReply sends an answer to a command in an ad, with what each of them has.
func putReply(conn *cedar.Conn, ad *classad.Ad, version, platform string) error {
	if version != "" {
		ad.SetString(attrVersion, version)
	}
	if platform != "" {
		ad.SetString(attrPlatform, platform)
	}
	ad.SetString("MyType", "Reply")
	ad.SetString("TargetType", "Command")
	conn.PutAd(ad, cedar.AdOptions{NoPrivate: true})
	return conn.EndMessage()
}

// mostReason bounds, in bytes, what a peer says of why the job has to go. It goes
// into our log, the job's ad and its event log.
const mostReason = 1024

// vacate ends the job.
func (cs *CommandSocket) vacate(ctx context.Context, c *listen.Call) error {
	why, err := c.Conn.String()
	if err != nil {
		return err
	}
	var n [3]int64 // code, subcode, soft
	for i := range n {
		if n[i], err = c.Conn.IntIn(-1<<31, 1<<31-1); err != nil {
			return err
		}
	}
	if err := c.Conn.EndOfMessage(); err != nil {
		return err
	}
	why = cut(oneLine(why), mostReason)
	c.Log.Info("vacate by command", "user", c.Request.Peer.User, "reason", why, "code", n[0], "subcode", n[1], "soft", n[2] != 0)
	c.Conn.PutInt(1)
	if err := c.Conn.EndMessage(); err != nil {
		return err
	}
	return cs.cfg.Job.Vacate(ctx, why, int(n[0]), int(n[1]), n[2] != 0)
}

// The signals that a starter heeds, as daemons number them.
const (
	signalQuit = 3
	signalTerm = 15
)

// raise ends the job as the two signals do that end a starter.
func (cs *CommandSocket) raise(ctx context.Context, c *listen.Call) error {
	n, err := c.Conn.Int()
	if err != nil {
		return err
	}
	if err := c.Conn.EndOfMessage(); err != nil {
		return err
	}
	switch n {
	case signalTerm, signalQuit:
		c.Log.Info("signal by command", "user", c.Request.Peer.User, "signal", n)
		return cs.cfg.Job.Vacate(ctx, fmt.Sprintf("%s sent the signal %d", c.Request.Peer.User, n), 0, 0, n == signalTerm)
	}
	return errs.E("reach.raise", errs.Unsupported, fmt.Sprintf("signal %d", n), errors.New("a starter heeds 15 (SIGTERM) and 3 (SIGQUIT) by command"))
}

// instance tells this process from an earlier one at the same address.
func (cs *CommandSocket) instance(_ context.Context, c *listen.Call) error {
	if err := c.Conn.EndOfMessage(); err != nil {
		return err
	}
	c.Conn.PutBytes(fmt.Appendf(nil, "%016x", cs.instanceID))
	return c.Conn.EndMessage()
}

// mostOwnerSessions bounds the sessions that are kept for the job's owner.
const mostOwnerSessions = 64

// createOwnerSession makes a session for the owner of the job, which the
// schedd, who knows that one, hands on.
func (cs *CommandSocket) createOwnerSession(_ context.Context, c *listen.Call) error {
	ad, err := readAd(c)
	if err != nil {
		return err
	}
	shownID, _ := ad.EvalString(attrClaimID, nil)
	if subtle.ConstantTimeCompare([]byte(shownID), []byte(cs.cfg.Claim.Reveal())) != 1 {
		// HTCondor does not answer this one either.
		return errs.E("reach.createOwnerSession", errs.Denied, c.Request.Peer.User, errors.New("the claim id in the request is not that of the job"))
	}
	t, _ := cs.cfg.Job.Running()
	if t.Job == nil {
		return refuse(c.Conn, cs.cfg.Endpoint.Version, true, "the job is not yet initialized")
	}
	owner, ok := t.Job.EvalString(attrUser, nil)
	if !ok || owner == "" {
		return refuse(c.Conn, cs.cfg.Endpoint.Version, false, "the job ad has no User, so nobody is known to be its owner")
	}
	wish, _ := ad.EvalString(attrSessionInfo, nil)
	id, err := cs.newOwnerSession(owner, wish)
	if err != nil {
		return errors.Join(err, refuse(c.Conn, cs.cfg.Endpoint.Version, false, oneLine(err.Error())))
	}
	c.Log.Info("session for the owner of the job", "owner", owner)
	reply := classad.NewAd()
	reply.SetBool(attrResult, true)
	reply.SetString(attrClaimID, id.Reveal())
	reply.SetString(attrStarterAddr, cs.Address())
	reply.SetString(attrVersion, cs.cfg.Endpoint.Version)
	c.Conn.PutAd(reply, cedar.AdOptions{})
	return c.Conn.EndMessage()
}

// newOwnerSession makes a session by which its holder is the owner.
func (cs *CommandSocket) newOwnerSession(owner, wish string) (security.CapabilityID, error) {
	if wish != "" {
		info, err := security.ParseInfo(wish)
		if err != nil {
			return security.CapabilityID{}, err
		}
		if len(info.Crypto) > 0 && !slices.Contains(info.Crypto, "AES") {
			return security.CapabilityID{}, errs.E("reach.session", errs.Unsupported, "", errors.New("the session info offers no AES, the only cipher that is spoken here"))
		}
	}
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return security.CapabilityID{}, err
	}
	key, err := security.NewKeyText(nil)
	if err != nil {
		return security.CapabilityID{}, err
	}
	version := ""
	if v, ok := cedar.ParseVersion(cs.cfg.Endpoint.Version); ok {
		version = v.String()
	}
	id := security.NewCapabilityID(hex.EncodeToString(random[:]), security.DefaultInfo(version), key.Reveal())
	cs.mu.Lock()
	defer cs.mu.Unlock()
	// Tools take a new one each time, and do not say when they are done with it:
	// the oldest makes room. What it has opened goes on.
	for len(cs.ownerIDs) >= mostOwnerSessions {
		cs.sessions.Forget(cs.ownerIDs[0])
		delete(cs.owners, cs.ownerIDs[0])
		cs.ownerIDs = cs.ownerIDs[1:]
	}
	if err := cs.sessions.Add(&security.Session{
		ID: id.Session, Key: security.DeriveKey([]byte(key.Reveal())),
		Peer: security.Peer{User: owner, Method: security.MethodMatch},
	}, 0); err != nil {
		return security.CapabilityID{}, err
	}
	cs.owners[id.Session] = owner
	cs.ownerIDs = append(cs.ownerIDs, id.Session)
	return id, nil
}

// owner returns who asks if that is the owner of the job, by a session that
// was made for him here.
func (cs *CommandSocket) owner(c *listen.Call, t Target) error {
	denied := errs.E("reach.owner", errs.Denied, c.Request.Peer.User, errors.New("only the owner of the job may"))
	s := c.Request.Session
	if s == nil {
		return denied
	}
	cs.mu.Lock()
	who, ours := cs.owners[s.ID]
	cs.mu.Unlock()
	if !ours && cs.cfg.Secure == nil || c.Request.Peer.User == "" || ours && who != c.Request.Peer.User {
		return denied
	}
	if t.Job == nil {
		return nil // nothing to see yet; the answer says so
	}
	if user, ok := t.Job.EvalString(attrUser, nil); !ok || user != c.Request.Peer.User {
		return denied
	}
	return nil
}

// refuse answers a request of tools that nothing came of; retry says that it
// may later.
func refuse(conn *cedar.Conn, version string, retry bool, why string) error {
	ad := classad.NewAd()
	ad.SetBool(attrResult, false)
	ad.SetString(attrErrorString, why)
	if retry {
		ad.SetBool(attrRetry, true)
	}
	if version != "" {
		ad.SetString(attrVersion, version)
	}
	conn.PutAd(ad, cedar.AdOptions{})
	return conn.EndMessage()
}

// unready says why no visitor can be let to the job now, "" if one can.
func (t Target) unready(running bool) (why string, retry bool) {
	switch {
	case t.Finished:
		return "the job is finished", false
	case t.Job == nil:
		return "the job is not yet initialized", true
	case !running || t.Root == nil:
		return "the job has not started yet", true
	}
	return "", false
}

func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, text)
}
