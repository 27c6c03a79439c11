// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package adtext_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/execpoint/execpoint/lib/tool/adtext"
)

func Example() {
	ad, err := adtext.Read(strings.NewReader(`{"Cpus": 8, "Busy": false}`), adtext.Auto)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(adtext.Format(ad, adtext.Old))
	// Output:
	// Busy = false
	// Cpus = 8
}

func ExampleCopy() {
	err := adtext.Copy(os.Stdout, strings.NewReader("A = 1\n\nA = 2\n"), adtext.Auto, adtext.JSON)
	fmt.Println(err)
	// Output:
	// {"A": 1}
	// {"A": 2}
	// <nil>
}

func ExampleMistake() {
	_, err := adtext.Parse("Cpus = 8\nMemory = (2 +", adtext.Old)
	adtext.PrintMistake(os.Stdout, "mytool", &adtext.Mistake{Name: "slot.ad", Err: err})
	// Output:
	// mytool: slot.ad:2:14: expected a value, a name or (, found end of the expression (attribute Memory)
	// Memory = (2 +
	//              ^
}
