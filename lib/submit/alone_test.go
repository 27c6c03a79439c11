// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
)

// TestAlone finds at submit, with the place, what a job without a pool would miss
// only when it runs, or would never be told of.
func TestAlone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		// in order
		{"executable = prog\nqueue\n", ""},
		{"executable = prog\ntransfer_input_files = a.dat, sub, sub/\ninput = b.dat\noutput = sub/out\nlog = /home/ann/log\nqueue\n", ""},
		{"executable = prog\ninitialdir = sub\ntransfer_input_files = e.dat\nqueue\n", ""},
		{"shell = ls\nqueue\n", ""},
		{"executable = run.sh\ntransfer_executable = false\nqueue\n", ""},
		{"executable = gone\ninput = gone\nskip_filechecks = true\nqueue\n", ""},
		// what is missing
		{"executable = gone\nqueue\n", `t.sub:1:14: executable: there is no such file (value "/home/ann/gone", expected a file`},
		{"executable = sub\nqueue\n", `t.sub:1:14: executable: this is a directory`},
		{"executable = /bin/gone\ntransfer_executable = false\nqueue\n", `t.sub:1:14: executable: there is no such file`},
		{"executable = empty\nqueue\n", `t.sub:1:14: executable: this file is empty (value "/home/ann/empty"`},
		{"executable = dos.sh\nqueue\n", `t.sub:1:14: executable: this script has line ends of Windows, so that its interpreter is not found (value "/home/ann/dos.sh", expected the line ends of Unix`},
		{"executable = empty\ntransfer_executable = false\nqueue\n", ""},
		{"executable = dos.sh\ntransfer_executable = false\nqueue\n", ""},
		{"executable = dos.sh\nskip_filechecks = true\nqueue\n", ""},
		{"executable = dosdata\nqueue\n", ""},
		// The executable counts from where the user is, not from the initialdir.
		{"executable = e.dat\ninitialdir = sub\nqueue\n", `t.sub:1:14: executable: there is no such file (value "/home/ann/e.dat"`},
		{"executable = prog\ntransfer_input_files = a.dat, gone, b.dat\nqueue\n", `t.sub:2:31: transfer_input_files: there is no such file or directory (value "/home/ann/gone"`},
		{"executable = prog\ninput = gone\nqueue\n", `t.sub:2:9: input: there is no such file`},
		{"executable = prog\ninput = sub\nqueue\n", `t.sub:2:9: input: this is a directory`},
		{"executable = prog\noutput = gone/out\nqueue\n", `t.sub:2:10: output: there is no such directory (value "/home/ann/gone"`},
		{"executable = prog\nerror = prog/err\nqueue\n", `t.sub:2:9: error: `},
		{"executable = prog\nlog = gone/log\nqueue\n", `t.sub:2:7: log: there is no such directory`},
		{"executable = prog\ninput = https://example.org/in\nqueue\n", `t.sub:2:9: input: transfer of URLs is not supported`},
		{"executable = https://example.org/prog\nqueue\n", `t.sub:1:14: executable: transfer of URLs is not supported`},
		{"executable = prog\ntransfer_input_files = https://example.org/in\nqueue\n", `t.sub:2:24: transfer_input_files: transfer of URLs is not supported`},
		// amounts that are none
		{"executable = prog\nrequest_memory = lots\nqueue\n", `t.sub:2:18: request_memory: this is no amount, and neither the job nor a slot has an attribute of that name (value "lots", expected a number of MiB, or one with K, M, G or T behind it)`},
		{"executable = prog\nrequest_disk = \"5 GB\"\nqueue\n", `t.sub:2:16: request_disk: this is no amount (value "\"5 GB\"", expected a number of KiB, or one with K, M, G or T behind it)`},
		{"executable = prog\nrequest_memory = 4 gigs\nqueue\n", `t.sub:2:20: request_memory: this is no amount, and no expression: `},
		{"executable = prog\nrequest_cpus = all\nqueue\n", `t.sub:2:16: request_cpus: this is no amount, and neither the job nor a slot has an attribute of that name (value "all", expected a whole number)`},
		{"executable = prog\nRequestMemory = {1}\nqueue\n", `t.sub:2:17: RequestMemory: this is no amount (value "{1}"`},
		{"executable = prog\n+RequestMemory = lots\nqueue\n", `t.sub:2:18: MY.RequestMemory: this is no amount`},
		{"executable = prog\nrequest_bolts = many\nqueue\n", `t.sub:2:17: request_bolts: this is no amount`},
		{"executable = prog\nM = lots\nrequest_memory = $(M)\nqueue\n", `t.sub:3:18: request_memory: this is no amount, and neither the job nor a slot has an attribute of that name (value "lots"`},
		{"executable = prog\nrequest_memory = Memory\nqueue\n", ""},
		{"executable = prog\nrequest_cpus = TotalSlotCpus\nrequest_memory = TARGET.Memory / 2\nrequest_disk = int(Disk)\nqueue\n", ""},
		{"executable = prog\n+Mine = 100\nrequest_memory = Mine\nqueue\n", ""},
		{"executable = prog\nrequest_memory = ifThenElse(MemoryUsage =?= undefined, 100, 2 * MemoryUsage)\nqueue\n", ""},
		{"executable = prog\nrequest_memory = undefined\nqueue\n", ""},
		// what nobody does
		{"executable = prog\nconcurrency_limits = db\nqueue\n", `t.sub:2:22: concurrency_limits: this command is not supported without a pool; it needs a negotiator`},
		{"executable = prog\nnext_job_start_delay = 5\nqueue\n", `t.sub:2:24: next_job_start_delay: this command is not supported without a pool; it needs a schedd`},
		{"executable = prog\ndeferral_window = 5\nqueue\n", `t.sub:2:19: deferral_window: this command is not supported; it needs deferred jobs`},
		{"executable = prog\n+DeferralTime = 5\nqueue\n", `t.sub:2:17: MY.DeferralTime: this command is not supported; it needs deferred jobs`},
		{"executable = prog\ncron_window = 5\nqueue\n", `t.sub:2:15: cron_window: `},
		{"executable = prog\ncheckpoint_exit_code = 85\nqueue\n", `t.sub:2:24: checkpoint_exit_code: `},
		{"executable = prog\nmax_materialize = 5\nqueue\n", `t.sub:2:19: max_materialize: `},
		{"executable = prog\nmax_idle = 5\nqueue\n", `t.sub:2:12: max_idle: `},
		{"executable = prog\nmaterialize_max_idle = 5\nqueue\n", `t.sub:2:24: materialize_max_idle: `},
		// warnings
		{"executable = prog\nnotification = Error\nqueue\n", `t.sub:2:16: warning: notification: no mail is sent without a pool`},
		{"executable = prog\nkeep_claim_idle = 300\nqueue\n", `t.sub:2:19: warning: keep_claim_idle: no slot is kept`},
		{"executable = prog\nnotification = Never\nqueue\n", ""},
	} {
		o := options()
		o.Alone = true
		got := ""
		if d, err := Parse("t.sub", tt.text, o); err != nil {
			got = err.Error()
		} else {
			got = d.Warnings().Error()
		}
		if got != tt.want && (tt.want == "" || !strings.HasPrefix(got, tt.want) || strings.Contains(got, "\n")) {
			t.Errorf("%s\ngot  %s\nwant %s", tt.text, got, tt.want)
		}
	}
}

// TestGPULimits makes RequireGPUs of the limits, as condor_submit does; a property
// that the user's own expression speaks of is left to it.
func TestGPULimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"gpus_minimum_memory = 4G\n", "GlobalMemoryMb >= GPUsMinMemory"},
		{"gpus_minimum_capability = 7.5\ngpus_maximum_capability = 9\ngpus_minimum_runtime = 12.1\n",
			"Capability >= GPUsMinCapability && Capability <= GPUsMaxCapability && MaxSupportedVersion >= GPUsMinRuntime"},
		{"require_gpus = Capability > 6 || DeviceName == \"x\"\ngpus_minimum_capability = 7.5\ngpus_minimum_memory = 500\n",
			"(Capability > 6 || DeviceName == \"x\") && GlobalMemoryMb >= GPUsMinMemory"},
		{"require_gpus = Capability > 6\n", "Capability > 6"},
	} {
		d, err := Parse("t.sub", "executable = prog\nrequest_gpus = 1\n"+tt.text+"queue\n", options())
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := d.Jobs()
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if e, ok := jobs[0].Lookup("RequireGPUs"); ok {
			got = e.Text(classad.Old)
		}
		if got != tt.want || len(d.Warnings()) > 0 {
			t.Errorf("%s\ngot  %s\nwant %s\n%v", tt.text, got, tt.want, d.Warnings())
		}
	}
	for text, want := range map[string]int64{"12": 12000, "12.1": 12010, "11.8": 11080, "12010": 12010, "0": 0} {
		if n, ok := gpuRuntime(text); !ok || n != want {
			t.Errorf("%s: %d", text, n)
		}
	}
	for _, text := range []string{"", "x", "12.x", "12.100", "-1", "12.1.2"} {
		if n, ok := gpuRuntime(text); ok {
			t.Errorf("%q: %d", text, n)
		}
	}
}
