// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"net"
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
)

// toBeReached is how long a starter waits for the first broker before it goes
// on without.
const toBeReached = 10 * time.Second

// brokers opens connections to those through which the starter is reached.
type brokers struct {
	client  *security.Client
	dial    func(ctx context.Context, to cedar.Sinful) (net.Conn, error)
	reached chan struct{} // closed when the first broker has answered
}

// newBrokers is nil where the daemon is behind no broker.
func (s *afar) newBrokers(dialer *listen.Dialer) (*brokers, error) {
	startd, err := cedar.ParseSinful(s.plan.Address)
	if err != nil || len(startd.CCB) == 0 {
		return nil, nil // a bad address is told by who listens
	}
	settings, methods, system, err := s.configured()
	if err != nil {
		return nil, err
	}
	b := &brokers{dial: dialer.Dial, reached: make(chan struct{})}
	b.client = &security.Client{
		Sessions: security.NewSessions(s.clock, 8), Clock: s.clock, Dial: dialer.Dial, Log: s.log, PID: os.Getpid(),
		Version: s.plan.Version, Subsystem: "STARTER", Address: s.address,
	}
	b.client.Configure(settings, &authn.Client{Settings: methods, System: system})
	return b, nil
}

// open opens a connection to a broker to register with it.
func (b *brokers) open(ctx context.Context, address string) (*cedar.Conn, error) {
	to, err := cedar.ParseSinful("<" + address + ">")
	if err != nil {
		return nil, err
	}
	conn, _, err := b.client.Command(ctx, to, listen.CCBRegister, security.Options{Temporary: true})
	return conn, err
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
func (s *afar) moved(address string) {
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
