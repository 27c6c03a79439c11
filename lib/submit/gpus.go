// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// gpus sets what a GPU must be like. Without a request for GPUs it says nothing.
func (b *builder) gpus() {
	asked := b.has("RequestGPUs")
	set := func(name, attr string, value func(text string) (int64, bool)) {
		text, ok := b.get(name, attr)
		if !ok || !asked {
			return
		}
		if n, is := value(text); is {
			b.setInt(attr, n)
			return
		}
		b.setExpr(attr, text)
	}
	none := func(string) (int64, bool) { return 0, false }
	set("require_gpus", "RequireGPUs", none)
	set("gpus_minimum_capability", "GPUsMinCapability", none)
	set("gpus_maximum_capability", "GPUsMaxCapability", none)
	set("gpus_minimum_memory", "GPUsMinMemory", func(text string) (int64, bool) { return quantity(text, mib) })
	set("gpus_minimum_runtime", "GPUsMinRuntime", gpuRuntime)
}

// gpuRuntime reads a version of CUDA: 12, 12.1, or 12010 for 12.1.
func gpuRuntime(text string) (int64, bool) {
	major, minor, dotted := strings.Cut(text, ".")
	x, err := strconv.ParseInt(major, 10, 32)
	if err != nil || x < 0 {
		return 0, false
	}
	if !dotted {
		if x > 1000 {
			return x, true
		}
		return x * 1000, true
	}
	y, err := strconv.ParseInt(minor, 10, 32)
	if err != nil || y < 0 || y >= 100 {
		return 0, false
	}
	return x*1000 + y*10, true
}

// gpuLimits makes RequireGPUs of the limits, those aside whose property the
// user's own expression speaks of.
func (b *builder) gpuLimits() {
	if !b.has("RequestGPUs") {
		return
	}
	var clauses []string
	refs := map[string]bool{}
	if e := b.expr("RequireGPUs"); e != nil {
		text := e.Text(classad.Old)
		refs, _ = b.d.references(text)
		if clauses = append(clauses, text); e.Syntax().Kind != classad.SyntaxLiteral {
			clauses[0] = "(" + text + ")"
		}
	}
	for _, l := range [...][3]string{
		{"GPUsMinCapability", "Capability", ">="}, {"GPUsMaxCapability", "Capability", "<="},
		{"GPUsMinMemory", "GlobalMemoryMb", ">="}, {"GPUsMinRuntime", "MaxSupportedVersion", ">="},
	} {
		if b.has(l[0]) && !refs[strings.ToLower(l[1])] {
			clauses = append(clauses, l[1]+" "+l[2]+" "+l[0])
		}
	}
	if own := b.expr("RequireGPUs"); own == nil && len(clauses) > 0 || own != nil && len(clauses) > 1 {
		b.setOwn("RequireGPUs", strings.Join(clauses, " && "), "the limits for GPUs")
	}
}
