// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/spelling"
)

// Units of the requests, in bytes.
const (
	kib = 1 << 10
	mib = 1 << 20
)

// requests sets what the job asks for. Cpus, memory and disk have defaults
// from the configuration, request_NAME asks for a resource of the machine's
// owner.
func (b *builder) requests() {
	b.request("request_cpus", "RequestCpus", 0, "JOB_DEFAULT_REQUESTCPUS")
	b.request("request_memory", "RequestMemory", mib, "JOB_DEFAULT_REQUESTMEMORY")
	b.request("request_disk", "RequestDisk", kib, "JOB_DEFAULT_REQUESTDISK")
	b.request("request_gpus", "RequestGPUs", 0, "JOB_DEFAULT_REQUESTGPUS")
	b.gpus()
	for _, key := range b.q.with("request_") {
		if name := key[len("request_"):]; len(name) < 2 || name[0] == '_' || b.q.find(key).taken() {
			continue
		}
		if text, ok := b.get(key); ok {
			attr := "Request" + b.value.name[len("request_"):]
			known := spelling.Nearest(key, ownRequests[:])
			if known == "" {
				b.setAmount(attr, text, "a number")
				continue
			}
			// One line says both: what is wrong with the value follows from the name.
			if _, err := b.parsed(text); err != nil {
				b.bad(0, Problem{Value: text, Message: b.value.name + " asks for a resource of its own, of which this is no number", Want: known + ", perhaps"})
				continue
			}
			if !b.warned[key] {
				b.warned[key] = true
				b.bad(0, Problem{Value: text, Message: b.value.name + " asks for a resource of its own", Want: known + ", perhaps", Warning: true})
			}
			b.setExpr(attr, text)
		}
	}
}

// ownRequests are the request commands with a meaning of their own.
var ownRequests = [...]string{"request_cpus", "request_memory", "request_disk", "request_gpus"}

// taken reports whether s is one of ownRequests.
func (s *setting) taken() bool { return slices.Contains(ownRequests[:], strings.ToLower(s.name)) }

// setAmount is setExpr for an amount of a resource; want says how one is written.
func (b *builder) setAmount(attr, text, want string) {
	e, err := b.parsed(text)
	if err != nil {
		b.bad(errorOffset(err), Problem{Value: text, Message: "this is no amount, and no expression: " + err.Error(), Want: want})
		return
	}
	b.set(attr, e)
}

// amountOf says how an amount is written that counts in a unit without a letter
// behind it.
func amountOf(unit int64) string {
	switch unit {
	case mib:
		return "a number of MiB, or one with K, M, G or T behind it"
	case kib:
		return "a number of KiB, or one with K, M, G or T behind it"
	}
	return "a whole number"
}

// amounts refuses requests that no slot could meet because they are no numbers.
// condor_submit takes any expression, and the job then waits for ever: without a
// pool there is nobody to ask why. What depends on the slot is left to it.
func (b *builder) amounts() {
	for _, a := range b.attrs {
		name, ok := strings.CutPrefix(a.name, "Request")
		if !ok {
			continue
		}
		if v, constant := a.expr.LiteralValue(); constant {
			if _, ok := v.AsNumber(); ok || v.IsUndefined() {
				continue
			}
		}
		if _, given := b.get("request_"+name, a.name, "my."+a.name); !given {
			continue // the machine's owner said so, in the configuration
		}
		why, unit := "", int64(0)
		switch v := a.expr.Eval(nil); {
		case b.isUnknownWord(a.expr):
			why = "this is no amount, and neither the job nor a slot has an attribute of that name"
		case !v.IsUndefined() && !b.looksAround(a.expr):
			if _, ok := v.AsNumber(); !ok {
				why = "this is no amount"
			}
		}
		switch strings.ToLower(name) {
		case "memory":
			unit = mib
		case "disk":
			unit = kib
		}
		if why != "" {
			b.bad(0, Problem{Value: b.expand(b.value), Message: why, Want: amountOf(unit)})
		}
	}
}

// looksAround reports whether an expression asks for an attribute.
func (b *builder) looksAround(e *classad.Expr) bool {
	refs, ok := e.Refs(nil)
	return !ok || len(refs.Internal)+len(refs.External) > 0
}

// isUnknownWord reports whether an expression is nothing but the name of an
// attribute that the job does not have, and that a slot has none of by nature or by
// what its owner configured.
func (b *builder) isUnknownWord(e *classad.Expr) bool {
	name, ok := e.AttrName()
	if !ok || b.has(name) || b.d.opts.Config(name) != "" {
		return false
	}
	for _, amount := range [...]string{"cpus", "memory", "disk", "virtualmemory", "gpus"} {
		if strings.HasSuffix(strings.ToLower(name), amount) { // and TotalCpus, DetectedMemory, TotalSlotDisk
			return false
		}
	}
	return true
}

// request sets one request. Numbers without a unit count in the given one,
// those with K, M, G or T are converted, rounding up.
func (b *builder) request(name, attr string, unit int64, knob string) {
	text, ok := b.get(name, attr)
	if !ok {
		if text = b.d.opts.Config(knob); text != "" && !strings.EqualFold(text, "undefined") {
			if n, ok := quantity(text, unit); ok {
				b.setInt(attr, n)
			} else {
				b.setOwn(attr, text, knob)
			}
		}
		return
	}
	if strings.EqualFold(text, "undefined") {
		return
	}
	n, isQuantity := quantity(text, unit)
	switch {
	case isQuantity && n < 0:
		b.bad(0, Problem{Value: text, Message: "a request cannot be negative", Want: "0 or more"})
	case isQuantity:
		b.setInt(attr, n)
	default:
		if unit > 0 && strings.Contains(text, ",") {
			if first, _, _ := strings.Cut(text, ","); first != "" {
				if _, ok := quantity(first, unit); ok {
					b.bad(0, Problem{Value: text, Message: "a list of amounts, to be tried one after another, is not supported", Want: "one amount"})
					return
				}
			}
		}
		b.setAmount(attr, text, amountOf(unit))
	}
}

// quantity reads a number that may have a fraction and a unit, and returns how
// many of unit that makes, rounded up. A unit of 0 takes plain integers only.
func quantity(text string, unit int64) (int64, bool) {
	text = strings.Trim(text, blanks)
	digits := strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(text, "-"), "+"), "0123456789.")
	number, suffix := strings.Trim(text[:len(text)-len(digits)], blanks), strings.ToLower(strings.Trim(digits, blanks))
	if unit == 0 {
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil
	}
	factor := float64(unit)
	switch strings.TrimSuffix(suffix, "b") {
	case "":
		if suffix != "" {
			return 0, false
		}
	case "k":
		factor = kib
	case "m":
		factor = mib
	case "g":
		factor = 1 << 30
	case "t":
		factor = 1 << 40
	default:
		return 0, false
	}
	f, err := strconv.ParseFloat(number, 64)
	n := math.Ceil(f * factor / float64(unit))
	return int64(n), err == nil && math.Abs(n) < 1<<62
}

// sizes sets how large the job's files are, as far as that can be known.
func (b *builder) sizes() {
	exe := int64(0)
	if e := b.expr("Cmd"); e != nil {
		if cmd, ok := e.Eval(nil).AsString(); ok {
			exe = b.d.fileKiB(fullPath(b.d.opts.Cwd, cmd))
		}
	}
	b.setInt("ExecutableSize", exe)
	image := exe
	if text, ok := b.get("image_size", "ImageSize"); ok {
		n, ok := quantity(text, kib)
		if !ok || n < 1 {
			b.bad(0, Problem{Value: text, Message: "this is no size", Want: "a number above 0, in KiB or with K, M, G or T"})
		}
		image = n
	}
	b.setInt("ImageSize", image)
}

// fileKiB is kib with a memory, as many jobs have the same files.
func (d *Description) fileKiB(name string) int64 {
	if d.opts.DirFS == nil {
		return 0
	}
	if d.sizes == nil {
		d.sizes = map[string]int64{}
	}
	n, ok := d.sizes[name]
	if !ok {
		n = d.opts.kib(name)
		if len(d.sizes) < maxShared {
			d.sizes[name] = n
		}
	}
	return n
}
