// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"bytes"
	"context"
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/lib/starter/plugins"
	"github.com/execpoint/execpoint/lib/starter/role"
	"github.com/execpoint/execpoint/lib/transfer"
)

// starterPatience is how long a starter may take to say what it is.
const starterPatience = 10 * time.Second

// starterProgram is the program that runs jobs. A configuration that was written
// for HTCondor may name its starter in so many words, and cannot mean it: that one
// speaks another protocol with its startd, and every job would fail. It is
// recognised by what it says of itself, which ours and scripts around ours do not
// say; ours is used in its place, and the log says so.
func (d *daemonState) starterProgram(ctx context.Context, s *config.Snapshot, spawner host.Spawner) (path string, args []string, err error) {
	o := d.o
	path, args, err = run.StarterProgram(s, o.StarterPath, o.StarterArgs)
	if err != nil || path == o.StarterPath {
		return path, args, err
	}
	ask := plugins.Runner(spawner, nil, role.Of(daemon.Scrub(o.Env), o.StarterPath)) // by which ours says no more than that
	said := transfer.PluginExit{}
	err = d.during("STARTER to say what it is: "+path, func() (err error) {
		said, err = ask(ctx, transfer.PluginSpec{Path: path, Args: []string{path, "-classad"}, Dir: "/", Timeout: starterPatience})
		return err
	})
	switch {
	case err != nil:
		return "", nil, err
	case bytes.Contains(said.Output, []byte("IsDaemonCore")):
		d.log.Warn("STARTER is HTCondor's own, which cannot run jobs for this startd; ours does", "STARTER", path, "ours", o.StarterPath)
		return o.StarterPath, o.StarterArgs, nil
	}
	if isOurs(said.Output, path) {
		d.log.Info("jobs are run by this program, which is what STARTER would execute", "STARTER", path, "program", o.StarterPath)
		return o.StarterPath, o.StarterArgs, nil
	}
	d.log.Info("jobs are run by what STARTER names", "STARTER", path)
	return path, args, nil
}

// isOurs reports whether the program at path is our condor_starter itself, by what
// it said. That one would do nothing but execute this program. A script around it
// says the same of another file.
func isOurs(said []byte, path string) bool {
	ad, err := classad.ParseAd(string(said), classad.Old)
	if err != nil {
		return false
	}
	file, ok := ad.EvalString(role.Attribute, nil)
	if !ok {
		return false
	}
	is, err := os.Stat(path)
	if err != nil {
		return false
	}
	tells, err := os.Stat(file)
	return err == nil && os.SameFile(is, tells)
}
