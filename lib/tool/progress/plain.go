// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"io"
	"time"

	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/local"
	"github.com/execpoint/execpoint/lib/spelling"
	"github.com/execpoint/execpoint/lib/tool/words"
)

// plain prints one line a change.
type plain struct {
	w io.Writer
}

// say prints a line, in one write.
func (p *plain) say(line string) { fmt.Fprintln(p.w, words.Printable(line)) }

// Note implements Reporter.
func (p *plain) Note(kind Kind, what string) { p.say(noteLine(kind, what)) }

// Begin implements Reporter.
func (p *plain) Begin(cluster, jobs int, source string) { p.say(beginLine(cluster, jobs, source)) }

func beginLine(cluster, jobs int, source string) string {
	return fmt.Sprintf("cluster %d: %s from %s", cluster, spelling.Count(jobs, "job"), source)
}

// Change implements Reporter.
func (p *plain) Change(c local.Change) { p.say(changeLine(c)) }

// Counts implements Reporter.
func (p *plain) Counts(time.Time, local.Counts) {}

// Leaving implements Reporter.
func (p *plain) Leaving(text string, _ ep.ShutdownView) { p.say(text) }

// End implements Reporter.
func (p *plain) End(c local.Counts, took time.Duration, kept string) {
	p.say(summary(c, took))
	if kept != "" {
		p.say("kept: " + kept)
	}
}
