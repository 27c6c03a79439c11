// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

var (
	// sizeKnob is an amount of which there cannot be less than none.
	sizeKnob = pattern(`(?i)^(?:NUM_CPUS|MAX_NUM_CPUS|MEMORY|RESERVED_MEMORY|RESERVED_SWAP|RESERVED_DISK|MACHINE_RESOURCE_\w+|NUM_SLOTS|NUM_SLOTS_TYPE_[0-9]+)$`)
	// below0 is a share of a slot type that is less than none.
	below0 = pattern(`(\w+)\s*[=:]\s*-\s*[0-9.]+%?`)
	// unitOf is the unit that the table of knobs tells.
	unitOf = pattern(`\b(KiB|MiB|GiB|bytes)\b`)
	// withUnit is a number with a unit behind it.
	withUnit = pattern(`(?i)^\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*$`)
	// addressKnob is a list of hosts with ports.
	addressKnob = pattern(`(?i)^(?:COLLECTOR_HOST|CONDOR_VIEW_HOST|CCB_ADDRESS|NEGOTIATOR_HOST|SCHEDD_HOST)$`)
)

// sizes reports amounts below zero.
func (c *checker) sizes() {
	for _, s := range c.set {
		name := bare(s.Name)
		if shareKnob().MatchString(name) {
			if m := below0().FindString(s.Value); m != "" && !c.has(s.Name, SlotTooLarge) {
				c.add(found(OutOfRange, s, "asks for less than nothing: "+oneLine(m), "an amount from 0 up, or a share in percent"))
			}
			continue
		}
		if !sizeKnob().MatchString(name) {
			continue
		}
		if n, err := strconv.ParseFloat(strings.TrimSpace(s.Value), 64); err == nil && n < 0 && !c.has(s.Name, OutOfRange) {
			c.add(found(OutOfRange, s, "is less than nothing", "a number from 0 up"))
		}
	}
}

// ports reports ports in a list of hosts that are no number.
func (c *checker) ports() {
	for _, s := range c.set {
		if !addressKnob().MatchString(bare(s.Name)) {
			continue
		}
		for _, host := range splitList(s.Value) {
			if host[0] == '<' {
				continue
			}
			host, _, _ = strings.Cut(host, "?")
			at := strings.LastIndexByte(host, ':')
			if at < 0 || strings.Count(host, ":") > 1 && !strings.Contains(host, "]:") {
				continue // no port, or an address of IPv6 alone
			}
			if n, err := strconv.ParseUint(host[at+1:], 10, 32); err != nil || n > 65535 {
				c.add(found(WrongType, s, "has a port that is none: "+host[at+1:], host[:at]+":9618"))
			}
		}
	}
}

// scale are the sizes of units, in bytes; those of 1000 are taken for those of
// 1024, as HTCondor does.
var scale = map[string]float64{"b": 1, "byte": 1, "bytes": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

// seconds are the sizes of units of time.
var seconds = map[string]float64{
	"s": 1, "sec": 1, "second": 1, "seconds": 1, "m": 60, "min": 60, "minute": 60, "minutes": 60,
	"h": 3600, "hr": 3600, "hour": 3600, "hours": 3600, "d": 86400, "day": 86400, "days": 86400, "w": 7 * 86400, "week": 7 * 86400, "weeks": 7 * 86400,
}

// inUnits says what a number with a unit is in the unit of its knob; "" if
// that cannot be told.
func inUnits(name, value string) string {
	k, ok := config.LookupKnob(name)
	m := withUnit().FindStringSubmatch(value)
	if !ok || m == nil {
		return ""
	}
	n, err := strconv.ParseFloat(m[1], 64)
	unit := strings.ToLower(m[2])
	if err != nil {
		return ""
	}
	if k.Type == config.TypeDuration || k.Type == config.TypeExpr || strings.Contains(k.Doc, "econds") {
		if s, ok := seconds[unit]; ok {
			return strconv.FormatFloat(n*s, 'f', -1, 64) + ", in seconds"
		}
		return ""
	}
	of := unitOf().FindString(k.Doc)
	if of == "" {
		return ""
	}
	per, known := scale[strings.TrimSuffix(strings.TrimSuffix(unit, "b"), "i")]
	if unit == "b" || unit == "byte" || unit == "bytes" {
		per, known = 1, true
	}
	if !known {
		return ""
	}
	return strconv.FormatFloat(n*per/scale[strings.ToLower(of[:1])], 'f', -1, 64) + ", in " + of
}
