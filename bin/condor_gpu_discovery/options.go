// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/gpu"
	"github.com/execpoint/execpoint/lib/tool/gpus"
)

// options is a command line, read.
type options struct {
	show     gpu.Options
	simulate []string // lists of devices
	devices  []string // lists of devices that may be shown

	cuda, hip, opencl          bool
	nvcuda, cudart             bool
	fixGUID                    uint16
	verbose, diagnostic, dirty bool
	help, version              bool
}

// choice says which libraries are asked.
func (o *options) choice() gpus.Choice {
	return gpus.Choice{
		CUDA: o.cuda, HIP: o.hip, OpenCL: o.opencl, FixGUID: o.fixGUID,
		NVIDIA: gpus.Wanted{Driver: o.nvcuda, Runtime: o.cudart, Dynamic: o.show.Dynamic},
	}
}

// usageError is a command line that cannot be read. The usage follows it.
type usageError struct {
	message string
	brief   bool // no usage after it
}

func (e *usageError) Error() string { return e.message }

// option is one option: its name and how many letters of it are enough, -1 for
// all of them.
type option struct {
	word  string
	least int
	colon bool // ":words" may follow
	do    func(o *options, sub string, rest *arguments) error
}

// arguments are those that come after an option.
type arguments struct{ left []string }

// next returns the next argument and takes it.
func (a *arguments) next() (string, bool) {
	if len(a.left) == 0 {
		return "", false
	}
	arg := a.left[0]
	a.left = a.left[1:]
	return arg, true
}

// value is next where that is no option.
func (a *arguments) value() (string, bool) {
	if len(a.left) == 0 || strings.HasPrefix(a.left[0], "-") {
		return "", false
	}
	return a.next()
}

func flag(set func(o *options)) func(*options, string, *arguments) error {
	return func(o *options, _ string, _ *arguments) error { set(o); return nil }
}

// table is in the order in which abbreviations are tried.
func table() []option {
	return []option{
		{word: "help", least: 1, do: flag(func(o *options) { o.help = true })},
		{word: "properties", least: 1, do: flag(func(o *options) { o.show.Properties = true })},
		{word: "extra", least: 3, do: flag(func(o *options) { o.show.Properties, o.show.Extra = true, true })},
		{word: "nested", least: 2, do: flag(func(o *options) { o.show.Nested = true })},
		{word: "not-nested", least: 6, do: flag(func(o *options) { o.show.Nested = false })},
		{word: "no-nested", least: 5, do: flag(func(o *options) { o.show.Nested = false })},
		// NVML cannot tell what changes in a device of OpenCL: the last of the two wins.
		{word: "dynamic", least: 3, do: flag(func(o *options) { o.show.Properties, o.show.Dynamic, o.opencl = true, true, false })},
		{word: "cron", least: 4, do: flag(func(o *options) { o.show.Cron = true })},
		{word: "mixed", least: 3, do: flag(func(o *options) { o.show.Mixed = true })},
		{word: "hetero", least: 3, do: flag(func(o *options) { o.show.Mixed = true })},
		{word: "opencl", least: -1, do: flag(func(o *options) { o.opencl, o.show.Dynamic = true, false })},
		{word: "cuda", least: -1, do: flag(func(o *options) { o.cuda = true })},
		{word: "hip", least: -1, do: flag(func(o *options) { o.hip = true })},
		{word: "verbose", least: 4, do: flag(func(o *options) { o.verbose = true })},
		{word: "version", least: 5, do: flag(func(o *options) { o.version = true })},
		{word: "diagnostic", least: 4, do: flag(func(o *options) { o.diagnostic = true })},
		{word: "repeat", least: -1, do: func(o *options, _ string, rest *arguments) error { return o.repeat("repeat", false, rest) }},
		{word: "divide", least: -1, do: func(o *options, _ string, rest *arguments) error { return o.repeat("divide", true, rest) }},
		{word: "packed", least: -1, do: flag(func(o *options) { o.show.Packed = true })},
		{word: "config", least: -1, do: flag(func(o *options) { o.show.Config = true })},
		{word: "tag", least: 3, do: func(o *options, _ string, rest *arguments) error {
			if tag, there := rest.next(); there {
				o.show.Tag = tag
			}
			return nil
		}},
		{word: "by-index", least: 4, do: flag(func(o *options) { o.show.IDs = gpu.ByIndex })},
		{word: "uuid", least: 2, do: flag(func(o *options) { o.show.IDs = gpu.FullUUID })},
		{word: "short-uuid", least: -1, do: flag(func(o *options) { o.show.IDs = gpu.ShortUUID })},
		{word: "prefix", least: 3, do: func(o *options, _ string, rest *arguments) error {
			prefix, _ := rest.next()
			if o.show.Prefix = prefix; len(prefix) > prefixMax {
				return &usageError{message: fmt.Sprintf("-prefix: %d characters are too many: %d at most", len(prefix), prefixMax), brief: true}
			}
			return nil
		}},
		{word: "device", least: 3, do: func(o *options, _ string, rest *arguments) error {
			list, there := rest.value()
			if !there {
				return &usageError{message: "-device needs the number or name of a device"}
			}
			o.devices = append(o.devices, list)
			return nil
		}},
		{word: "simulate", least: 3, colon: true, do: func(o *options, sub string, _ *arguments) error {
			o.simulate = append(o.simulate, sub)
			if _, err := gpu.Simulate(o.simulate, 0); err != nil {
				return &usageError{message: "-simulate: " + err.Error()}
			}
			return nil
		}},
		{word: "fix-hip-guid", least: 7, do: func(o *options, _ string, rest *arguments) error {
			digits, _ := rest.value()
			model, err := strconv.ParseUint(strings.TrimPrefix(digits, "0x"), 16, 16)
			if err != nil {
				return &usageError{message: fmt.Sprintf("-fix-hip-guid needs up to four hexadecimal digits, not %q", digits), brief: true}
			}
			o.fixGUID = uint16(model)
			return nil
		}},
		{word: "nvcuda", least: -1, do: flag(func(o *options) { o.nvcuda, o.cudart = true, false })},
		{word: "cudart", least: 6, do: flag(func(o *options) { o.cudart, o.nvcuda = true, false })},
		{word: "dirty-environment", least: 4, do: flag(func(o *options) { o.dirty = true })},
	}
}

// Bounds on what options may say.
const (
	prefixMax = 80
	repeatMax = 10000
)

// repeat reads the number behind -repeat or -divide. The last of both decides
// whether the memory is divided; without a number an earlier one stays.
func (o *options) repeat(word string, divide bool, rest *arguments) error {
	o.show.Divide = divide
	digits, there := rest.value()
	if !there {
		if o.show.Repeat == 0 {
			o.show.Repeat = 2
		}
		return nil
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n > repeatMax {
		return &usageError{message: fmt.Sprintf("-%s needs a number up to %d, not %q", word, repeatMax, digits)}
	}
	o.show.Repeat = n
	return nil
}

// matches reports whether arg, without its dashes, is opt.
func (opt *option) matches(arg string, whole bool) bool {
	if whole || opt.least < 0 {
		return arg == opt.word
	}
	return len(arg) >= opt.least && strings.HasPrefix(opt.word, arg)
}

// parse reads a command line. After -help nothing is read.
func parse(args []string) (*options, error) {
	o := &options{show: gpu.Options{Tag: "GPUs", Nested: true}}
	all := table()
	rest := &arguments{args}
	for {
		arg, more := rest.next()
		if !more || o.help {
			return o, nil
		}
		word, dash := strings.CutPrefix(arg, "-")
		word, whole := strings.CutPrefix(word, "-")
		word, sub, colon := strings.Cut(word, ":")
		found := false
		for i := range all {
			if opt := &all[i]; dash && opt.matches(word, whole) && (!colon || opt.colon) {
				if err := opt.do(o, sub, rest); err != nil {
					return o, err
				}
				found = true
				break
			}
		}
		if !found {
			message := fmt.Sprintf("%q is no option", arg)
			if near := commands.GPUDiscovery.NearestOption("", word); dash && near != "" {
				message += "; did you mean -" + near + "?"
			}
			return o, &usageError{message: message}
		}
	}
}
