// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// LogAs is a category of the log and a verbosity, as "D_ALWAYS" or "D_TEST:2".
// The zero value is not logged.
type LogAs struct {
	Category string
	Verbose  bool
}

// The attributes that give a log record its category, and a text of many lines
// behind its message: observe.CategoryKey and observe.TextKey.
const (
	keyCategory = "cat"
	keyText     = "text"
)

// The categories in which HTCondor has what it says of plugins.
var (
	catAlways = LogAs{Category: "D_ALWAYS"}
	catError  = LogAs{Category: "D_ERROR"}
	catTest   = LogAs{Category: "D_TEST"}
	catFull   = LogAs{Category: "D_ALWAYS", Verbose: true} // D_FULLDEBUG
)

// mostSaid is how much of what a plugin prints is logged, from its end.
const mostSaid = 16 << 10

// keepAlive is MY_POPEN_KEEPALIVE_INTERVAL where the plan says nothing.
const keepAlive = 60 * time.Second

func (p *Plugins) say(as LogAs, format string, args ...any) {
	p.sayWith(as, "", format, args...)
}

// sayWith is say with a text of many lines behind the message.
func (p *Plugins) sayWith(as LogAs, text, format string, args ...any) {
	if p.log == nil || as.Category == "" {
		return
	}
	level := slog.LevelInfo
	if as.Verbose {
		level = slog.LevelDebug
	}
	with := []slog.Attr{slog.String(keyCategory, as.Category)}
	if text != "" {
		with = append(with, slog.String(keyText, text))
	}
	p.log.LogAttrs(context.Background(), level, fmt.Sprintf(format, args...), with...)
}

// logStart tells that a program begins, and from then on that it is waited for.
func (p *Plugins) logStart(spec *PluginSpec, b batch) {
	if !b.plugin.Multi {
		return
	}
	p.say(catFull, "FILETRANSFER: invoking: %s", strings.Join(spec.Args, " "))
	p.logInput(b)
	spec.Every = p.KeepAlive
	if spec.Every <= 0 {
		spec.Every = keepAlive
	}
	spec.Waiting = func() { p.say(catTest, "wait_for_output() callback (multi)") }
}

// logInput tells what a program is to move, on one line. Of a URL it leaves out
// what may be a secret, and all that the job has to say to plugins.
func (p *Plugins) logInput(b batch) {
	if p.log == nil || !p.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	var list []byte
	for _, item := range b.items {
		ad := classad.NewAd()
		ad.SetString("Url", safeURL(item.URL))
		ad.SetString("LocalFileName", p.local(item.Name))
		list = ad.AppendText(list, classad.New)
	}
	p.say(catFull, "FILETRANSFER: with plugin input: %s", list)
}

// logExit tells how a program ended and, where the owner wants that, what it
// printed.
func (p *Plugins) logExit(label string, result int, exit PluginExit, lifetime time.Duration) {
	code := exit.Code
	if exit.TimedOut {
		code = subTimeout
		p.say(catError, "FILETRANSFER: plugin %s was killed after running for %d seconds.", label, int(lifetime/time.Second))
	} else {
		signalled := 0
		if exit.Signal != 0 {
			signalled = 1
		}
		p.say(catError, "FILETRANSFER: plugin %s: exit_code %d exit_by_signal: %d exit_signal: %d", label, code, signalled, exit.Signal)
	}
	as := p.OnFailure
	if result == pluginWell {
		as = p.OnSuccess
	}
	said := exit.Output
	switch {
	case len(said) == 0:
	case len(said) > mostSaid:
		p.sayWith(as, string(said[len(said)-mostSaid:]), "FILETRANSFER: plugin %s exit=%d had %d bytes of stdout. last 16KB :", label, code, len(said))
	default:
		p.sayWith(as, string(said), "FILETRANSFER: plugin %s exit=%d stdout:", label, code)
	}
}

// note tells who keeps records of a result.
func (p *Plugins) note(ad *classad.Ad) {
	if p.record != nil {
		p.record(ad)
	}
}
