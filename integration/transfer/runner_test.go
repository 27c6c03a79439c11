// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package transfer_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/plugins"
	"github.com/execpoint/execpoint/lib/transfer"
	"github.com/execpoint/execpoint/platform/linux/proc"
)

// A starter runs plugins as families of processes: what they say is kept, how
// they end is told, and one that takes too long is ended with all it started.
func TestPluginRunner(t *testing.T) {
	spawner, err := proc.New(proc.Options{Role: proc.Starter})
	if err != nil {
		t.Fatal(err)
	}
	run := plugins.Runner(spawner, nil, []string{"PATH=/usr/bin:/bin", "KEPT=1", "CHANGED=no", "GOGC=off"})
	dir := t.TempDir()
	plugin := func(script string) transfer.PluginSpec {
		path := filepath.Join(t.TempDir(), "plugin")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return transfer.PluginSpec{Path: path, Args: []string{path, "-infile", "x"}, Env: []string{"CHANGED=yes"}, Dir: dir, Timeout: time.Minute}
	}

	exit, err := run(t.Context(), plugin(`echo "$1 $2 $KEPT $CHANGED $GOGC"; pwd; exit 3`))
	if err != nil || exit.Code != 3 || exit.Signal != 0 || exit.TimedOut {
		t.Fatalf("got %+v, %v", exit, err)
	}
	if got, want := string(exit.Output), "-infile x 1 yes \n"+dir+"\n"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if exit, err := run(t.Context(), plugin(`kill -SEGV $$`)); err != nil || exit.Signal != 11 {
		t.Errorf("got %+v, %v", exit, err)
	}
	if exit, err := run(t.Context(), plugin(`head -c 3000000 /dev/zero`)); err != nil || exit.Code != 0 || len(exit.Output) == 0 || len(exit.Output) > 1<<20 {
		t.Errorf("of much output: code %d, %d bytes kept, %v", exit.Code, len(exit.Output), err)
	}
	slow := plugin(`echo begun; sleep 600 & sleep 600`)
	slow.Timeout = 300 * time.Millisecond
	if exit, err := run(t.Context(), slow); err != nil || !exit.TimedOut || !strings.HasPrefix(string(exit.Output), "begun") {
		t.Errorf("got %+v, %v", exit, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if exit, err := run(ctx, plugin(`sleep 600`)); err != nil || !exit.TimedOut {
		t.Errorf("of one that is not wanted any more: %+v, %v", exit, err)
	}
	if _, err := run(t.Context(), transfer.PluginSpec{Path: "/nowhere/plugin", Args: []string{"x"}}); err == nil {
		t.Error("a program that is not there is run")
	}
}

// escaping starts beside every program another one that holds the program's
// output open, and that nothing shows to be of its family.
type escaping struct {
	host.Spawner
	script  string
	escaped *exec.Cmd
}

func (e *escaping) Spawn(spec host.SpawnSpec) (host.Family, error) {
	e.escaped = exec.Command("/bin/sh", "-c", e.script)
	e.escaped.Stdout, e.escaped.Dir = spec.Stdout, spec.Dir
	if err := e.escaped.Start(); err != nil {
		return nil, err
	}
	return e.Spawner.Spawn(spec)
}

// What escapes from the family of a plugin cannot hold its starter, however
// long it keeps the plugin's output open, and whether it writes to it or not.
func TestEscapedFromPlugin(t *testing.T) {
	spawner, err := proc.New(proc.Options{Role: proc.Guest})
	if err != nil {
		t.Fatal(err)
	}
	// The one that writes begins when the plugin has said all: the output is cut
	// off at a length, which it could reach first.
	for _, script := range []string{"exec sleep 600", "until test -e said; do :; done; while :; do echo again || exit 0; done"} {
		s := &escaping{Spawner: spawner, script: script}
		run := plugins.Runner(s, nil, []string{"PATH=/usr/bin:/bin"})
		done := make(chan struct{})
		var exit transfer.PluginExit
		go func() {
			defer close(done)
			exit, err = run(t.Context(), transfer.PluginSpec{
				Path: "/bin/sh", Args: []string{"sh", "-c", "echo said; : > said; exit 3"}, Dir: t.TempDir(), Timeout: time.Minute,
			})
		}()
		ended := false
		select {
		case <-done:
			ended = true
		case <-time.After(30 * time.Second):
			t.Errorf("%q holds the plugin's runner", script)
		}
		_ = s.escaped.Process.Kill()
		_ = s.escaped.Wait()
		<-done
		if err != nil || ended && (exit.Code != 3 || exit.TimedOut || !strings.Contains(string(exit.Output), "said")) {
			t.Errorf("got code %d, timed out %v, %.40q, %v", exit.Code, exit.TimedOut, exit.Output, err)
		}
	}
}
