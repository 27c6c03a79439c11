// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Services are those of which the job needs tokens (OAuthServicesNeeded), each once.
func (j *Job) Services() []string {
	var all []string
	for _, name := range strings.FieldsFunc(j.Text("OAuthServicesNeeded"), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// Renewal brings a credential again.
type Renewal func(ctx context.Context) error

// Renewing are the credentials of a job that are brought again from time to time. A
// nil one is a job without.
type Renewing struct {
	end  context.CancelFunc
	over chan struct{} // closed when nothing is brought any more
}

// Renew brings credentials again and again, until Close. It returns nil where once is
// enough: where there are none, or every is no time.
func Renew(every time.Duration, log *slog.Logger, all []Renewal) *Renewing {
	if len(all) == 0 || every <= 0 {
		return nil
	}
	r := &Renewing{over: make(chan struct{})}
	var ctx context.Context
	ctx, r.end = context.WithCancel(context.Background())
	go func() {
		defer close(r.over)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for _, again := range all {
				if err := again(ctx); err != nil {
					log.Warn("a credential of the job is not renewed", "err", err)
				}
			}
		}
	}()
	return r
}

// Close ends it, and waits until nothing is brought any more.
func (r *Renewing) Close() {
	if r != nil {
		r.end()
		<-r.over
	}
}
