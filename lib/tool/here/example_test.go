// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package here_test

import (
	"context"
	"fmt"
	"os"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/lib/tool/here"
)

// On a machine where nothing runs.
func Example() {
	m := here.Machine{
		Runs:    func() ([]run.Dir, []run.Owner, error) { return nil, nil, nil },
		Daemons: func() ([]run.Daemon, error) { return nil, nil },
		Config:  func() *config.Snapshot { return nil },
	}
	f, err := m.Find()
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := f.One(context.Background(), 0); err != nil {
		f.Nothing(os.Stdout)
	}
	// Output:
	// no Execution Point of this user is running here
}
