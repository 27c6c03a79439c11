// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import "time"

// DefaultMaxSteps is the number of steps an evaluation may take when
// [Env.MaxSteps] is zero, which is 50 ms at most. HTCondor allows ten times as
// many; but a job's ad comes from a user, and the policy that reads it is
// evaluated by the one goroutine that every slot waits for.
const DefaultMaxSteps = 1_000_000

// plainSteps is the bound where there is no Env. Values are read in this way
// from the messages of peers, also of those who have not yet said who they
// are: they are constants, or as short as RequestMemory of a usual job.
const plainSteps = 10_000

// Budget is how many steps several evaluations may take together, such as
// those of one constraint in every ad of an answer. It is for one goroutine.
type Budget struct{ left int }

// NewBudget returns a budget of so many steps.
func NewBudget(steps int) *Budget { return &Budget{left: steps} }

// Left returns how many steps are left. It is negative once an evaluation had
// to be given up for want of steps.
func (b *Budget) Left() int { return b.left }

// Grant adds steps, but to none that is spent.
func (b *Budget) Grant(steps int) {
	if !b.Spent() {
		b.left += steps
	}
}

// Spent reports whether an evaluation had to be given up for want of steps.
// All that follow are given up too.
func (b *Budget) Spent() bool { return b.left < 0 }

// maxEvalDepth is how many operators and references may be under way at once.
const maxEvalDepth = 400

// Env is all that an evaluation may look at. The zero Env, like a nil one, has
// no ads and no clock. An Env is only read by an evaluation and may be used
// for several at once if Rand and OnRead can.
type Env struct {
	// My is the ad the expression belongs to: bare names and MY.x are looked
	// up in it. Nil is an empty ad.
	My *Ad
	// Target is the other ad of a match: TARGET.x, and bare names that My
	// does not have. While an attribute of Target is evaluated the two change
	// places. Nil means there is no match.
	Target *Ad
	// Now is what time() and CurrentTime read. With a zero Now they give
	// error.
	Now time.Time
	// Location is the local time zone. Nil is UTC.
	Location *time.Location
	// Rand returns a number in [0,1) for random(). With a nil Rand random()
	// gives error.
	Rand func() float64
	// MaxSteps bounds the work of one evaluation: a step is one node of the
	// tree, or 64 bytes of text handled. Zero is DefaultMaxSteps. An
	// evaluation that uses them up gives error.
	MaxSteps int
	// Budget, if set, is what the evaluation shares with others, which are not
	// under way at the same time: it takes no more steps than are left.
	Budget *Budget
	// OnRead, if set, is told of every attribute that the evaluation looked
	// at, in order, each time it does.
	OnRead func(Read)
	// UserMap is what userMap() asks: it returns what the map called name
	// has for input. Nil means there are no maps. See [UserMap].
	UserMap func(name, input string) (string, bool)
	// HomeDir is what userHome() asks: the home directory of a user. Nil
	// means no user is known.
	HomeDir func(user string) (string, bool)
	// OnDebug, if set, is told what debug() saw: an expression and its value.
	OnDebug func(expr *Expr, v Value)
}

// Read is one attribute value that an evaluation looked at.
type Read struct {
	// Scope says which ad has the attribute: "MY", "TARGET", or "" for one
	// inside a nested ad and for a name that no ad has. A missing attribute
	// that was asked of one ad by name carries that ad's scope.
	Scope string
	// Name is the attribute as the ad spells it, or as the expression does if
	// no ad has it.
	Name string
	// Value is what it evaluated to; undefined if no ad has it.
	Value Value
}
