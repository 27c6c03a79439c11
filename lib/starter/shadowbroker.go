// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/security"
)

// toBeReached is how long a starter waits for the first broker before it goes
// on without.
const toBeReached = 10 * time.Second

// brokerClient makes the client that speaks with brokers: with those through which
// the starter is reached, and with those of shadows that are behind one. It has
// sessions of its own, for it negotiates, as the client for the shadow never does.
func (s *shadowJob) brokerClient() (*security.Client, error) {
	ctx, cancel := context.WithTimeout(context.Background(), toBeReached) // for the names of hosts
	defer cancel()
	settings, methods, system, err := s.configured(ctx)
	if err != nil {
		return nil, err
	}
	c := s.endpoint.Client(security.NewSessions(s.clock, 8))
	c.Configure(settings, &authn.Client{Settings: methods, System: system})
	return c, nil
}

// brokers are those through which the starter is reached.
type brokers struct {
	reached chan struct{} // closed when the first broker has answered
}

// newBrokers is nil where the daemon is behind no broker.
func (s *shadowJob) newBrokers() (*brokers, error) {
	startd, err := cedar.ParseSinful(s.plan.Address)
	if err != nil || len(startd.CCB) == 0 {
		return nil, nil // a bad address is told by who listens
	}
	if _, err := s.endpoint.Brokers(); err != nil {
		return nil, err
	}
	return &brokers{reached: make(chan struct{})}, nil
}

// registerAt opens a connection to a broker of the startd's address to register with it.
func (s *shadowJob) registerAt(ctx context.Context, address string) (*cedar.Conn, error) {
	to, err := cedar.ParseSinful("<" + address + ">")
	if err != nil {
		return nil, err
	}
	return s.endpoint.Register(ctx, to)
}

// await waits until the first broker has answered, or has taken too long: then
// the starter is reached directly until one does.
func (b *brokers) await(ctx context.Context) {
	if b == nil {
		return
	}
	limit := time.NewTimer(toBeReached)
	defer limit.Stop()
	select {
	case <-b.reached:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// moved tells that the starter is reached at another address now.
func (s *shadowJob) moved(address string) {
	call := func() []duty {
		s.a.say(Report{Op: OpContact, Address: address})
		if b := s.brokers; b != nil {
			select {
			case <-b.reached:
				s.changed(s.a)
			default:
				close(b.reached)
			}
		}
		return nil
	}
	go func() {
		// Once the job is over nobody has to reach it.
		_ = visitors{s}.do(context.Background(), call)
	}()
}
