// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"log/slog"

	"github.com/execpoint/execpoint/lib/chirp"
	"github.com/execpoint/execpoint/lib/classad"
)

// chirpSide is what a job uses to speak with its shadow, or with the embedded
// access point. A nil one is a job that may not.
type chirpSide struct {
	proxy *chirp.Proxy
	end   context.CancelFunc
	over  chan struct{} // closed when the proxy's goroutine has ended
	path  string        // of its configuration
}

// openChirp starts the proxy in front of remote and tells the job where that is.
func (a *activation) openChirp(remote chirp.Remote, allow chirp.Allow, log *slog.Logger) (*chirpSide, error) {
	if !allow.Any() {
		return nil, nil
	}
	proxy, err := chirp.Listen(chirp.Config{Remote: remote, Allow: allow, Job: a.job.ad, Settings: a.plan.Settings.Chirp, Log: log, Acknowledge: a.host.Acknowledge})
	if err != nil {
		return nil, err
	}
	c := &chirpSide{proxy: proxy, over: make(chan struct{})}
	if c.path, err = a.box.WriteChirp(proxy.ConfigText()); err != nil {
		proxy.Close()
		return nil, err
	}
	var ctx context.Context
	ctx, c.end = context.WithCancel(context.Background())
	go func() {
		defer close(c.over)
		if err := proxy.Serve(ctx); err != nil {
			log.Warn("the job cannot chirp any more", "err", err)
		}
	}()
	return c, nil
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
