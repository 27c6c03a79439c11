// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

// Kind is the type of a [Value].
type Kind uint8

// The kinds. The zero Value is undefined.
const (
	KindUndefined Kind = iota
	KindError
	KindBoolean
	KindInteger
	KindReal
	KindString
	KindList
	KindAd
	KindAbsTime
	KindRelTime

	// kindExpr is an expression in an ad; no evaluation yields it.
	kindExpr
)

var kindNames = [...]string{
	KindUndefined: "undefined",
	KindError:     "error",
	KindBoolean:   "boolean",
	KindInteger:   "integer",
	KindReal:      "real",
	KindString:    "string",
	KindList:      "list",
	KindAd:        "classad",
	KindAbsTime:   "abstime",
	KindRelTime:   "reltime",
}

// String returns the lower-case name of the kind: "undefined", "error",
// "boolean", "integer", "real", "string", "list", "classad", "abstime" or
// "reltime".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Dialect is one of the two spellings of the language. They share one grammar
// and differ in how strings are quoted, how a whole ad is laid out and how
// reals and the operators =?= and =!= are printed.
type Dialect uint8

const (
	// Old is the dialect of configuration files, job ads and daemon ads: one
	// attribute to a line, a backslash in a string stands for itself unless a
	// double quote follows.
	Old Dialect = iota
	// New is the dialect of nested ads in brackets with C-like escapes in
	// strings.
	New
)
