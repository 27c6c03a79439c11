// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Comparison holds one scenario under two configurations against each other.
type Comparison struct {
	Names [2]string // of the configurations
	With  [2]*Result
	// Moves are those that only one of them makes, in the order of time.
	Moves []Difference
}

// Difference is a move that one of two runs makes and the other does not.
type Difference struct {
	Which int // 0 or 1
	Move  *Move
}

// sameTime is how far apart two moves of a slot may be and be the same.
const sameTime = time.Second

// Compare holds two results of one scenario against each other. A move is the
// same if the slot makes it in both, at about the same time.
func Compare(names [2]string, a, b *Result) *Comparison {
	c := &Comparison{Names: names, With: [2]*Result{a, b}}
	type key struct {
		slot     string
		from, to string
	}
	others := map[key][]int{}
	for i := range b.Moves {
		m := &b.Moves[i]
		k := key{m.Slot, m.From.String(), m.To.String()}
		others[k] = append(others[k], i)
	}
	matched := make([]bool, len(b.Moves))
	only := make([]bool, len(a.Moves))
	for i := range a.Moves {
		m := &a.Moves[i]
		k := key{m.Slot, m.From.String(), m.To.String()}
		list := others[k]
		for len(list) > 0 && b.Moves[list[0]].At < m.At-sameTime {
			list = list[1:]
		}
		if len(list) > 0 && b.Moves[list[0]].At <= m.At+sameTime {
			matched[list[0]] = true
			list = list[1:]
		} else {
			only[i] = true
		}
		others[k] = list
	}
	i, j := 0, 0
	for i < len(a.Moves) || j < len(b.Moves) {
		if j == len(b.Moves) || i < len(a.Moves) && a.Moves[i].At <= b.Moves[j].At {
			if only[i] {
				c.Moves = append(c.Moves, Difference{0, &a.Moves[i]})
			}
			i++
			continue
		}
		if !matched[j] {
			c.Moves = append(c.Moves, Difference{1, &b.Moves[j]})
		}
		j++
	}
	return c
}

// WriteText prints the moves that differ and the sums side by side.
func (c *Comparison) WriteText(w io.Writer, columns int) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if len(c.Moves) == 0 {
		b.WriteString("Every slot makes the same moves.\n")
	} else {
		fmt.Fprintf(&b, "- only with %s\n+ only with %s\n\n", c.Names[0], c.Names[1])
		fmt.Fprintln(t, "\tTIME\tSLOT\tFROM\tTO\tJOB\tWHY")
		for _, d := range c.Moves[:min(len(c.Moves), maxRows)] {
			m := d.Move
			fmt.Fprintf(t, "%c\t%s\t%s\t%v\t%v\t%s\t%s\n", "-+"[d.Which], clockText(m.At), m.Slot, m.From, m.To, dash(m.Job), m.Why())
		}
		t.Flush()
		more(&b, len(c.Moves), "moves that differ")
	}
	b.WriteByte('\n')
	fmt.Fprintf(t, "\t%s\t%s\n", c.Names[0], c.Names[1])
	x, y := c.With[0].Total, c.With[1].Total
	for _, row := range []struct {
		what string
		a, b any
	}{
		{"completed", x.Completed, y.Completed}, {"held", x.Held, y.Held}, {"starts", x.Starts, y.Starts},
		{"evictions", x.Evictions, y.Evictions}, {"suspensions", x.Suspensions, y.Suspensions},
		{"work done", spanText(x.Good), spanText(y.Good)}, {"work lost", spanText(x.Bad), spanText(y.Bad)},
		{"still running", spanText(x.Running), spanText(y.Running)}, {"moves", x.Moves, y.Moves},
	} {
		fmt.Fprintf(t, "%s\t%v\t%v\n", row.what, row.a, row.b)
	}
	t.Flush()
	for i, r := range c.With {
		fmt.Fprintf(&b, "\n%s\n", c.Names[i])
		r.picture(&b, columns)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// MarshalJSON writes the sums of both and the moves that differ.
func (c *Comparison) MarshalJSON() ([]byte, error) {
	type side struct {
		Name  string     `json:"name"`
		Total jsonTotals `json:"total"`
	}
	type difference struct {
		Only string `json:"only"`
		jsonMove
	}
	out := struct {
		With  [2]side      `json:"with"`
		Moves []difference `json:"transitions"`
	}{Moves: []difference{}}
	for i := range c.With {
		out.With[i] = side{c.Names[i], c.With[i].Total.json()}
	}
	for _, d := range c.Moves {
		out.Moves = append(out.Moves, difference{c.Names[d.Which], d.Move.json()})
	}
	return json.Marshal(out)
}
