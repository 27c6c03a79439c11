// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/slot"
)

// drainWords are what may follow a drain, without the hyphens that the field's
// command has before them.
const drainWords = "graceful, quick or fast; resume-on-completion, exit-on-completion, restart-on-completion or reconfig-on-completion; " +
	"start EXPRESSION, check EXPRESSION, reason TEXT; or cancel, and request-id ID"

// parseDrain reads the words behind a drain: a request, or the cancelling of
// one. The field's own options with their hyphens are understood as well; a
// slot or machine named at the end is this one.
func parseDrain(text string) (ep.Event, error) {
	words, err := quoted(text)
	if err != nil {
		return nil, err
	}
	var (
		req    ep.DrainRequested
		cancel bool
		id     string
	)
	for i := 0; i < len(words); i++ {
		word := strings.TrimLeft(words[i], "-")
		value := func() (string, error) {
			if i++; i >= len(words) {
				return "", fmt.Errorf("nothing follows %s: want %s", word, drainWords)
			}
			return words[i], nil
		}
		expr := func(to **classad.Expr) error {
			text, err := value()
			if err == nil {
				*to, err = classad.ParseExpr(text, classad.Old)
			}
			return err
		}
		switch word {
		case "graceful":
			req.How = ep.DrainGraceful
		case "quick":
			req.How = ep.DrainQuick
		case "fast":
			req.How = ep.DrainFast
		case "resume", "resume-on-completion":
			req.Then = ep.ThenResume
		case "exit", "exit-on-completion":
			req.Then = ep.ThenExit
		case "restart", "restart-on-completion":
			req.Then = ep.ThenRestart
		case "reconfig", "reconfig-on-completion":
			req.Then = ep.ThenReconfigure
		case "start":
			err = expr(&req.Start)
		case "check":
			err = expr(&req.Check)
		case "reason":
			req.Reason, err = value()
		case "cancel":
			cancel = true
		case "request-id":
			id, err = value()
		default:
			if i < len(words)-1 || strings.HasPrefix(words[i], "-") || !named(words[i]) {
				return nil, fmt.Errorf("a drain has no option %q: want %s", words[i], drainWords)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if cancel {
		return ep.DrainCancelled{ID: id}, nil
	}
	req.By = "owner@simulation"
	return req, nil
}

// named reports whether a word is the name of a machine or of a slot, and no
// option that was written wrongly.
func named(word string) bool {
	_, err := slot.ParseID(word)
	return err == nil || strings.ContainsAny(word, ".@$")
}

// drain carries out the words behind a drain.
func (w *world) drain(text string) error {
	ev, err := parseDrain(text)
	if err != nil {
		return errs.E("simulate.Drain", errs.Invalid, "", err)
	}
	var refused error
	w.ap.ref++
	switch ev := ev.(type) {
	case ep.DrainRequested:
		ev.Ref = own(w.ap.ref)
		refused = w.answered(ev, ev.Ref)
	case ep.DrainCancelled:
		ev.Ref = own(w.ap.ref)
		refused = w.answered(ev, ev.Ref)
	}
	return refused
}

// answered tells the core what happened, and returns the error of its answer.
func (w *world) answered(ev ep.Event, ref ep.Ref) error {
	var err error
	effects := w.eng.Step(w.now, ev)
	for _, eff := range effects {
		if r, ok := eff.(ep.Reply); ok && r.Ref == ref {
			err = r.Err
		}
	}
	w.perform(effects)
	return err
}

// quoted parts a line into words, some in quotation marks.
func quoted(line string) ([]string, error) {
	var (
		out  []string
		word strings.Builder
		open bool
		mark byte
	)
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case mark != 0 && c == mark:
			mark = 0
		case mark != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			mark, open = c, true
		case c == ' ' || c == '\t':
			if open {
				out = append(out, word.String())
				word.Reset()
			}
			open = false
		default:
			word.WriteByte(c)
			open = true
		}
	}
	if mark != 0 {
		return nil, errors.New("a quotation mark is not closed")
	}
	if open {
		out = append(out, word.String())
	}
	return out, nil
}
