// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package classad is the ClassAd language: values, expressions, ads, how they
// are read, evaluated, matched and printed. It answers to the language as
// HTCondor 25.14 speaks it, down to its quirks, and is held against recorded
// answers (testdata). It owns nothing but the language: it must never read a
// clock, a file, the environment or a random source by itself, start a
// goroutine, log, or know what an attribute means.
//
// # Values and expressions
//
// A [Value] is undefined, error, a boolean, an integer (64 bits, wrapping
// around), a real, a string, a list, an ad, a point in time or a duration.
// [ParseExpr] reads an expression; [Expr.Eval] evaluates it. From loose to
// tight the operators are
//
//	c ? a : b
//	||   &&   |   ^   &
//	==  !=  =?=  =!=  is  isnt
//	<  <=  >  >=
//	<<  >>  >>>
//	+  -
//	*  /  %
//	- + ! ~ (unary)
//	x.name   x[i]   x ?: y
//
// Logic has three values: "undefined && false" is false, "undefined && true"
// is undefined. Most operators give error if an operand is error, and else
// undefined if one is undefined; the operators =?= (is) and =!= (isnt) always
// give a boolean. "==" compares strings without regard to case. A condition
// may be a boolean or a number; anything else is an error in its place.
//
// # Ads and scopes
//
// An [Ad] is a set of named expressions. A bare name in an expression is
// looked up in the ad the expression belongs to, then in the ads that one is
// nested in, then, if the evaluation is a match, in the other ad. MY.x and
// TARGET.x ask one of the two ads only. While an attribute of the other ad is
// being evaluated the two change places. A name that leads back to itself is
// undefined.
//
// Ads are layered without copying by [Ad.SetParent]: a slot's ad over the
// machine's.
//
//	machine, _ := classad.ParseAd("Cpus = 8\nMemory = 16384\n", classad.Old)
//	slot := classad.NewAd()
//	slot.SetParent(machine)
//	slot.SetText("START", "TARGET.RequestCpus <= Cpus && KeyboardIdle > 900")
//	slot.SetInt("KeyboardIdle", 1200)
//	job, _ := classad.ParseAd("RequestCpus = 1\n", classad.Old)
//	slot.Eval("START", &classad.Env{Target: job}).IsTrue() // true
//
// # Two dialects
//
// The old dialect is that of configuration and job ads: one attribute to a
// line, and in a string a backslash stands for itself unless a quote follows.
// The new dialect writes a whole ad in brackets and has the escapes of C.
// Mistakes are reported as a [*SyntaxError] with line, column and a caret.
//
// # Limits
//
// Any text and any ad may come from an enemy. Reading ends at 500 levels,
// evaluation at 400 operators and references under way at once and after
// [Env.MaxSteps] steps, which long texts, lists and regular expressions use up
// as well; such an evaluation gives error, and [Expr.TryEval] tells it from
// others. Evaluating an expression of scalars allocates no memory.
//
// # What differs from HTCondor
//
// Regular expressions are those of Go's regexp, which takes time in
// proportion to the text. What it cannot do gives error: back references,
// assertions that look ahead or behind, atomic groups, possessive repetition
// (except where it makes no difference), recursion. An attribute that shows
// through from a parent is evaluated as if it stood in the ad above also when
// it is a nested ad or a list. Lists of more than a million elements and
// strings of more than 4 MiB are not made.
package classad
