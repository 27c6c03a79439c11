// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/local"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/submit"
	"github.com/execpoint/execpoint/platform/linux/asstarter"
	"github.com/execpoint/execpoint/platform/linux/system"
)

// TestMain makes this test program its own starter, as a program does that uses
// the package.
func TestMain(m *testing.M) {
	asstarter.Become()
	os.Exit(m.Run())
}

// greet stands before the launcher of starters, and tells of each job.
type greet struct{ run.Launcher }

func (g greet) Launch(ctx context.Context, plan *protocol.Plan, nc net.Conn) (run.Starter, error) {
	fmt.Println("a job in", plan.SlotName)
	return g.Launcher.Launch(ctx, plan, nc)
}

// An Execution Point without a pool runs one job in a process of its own.
func ExampleRun() {
	err := func() error {
		ctx := context.Background()
		dir, err := os.MkdirTemp("", "example-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if err := os.Chmod(dir, 0o755); err != nil { // the jobs of root are nobody's, and run in a directory below
			return err
		}
		sys, err := system.New()
		if err != nil {
			return err
		}
		o, _, err := sys.Run(ctx, system.Configuration{Dir: dir, Texts: []config.Text{{Name: "example", Text: "NUM_CPUS = 2\n"}}})
		if err != nil {
			return err
		}
		if o.Jobs, err = jobs(dir, "executable = /bin/echo\narguments = hello from a job\ntransfer_executable = false\noutput = out\nqueue\n"); err != nil {
			return err
		}
		o.Launcher = func(own run.Launcher) run.Launcher { return greet{own} }
		o.Changed = func(c local.Change) { fmt.Println("job", c.Job, c.What) }
		result, err := run.Run(ctx, o)
		if err != nil {
			return err
		}
		out, err := os.ReadFile(filepath.Join(dir, "out"))
		fmt.Printf("%d of %d done: %s\n", result.Counts.Done, result.Counts.Total, strings.TrimSpace(string(out)))
		return err
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// a job in slot1_1
	// job 1.0 started
	// job 1.0 completed
	// 1 of 1 done: hello from a job
}

// jobs makes the ads of the jobs that a description asks for.
func jobs(dir, description string) ([]*classad.Ad, error) {
	d, err := submit.Parse("example.sub", description, submit.Options{Cluster: 1, Owner: "ann", Cwd: dir})
	if err != nil {
		return nil, err
	}
	return d.Jobs()
}
