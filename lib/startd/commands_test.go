// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"testing"

	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security/securitytest"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/pool"
)

// Every command of the daemon has a row that says who may begin it, how and
// with which proof.
func TestWhoMayCommand(t *testing.T) {
	t.Parallel()
	table, err := tableOf(pool.New(pool.Config{}, pool.Settings{}), &daemon.Answers{Orders: &daemon.Orders{}}, &daemon.TokenRequests{}, &listen.Reverser{}, newAskServer())
	if err != nil {
		t.Fatal(err)
	}
	securitytest.Commands(t, table, "testdata/commands.tsv")
}
