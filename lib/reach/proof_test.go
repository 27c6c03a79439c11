// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"testing"

	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security/securitytest"
)

// Every command of a starter has a row that says who may begin it, how and with
// which proof.
func TestWhoMayCommand(t *testing.T) {
	t.Parallel()
	table, err := listen.NewTable((&CommandSocket{}).Commands()...)
	if err != nil {
		t.Fatal(err)
	}
	securitytest.Commands(t, table, "testdata/commands.tsv")
}
