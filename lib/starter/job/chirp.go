// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"

	"github.com/execpoint/execpoint/lib/chirp"
	"github.com/execpoint/execpoint/lib/classad"
)

// Chirp is what a job uses to speak with its access point. A nil one is a job that
// may not.
type Chirp struct {
	proxy *chirp.Proxy
	end   context.CancelFunc
	over  chan struct{} // closed when the proxy's goroutine has ended
	path  string        // of its configuration
}

// OpenChirp starts a proxy and tells the job where that is. It is nil for a job that
// is allowed nothing. c.Job is filled in.
func (p *Place) OpenChirp(c chirp.Config) (*Chirp, error) {
	if !c.Allow.Any() {
		return nil, nil
	}
	c.Job = p.Job.Ad
	proxy, err := chirp.Listen(c)
	if err != nil {
		return nil, err
	}
	side := &Chirp{proxy: proxy, over: make(chan struct{})}
	if side.path, err = p.Box.WriteChirp(proxy.ConfigText()); err != nil {
		proxy.Close()
		return nil, err
	}
	var ctx context.Context
	ctx, side.end = context.WithCancel(context.Background())
	go func() {
		defer close(side.over)
		if err := proxy.Serve(ctx); err != nil {
			c.Log.Warn("the job cannot chirp any more", "err", err)
		}
	}()
	return side, nil
}

// Config is the path of the configuration, "" if there is none.
func (c *Chirp) Config() string {
	if c == nil {
		return ""
	}
	return c.path
}

// Delayed is what the job set for the next update.
func (c *Chirp) Delayed() *classad.Ad {
	if c == nil {
		return nil
	}
	return c.proxy.Delayed()
}

// Close ends the proxy.
func (c *Chirp) Close() {
	if c == nil {
		return
	}
	c.end()
	c.proxy.Close()
	<-c.over
}
