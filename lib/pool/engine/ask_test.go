// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
)

// owner runs functions at once; step is what the engine does about an event.
type owner struct {
	gone error
	step func(ep.Event)
}

func (o *owner) Do(_ context.Context, f func(Turn)) error {
	if o.gone != nil {
		return o.gone
	}
	f(Turn{Step: o.step})
	return nil
}

// A request gets its own reply, whether that comes with the step or later. It is over
// when its context ends, when the engine is gone, and is not waited for any more then.
func TestAsk(t *testing.T) {
	t.Parallel()
	gone := errors.New("the engine is gone")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name    string
		ctx     context.Context
		gone    error
		replies bool // with the step
		want    func(error) bool
	}{
		{"a reply with the step", t.Context(), nil, true, func(err error) bool { return err == nil }},
		{"a reply on its way at the end", ended, nil, true, func(err error) bool { return err == nil }},
		{"no reply", ended, nil, false, func(err error) bool { return errs.Is(err, errs.Expired) && errors.Is(err, context.Canceled) }},
		{"no engine", t.Context(), gone, false, func(err error) bool { return errors.Is(err, gone) }},
	} {
		o := &owner{gone: tt.gone}
		r := NewRequests(o)
		o.step = func(ev ep.Event) {
			if ref := ev.(ep.DrainCancelled).Ref; tt.replies {
				r.Deliver(ep.Reply{Ref: ref, DrainID: "mine"})
			}
		}
		var ref ep.Ref
		reply, err := r.Ask(tt.ctx, func(of ep.Ref) ep.Event { ref = of; return ep.DrainCancelled{Ref: of} })
		if !tt.want(err) || (err == nil) != (reply.DrainID == "mine") {
			t.Errorf("%s: %+v, %v", tt.name, reply, err)
		}
		if r.Waiting(ref) {
			t.Errorf("%s: it is still waited for", tt.name)
		}
	}
}
