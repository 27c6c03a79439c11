// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"

	"github.com/execpoint/execpoint/lib/chirp"
	"github.com/execpoint/execpoint/lib/classad"
)

// chirpSide is what a job uses to speak with its shadow. A nil one is a job
// that may not.
type chirpSide struct {
	proxy *chirp.Proxy
	end   context.CancelFunc
	over  chan struct{} // closed when the proxy's goroutine has ended
	path  string        // of its configuration
}

// openChirp starts the proxy, if the job may use one, and tells it where that
// is.
func (s *afar) openChirp() error {
	a := s.a
	allow := chirp.AllowFrom(a.job.ad, a.plan.knob)
	if !allow.Any() {
		return nil
	}
	proxy, err := chirp.Listen(chirp.Config{Remote: s.caller, Allow: allow, Job: a.job.ad, Knob: a.plan.knob, Log: s.log, Acknowledge: a.host.Acknowledge})
	if err != nil {
		return err
	}
	c := &chirpSide{proxy: proxy, over: make(chan struct{})}
	if c.path, err = a.box.WriteChirp(proxy.ConfigText()); err != nil {
		proxy.Close()
		return err
	}
	var ctx context.Context
	ctx, c.end = context.WithCancel(context.Background())
	go func() {
		defer close(c.over)
		if err := proxy.Serve(ctx); err != nil {
			s.log.Warn("the job cannot chirp any more", "err", err)
		}
	}()
	s.chirp = c
	return nil
}

// config is the path of the configuration, "" if there is none.
func (c *chirpSide) config() string {
	if c == nil {
		return ""
	}
	return c.path
}

// delayed is what the job set for the next update.
func (c *chirpSide) delayed() *classad.Ad {
	if c == nil {
		return nil
	}
	return c.proxy.Delayed()
}

func (c *chirpSide) close() {
	if c == nil {
		return
	}
	c.end()
	c.proxy.Close()
	<-c.over
}
