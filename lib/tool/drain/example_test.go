// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"encoding/json"
	"fmt"

	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/tool/drain"
)

func Example() {
	req, err := drain.Options{Fast: true, Reconfigure: true, Reason: "new kernel"}.Request()
	text, _ := json.Marshal(req.Drain)
	fmt.Println(req.Op, string(text), err)
	fmt.Println(drain.Said(req, observe.Response{DrainID: "7"}))

	_, err = drain.Options{Fast: true, Quick: true}.Request()
	fmt.Println(err)
	// Output:
	// drain {"how":"fast","then":"reconfigure","reason":"new kernel"} <nil>
	// draining, request id 7
	// -fast and -quick exclude one another
}
