// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"fmt"

	"github.com/execpoint/execpoint/lib/errs"
)

// whole is a workload on whole numbers with the mix of statements that R. P.
// Weicker found in programs of 1984 and put into Dhrystone: about half
// assignments, a third decisions and loops and the rest calls; on numbers,
// characters, texts of 30 bytes, enumerations, an array of rows and records
// that point at each other. It is not that program and shares no text with it.
type whole struct {
	ring  [rings]record
	at    *record
	table [32][32]int32
	swaps int
}

// perRound is how many rounds of Dhrystone take as long as one of ours, both
// made by the same compiler for x86-64.
const perRound = 1.65

const (
	batch    = 1000       // rounds between two looks at the clock
	expected = 3987074086 // digest of a batch on any machine that calculates rightly
	rings    = 16         // records
)

type phase uint8

const (
	quiet phase = iota
	rising
	busy
	falling
	phases
)

type record struct {
	next   *record
	phase  phase
	number int32
	text   [30]byte
}

// run does a batch from the beginning and checks what comes of it.
func (w *whole) run() error {
	*w = whole{}
	for i := range w.ring {
		r := &w.ring[i]
		r.next = &w.ring[(i+1)%rings]
		r.number = int32(7 * i)
		r.text = [30]byte([]byte("SLOTS AND CLAIMS, NUMBER .....")) // 30 bytes
		r.text[25+i%5] = byte('A' + i)
	}
	w.at = &w.ring[0]
	for i := range int32(batch) {
		w.round(i)
	}
	if got := w.digest(); got != expected {
		return errs.E("", errs.Broken, "", fmt.Errorf("the machine calculates wrongly: %d instead of %d", got, expected))
	}
	return nil
}

// round is one step round the ring: the record it stands at changes the next.
func (w *whole) round(i int32) {
	here := w.at
	next := here.next
	saved := here.text
	order := compare(&saved, &next.text)
	if order < 0 {
		w.turn(next, 1)
	} else {
		next.text = saved
		w.turn(next, 3)
	}
	next.phase = follow(here.phase, order > 0)

	number, left := here.number, int32(0)
	for left < 3 {
		number = blend(number, i, left)
		left++
	}
	var rest int32
	divide(number, left+i&7+2, &number, &rest)
	next.number = number%997 + rest

	w.note(next.number, rest)
	if next.phase == busy || w.table[rest&31][i&31] > 40 {
		w.swap(here)
	}
	for c := byte('A'); c <= 'C'; c++ {
		if same(c, next.text[29]) {
			next.number += int32(c)
		}
	}
	w.at = next
}

// turn moves one character of a text on.
//
//go:noinline
func (w *whole) turn(r *record, by byte) {
	c := &r.text[29]
	if *c < 'A' || *c > 'Z' {
		*c = 'A'
	}
	if *c += by; *c > 'Z' {
		*c -= 26
	}
}

// swap takes the record after r out of the ring and puts it back one further.
//
//go:noinline
func (w *whole) swap(r *record) {
	a := r.next
	b := a.next
	if b == r || b.next == r {
		return
	}
	r.next, a.next, b.next = b, b.next, a
	w.swaps++
}

//go:noinline
func (w *whole) note(value, by int32) {
	row := value & 31
	for col := by & 7; col < by&7+3; col++ {
		w.table[row][col] = value
		w.table[col][row]++
	}
}

//go:noinline
func compare(a, b *[30]byte) int {
	for i := range a {
		if a[i] != b[i] {
			return int(a[i]) - int(b[i])
		}
	}
	return 0
}

//go:noinline
func follow(p phase, up bool) phase {
	switch p {
	case quiet:
		if up {
			return rising
		}
		return busy
	case rising:
		return busy
	case busy:
		return falling
	case falling:
		if !up {
			return rising
		}
	}
	return quiet
}

//go:noinline
func blend(a, b, c int32) int32 { return 5*a - b + c }

//go:noinline
func divide(a, by int32, quotient, rest *int32) {
	*quotient = a / by
	*rest = a - *quotient*by
}

//go:noinline
func same(a, b byte) bool { return a == b }

// digest folds all that a batch has left into one number.
func (w *whole) digest() uint32 {
	h := uint32(2166136261)
	add := func(n int32) { h = (h ^ uint32(n)) * 16777619 }
	for r := range w.ring {
		add(w.ring[r].number)
		add(int32(w.ring[r].phase))
		for _, c := range w.ring[r].text {
			add(int32(c))
		}
	}
	for _, row := range w.table {
		for _, n := range row {
			add(n)
		}
	}
	add(int32(w.swaps))
	return h
}
