// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/jobenv"
)

// assigned tells the job which named assets of the machine's custom resources
// it has: _CONDOR_Assigned<name> always, and the variables that
// ENVIRONMENT_FOR_Assigned<name> asks for.
func assigned(env jobenv.Env, s EnvSpec) (problems []string) {
	if s.Machine == nil {
		return nil
	}
	list, _ := s.Machine.EvalString("MachineResources", nil)
	for _, resource := range words(list) {
		attr := "Assigned" + resource
		value, has := s.Machine.EvalString(attr, nil)
		own := s.Settings.resource(resource)
		_, known := s.Machine.Lookup(resource)
		if !has && (!known || own.Variables == "") {
			continue
		}
		if !has {
			value = own.Unassigned
		}
		if err := assign(env, own.Variables, value); err != nil {
			problems = append(problems, fmt.Sprintf("ENVIRONMENT_FOR_%s: %v", attr, err))
		}
		env["_CONDOR_"+attr] = value
		if strings.EqualFold(resource, "GPUs") {
			nvidia(env, s)
		}
	}
	return problems
}

// nvidia sets what the vendor's container runtime reads: long device names.
func nvidia(env jobenv.Env, s EnvSpec) {
	if !s.Settings.Nvidia {
		return
	}
	env["NVIDIA_VISIBLE_DEVICES"] = "none"
	if ids := SlotGPUs(s.Machine); ids != "" {
		env["NVIDIA_VISIBLE_DEVICES"], env["CUDA_VISIBLE_DEVICES"] = ids, ids
	}
}

// SlotGPUs are the long names of the GPUs of a slot, with commas between them, as its
// ad has them; "" if it has none.
func SlotGPUs(machine *classad.Ad) string {
	expr := `join(",", evalInEachContext(strcat("GPU-", DeviceUuid), AvailableGPUs))`
	if first, ok := eval(`AvailableGPUs[0].Id`, machine); ok && strings.HasPrefix(first, "MIG-") {
		expr = `join(",", evalInEachContext(DeviceUuid, AvailableGPUs))`
	}
	ids, _ := eval(expr, machine)
	return ids
}

func eval(text string, my *classad.Ad) (string, bool) {
	e, err := classad.ParseExpr(text, classad.Old)
	if err != nil {
		return "", false
	}
	return e.Eval(&classad.Env{My: my}).AsString()
}

// assign sets the variables of wanted: names between blanks, each with an
// optional =/regex/text/ that is applied to every asset of value. Any
// character may stand for the slash.
func assign(env jobenv.Env, wanted, value string) error {
	for wanted = strings.TrimLeft(wanted, " \t"); wanted != ""; wanted = strings.TrimLeft(wanted, " \t") {
		end := strings.IndexAny(wanted, "= \t")
		if end < 0 || wanted[end] != '=' {
			if end < 0 {
				end = len(wanted)
			}
			env[wanted[:end]] = digitsIfCUDA(wanted[:end], "", value)
			wanted = wanted[end:]
			continue
		}
		name := wanted[:end]
		if name == "" {
			return fmt.Errorf("%s names no variable, want NAME=/regex/text/", wanted)
		}
		rest := strings.TrimLeft(wanted[end+1:], " \t")
		if rest == "" {
			return fmt.Errorf("%s= is followed by nothing, want /regex/text/", name)
		}
		parts := strings.SplitN(rest[1:], rest[:1], 3)
		if len(parts) != 3 {
			return fmt.Errorf("%s=%s has no end, want /regex/text/", name, rest)
		}
		re, err := regexp.Compile(parts[0])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if name == "CUDA_VISIBLE_DEVICES" && parts[0] == "" {
			env[name] = digitsIfCUDA(name, parts[0], value)
		} else {
			assets := words(value)
			for i, asset := range assets {
				assets[i] = insertAtMatch(re, asset, parts[1])
			}
			env[name] = strings.Join(assets, ",")
		}
		wanted = strings.TrimPrefix(parts[2], ",")
	}
	return nil
}

// insertAtMatch puts text, in which $0 … $9 are groups, before the first match.
// The documents speak of a replacement; what jobs of HTCondor 25.14 see is the
// text with the match still behind it (policy-env-02 of the recordings).
func insertAtMatch(re *regexp.Regexp, asset, text string) string {
	at := re.FindStringSubmatchIndex(asset)
	if at == nil {
		return asset
	}
	var b strings.Builder
	b.WriteString(asset[:at[0]])
	for i := 0; i < len(text); i++ {
		if text[i] != '$' || i+1 == len(text) || text[i+1] < '0' || text[i+1] > '9' {
			b.WriteByte(text[i])
			continue
		}
		i++
		if g := 2 * int(text[i]-'0'); g+1 < len(at) && at[g] >= 0 {
			b.WriteString(asset[at[g]:at[g+1]])
		}
	}
	b.WriteString(asset[at[0]:])
	return b.String()
}

// digitsIfCUDA leaves numbers and commas alone of the two variables whose
// readers want nothing else.
func digitsIfCUDA(name, pattern, value string) string {
	if pattern != "" || name != "CUDA_VISIBLE_DEVICES" && name != "GPU_DEVICE_ORDINAL" {
		return value
	}
	return strings.Map(func(r rune) rune {
		if r == ',' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, value)
}
