// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"errors"
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

// openCreds brings the credentials that the job needs (OAuthServicesNeeded).
func (j *Job) openCreds(ctx context.Context) error {
	const op = "starter.creds"
	of := j.place.Job
	if send, _ := of.Ad.EvalBool("SendCredential", nil); send {
		return errs.E(op, errs.Unsupported, "SendCredential", errors.New("credentials of Kerberos cannot be fetched here"))
	}
	services := strings.FieldsFunc(of.Text("OAuthServicesNeeded"), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	if len(services) == 0 {
		return nil
	}
	dir, err := j.fetchCreds(ctx, services)
	if err != nil {
		return err
	}
	j.mover.creds = dir
	every := j.Plan.Settings.Pool.Creds
	if every <= 0 {
		return nil // once is enough
	}
	f := &fetched{over: make(chan struct{})}
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
			if _, err := j.fetchCreds(ctx, services); err != nil {
				j.conv.log.Warn("the credentials of the job are not renewed", "err", err)
			}
		}
	}()
	return nil
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
