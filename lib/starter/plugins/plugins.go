// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugins runs the programs that move files by URL, for starters and for a
// startd that asks them what they can do. What they move is lib/transfer's.
package plugins

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

// lastWords is how long the end of what a plugin says is waited for when it has
// ended and its family with it. Who holds its output open then has escaped.
const lastWords = 2 * time.Second

// keptOutput is how much of what a plugin says is kept, in bytes. The rest is
// read and dropped, so that the plugin does not wait for a reader.
const keptOutput = 256 << 10

// Runner runs the programs that move files by URL (FILETRANSFER_PLUGINS
// and those of jobs) as families of spawner, with the rights of user, nil being
// those of the caller. env is the environment that they inherit. What a program
// leaves running is killed when it ends; what cannot be found to be killed, and
// holds the program's output open, is waited for 2 s.
func Runner(spawner host.Spawner, user *host.Identity, env []string) transfer.Runner {
	return apart(func(ctx context.Context, spec transfer.PluginSpec) (transfer.PluginExit, error) {
		if spec.Timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, spec.Timeout)
			defer cancel()
		}
		out, in, err := os.Pipe()
		if err != nil {
			return transfer.PluginExit{}, err
		}
		family, err := spawner.Spawn(host.SpawnSpec{
			Path: spec.Path, Args: spec.Args, Env: merged(env, spec.Env), Dir: spec.Dir,
			Stdout: in, Stderr: in, User: user, Bond: host.Bound,
		})
		in.Close()
		if err != nil {
			out.Close()
			return transfer.PluginExit{}, err
		}
		said := make(chan []byte, 1)
		go func() {
			kept, _ := io.ReadAll(io.LimitReader(out, keptOutput))
			_, _ = io.Copy(io.Discard, out)
			out.Close() // who still writes is told that nobody reads
			said <- kept
		}()
		var exit transfer.PluginExit
		if !await(ctx, family, spec) {
			exit.TimedOut = true
			_, err = family.Kill()
			<-family.Done()
		}
		if _, cerr := family.Close(); err == nil {
			err = cerr
		}
		st := family.Status()
		exit.Code, exit.Signal = st.Code, st.Signal
		late := time.NewTimer(2 * lastWords) // where a pipe has no deadlines
		defer late.Stop()
		_ = out.SetReadDeadline(time.Now().Add(lastWords))
		select {
		case exit.Output = <-said:
		case <-late.C:
		}
		return exit, err
	})
}

// await waits until family has ended, and reports whether it has before ctx.
func await(ctx context.Context, family host.Family, spec transfer.PluginSpec) bool {
	var every <-chan time.Time
	if spec.Waiting != nil && spec.Every > 0 {
		tick := time.NewTicker(spec.Every)
		defer tick.Stop()
		every = tick.C
	}
	for {
		select {
		case <-family.Done():
			return true
		case <-ctx.Done():
			return false
		case <-every:
			spec.Waiting()
		}
	}
}

// apart has run called by a goroutine of its own: who calls it may have the
// rights of the job's user alone, with which nothing can be started.
func apart(run transfer.Runner) transfer.Runner {
	return func(ctx context.Context, spec transfer.PluginSpec) (exit transfer.PluginExit, err error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			exit, err = run(ctx, spec)
		}()
		<-done
		return exit, err
	}
}

// merged is env with the entries of more, which win.
func merged(env, more []string) []string {
	set := func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return protocol.IsLean(entry) || slices.ContainsFunc(more, func(m string) bool { return strings.HasPrefix(m, name+"=") })
	}
	return append(slices.DeleteFunc(slices.Clone(env), set), more...)
}

// From gives the ways to move files by URL that a configuration gives to
// every job.
func From(set protocol.PluginSettings, run transfer.Runner) *transfer.Plugins {
	return &transfer.Plugins{
		Disabled: !set.URLs, Programs: set.Programs, Run: run, Lifetime: set.Lifetime, QueryTimeout: set.Query,
		KeepAlive: set.KeepAlive, Privileged: set.WithRoot, OnSuccess: set.LogOnSuccess, OnFailure: set.LogOnFailure,
	}
}
