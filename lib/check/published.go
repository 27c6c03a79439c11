// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
)

var (
	// attrsList is a knob that lists attributes for the slot ads.
	attrsList = pattern(`(?i)^(?:(?:SLOT|SLOT_TYPE_)([0-9]+)_)?STARTD_(?:ATTRS|EXPRS)$`)
	// perSlot is a setting for one slot or slot type.
	perSlot = pattern(`(?i)^(SLOT_TYPE_|SLOT)([0-9]+)_(\w+)$`)
	// bareText is what somebody writes who means a string.
	bareText = pattern(`^[A-Za-z0-9_./\\:@ -]*[A-Za-z][A-Za-z0-9_./\\:@ -]*$`)
)

// listed is an attribute with the setting that lists it.
type listed struct {
	name string
	by   config.Setting
}

// lists returns what the configuration adds to the ads, and notes the names.
func (c *checker) lists() []listed {
	var all []listed
	for _, s := range c.set {
		if !attrsList().MatchString(bare(s.Name)) {
			continue
		}
		for _, name := range splitList(s.Value) {
			if !c.isPublished(name) {
				c.attrs = append(c.attrs, name)
			}
			all = append(all, listed{name, s})
		}
	}
	return all
}

// published looks at the attributes that the configuration adds to the ads.
func (c *checker) published(all []listed) {
	for _, l := range all {
		values := c.valuesOf(l.name)
		for _, v := range values {
			c.attributeValue(v)
		}
		if _, ok := c.Config.Lookup(l.name); len(values) == 0 && !ok && !c.Partial {
			c.add(found(NotDefined, l.by, "lists "+l.name+", which nothing sets", l.name+` = the value, a string in "quotes"`))
		}
	}
}

func (c *checker) isPublished(name string) bool {
	return slices.ContainsFunc(c.attrs, func(a string) bool { return strings.EqualFold(a, name) })
}

// splitList splits at commas and blanks.
func splitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' })
}

// valuesOf returns the settings of an attribute, for all slots and for one.
func (c *checker) valuesOf(attr string) []config.Setting {
	var out []config.Setting
	for _, s := range c.set {
		name := bare(s.Name)
		if m := perSlot().FindStringSubmatch(name); m != nil && strings.EqualFold(m[3], attr) || strings.EqualFold(name, attr) {
			if strings.TrimSpace(s.Value) != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

// attributeValue looks at the value of one attribute.
func (c *checker) attributeValue(s config.Setting) {
	if k, ok := config.LookupKnob(bare(s.Name)); ok && k.Type == config.TypeExpr && !k.IsFamily() {
		if _, published := c.names.slot[strings.ToLower(bare(s.Name))]; published {
			return // looked at as a knob
		}
	}
	e, err := classad.ParseExpr(s.Value, classad.Old)
	if err != nil {
		if c.bad[strings.ToLower(bare(s.Name))] || c.viaBad(s) {
			return
		}
		c.bad[strings.ToLower(bare(s.Name))] = true
		c.add(c.unparsable(s))
		return
	}
	if name, ok := e.AttrName(); ok && !c.isKnown(name) {
		c.add(found(Unquoted, s, "is the name of an attribute, "+name+", which nobody has: it comes to undefined", s.Name+` = "`+s.Value+`"`))
	}
}
