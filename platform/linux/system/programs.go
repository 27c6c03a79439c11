// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/starter"
)

// Programs finds what runs the jobs that starters can run, of Java, Docker and
// Singularity.
func (p *System) Programs(snap *config.Snapshot) machine.Scanner {
	prober := p.Prober()
	prober.Runs = starter.Runs
	return machine.Programs(prober, snap)
}

// Prober runs the programs of this machine. The caller sets its Runs.
func (p *System) Prober() machine.Prober {
	runner := p.Hooks("/")
	return machine.Prober{UserNamespace: p.UserNamespace(), Run: func(ctx context.Context, argv []string) (machine.Outcome, error) {
		run, err := runner.Start(ctx, hook.Job{Name: argv[0], Path: argv[0], Args: argv}, func(hook.Block) {})
		if err != nil {
			return machine.Outcome{}, err
		}
		<-run.Done()
		r := run.Report()
		out := machine.Outcome{Stdout: r.Output, Stderr: r.Stderr, Status: r.Status.Code}
		switch {
		case ctx.Err() != nil:
			return out, context.Cause(ctx)
		case !r.Status.Exited:
			out.Status = 128 + r.Status.Signal
		}
		return out, nil
	}}
}
