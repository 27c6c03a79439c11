// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"

	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
)

// Requests are the requests of peers that wait for a reply of the engine. Their
// methods may be called from any goroutine.
type Requests struct {
	owner Owner

	mu      sync.Mutex
	last    uint64
	waiting map[ep.Ref]chan ep.Reply
}

// NewRequests returns requests that are made in turns of owner.
func NewRequests(owner Owner) *Requests {
	return &Requests{owner: owner, waiting: make(map[ep.Ref]chan ep.Reply)}
}

// Ask passes a request to the engine and waits for its reply. request is given the
// Ref that the event must have. When ctx ends first, the request may still be
// granted.
func (r *Requests) Ask(ctx context.Context, request func(ref ep.Ref) ep.Event) (ep.Reply, error) {
	ref, reply := r.New()
	defer r.Drop(ref)
	if err := r.owner.Do(ctx, func(t Turn) { t.Step(request(ref)) }); err != nil {
		return ep.Reply{}, err
	}
	select {
	case reply := <-reply:
		return reply, nil
	case <-ctx.Done():
	}
	select {
	case reply := <-reply: // it was on its way
		return reply, nil
	default:
		return ep.Reply{}, errs.E("engine.Ask", errs.Expired, "", ctx.Err())
	}
}

// New returns the Ref of one more request, and where its reply will come. A caller
// that waits no longer calls Drop.
func (r *Requests) New() (ep.Ref, <-chan ep.Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	ref, ch := ep.Ref{By: ep.Peer, N: r.last}, make(chan ep.Reply, 1)
	r.waiting[ref] = ch
	return ref, ch
}

// Drop forgets a request: its reply, if it still comes, is thrown away.
func (r *Requests) Drop(ref ep.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, ref)
}

// Waiting reports whether the reply to this request is waited for.
func (r *Requests) Waiting(ref ep.Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.waiting[ref]
	return ok
}

// Deliver passes a reply to the caller that waits for it, and reports whether the request
// was a peer's, waited for or not.
func (r *Requests) Deliver(reply ep.Reply) bool {
	if reply.Ref.By != ep.Peer {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if ch, ok := r.waiting[reply.Ref]; ok {
		ch <- reply // one reply comes to a request
		delete(r.waiting, reply.Ref)
	}
	return true
}
