// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad_test

import (
	"fmt"
	"strings"
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

func ExampleParseAd() {
	ad, err := classad.ParseAd("Cpus = 8\nOwner = \"alice\"\nHalf = Cpus / 2\n", classad.Old)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ad.Text(classad.New))
	fmt.Println(ad.JSON())
	_, err = classad.ParseAd("Cpus = 8\nHalf = Cpus / )\n", classad.Old)
	fmt.Println(err)
	// Output:
	// [ Cpus = 8; Half = Cpus / 2; Owner = "alice" ]
	// {"Cpus": 8,"Half": "\/Expr(Cpus / 2)\/","Owner": "alice"}
	// 2:15: expected a value, a name or (, found ")" (attribute Half)
}

// Three values: what is not known need not matter.
func ExampleExpr_Eval() {
	slot, err := classad.ParseAd("KeyboardIdle = 1200\n", classad.Old)
	if err != nil {
		fmt.Println(err)
		return
	}
	env := &classad.Env{My: slot}
	for _, text := range []string{
		"KeyboardIdle / 60", "KeyboardIdle > 900 || LoadAvg < 0.3", "KeyboardIdle > 900 && LoadAvg < 0.3",
		`KeyboardIdle > "long"`, "LoadAvg =?= undefined", `ifThenElse(KeyboardIdle > 900, "idle", "busy")`,
	} {
		fmt.Println(text, "is", classad.MustParseExpr(text).Eval(env))
	}
	// Output:
	// KeyboardIdle / 60 is 20
	// KeyboardIdle > 900 || LoadAvg < 0.3 is true
	// KeyboardIdle > 900 && LoadAvg < 0.3 is undefined
	// KeyboardIdle > "long" is error
	// LoadAvg =?= undefined is true
	// ifThenElse(KeyboardIdle > 900, "idle", "busy") is "idle"
}

func ExampleMatch() {
	machine, err := classad.ParseAd("Memory = 4096\nRequirements = TARGET.RequestMemory <= Memory\nRank = TARGET.Owner == \"alice\"\n", classad.Old)
	if err != nil {
		fmt.Println(err)
		return
	}
	job, err := classad.ParseAd("RequestMemory = 1024\nOwner = \"alice\"\nRequirements = TARGET.Memory >= RequestMemory\n", classad.Old)
	if err != nil {
		fmt.Println(err)
		return
	}
	m := classad.Match(machine, job, nil)
	fmt.Println(m.OK(), m.LeftRank, m.RightRank)
	// Output: true 1 0
}

func ExampleReader() {
	r := classad.NewReader(strings.NewReader("Name = \"slot1\"\nCpus = 1\n\nName = \"slot2\"\nCpus = 4\n"), classad.FormOld)
	for ad, err := range r.All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(ad.Eval("Name", nil), ad.Eval("Cpus", nil))
	}
	// Output:
	// "slot1" 1
	// "slot2" 4
}

func ExampleMatcher() {
	job, err := classad.ParseAd("RequestCpus = 2\nRequirements = TARGET.Cpus >= RequestCpus\nRank = TARGET.Cpus\n", classad.Old)
	if err != nil {
		fmt.Println(err)
		return
	}
	m := classad.NewMatcher(job, nil)
	for cpus := range 4 {
		slot := classad.NewAd()
		slot.SetInt("Cpus", int64(cpus+1))
		slot.SetBool("Requirements", true)
		fmt.Println(cpus+1, m.Matches(slot), m.Rank(slot))
	}
	// Output:
	// 1 false 1
	// 2 true 2
	// 3 true 3
	// 4 true 4
}

// A copy is a snapshot that costs nothing.
func ExampleAd_ChangesSince() {
	ad := classad.NewAd()
	ad.SetString("State", "Unclaimed")
	ad.SetInt("Cpus", 4)
	before := ad.Clone()
	ad.SetString("State", "Claimed")
	ad.SetInt("Cpus", 4)
	fmt.Println(ad.ChangesSince(before).Set)
	// Output: [State]
}
