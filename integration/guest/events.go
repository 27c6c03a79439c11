// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// part is what became of a test inside, or of a part of one. That of the package
// has no name.
type part struct {
	name   string
	result string // pass, fail or skip; empty if it did not end
	output string
	parts  []*part
}

// event is what is read of a line of test2json.
type event struct{ Action, Test, Output string }

// parse reads the events of one package.
func parse(events string) (*part, error) {
	top := &part{}
	n := 0
	for line := range strings.Lines(events) {
		n++
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, fmt.Errorf("line %d of the events: %w: %.200q", n, err, line)
		}
		p := top.at(e.Test)
		switch e.Action {
		case "pass", "fail", "skip":
			p.result = e.Action
		case "output":
			p.output += e.Output
		}
	}
	return top, nil
}

// at is the part of a full name, which is made if it is new.
func (p *part) at(full string) *part {
	if full == "" {
		return p
	}
	name, rest, _ := strings.Cut(full, "/")
	for _, q := range p.parts {
		if q.name == name {
			return q.at(rest)
		}
	}
	q := &part{name: name}
	p.parts = append(p.parts, q)
	return q.at(rest)
}

// failed says whether a test is known to have failed, so that somebody is told.
func (p *part) failed() bool {
	for _, q := range p.parts {
		if !q.good() || q.failed() {
			return true
		}
	}
	return false
}

// good is false for what failed, and for a test that did not come to its end. What
// has only parts has no result of its own: the slash was in a name.
func (p *part) good() bool {
	return p.result == "pass" || p.result == "skip" || p.result == "" && p.output == "" && len(p.parts) > 0
}

// report makes the parts of p parts of t.
func (p *part) report(t *testing.T) {
	for _, q := range p.parts {
		t.Run(q.name, func(t *testing.T) {
			q.report(t)
			text := q.text()
			switch {
			case q.result == "skip":
				t.Skip(place.ReplaceAllString(text, ""))
			case !q.good() && q.result == "":
				t.Errorf("it did not end\n%s", text)
			case !q.good():
				t.Errorf("failed in the guest\n%s", text)
			case text != "":
				t.Log(text)
			}
		})
	}
}

var (
	frame = regexp.MustCompile(`(?m)^\s*(=== (RUN|PAUSE|CONT|NAME)|--- (PASS|FAIL|SKIP):).*\n?`)
	place = regexp.MustCompile(`^\s*[^\s:]+\.go:\d+: `)
)

// text is what a test printed, without what testing prints around it.
func (p *part) text() string { return strings.TrimSpace(frame.ReplaceAllString(p.output, "")) }
