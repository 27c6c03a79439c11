// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/slot"
)

// row: S0-286, S4-101, S4-102
func TestDiscoveryArguments(t *testing.T) {
	t.Parallel()
	const program = "/le/condor_gpu_discovery"
	for _, c := range []struct {
		config, args, problem string
	}{
		{"", program + " -properties -extra", ""},
		{"GPU_DISCOVERY_EXTRA = -not-nested\n", program + " -properties -not-nested", ""},
		{"STARTD_DETECT_GPUS = -properties\n", program + " -properties", ""},
		{"STARTD_DETECT_GPUS = false\n", "", ""},
		{"STARTD_DETECT_GPUS = 0\n", "", ""},
		{"STARTD_DETECT_GPUS =\n", "", ""},
		{"STARTD_DETECT_GPUS = true\n", "", "c:2:"},
		{"MACHINE_RESOURCE_GPUs = CUDA0\n", "", ""},
		{"MACHINE_RESOURCE_NAMES = Cogs\n", program + " -properties -extra", ""},
		{"MACHINE_RESOURCE_INVENTORY_GPUs = /my/gpus -a\n", "/my/gpus -a", ""},
		{"use FEATURE : GPUs\n", program + " -properties -extra", ""},
		{"STARTD_DETECT_GPUS = false\nGPU_DISCOVERY_EXTRA = -extra -dynamic\nuse FEATURE : GPUs\n", program + " -properties -extra -dynamic", ""},
		{"use FEATURE : GPUs(-divide 2)\n", program + " -divide 2 -properties -extra", ""},
	} {
		scripts, problems := ScriptsFrom(parseConfig(t, "LIBEXEC = /le\n"+c.config))
		got := ""
		if len(scripts) == 1 && scripts[0].Resource == "GPUs" {
			got = strings.Join(scripts[0].Args, " ")
		}
		if got != c.args || (c.args == "") != (len(scripts) == 0) {
			t.Errorf("%q: %q of %v, want %q", c.config, got, scripts, c.args)
		}
		if (c.problem == "") != (len(problems) == 0) || c.problem != "" && problems[0].Knob != "STARTD_DETECT_GPUS" {
			t.Errorf("%q: problems %v", c.config, problems)
		}
	}
}

func TestDiscover(t *testing.T) {
	t.Parallel()
	r, m := newRunner(map[string]hosttest.Program{
		"/good":  says("DetectedGood=2\n", "", 1),
		"/twice": says("DetectedTwice=\"a b a\"\nOfflineTwice=\"z\"\n", "", 0),
		"/bad":   says("rubbish\n", "", 0),
		"/hangs": func(p *hosttest.Process) host.ExitStatus {
			for p.Sleep(time.Hour) != hosttest.SIGKILL {
			}
			return host.ExitStatus{}
		},
		"/bin/condor_gpu_discovery": says("DetectedGPUs=0\n", "", 0),
	})
	knob := func(names ...string) string {
		text := "LIBEXEC = /le\n"
		for _, n := range names {
			text += inventoryPrefix + n + " = /" + strings.ToLower(n) + "\n"
		}
		return text
	}
	for _, c := range []struct {
		config, beside    string
		found             string // resource=Detected of each
		missing, failed   string
		doubtful          []string
		fatal, fatalAbort bool
	}{
		{config: knob("Good"), found: "Good=2"},
		{config: knob("Good"), beside: "/bin", found: "Good=2 GPUs=0"},
		{config: knob("Good", "Twice"), found: `Good=2 Twice="a b a"`, doubtful: []string{`"z" does not exist`}},
		{config: knob("Bad", "Hangs", "Good"), found: "Bad=0 Good=2 Hangs=0", failed: "line 1", fatalAbort: true},
		{config: knob("Nowhere", "Good"), found: "Good=2", missing: inventoryPrefix + "Nowhere", fatal: true, fatalAbort: true},
		{config: knob() + "use FEATURE : GPUs\n", found: "GPUs=0", doubtful: []string{"so there are no GPUs"}},
	} {
		f := r.Discover(t.Context(), parseConfig(t, c.config), 50*time.Millisecond, c.beside)
		var found []string
		for _, inv := range f.Inventories {
			e, ok := inv.Ad.Lookup("Detected" + inv.Resource)
			if !ok {
				t.Errorf("%q: nothing of %s", c.config, inv.Resource)
				continue
			}
			found = append(found, inv.Resource+"="+e.String())
		}
		if got := strings.Join(found, " "); got != c.found {
			t.Errorf("%q: found %s, want %s", c.config, got, c.found)
		}
		for part, have := range map[string][]error{c.missing: f.Missing, c.failed: f.Failed} {
			if part != "" && (len(have) == 0 || !strings.Contains(errors.Join(have...).Error(), part)) {
				t.Errorf("%q: %v lacks %q", c.config, have, part)
			}
		}
		for _, part := range c.doubtful {
			if !slices.ContainsFunc(f.Doubtful, func(err error) bool { return strings.Contains(err.Error(), part) }) {
				t.Errorf("%q: %v lacks %q", c.config, f.Doubtful, part)
			}
		}
		for mode, fatal := range map[slot.FailureMode]bool{slot.FailContinue: c.fatal, slot.FailClear: c.fatal, slot.FailAbort: c.fatalAbort} {
			err := f.Fatal(mode)
			if (err != nil) != fatal || err != nil && (!errors.Is(err, ErrInventory) || !errs.Is(err, errs.Invalid)) {
				t.Errorf("%q in mode %v: %v", c.config, mode, err)
			}
		}
	}
	for _, f := range m.Families() {
		if !f.Alone() || !f.Closed() {
			t.Error("something of a family is left")
		}
	}
}
