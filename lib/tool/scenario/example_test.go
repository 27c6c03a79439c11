// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"fmt"
	"os"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/tool/scenario"
)

func Example() {
	play := scenario.Play{Options: config.Options{ReadFile: os.ReadFile}}
	out, err := play.File("../../../examples/policies/default.scn")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(out.First.Moves) > 0, out.Refused)
	// Output:
	// true false
}
