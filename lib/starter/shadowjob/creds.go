// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
)

// fetched are credentials that are in the scratch directory and are fetched
// again from time to time. A nil one is a job without.
type fetched struct {
	end  context.CancelFunc
	over chan struct{} // closed when nobody fetches any more
}

func (f *fetched) close() {
	if f != nil {
		f.end()
		<-f.over
	}
}

// renewal brings a credential again.
type renewal func(ctx context.Context) error

// openCreds brings the credentials that the job needs: tokens (OAuthServicesNeeded)
// and tickets of Kerberos (SendCredential).
func (j *Job) openCreds(ctx context.Context) error {
	var all []renewal
	of := j.place.Job
	services := strings.FieldsFunc(of.Text("OAuthServicesNeeded"), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	if len(services) > 0 {
		dir, err := j.fetchCreds(ctx, services)
		if err != nil {
			return err
		}
		j.mover.creds = dir
		all = append(all, func(ctx context.Context) error {
			_, err := j.fetchCreds(ctx, services)
			return err
		})
	}
	if send, _ := of.Ad.EvalBool("SendCredential", nil); send {
		again, err := j.openKerberos(ctx)
		if err != nil {
			return err
		}
		all = append(all, again)
	}
	if every := j.Plan.Settings.Pool.Creds; len(all) > 0 && every > 0 { // else once is enough
		j.renew(every, all)
	}
	return nil
}

// renew brings credentials again from time to time.
func (j *Job) renew(every time.Duration, all []renewal) {
	f := &fetched{over: make(chan struct{})}
	var ctx context.Context
	ctx, f.end = context.WithCancel(context.Background())
	j.creds = f
	go func() {
		defer close(f.over)
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
					j.conv.log.Warn("a credential of the job is not renewed", "err", err)
				}
			}
		}
	}()
}

// fetchCreds asks the shadow for the credentials of services and writes them
// where the job finds them.
func (j *Job) fetchCreds(ctx context.Context, services []string) (dir string, err error) {
	// In clear only where the owner of the machine allows it (ALLOW_OAUTH_WITHOUT_ENCRYPTION)
	// and jobs have no user of their own.
	got, err := j.conv.caller.Creds(ctx, j.Plan.Settings.Pool.ClearCreds && j.place.User == nil)
	if err != nil {
		return "", err
	}
	have := make(map[string][]byte, len(got))
	for _, c := range got {
		have[c.Service] = []byte(c.Data.Reveal())
	}
	wanted := make(map[string][]byte, len(services))
	for _, name := range services {
		data, ok := have[name]
		if !ok {
			return "", errs.E("starter.creds", errs.NotFound, name, fmt.Errorf("the shadow has no credential for this service"))
		}
		wanted[name] = data
	}
	return j.place.Box.WriteCreds(wanted)
}
