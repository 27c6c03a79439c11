// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"context"
	"errors"

	"github.com/execpoint/execpoint/lib/cedar/delegation"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/errs"
)

// The shadow looks every SHADOW_CHECKPROXY_INTERVAL whether the job's proxy is a new
// one at its side, or the one here is soon over, and sends another: by delegation,
// and where that fails, or DELEGATE_JOB_GSI_CREDENTIALS is false there, as it is.

// What is answered to a proxy. HTCondor's starter answers 2, which is "send no
// more", for jobs whose files are not moved. Here they have a proxy of their own, too.
const (
	proxyRefused = 0
	proxyTaken   = 1
)

// copyProxy takes a proxy as it is.
func (cs *CommandSocket) copyProxy(ctx context.Context, c *listen.Call) error {
	if err := cs.maySendProxy(c); err != nil {
		return err
	}
	var file bytes.Buffer
	_, err := c.Conn.GetFile(ctx, &file, delegation.MostChain)
	if err == nil {
		err = c.Conn.EndOfMessage()
	}
	if err != nil {
		return err
	}
	return cs.renewProxy(c, file.Bytes())
}

// delegateProxy has the shadow sign another proxy. We speak first: the shadow has the
// key of the claim's session if what it sends then can be read.
func (cs *CommandSocket) delegateProxy(_ context.Context, c *listen.Call) error {
	if err := cs.maySendProxy(c); err != nil {
		return err
	}
	request, err := cs.newRequest()
	if err != nil {
		return err
	}
	chain, err := request.Ask(c.Conn)
	if err != nil {
		return err
	}
	if !c.Conn.Proven() {
		return errs.E("reach.delegateProxy", errs.Denied, c.Request.Peer.User, errors.New("the peer does not show that it has the key of the session"))
	}
	file, err := request.Accept(chain)
	if err != nil {
		return errors.Join(err, cs.answerProxy(c, proxyRefused))
	}
	return cs.renewProxy(c, file)
}

// newRequest makes a key. It takes long enough for a peer that only knows the claim's
// name to keep a machine busy with it, so one is made at a time.
func (cs *CommandSocket) newRequest() (*delegation.Request, error) {
	cs.keys.Lock()
	defer cs.keys.Unlock()
	return delegation.NewRequest()
}

// maySendProxy lets the shadow of the job send a proxy and nobody else: HTCondor's
// starter lets all who have WRITE.
func (cs *CommandSocket) maySendProxy(c *listen.Call) error {
	if cs.ofClaim(c) {
		return nil
	}
	return errs.E("reach.proxy", errs.Denied, c.Request.Peer.User, errors.New("a proxy is taken under the session of the claim only"))
}

// renewProxy gives the job another proxy, and says whether it has it.
func (cs *CommandSocket) renewProxy(c *listen.Call, file []byte) error {
	err := errs.E("reach.proxy", errs.Invalid, "", errors.New("an empty file is no proxy"))
	if len(file) > 0 {
		err = cs.cfg.Job.RenewProxy(file)
	}
	if err != nil {
		return errors.Join(err, cs.answerProxy(c, proxyRefused))
	}
	c.Log.Info("the job has another proxy", "user", c.Request.Peer.User)
	return cs.answerProxy(c, proxyTaken)
}

func (cs *CommandSocket) answerProxy(c *listen.Call, answer int64) error {
	c.Conn.PutInt(answer)
	return c.Conn.EndMessage()
}
