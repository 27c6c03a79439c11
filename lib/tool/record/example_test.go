// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/execpoint/execpoint/lib/tool/record"
)

func ExampleMoves() {
	run := `{"id":"1","config":"NUM_CPUS = 1\nSTART = False\n","actions":[],"end":10}`
	unanswered, err := record.Moves(strings.NewReader(run), os.Stdout)
	fmt.Println(unanswered, err)
	// Output:
	// {"id":"1","transitions":[{"t":-8,"slot":"slot1","from":"Owner/Idle","to":"Unclaimed/Idle"}]}
	// 0 <nil>
}
