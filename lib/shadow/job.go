// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"context"
	"errors"
	"fmt"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// ad makes a call whose only argument is an ad.
func (c *Caller) ad(ctx context.Context, call Call, ad *classad.Ad) error {
	_, err := c.ask(ctx, &Request{Call: call, Ad: ad})
	return err
}

// JobInfo asks for the job ad. With it the shadow opens its file transfer, and
// says which version it is.
func (c *Caller) JobInfo(ctx context.Context) (*classad.Ad, error) {
	r, err := c.ask(ctx, &Request{Call: CallGetJobInfo})
	if err != nil {
		return nil, err
	}
	if version, ok := r.Ad.EvalString("ShadowVersion", nil); ok {
		c.SetPeerVersion(version)
	}
	return r.Ad, nil
}

// RegisterStarter tells who the starter is and where it is reached.
func (c *Caller) RegisterStarter(ctx context.Context, ad *classad.Ad) error {
	return c.ad(ctx, CallRegisterStarterInfo, ad)
}

// RegisterJob tells how the job is.
func (c *Caller) RegisterJob(ctx context.Context, ad *classad.Ad) error {
	return c.ad(ctx, CallRegisterJobInfo, ad)
}

// BeginExecution tells that the job is about to run.
func (c *Caller) BeginExecution(ctx context.Context) error {
	_, err := c.ask(ctx, &Request{Call: CallBeginExecution})
	return err
}

// JobExit tells how the job ended; see WaitStatus and NoStatus. After its
// answer the shadow closes the connection.
func (c *Caller) JobExit(ctx context.Context, wait int, why ExitReason, ad *classad.Ad) error {
	_, err := c.ask(ctx, &Request{Call: CallJobExit, Ints: [5]int64{int64(wait), int64(why)}, Ad: ad})
	return err
}

// JobTermination tells how the job ended when its output could not be
// transferred.
func (c *Caller) JobTermination(ctx context.Context, ad *classad.Ad) error {
	return c.ad(ctx, CallJobTermination, ad)
}

// Log puts an event into the job's log. Nothing comes back: nil says that it
// was sent.
func (c *Caller) Log(ctx context.Context, event *classad.Ad) error {
	return c.tell(ctx, &Request{Call: CallUlog, Ad: event})
}

// Notify tells of an event that is not for the log. What the shadow makes of
// it is not known: it answers the same to what it understood and what not.
func (c *Caller) Notify(ctx context.Context, event *classad.Ad) error {
	return c.ad(ctx, CallNotify, event)
}

// Guidance asks what to do. rval is 0 if reply holds a command, -1 for a
// request that the shadow does not know, -2 for one that is malformed.
func (c *Caller) Guidance(ctx context.Context, request *classad.Ad) (rval int, reply *classad.Ad, err error) {
	r, err := c.ask(ctx, &Request{Call: CallGuidance, Ad: request})
	if err != nil {
		return 0, nil, err
	}
	return int(r.Value), r.Ad, nil
}

// Say puts a text into the log of the shadow.
func (c *Caller) Say(ctx context.Context, text string) error {
	_, err := c.ask(ctx, &Request{Call: CallDprintfStats, Texts: [2]string{text}})
	return err
}

// UserInfo asks for the numbers of the job's user at the submit machine.
func (c *Caller) UserInfo(ctx context.Context) (uid, gid int, err error) {
	r, err := c.ask(ctx, &Request{Call: CallGetUserInfo})
	if err != nil {
		return 0, 0, err
	}
	u, okU := r.Ad.EvalInt("Uid", nil)
	g, okG := r.Ad.EvalInt("Gid", nil)
	if !okU || !okG {
		return 0, 0, c.useless(CallGetUserInfo, "Uid or Gid is missing")
	}
	return int(u), int(g), nil
}

// JobAttr asks for the expression of an attribute of the job, UNDEFINED if
// there is none.
func (c *Caller) JobAttr(ctx context.Context, name string) (string, error) {
	r, err := c.ask(ctx, &Request{Call: CallGetJobAttr, Texts: [2]string{name}})
	return r.Text, err
}

// SetJobAttr sets an attribute of the job to an expression.
func (c *Caller) SetJobAttr(ctx context.Context, name, expr string) error {
	_, err := c.ask(ctx, &Request{Call: CallSetJobAttr, Texts: [2]string{expr, name}})
	return err
}

// Constrain adds to the job's Requirements.
func (c *Caller) Constrain(ctx context.Context, expr string) error {
	_, err := c.ask(ctx, &Request{Call: CallConstrain, Texts: [2]string{expr}})
	return err
}

// Session is a security session that the shadow shares.
type Session struct {
	ID, Info string
	Key      cedar.Secret
}

// Sessions are the two that a starter gets.
type Sessions struct {
	Reconnect Session // of the claim: whoever has it may come back to the job
	Transfer  Session // for file transfer
}

// Sessions asks for the sessions. ok is false if the shadow shares none. It is
// refused here when the stream is clear.
func (c *Caller) Sessions(ctx context.Context) (s Sessions, ok bool, err error) {
	if err := c.demandSecrecy(CallSessions); err != nil {
		return s, false, err
	}
	r, err := c.ask(ctx, &Request{Call: CallSessions})
	var refusal *CallError
	switch {
	case errors.As(err, &refusal):
		return s, false, nil
	case err != nil:
		return s, false, err
	}
	t := r.Texts
	s.Reconnect = Session{ID: t[0], Info: t[1], Key: cedar.Secret(t[2])}
	s.Transfer = Session{ID: t[3], Info: t[4], Key: cedar.Secret(t[5])}
	return s, s.Transfer.ID != "", nil
}

// demandSecrecy refuses a call whose answer must not be overheard.
func (c *Caller) demandSecrecy(call Call) error {
	conn := c.current().conn
	if conn.Encrypted() {
		return nil
	}
	return errs.E("shadow."+call.String(), errs.Denied, conn.Peer(), errors.New("the connection is not encrypted"))
}

// useless is the error of an answer that is well formed and says nothing. The
// conversation goes on.
func (c *Caller) useless(call Call, why string) error {
	return errs.E("shadow."+call.String(), errs.Invalid, c.Peer(), fmt.Errorf("bad answer: %s", why))
}

// FileInfo asks where a file of the job is: "remote:/path" at the submit
// machine, "buffer:remote:/path", "local:/path".
func (c *Caller) FileInfo(ctx context.Context, logical string) (url string, err error) {
	r, err := c.ask(ctx, &Request{Call: CallGetFileInfo, Texts: [2]string{logical}})
	return r.Text, err
}
