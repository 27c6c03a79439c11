// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/observe"
)

// mostAsked is how many questions over the wire are answered at a time: an
// explanation of many slots keeps the engine for a moment.
const mostAsked = 2

// askServer answers the questions of the control socket to those who ask over the
// wire. The messages are the same; the numbers of the commands are ours, above
// all that HTCondor uses.
type askServer struct {
	// ask is how the Execution Point answers; nil before it does.
	ask  atomic.Pointer[func(observe.Request) observe.Response]
	busy chan struct{}
}

func newAskServer() *askServer { return &askServer{busy: make(chan struct{}, mostAsked)} }

// Commands are its rows of the table.
func (k *askServer) Commands() []listen.Command {
	return listen.Answer(command.Startd, map[int]listen.Handler{
		command.ExecpointLook:   k.answer,
		command.ExecpointChange: k.answer,
	})
}

// answer answers a question: a text of JSON each way.
func (k *askServer) answer(ctx context.Context, c *listen.Call) error {
	text, err := c.Conn.String()
	if err == nil {
		err = c.Conn.EndOfMessage()
	}
	if err != nil {
		return err
	}
	resp, err := k.respond(ctx, text, c.Request.Peer.User, c.Command.Number)
	if err != nil {
		return err
	}
	answer, err := json.Marshal(resp)
	if err != nil {
		return errs.E("startd.ask", errs.Internal, "", err)
	}
	if len(answer) > observe.MostAnswer {
		answer, err = json.Marshal(observe.Response{Err: "the answer is too long; ask for one slot"})
	}
	c.Conn.PutString(string(answer))
	return errors.Join(err, c.Conn.EndMessage())
}

// belongs reports whether a question belongs to the command.
func belongs(number int, op string) bool {
	want, known := observe.CommandOf(op)
	return known && want == number
}

// respond is what is said to one question of by, who asked with a command. A peer
// that reads it slowly does not keep others from asking.
func (k *askServer) respond(ctx context.Context, text, by string, number int) (resp observe.Response, err error) {
	select {
	case k.busy <- struct{}{}:
		defer func() { <-k.busy }()
	case <-ctx.Done():
		return resp, ctx.Err()
	}
	var req observe.Request
	ask := k.ask.Load()
	switch err := json.Unmarshal([]byte(text), &req); {
	case err != nil:
		resp.Err = "the request is not JSON: " + err.Error()
	case !belongs(number, req.Op):
		resp.Err = "this command is not for that question"
	case ask == nil:
		resp.Err = "the Execution Point has just begun; ask again"
	default:
		req.By = by
		resp = (*ask)(req)
	}
	return resp, nil
}
