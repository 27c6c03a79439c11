// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
)

// parse returns the tree of a setting, nil if there is none.
func parse(s config.Setting) *node {
	if strings.TrimSpace(s.Value) == "" {
		return nil
	}
	e, err := classad.ParseExpr(s.Value, classad.Old)
	if err != nil {
		return nil
	}
	return treeOf(e)
}

// expressions looks into every expression that somebody set.
func (c *checker) expressions() {
	for _, s := range c.set {
		name := bare(s.Name)
		k, ok := config.LookupKnob(name)
		if !(ok && k.Type == config.TypeExpr || c.isPublished(name)) {
			continue
		}
		n := parse(s)
		if n == nil {
			continue
		}
		c.alwaysError(s, n)
		c.nearNames(s, n)
		c.times(s, n)
		c.exclusive(s, n)
		if _, base := slotTypeKnob(name); isPolicy(base) {
			c.wrongAd(s, n)
			c.truthWord(s, n)
			c.unquoted(s, n)
		}
	}
}

// alwaysError reports parts that are error whatever the ads say: the smallest
// that has operands.
func (c *checker) alwaysError(s config.Setting, n *node) bool {
	for _, a := range n.args {
		if c.alwaysError(s, a) {
			return true
		}
	}
	if n.op == opLiteral || len(n.args) == 0 || !n.isConstant() || !n.value().IsError() {
		return false
	}
	if m := (&meaning{names: c.names}); n.op == opBinary && (m.outcome(n.args[0]) == isError || m.outcome(n.args[1]) == isError) {
		return false // somebody wrote error on purpose
	}
	instead := ruleOf(AlwaysError).Instead
	if n.op == opCall {
		instead = "give " + n.name + " what it takes"
	}
	c.add(found(AlwaysError, s, "contains "+oneLine(n.written())+", which is always error", instead))
	return true
}

// nearNames reports attributes that look misspelt.
func (c *checker) nearNames(s config.Setting, n *node) {
	n.all(func(m *node) bool {
		shortest := 6
		if m.scope != "" {
			shortest = 4 // nobody means a name of another kind
		}
		if m.op != opAttr || len(m.name) < shortest || c.isKnown(m.name) || c.isResource(m.name) {
			return true
		}
		key := strings.ToLower(m.name)
		for _, table := range []map[string]attribute{c.names.slot, c.names.job} {
			best := ""
			for other, a := range table {
				if oneApart(key, other) && (best == "" || a.name < best) {
					best = a.name
				}
			}
			if best != "" {
				c.add(found(NearAttribute, s, "asks for "+m.name+", which no ad has", best))
				break
			}
		}
		return true
	})
}

// isKnown reports whether an attribute exists, or somebody may have made it.
func (c *checker) isKnown(name string) bool {
	key := strings.ToLower(name)
	_, slot := c.names.slot[key]
	_, job := c.names.job[key]
	_, set := c.isSet[key]
	return slot || job || set || c.isPublished(name)
}

// isResource reports whether an attribute may be that of a custom resource.
func (c *checker) isResource(name string) bool {
	key := strings.ToLower(name)
	for _, prefix := range [...]string{"totalslot", "total", "detected", "assigned", "available", "offline", "child"} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	resource, ok := strings.CutPrefix(key, "request")
	for _, knob := range [...]string{"machine_resource_", "machine_resource_inventory_"} {
		if _, set := c.isSet[knob+resource]; ok && set {
			return true
		}
	}
	return strings.HasSuffix(key, "usage")
}

// oneApart reports whether one letter too many, too few or wrong, or two
// exchanged, make the difference.
func oneApart(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 || a == b {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	return a[i+1:] == b[i+1:] || i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// wrongAd reports MY. of what only jobs have and TARGET. of what only slots
// have.
func (c *checker) wrongAd(s config.Setting, n *node) {
	n.all(func(m *node) bool {
		if m.op != opAttr || m.scope == "" {
			return true
		}
		key := strings.ToLower(m.name)
		_, slot := c.names.slot[key]
		_, job := c.names.job[key]
		_, set := c.isSet[key]
		switch {
		case m.scope == "MY" && job && !slot && !set && !c.isPublished(m.name):
			c.add(found(WrongAd, s, "asks the slot for "+m.name+", which only jobs have", "TARGET."+m.name))
		case m.scope == "TARGET" && slot && !job && isMachines(key):
			c.add(found(WrongAd, s, "asks the job for "+m.name+", which only slots have", "MY."+m.name))
		}
		return true
	})
}

// isMachines reports whether an attribute says something about a machine that
// no job would say about itself.
func isMachines(key string) bool {
	switch key {
	case "keyboardidle", "consoleidle", "loadavg", "condorloadavg", "totalloadavg", "totalcondorloadavg", "state", "activity",
		"enteredcurrentstate", "enteredcurrentactivity", "slotid", "slottype", "slottypeid", "cpubusy", "cpubusytime", "clockmin", "clockday",
		"totalcpus", "totalmemory", "totaldisk", "detectedcpus", "detectedmemory":
		return true
	}
	return false
}
