// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/eventlog"
)

// waits is a job that says that it runs, notes signals, and ends when it is
// told to, or at once when it is started again.
const waits = `#!/bin/sh
if [ -f @DIR@/ready ]; then echo again; cat kept 2>/dev/null; exit 0; fi
trap 'echo TERM >> @DIR@/trace; exit 0' TERM
trap 'echo INT >> @DIR@/trace; exit 0' INT
echo begun; echo trouble >&2; echo kept > kept; echo $$ > @DIR@/pid; touch @DIR@/ready
while [ ! -f @DIR@/go ]; do sleep 0.1; done
echo went; exit 2
`

// stubborn does not mind signals.
var stubborn = strings.Replace(waits, "trap 'echo TERM >> @DIR@/trace; exit 0' TERM", "trap 'echo TERM >> @DIR@/trace' TERM", 1)

// stubbornly is how long such a job is let go on: long enough for its shell to
// note the signal on a busy machine.
const stubbornly = "job_max_vacate_time = 3"

// reachCase is a job that somebody reaches into while it runs.
type reachCase struct {
	name   string
	submit string
	script string // waits, if empty
	// act does something to the running job and brings it to its end. What it
	// returns is compared.
	act    func(j *job) string
	want   string
	differ []string
	known  string // in what ours differs, and why
	long   bool
	ssh    bool // the programs of ssh must be here
}

// say runs a tool, whatever becomes of it, and returns all that it said.
func (j *job) say(name string, args ...string) string {
	j.t.Helper()
	out, err := j.side.rig.run(name, args...)
	if err != nil {
		out = err.Error()
	}
	return j.alike(out)
}

// begin makes a file that the job waits for.
func (j *job) told(name string) {
	j.t.Helper()
	j.side.rig.files(j.dir, map[string]string{name: ""})
}

var reachCases = []reachCase{
	{name: "hold and release", act: func(j *job) string {
		out := j.say("condor_hold", "-reason", "for a while", "-subcode", "9", j.id())
		j.wait(eventlog.CodeHeld, 1)
		out += j.say("condor_release", j.id())
		j.wait(eventlog.CodeTerminated, 1)
		return out
	}, want: "001 004 012 013 001 005"},
	{name: "remove", act: func(j *job) string {
		out := j.say("condor_rm", "-reason", "no more", j.id())
		j.wait(eventlog.CodeAborted, 1)
		return out
	}, want: "001 004 009"},
	{name: "remove with its own signal", submit: "remove_kill_sig = SIGINT", act: func(j *job) string {
		out := j.say("condor_rm", j.id())
		j.wait(eventlog.CodeAborted, 1)
		j.made("trace")
		return out
	}, want: "001 004 009"},
	{name: "remove the stubborn", submit: stubbornly, script: stubborn, act: func(j *job) string {
		out := j.say("condor_rm", j.id())
		j.wait(eventlog.CodeAborted, 1)
		j.gone()
		return out
	}, want: "001 004 009"},
	{name: "suspend and continue", act: func(j *job) string {
		out := j.say("condor_suspend", j.id())
		j.wait(eventlog.CodeSuspended, 1)
		j.until("suspension in the queue, of two seconds", patience, func() bool {
			since, err := strconv.ParseInt(j.queued("LastSuspensionTime"), 10, 64)
			return err == nil && since > 0 && time.Now().Unix()-since >= 2 && j.queued("TotalSuspensions") == "1"
		})
		out += j.say("condor_continue", j.id())
		j.wait(eventlog.CodeUnsuspended, 1)
		j.until("its end in the queue", patience, func() bool {
			return j.queued("LastSuspensionTime") == "0" && j.queued("CumulativeSuspensionTime") != "0"
		})
		j.told("go")
		j.wait(eventlog.CodeTerminated, 1)
		return out
	}, want: "001 010 011 005"},
	{name: "vacate", act: func(j *job) string {
		out := j.say("condor_vacate_job", j.id())
		j.wait(eventlog.CodeTerminated, 1)
		return out
	}, want: "001 004 001 005"},
	{name: "vacate and keep", submit: "when_to_transfer_output = ON_EXIT_OR_EVICT\ntransfer_output_files = kept", act: func(j *job) string {
		out := j.say("condor_vacate_job", j.id())
		j.wait(eventlog.CodeTerminated, 1)
		if got := j.content("out"); got != "again\nkept\n" {
			j.t.Errorf("%s: the second run printed %q", j.side.name, got)
		}
		return out
	}, want: "001 004 001 005"},
	{name: "vacate the stubborn", submit: stubbornly, script: stubborn, act: func(j *job) string {
		out := j.say("condor_vacate_job", j.id())
		j.wait(eventlog.CodeTerminated, 1)
		return out
	}, want: "001 004 001 005"},
	{name: "vacate fast", act: func(j *job) string {
		out := j.say("condor_vacate_job", "-fast", j.id())
		j.wait(eventlog.CodeTerminated, 1)
		if j.has("trace") {
			j.t.Errorf("%s: the job had the time to note a signal", j.side.name)
		}
		return out
	}, want: "001 004 001 005"},
	{name: "tail", long: true, act: func(j *job) string {
		out := j.say("condor_tail", j.id()) + j.say("condor_tail", "-stderr", j.id()) + j.say("condor_tail", "-maxbytes", "3", j.id()) + j.say("condor_tail", j.id(), "kept")
		j.told("go")
		j.wait(eventlog.CodeTerminated, 1)
		return out
	}, submit: "transfer_output_files = kept", want: "001 005"},
	{name: "ssh", ssh: true, act: func(j *job) string {
		out := j.say("condor_ssh_to_job", "-auto-retry", j.id(), "echo", "hello")
		if !strings.Contains(out, "hello") {
			j.t.Errorf("%s: condor_ssh_to_job: %s", j.side.name, out)
		}
		j.told("go")
		j.wait(eventlog.CodeTerminated, 1)
		return out
	}, want: "001 005"},
	{name: "updates", act: func(j *job) string {
		j.until("update in the queue", patience, func() bool {
			return j.queued("ResidentSetSize") != "undefined" && j.queued("JobCurrentStartExecutingDate") != "undefined" &&
				j.queued("ImageSize") != "undefined" && j.queued("RemoteUserCpu") != "undefined" && j.queued("RemoteSysCpu") != "undefined"
		})
		out := j.queued("JobStatus") + " " + j.queued("NumJobStarts") + " " + j.alike(j.queued("RemoteHost")) + " " + j.queued("MemoryProvisioned") + " " + j.queued("TransferringInput")
		j.told("go")
		j.wait(eventlog.CodeTerminated, 1)
		return out
	}, want: "001 005"},
}

// gone waits until the job's process is.
func (j *job) gone() {
	j.t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(j.content("pid")))
	if err != nil {
		j.t.Fatal(err)
	}
	j.until("end of its process", patience, func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
}

// TestReachIntoJobs has the tools of a user reach into running jobs at both
// sides, and compares what they say and what the jobs leave.
//
// row: S1-029
func TestReachIntoJobs(t *testing.T) {
	t.Parallel()
	r := newRig(t, "SHADOW_QUEUE_UPDATE_INTERVAL = 2\nSTARTER_INITIAL_UPDATE_INTERVAL = 1\nSTARTER_UPDATE_INTERVAL = 2\n")
	submit := func(tt reachCase) (pair [2]*job) {
		for k, s := range r.sides {
			script := tt.script
			if script == "" {
				script = waits
			}
			pair[k] = s.submit(t, strings.ReplaceAll(tt.name, " ", "-"), tt.submit+"\nexecutable = job.sh\noutput = out\nerror = err\nshould_transfer_files = YES\n", "", func(dir string) {
				r.files(dir, map[string]string{"job.sh": strings.ReplaceAll(script, "@DIR@", dir)})
			})
		}
		return pair
	}
	reach := func(t *testing.T, tt reachCase, jobs [2]*job) (bad []string) {
		var said [2]string
		for k, j := range jobs {
			j.t = t
			defer j.remove()
			j.made("ready")
			said[k] = tt.act(j)
			if got := j.codes(); tt.want != "" && got != tt.want {
				t.Errorf("%s: events %s, want %s", j.side.name, got, tt.want)
			}
		}
		bad = compareJobs(jobs[0], jobs[1], append(slices.Clone(tt.differ), disturbed...))
		if said[0] != said[1] {
			bad = append(bad, "with the original the tools say\n"+said[0]+"\nwith ours\n"+said[1])
		}
		return bad
	}
	jobs := make([][2]*job, len(reachCases))
	for i, tt := range reachCases {
		jobs[i] = submit(tt)
	}
	for i, tt := range reachCases {
		t.Run(tt.name, func(t *testing.T) {
			if tt.long {
				realpool.NeedLong(t)
			}
			if tt.ssh {
				r.NeedSSH(t)
			}
			judge(t, reach(t, tt, jobs[i]), tt.known)
		})
	}
}

// disturbed are attributes that count what depends on when exactly somebody
// interfered.
var disturbed = []string{"CumulativeSuspensionTime", "CommittedSuspensionTime", "LastSuspensionTime", "TotalSuspensions", "TransferOutputStats"}

// errLate is what a poll says when it has nothing better to say.
var errLate = errors.New("not yet")

// within waits for something that no job's log tells.
func (r *rig) within(what string, limit time.Duration, ask func() bool) {
	r.TB.Helper()
	end := time.Now().Add(limit)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !ask() {
		if time.Now().After(end) {
			r.TB.Fatalf("%s: %v after %v", what, errLate, limit)
		}
		<-tick.C
	}
}
