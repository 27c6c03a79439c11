// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/startd"
	"github.com/execpoint/execpoint/platform/linux/asstarter"
	"github.com/execpoint/execpoint/platform/linux/system"
)

// TestMain makes this test program its own starter, as a program does that uses
// the package.
func TestMain(m *testing.M) {
	asstarter.Become()
	os.Exit(m.Run())
}

// A daemon of a pool, from its beginning to the order to end. Its collector is not
// there, which it bears.
func ExampleRun() {
	err := func() error {
		dir, err := os.MkdirTemp("", "example-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		sys, err := system.New()
		if err != nil {
			return err
		}
		settings := config.Text{Name: "example", Text: `
COLLECTOR_HOST = 127.0.0.1:1
NETWORK_INTERFACE = 127.0.0.1
USE_SHARED_PORT = False
ALLOW_DAEMON = nobody@nowhere
STARTD_NAME = example
STARTD_DETECT_GPUS = False
`}
		for _, sub := range []string{"log", "execute", "lock", "spool"} {
			if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
				return err
			}
		}
		o := sys.Daemon(system.Configuration{Dir: dir, Texts: []config.Text{settings}})
		orders := make(chan startd.Signal, 1)
		o.Signals, o.Out = orders, &untilOpen{orders: orders}
		status, err := startd.Run(context.Background(), o)
		fmt.Println("exit status", status)
		return err
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// it listens
	// exit status 0
}

// untilOpen reads the log, and ends the daemon when that says where it is reached.
type untilOpen struct {
	orders chan<- startd.Signal
	seen   bool
}

func (u *untilOpen) Write(line []byte) (int, error) {
	if !u.seen && bytes.Contains(line, []byte("command socket at")) {
		u.seen = true
		fmt.Println("it listens")
		u.orders <- startd.Terminate
	}
	return len(line), nil
}
