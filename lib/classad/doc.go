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
// A copy of an ad costs nothing until one of the two is changed ([Ad.Clone]),
// so it serves as a snapshot; [Ad.ChangesSince] says what changed.
//
// # Matching
//
// [Match] evaluates Requirements and Rank of two ads with each other as
// TARGET, [Matcher] one ad against many, at more than a million a second.
// [Explain] says which conditions of Requirements were not met, with the
// values they saw and what they ask for. [Expr.Flatten] is what is left of an
// expression when only one ad is known, [Expr.Refs] the attributes it needs,
// and [Env.OnRead] is told of every attribute an evaluation reads.
//
// # Reading and writing
//
// The old dialect is that of configuration and job ads: one attribute to a
// line, and in a string a backslash stands for itself unless a quote follows.
// The new dialect writes a whole ad in brackets and has the escapes of C.
// [ParseAd] reads both and [Ad.Text] prints both; [ParseJSON], [Ad.JSON],
// [ParseXML] and [Ad.XML] are the other two forms, and a [Reader] reads many
// ads in any of the four. Printing is HTCondor's to the byte, in an order
// that depends on the names alone, and leaves private attributes out (see
// [IsPrivate]) unless the method says All. Mistakes are reported as a
// [*SyntaxError] with line, column and a caret.
//
// # Limits
//
// Any text and any ad may come from an enemy. Reading ends at 500 levels and
// takes memory in proportion to the text, about four times as much for ads as
// they are and never more than 64 times. Evaluation ends at 400 operators and
// references under way at once and after [Env.MaxSteps] steps, which long
// texts, lists and regular expressions use up as well; it then gives error,
// and [Expr.TryEval] tells that from others. A [Budget] bounds several
// evaluations together, and one without an Env gets a few steps only.
// Evaluating an expression of scalars allocates no memory.
//
// # Concurrency and cost
//
// An [Expr] may be evaluated by many goroutines at once, and an [Ad] read,
// copied and printed by many as long as nobody changes it. The second
// evaluation of an expression compiles it, so keep expressions: set them in an
// ad or hold on to the *Expr. An evaluation with OnRead is about four times
// slower than one without.
//
// # What surprises
//
// All of this is the language, and recorded:
//
//   - && and || look at the left side first: "true || error" is true,
//     "error || true" and "undefined && error" are error.
//   - Numbers count as booleans, strings never do, not even "true".
//   - =?= wants equal kinds: "1 =?= 1.0" is false. Lists and ads cannot be
//     compared at all, and =?= on two of them is error.
//   - A real result of plus infinity is error; minus infinity and NaN are not.
//   - Integers beyond 64 bits read as 0. A number with a leading zero does not
//     read, except behind a minus sign. There are no suffixes such as 5K.
//   - A line of an ad ends with its first complete expression: "A = 10K" is 10.
//     Behind "c ? a : b" whatever follows is ignored everywhere.
//   - x ?: y binds tighter than every other operator.
//   - A quoted name on the left of a line keeps its quotes, and a tab before
//     the equals sign belongs to the name.
//   - MY.x never falls through to the other ad; a bare name does, but not from
//     inside a nested ad.
//   - A circular reference is undefined, and only where it is met.
//   - An index out of range is error, a missing name in an ad undefined; an
//     index is cut to 32 bits.
//   - Lists and ads as results keep their elements unevaluated.
//   - relTime("…") of a constant is a real number of seconds; absTime("2024")
//     is the day before that year. A date that does not read is a mistake of
//     the text, not a value.
//   - min and max convert the value kept so far: min({1,2.5}) is 1.0.
//   - stringListMember with one undefined argument is false; an undefined
//     subset is a subset of everything.
//   - Attributes show shortest name first; the old dialect sorts by bytes.
//
// # What differs from HTCondor
//
// Regular expressions are those of Go's regexp, which takes time in
// proportion to the text. What it cannot do gives error: back references,
// assertions that look ahead or behind, atomic groups, possessive repetition
// (except where it makes no difference), recursion. An attribute that shows
// through from a parent is evaluated as if it stood in the ad above also when
// it is a nested ad or a list. Lists of more than a million elements and
// strings of more than 4 MiB are not made. An evaluation ends after a million
// steps rather than ten.
package classad
