// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"fmt"
	"slices"
	"strings"
)

// Explanation says why the Requirements of an ad accept another ad or not.
type Explanation struct {
	OK    bool  // accepts
	Value Value // of Requirements; undefined if there is none
	// Clauses are the conditions that Requirements joins with &&, in the
	// order they are written. A condition that is nothing but the name of an
	// attribute of the ad stands for the conditions of that attribute.
	Clauses []Clause
}

// Clause is one condition that must be true.
type Clause struct {
	// From is the attribute the condition is written in: Requirements, or
	// one that it names.
	From string
	Expr *Expr
	// Value is what it comes to by itself. It may be undefined or error even
	// if the whole is false because of another one.
	Value Value
	// Rest is what it asks of the other ad: Expr with everything put in that
	// its own ad knows.
	Rest *Expr
	// Reads are the attributes it looked at, each once.
	Reads []Read
}

// OK reports whether the condition is met.
func (c *Clause) OK() bool { return c.Value.IsTrue() }

// Limits of an explanation.
const (
	maxClauses      = 1000
	maxClauseNested = 8
)

// Explain evaluates the Requirements of my with target as the other ad and
// says what came of each of its conditions. env gives clock, random source
// and limits; its ads and OnRead are not looked at, and it may be nil. All
// conditions together may take the steps of one evaluation; those beyond are
// left out. For a match explain both sides.
func Explain(my, target *Ad, env *Env) Explanation {
	x := explainer{seen: map[string]bool{}}
	if env != nil {
		x.env = *env
	}
	x.env.My, x.env.Target, x.env.OnRead = my, target, nil
	if x.left = x.env.MaxSteps; x.left <= 0 {
		x.left = DefaultMaxSteps
	}
	e := Explanation{Value: my.Eval(attrRequirements.text, &x.env)}
	e.OK = e.Value.IsTrue()
	x.attribute(attrRequirements.text, 0)
	e.Clauses = x.clauses
	return e
}

type explainer struct {
	env     Env
	clauses []Clause
	seen    map[string]bool
	left    int // steps that all clauses together may still take
}

// attribute takes the definition of an attribute apart and reports whether it
// could.
func (x *explainer) attribute(name string, nested int) bool {
	key := foldString(name)
	e, ok := x.env.My.Lookup(name)
	if !ok || x.seen[key] || nested > maxClauseNested {
		return false
	}
	x.seen[key] = true
	x.conjuncts(name, e.n, nested)
	return true
}

// conjuncts adds the conditions of n, which is written in the attribute from.
func (x *explainer) conjuncts(from string, n node, nested int) {
	var chain []node // && associates to the left: the last condition is outermost
	for {
		if p, ok := n.(*paren); ok {
			n = p.x
		} else if b, ok := n.(*binary); ok && b.op == opAnd && len(chain) < maxClauses {
			chain = append(chain, b.y)
			n = b.x
		} else {
			break
		}
	}
	if len(chain) == 0 {
		x.condition(from, n, nested)
		return
	}
	x.condition(from, n, nested)
	for _, y := range slices.Backward(chain) {
		x.conjuncts(from, y, nested+1)
	}
}

func (x *explainer) condition(from string, n node, nested int) {
	if len(x.clauses) >= maxClauses || x.left <= 0 {
		return
	}
	if name, ok := ownName(n); ok && x.attribute(name, nested+1) {
		return
	}
	c := Clause{From: from, Expr: &Expr{n: n}}
	env := x.env
	env.OnRead = func(r Read) {
		if !slices.ContainsFunc(c.Reads, func(s Read) bool { return s.Scope == r.Scope && equalNames(s.Name, r.Name) }) {
			c.Reads = append(c.Reads, r)
		}
	}
	var ev evaluator
	env.MaxSteps = x.left
	ev.start(&env, env.My, env.Target)
	c.Value = ev.expr(c.Expr)
	if !ev.end() {
		c.Value = ErrorValue()
	}
	c.Rest = c.Expr
	if x.left = ev.steps; x.left > 0 {
		env.OnRead, env.Target, env.MaxSteps = nil, nil, x.left
		rest, left, ok := c.Expr.flattenCounted(&env, false)
		if x.left = left; ok {
			c.Rest = rest
		}
	}
	x.clauses = append(x.clauses, c)
}

// ownName returns the name if n is nothing but the name of an attribute of
// its own ad.
func ownName(n node) (string, bool) {
	switch n := n.(type) {
	case *attrRef:
		return n.name.text, !n.absolute && n.name.role == roleNone
	case *selection:
		of, ok := n.of.(*attrRef)
		return n.name.text, ok && !of.absolute && of.name.role == roleMy
	}
	return "", false
}

// String prints one line for each condition, with what it looked at: those
// that are not met say what they ask for.
func (e Explanation) String() string {
	var b strings.Builder
	for i := range e.Clauses {
		c := &e.Clauses[i]
		fmt.Fprintf(&b, "%-9s  %s", c.Value.Text(Old), c.Expr)
		for k, r := range c.Reads {
			sep := ", "
			if k == 0 {
				sep = "   with "
			}
			b.WriteString(sep)
			if r.Scope != "" {
				b.WriteString(r.Scope + ".")
			}
			b.WriteString(r.Name + " = " + r.Value.Text(Old))
		}
		if !c.OK() {
			if rest := c.Rest.String(); rest != c.Expr.String() && rest != c.Value.Text(Old) {
				b.WriteString("   wants " + rest)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
