// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
)

// openProxy has the shadow delegate the proxy of a job whose files are not moved.
// That of others comes with their input, by delegation or as it is.
func (j *Job) openProxy(ctx context.Context) error {
	of := j.place.Job
	if of.Moves || of.Proxy == "" {
		return nil
	}
	file, err := j.conv.caller.Proxy(ctx, of.Text("x509userproxy"), j.proxyUntil())
	if err != nil {
		// HTCondor's starter runs the job without.
		return errs.E("starter.proxy", errs.KindOf(err), filepath.Base(of.Proxy), err)
	}
	return j.place.Box.WritePrivate(filepath.Base(of.Proxy), file)
}

// proxyUntil is until when a proxy may be good that is asked for here: what the job
// says (DelegateJobGSICredentialsLifetime), else the owner of the machine. The zero
// time is as long as the job's own. The shadow gives no more than is allowed at its
// side.
func (j *Job) proxyUntil() time.Time {
	set := j.Plan.Settings.Pool.Creds
	if !set.Delegates {
		return time.Time{}
	}
	life := set.ProxyLife
	if n, ok := j.place.Job.Ad.EvalInt("DelegateJobGSICredentialsLifetime", nil); ok && n >= 0 && n <= mostLife {
		life = time.Duration(n) * time.Second
	}
	if life <= 0 {
		return time.Time{}
	}
	return j.conv.clock.Now().Wall.Add(life)
}

// mostLife bounds what a job may say, in seconds: a hundred years.
const mostLife = 100 * 365 * 24 * 3600

var errNoProxy = errors.New("the job has no proxy (x509userproxy)")

// RenewProxy puts another proxy in place of the job's.
func (v *visitors) RenewProxy(file []byte) error {
	const op = "starter.RenewProxy"
	j := v.job
	v.mu.Lock()
	known := v.info != nil // and so is the place
	v.mu.Unlock()
	switch {
	case !known:
		return errs.E(op, errs.Conflict, j.Plan.Activation, errBusy)
	case j.place.Job.Proxy == "":
		return errs.E(op, errs.NotFound, j.Plan.Activation, errNoProxy)
	}
	v.renewing.Lock()
	defer v.renewing.Unlock()
	return j.place.Box.WritePrivate(filepath.Base(j.place.Job.Proxy), file)
}
