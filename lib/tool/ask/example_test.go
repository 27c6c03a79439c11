// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"context"
	"fmt"

	"github.com/execpoint/execpoint/lib/pool/directory"
	"github.com/execpoint/execpoint/lib/tool/ask"
)

// An address needs no collector; a name that no collector is asked for is not found.
func ExampleDirectory_Locate() {
	var d ask.Directory // with Open, a *security.Client, collectors could be asked
	at, err := d.Locate(context.Background(), nil, directory.ExecutionPoint, "<192.0.2.1:9618>")
	fmt.Println(at, err)
	_, err = d.Locate(context.Background(), nil, directory.ExecutionPoint, "slot1@node7")
	fmt.Println(err != nil)
	// Output:
	// <192.0.2.1:9618> <nil>
	// true
}
