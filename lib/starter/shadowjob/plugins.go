// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"path/filepath"

	"github.com/execpoint/execpoint/lib/jobenv"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/plugins"
	"github.com/execpoint/execpoint/lib/transfer"
)

// plugins are what fetches and stores URLs for the job. They have its rights;
// those of the machine's owner may be given more
// (RUN_FILETRANSFER_PLUGINS_WITH_ROOT), those that the job brought never are.
func (m *mover) plugins() *transfer.Plugins {
	asUser := plugins.Runner(m.cfg.Spawner, m.place.User, m.cfg.Env)
	run := asUser
	if m.cfg.Plan.Settings.Pool.Plugins.WithRoot {
		asStarter := plugins.Runner(m.cfg.Spawner, nil, m.cfg.Env)
		run = func(ctx context.Context, spec transfer.PluginSpec) (transfer.PluginExit, error) {
			if spec.FromJob {
				return asUser(ctx, spec)
			}
			return asStarter(ctx, spec)
		}
	}
	p := plugins.From(m.cfg.Plan.Settings.Pool.Plugins, run)
	p.Scratch, p.Job = m.place.Box.Scratch(), m.place.Job.Ad
	p.Env = []string{"_CONDOR_JOB_AD=" + filepath.Join(p.Scratch, sandbox.JobAdFile), "_CONDOR_MACHINE_AD=" + filepath.Join(p.Scratch, sandbox.MachineAdFile)}
	if m.creds != "" {
		p.Env = append(p.Env, "_CONDOR_CREDS="+m.creds)
	}
	if m.place.Job.Proxy != "" {
		p.Env = append(p.Env, "X509_USER_PROXY="+m.place.Job.Proxy)
	}
	env := jobenv.Env{}
	if err := sandbox.MergeJob(env, m.place.Job.Ad); err == nil { // else the job is held for it when it starts
		p.JobEnv = env.List()
	}
	if own, err := transfer.JobPlugins(m.place.Job.Ad); err == nil {
		p.List = append(p.List, own...)
	} else {
		m.conv.log.Warn("the job's own plugins are of no use", "err", err)
	}
	return p
}
