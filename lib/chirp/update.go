// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chirp

import (
	"errors"
	"path"
	"strings"
	"sync"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
)

// errShrunk ends a connection on which more bytes were announced than there
// are.
var errShrunk = errors.New("the file became shorter while it was sent")

// The bounds of an update that waits and of a line in the job's log.
const (
	mostExpression = 993
	mostEvent      = 1023
)

// event is a line in the job's log, an event of type 8.
func event(text string) *classad.Ad {
	if len(text) > mostEvent {
		text = text[:mostEvent]
	}
	ad := classad.NewAd()
	ad.SetString("MyType", "GenericEvent")
	ad.SetInt("EventTypeNumber", 8)
	ad.SetString("Info", strings.ToValidUTF8(text, "?"))
	return ad
}

// delayed are the attributes that go to the shadow with the next update.
type delayed struct {
	patterns []string
	most     int

	mu sync.Mutex
	ad *classad.Ad
}

// set takes an attribute over. It is false if the name is not one of those
// that may be set, or if there are too many.
func (d *delayed) set(name string, e *classad.Expr) bool {
	fits := false
	for _, p := range d.patterns {
		if ok, err := path.Match(strings.ToLower(p), strings.ToLower(name)); err == nil && ok {
			fits = true
			break
		}
	}
	if !fits || !attributeName(name) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ad == nil {
		d.ad = classad.NewAd()
	}
	if _, there := d.ad.Lookup(name); !there && d.ad.Len() >= d.most {
		return false
	}
	d.ad.Set(name, e)
	return true
}

func (d *delayed) get(name string) (*classad.Expr, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ad == nil {
		return nil, false
	}
	return d.ad.Lookup(name)
}

// attributeName reports whether a name can stand in an ad.
func attributeName(name string) bool {
	for i, c := range []byte(name) {
		switch {
		case c == '_', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', i > 0 && c >= '0' && c <= '9':
		default:
			return false
		}
	}
	return name != "" && !classad.IsPrivate(name)
}

// Delayed returns the attributes that the job has set for the next update
// (ChirpDelayedAttrs), nil if there are none. It is a copy.
func (p *Proxy) Delayed() *classad.Ad {
	p.delayed.mu.Lock()
	defer p.delayed.mu.Unlock()
	if p.delayed.ad == nil {
		return nil
	}
	ad := classad.NewAd()
	ad.Update(p.delayed.ad)
	return ad
}

// setDelayed answers 0, or 1 where the attribute may not be set, which is no
// error to clients.
func (c *client) setDelayed(name, text string) error {
	if len(text) > mostExpression {
		return c.fail(codeOfErrno(cedar.ENAMETOOLONG))
	}
	e, err := classad.ParseExpr(text, classad.Old)
	if err != nil {
		return c.fail(InvalidRequest)
	}
	if !c.p.delayed.set(name, e) {
		c.p.cfg.Log.Info("a delayed update was not taken", "attr", strings.ToValidUTF8(name, "?"), "allowed", c.p.delayed.patterns, "most", c.p.delayed.most)
		return c.number(1)
	}
	return c.number(0)
}

// getDelayed answers with what was set, or what the job had from the start.
func (c *client) getDelayed(name string) error {
	e, ok := c.p.delayed.get(name)
	if !ok && c.p.cfg.Job != nil && !classad.IsPrivate(name) {
		e, ok = c.p.cfg.Job.Lookup(name)
	}
	if !ok {
		return c.fail(DoesNotExist)
	}
	return c.text(e.Text(classad.Old))
}
