// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"fmt"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/starter/job"
)

// openCreds brings the credentials that the job needs: tokens (OAuthServicesNeeded)
// and tickets of Kerberos (SendCredential).
func (j *Job) openCreds(ctx context.Context) error {
	var all []job.Renewal
	of := j.place.Job
	if services := of.Services(); len(services) > 0 {
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
	j.creds = job.Renew(j.Plan.Settings.Pool.Creds.Every, j.conv.log, all)
	return nil
}

// fetchCreds asks the shadow for the credentials of services and writes them
// where the job finds them.
func (j *Job) fetchCreds(ctx context.Context, services []string) (dir string, err error) {
	// In clear only where the owner of the machine allows it (ALLOW_OAUTH_WITHOUT_ENCRYPTION)
	// and jobs have no user of their own.
	got, err := j.conv.caller.Creds(ctx, j.Plan.Settings.Pool.Creds.Clear && j.place.User == nil)
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
