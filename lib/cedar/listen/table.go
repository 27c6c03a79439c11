// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/errs"
)

// Handler acts on a command whose sender was allowed it. The payload is next
// on the connection. When it returns, the connection is closed, unless it was
// detached or the command keeps it. An error is logged and ends the
// connection: what the peer is to learn, the handler tells it.
//
// ctx ends when the server stops.
type Handler func(ctx context.Context, c *Call) error

// Command is a command that is answered here: its row of the table of commands,
// and what answers it. The handler of one that comes in a datagram reads one
// message and cannot detach.
type Command struct {
	command.Row
	Handle Handler
}

// Answer joins commands, by number, with their rows of the table. A number that
// this daemon has no row for becomes a command without a name, which NewTable
// refuses.
func Answer(by command.Answerer, handlers map[int]Handler) []Command {
	var all []Command
	for _, number := range slices.Sorted(maps.Keys(handlers)) {
		row, ok := by.Row(number)
		if !ok {
			row.Name = ""
		}
		all = append(all, Command{row, handlers[number]})
	}
	return all
}

// Table is a set of commands. It is immutable and safe for concurrent use.
type Table struct {
	byNumber map[int]Command
}

// NewTable returns the table of commands. Two of one number conflict; a
// command needs a name and a handler.
func NewTable(commands ...Command) (*Table, error) {
	t := &Table{byNumber: make(map[int]Command, len(commands))}
	for _, c := range commands {
		if c.Name == "" || c.Handle == nil {
			return nil, errs.E("listen.NewTable", errs.Invalid, c.Name, fmt.Errorf("command %d has no name or no handler", c.Number))
		}
		if other, ok := t.byNumber[c.Number]; ok {
			return nil, errs.E("listen.NewTable", errs.Conflict, c.Name, fmt.Errorf("command %d is already %s", c.Number, other.Name))
		}
		t.byNumber[c.Number] = c
	}
	return t, nil
}

// Lookup returns the command of a number.
func (t *Table) Lookup(number int) (Command, bool) {
	c, ok := t.byNumber[number]
	return c, ok
}

// Commands returns all commands in order of their numbers.
func (t *Table) Commands() []Command {
	all := make([]Command, 0, len(t.byNumber))
	for _, c := range t.byNumber {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Command) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// Security returns what authorization has to know of the commands, for
// security.Server.
func (t *Table) Security() security.Commands {
	all := make(security.Commands, len(t.byNumber))
	for n, c := range t.byNumber {
		all[n] = c.Row
	}
	return all
}
