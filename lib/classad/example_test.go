// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad_test

import (
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

func Example() {
	machine, err := classad.ParseAd("Cpus = 8\nMemory = 16384\nArch = \"X86_64\"\n", classad.Old)
	if err != nil {
		fmt.Println(err)
		return
	}
	slot := classad.NewAd()
	slot.SetParent(machine)
	slot.SetInt("KeyboardIdle", 1200)
	if err := slot.SetText("START", "TARGET.RequestCpus <= Cpus && KeyboardIdle > 900"); err != nil {
		fmt.Println(err)
		return
	}
	job, err := classad.ParseAd("RequestCpus = 1\nDeadline = time() + 60\n", classad.Old)
	if err != nil {
		fmt.Println(err)
		return
	}

	env := &classad.Env{Target: job, Now: time.Unix(1700000000, 0)}
	fmt.Println(slot.Eval("START", env))
	fmt.Println(job.Eval("Deadline", env))
	fmt.Println(classad.MustParseExpr(`strcat(Arch, "/", Cpus)`).Eval(&classad.Env{My: slot}))
	// Output:
	// true
	// 1700000060
	// "X86_64/8"
}

func ExampleExpr_Flatten() {
	slot, err := classad.ParseAd("Cpus = 2\nDraining = false\n", classad.Old)
	if err != nil {
		fmt.Println(err)
		return
	}
	start := classad.MustParseExpr("!Draining && TARGET.RequestCpus <= Cpus")
	rest, ok := start.Flatten(&classad.Env{My: slot})
	fmt.Println(rest, ok)
	// Output: TARGET.RequestCpus <= 2 true
}

func ExampleSyntaxError() {
	_, err := classad.ParseExpr("KeyboardIdle > 15 * && LoadAvg < 0.3", classad.Old)
	if e, ok := err.(*classad.SyntaxError); ok {
		fmt.Println(e)
		fmt.Println(e.Caret())
	}
	// Output:
	// 1:21: expected a value, a name or (, found "&&"
	// KeyboardIdle > 15 * && LoadAvg < 0.3
	//                     ^
}

// The reads of an evaluation are the trace of a decision.
func ExampleEnv_onRead() {
	slot, err := classad.ParseAd("START = KeyboardIdle > Limit && TARGET.Owner == \"alice\"\nKeyboardIdle = 1200\nLimit = 15 * 60\n", classad.Old)
	if err != nil {
		fmt.Println(err)
		return
	}
	job := classad.NewAd()
	job.SetString("Owner", "bob")
	v := slot.Eval("START", &classad.Env{Target: job, OnRead: func(r classad.Read) {
		fmt.Println(r.Scope, r.Name, r.Value)
	}})
	fmt.Println(v)
	// Output:
	// MY KeyboardIdle 1200
	// MY Limit 900
	// TARGET Owner "bob"
	// false
}
