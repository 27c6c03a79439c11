// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package batch_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/execpoint/execpoint/lib/tool/batch"
)

func ExampleEval() {
	questions := `{"id":"1","my":"Cpus = 8","expr":"Cpus > 4","want":["type","value"]}
{"id":"2","expr":"1 +","want":["type"]}
{"id":"3"}`
	unread, err := batch.Eval(strings.NewReader(questions), os.Stdout, batch.World{})
	fmt.Println(unread, err)
	// Output:
	// {"id":"1","type":"boolean","value":"true"}
	// {"id":"2","type":"parseerror"}
	// {"id":"3","error":"line 3: no want: the list of answers asked for"}
	// 1 <nil>
}

func ExampleMatch() {
	question := `{"id":"1","machine":"Requirements = TARGET.A > 1","job":"A = 2\nRequirements = true"}`
	unread, err := batch.Match(strings.NewReader(question), os.Stdout, batch.World{})
	fmt.Println(unread, err)
	// Output:
	// {"id":"1","group":"match","match":true,"machine_ok":true,"job_ok":true,"machine_requirements":{"type":"boolean","value":"true"},"job_requirements":{"type":"boolean","value":"true"},"machine_rank":{"type":"missing","value":""},"job_rank":{"type":"missing","value":""},"machine_rank_number":"0.0","job_rank_number":"0.0"}
	// 0 <nil>
}
