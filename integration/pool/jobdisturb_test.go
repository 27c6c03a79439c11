// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/eventlog"
)

// disturbance is something that happens to a pool while a job runs at each
// side.
type disturbance struct {
	name   string
	lines  string // of the pool's configuration
	submit string
	script string
	// act does it, and has the jobs come to their end.
	act  func(r *rig, jobs [2]*job)
	want string // codes of the event log; at both sides the same, whatever they are
	long bool   // takes a minute or more, or is rare
	// master says that each side has a condor_master of its own.
	master bool
	// differ are attributes of the final ad that differ, known says in what
	// else ours does, and why.
	differ []string
	known  string
	// knownSince is the first version from which it differs.
	knownSince cedar.Version
	// unsteady says what the original does not do every time; then the two may
	// come to the same at a later try.
	unsteady string
}

// pids are the processes of a program that serve a job.
func (j *job) pids(program string) (all []int) {
	j.t.Helper()
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range list {
		b, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(filepath.Base(string(b)), program) || !strings.Contains(string(b), j.id()) {
			continue
		}
		// Only those of this pool: the configuration is in the environment.
		env, err := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
		if err != nil || !strings.Contains(string(env), j.side.rig.Dir) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// shadow is the process id of the job's shadow.
func (j *job) shadow() int {
	j.t.Helper()
	var all []int
	j.until("shadow", patience, func() bool { all = j.pids("condor_shadow"); return len(all) == 1 })
	return all[0]
}

// over2 waits until both jobs have terminated.
func over2(jobs [2]*job) {
	for _, j := range jobs {
		j.wait(eventlog.CodeTerminated, 1)
	}
}

// persist has the schedd write what it has noted of the jobs to its disk: what
// a shadow tells stays in memory until something weightier is written.
func persist(jobs [2]*job) {
	for _, j := range jobs {
		j.tool("condor_qedit", j.id(), "Noted", "true")
	}
}

func told2(jobs [2]*job) {
	for _, j := range jobs {
		j.told("go")
	}
	over2(jobs)
}

var disturbances = []disturbance{
	{
		name:   "schedd killed and restarted",
		differ: []string{"TotalJobReconnectAttempts" /* how often the new shadow asked */},
		act: func(r *rig, jobs [2]*job) {
			pids := []int{jobs[0].shadow(), jobs[1].shadow()}
			persist(jobs)
			r.stop("condor_schedd", syscall.SIGKILL)
			for _, pid := range pids { // as condor_master would
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			r.start("condor_schedd")
			for _, j := range jobs {
				j.wait(eventlog.CodeReconnected, 1)
			}
			told2(jobs)
		},
		want: "001 022 023 005",
	},
	{
		// An update that comes while a suspended job is being removed makes the
		// shadow of either side note a second suspension: none is due by the clock.
		name: "removed while suspended", lines: "STARTER_INITIAL_UPDATE_INTERVAL = 1\n",
		act: func(_ *rig, jobs [2]*job) {
			var said [2]string
			for i, j := range jobs {
				j.until("first update by the clock in the queue", patience, func() bool { return j.queued("ResidentSetSize") != "undefined" })
				said[i] = j.say("condor_suspend", j.id())
				j.wait(eventlog.CodeSuspended, 1)
				// The shadow writes the event before the schedd hears of it.
				j.until("suspension in the queue", patience, func() bool { return j.queued("JobStatus") == "7" })
				said[i] += j.say("condor_rm", j.id())
				j.wait(eventlog.CodeAborted, 1)
			}
			if said[0] != said[1] {
				jobs[0].t.Errorf("with the original the tools say\n%s\nwith ours\n%s", said[0], said[1])
			}
		},
		want: "001 010 004 009",
	},
	{
		name: "shadow killed", unsteady: "it refuses the next shadow while the last one's job is not gone yet",
		// Which reason the schedd notes is a race of two of its commands; so is
		// whether the job has the time to note a signal.
		differ: []string{"NumVacatesByReasonPreExecution", "NumVacatesPreExecution"}, script: strings.ReplaceAll(waits, "echo TERM >> @DIR@/trace", ":"),
		act: func(r *rig, jobs [2]*job) {
			for _, j := range jobs {
				_ = syscall.Kill(j.shadow(), syscall.SIGKILL)
			}
			over2(jobs) // the second start ends by itself
		},
	},
	{
		name: "shadow stopped for a while", long: true, submit: "job_lease_duration = 300",
		act: func(r *rig, jobs [2]*job) {
			for _, j := range jobs {
				pid := j.shadow()
				_ = syscall.Kill(pid, syscall.SIGSTOP)
				j.told("go") // it ends while nobody listens
				j.gone()
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
			over2(jobs)
		},
		want: "001 005",
	},
	{
		name: "lease ends", submit: "job_lease_duration = 20", lines: "JOB_DEFAULT_LEASE_DURATION = 20\n", long: true,
		act: func(r *rig, jobs [2]*job) {
			pids := []int{jobs[0].shadow(), jobs[1].shadow()}
			persist(jobs)
			r.stop("condor_schedd", syscall.SIGKILL)
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			for _, j := range jobs {
				j.gone()
			}
			for _, s := range r.sides {
				r.within("scratch of "+s.name+" is gone", patience, func() bool { return len(s.scratch()) == 0 })
			}
			r.start("condor_schedd")
			over2(jobs)
		},
	},
	{
		name: "drained gracefully", lines: "MAXJOBRETIREMENTTIME = 0\n",
		act: func(r *rig, jobs [2]*job) {
			for _, j := range jobs {
				r.Tool("condor_drain", "-quick", j.side.firstSlot())
			}
			for _, j := range jobs {
				j.wait(eventlog.CodeEvicted, 1)
			}
			for _, j := range jobs {
				r.within("it is drained", patience, func() bool {
					out, err := r.run("condor_status", "-direct", j.side.host(), "-constraint", `Rig == "`+j.side.name+`"`, "-af", "State")
					return err == nil && strings.TrimSpace(out) == "Drained"
				})
				r.Tool("condor_drain", "-cancel", j.side.firstSlot())
			}
			over2(jobs)
		},
		want: "001 004 001 005",
	},
	{
		name: "drained fast", long: true,
		act: func(r *rig, jobs [2]*job) {
			for _, j := range jobs {
				r.Tool("condor_drain", "-fast", j.side.firstSlot())
				j.wait(eventlog.CodeEvicted, 1)
				if j.has("trace") {
					j.t.Errorf("%s: the job had the time to note a signal", j.side.name)
				}
				r.Tool("condor_drain", "-cancel", j.side.firstSlot())
			}
			over2(jobs)
		},
		want: "001 004 001 005",
	},
	{
		name: "drained with patience", long: true, lines: "MAXJOBRETIREMENTTIME = 3600\n",
		act: func(r *rig, jobs [2]*job) {
			for _, j := range jobs {
				r.Tool("condor_drain", "-graceful", j.side.firstSlot())
				r.within("it retires", patience, func() bool {
					out, err := r.run("condor_status", "-direct", j.side.host(), "-constraint", `Rig == "`+j.side.name+`" && State == "Claimed"`, "-af", "Activity")
					return err == nil && strings.TrimSpace(out) == "Retiring"
				})
			}
			told2(jobs)
		},
		want: "001 005",
	},
	{
		name: "vacated by the administrator", long: true,
		act: func(r *rig, jobs [2]*job) {
			for _, j := range jobs {
				r.Tool("condor_vacate", "-graceful", "-addr", r.address(j.side))
				j.wait(eventlog.CodeEvicted, 1)
			}
			over2(jobs)
		},
		want: "001 004 001 005",
	},
	{
		name: "shut down gracefully",
		act: func(r *rig, jobs [2]*job) {
			for _, j := range jobs {
				r.running[j.side.name].Signal(syscall.SIGTERM)
			}
			for _, j := range jobs {
				j.wait(eventlog.CodeEvicted, 1)
				j.side.ended()
				j.side.start()
			}
			over2(jobs)
		},
		want: "001 004 001 005",
	},
	{
		name: "shut down fast", long: true,
		act: func(r *rig, jobs [2]*job) {
			for _, j := range jobs {
				r.running[j.side.name].Signal(syscall.SIGQUIT)
			}
			for _, j := range jobs {
				j.side.ended()
				j.gone()
				j.side.start()
			}
			over2(jobs)
		},
	},
	{
		name:       "preempted by rank",
		knownSince: says,
		known:      "ours says to the shadow why, the original leaves it at an unspecified interruption", lines: "RANK = TARGET.Liked =?= true\nMAXJOBRETIREMENTTIME = 0\nALLOW_PSLOT_PREEMPTION = True\nSLOT_TYPE_1_PARTITIONABLE = false\nNUM_CPUS = 1\n",
		act: func(r *rig, jobs [2]*job) {
			var better [2]*job
			for i, j := range jobs {
				better[i] = j.side.submit(j.t, "better", "executable = /bin/true\noutput = out\nshould_transfer_files = YES\nMY.Liked = true\nrequirements = TARGET.Rig == MY.Rig", "", nil)
			}
			for i, j := range jobs {
				better[i].wait(eventlog.CodeTerminated, 1)
				j.wait(eventlog.CodeTerminated, 1)
			}
		},
		want: "001 004 001 005",
	},
	{
		name: "preempted with retirement", long: true, lines: "PREEMPT = TARGET.Unloved =?= true\nMAXJOBRETIREMENTTIME = 5\nPOLLING_INTERVAL = 1\nWANT_SUSPEND = False\nWANT_VACATE = True\n", submit: "MY.Unloved = NumJobStarts =?= 0",
		act: func(r *rig, jobs [2]*job) {
			for _, j := range jobs {
				j.wait(eventlog.CodeEvicted, 1)
				_, _ = r.run("condor_qedit", j.id(), "Unloved", "false") // which cannot be once the job is over
			}
			over2(jobs)
		},
		want: "001 004 001 005",
	},
	{
		name: "shut down peacefully", long: true, master: true,
		act: func(r *rig, jobs [2]*job) {
			for _, j := range jobs {
				r.Tool("condor_off", "-peaceful", "-name", j.side.name+"@"+r.FullHost(), "-subsystem", "startd")
				r.within(j.side.name+" takes no more jobs", patience, func() bool {
					out, err := r.run("condor_status", "-direct", j.side.host(), "-constraint", `Rig == "`+j.side.name+`" && JobId =!= undefined`, "-af", "State", "Activity")
					return err == nil && strings.TrimSpace(out) == "Claimed Retiring"
				})
			}
			told2(jobs)
			for _, j := range jobs {
				r.within("the startd of "+j.side.name+" is gone", patience, func() bool {
					out, err := r.run("condor_status", "-constraint", `Rig == "`+j.side.name+`"`, "-af", "Name")
					return err == nil && strings.TrimSpace(out) == ""
				})
			}
		},
		want: "001 005",
	},
	{
		name: "held by policy", long: true, submit: "MY.HoldMe = true",
		lines: "Long = TARGET.HoldMe =?= true && State == \"Claimed\" && Activity == \"Busy\" && time() - EnteredCurrentActivity > 4\n" +
			"PREEMPT = $(Long)\nWANT_HOLD = TARGET.HoldMe =?= true\nWANT_HOLD_REASON = strcat(\"not here, \", TARGET.Owner)\nWANT_HOLD_SUBCODE = 77\nWANT_SUSPEND = False\nWANT_VACATE = True\nMAXJOBRETIREMENTTIME = 0\nPOLLING_INTERVAL = 1\n",
		act: func(r *rig, jobs [2]*job) {
			for _, j := range jobs {
				j.wait(eventlog.CodeHeld, 1)
				if got := j.queued("HoldReasonCode") + " " + j.queued("HoldReasonSubCode"); got != "21 77" {
					j.t.Errorf("%s: held for %s, want 21 77", j.side.name, got)
				}
				r.Tool("condor_qedit", j.id(), "HoldMe", "false")
				r.Tool("condor_release", j.id())
			}
			over2(jobs)
		},
	},
	{
		name: "worklife of a claim", long: true, lines: "CLAIM_WORKLIFE = 6\nNUM_CPUS = 1\n",
		act: func(r *rig, jobs [2]*job) {
			told2(jobs)
			for _, j := range jobs {
				const procs = 6
				series := j.side.submit(j.t, "series", "executable = /bin/sleep\narguments = 2\ntransfer_executable = false\nshould_transfer_files = YES\noutput = out.$(Process)\nerror = /dev/null\n", "queue "+strconv.Itoa(procs), nil)
				series.over()
				claims := make(map[string]int)
				for _, ad := range series.final() {
					id, ok := ad.EvalString("LastPublicClaimId", nil)
					if !ok {
						j.t.Errorf("%s: a final ad without a claim", j.side.name)
					}
					claims[id]++
				}
				j.t.Logf("%s: %d jobs of 2 s under %d claims", j.side.name, procs, len(claims))
				// Claims go on to further jobs until they are six seconds old.
				for id, n := range claims {
					if n > 3 {
						j.t.Errorf("%s: claim %s had %d jobs of 2 s and a worklife of 6 s", j.side.name, id, n)
					}
				}
				if len(claims) < 2 || len(claims) >= procs {
					j.t.Errorf("%s: %d jobs had %d claims", j.side.name, procs, len(claims))
				}
			}
		},
		want: "001 005",
	},
	{
		name: "another job is put in its place", long: true,
		act: func(r *rig, jobs [2]*job) {
			for _, j := range jobs {
				s := j.side
				other := s.submit(j.t, "other", "executable = job.sh\noutput = out\nerror = err\nshould_transfer_files = YES\n", "", func(dir string) {
					r.files(dir, map[string]string{"job.sh": strings.ReplaceAll(waits, "@DIR@", dir)})
				})
				other.made("ready")
				// Only a slot that is made of both is good enough for this one.
				urgent := s.submit(j.t, "urgent", "executable = /bin/sleep\narguments = 1\ntransfer_executable = false\nshould_transfer_files = YES\noutput = out\nerror = err\nrequest_cpus = 2\n"+
					"requirements = TARGET.Rig == MY.Rig && TARGET.DynamicSlot =?= true && TARGET.Cpus >= 2\n", "", nil)
				r.Tool("condor_now", urgent.id(), j.id(), other.id())
				j.wait(eventlog.CodeEvicted, 1)
				other.wait(eventlog.CodeEvicted, 1)
				urgent.wait(eventlog.CodeTerminated, 1)
				if got := urgent.codes(); got != "001 005" {
					j.t.Errorf("%s: events %s of the urgent job, want 001 005", s.name, got)
				}
				other.wait(eventlog.CodeTerminated, 1)
			}
			over2(jobs)
		},
		want: "001 004 001 005",
	},
}

// address is where a side's startd is.
func (r *rig) address(s *side) string {
	r.TB.Helper()
	return strings.TrimSpace(r.Tool("condor_status", "-direct", s.host(), "-constraint", `Rig == "`+s.name+`"`, "-limit", "1", "-af", "MyAddress"))
}

// TestDisturbances compares what becomes of jobs at both sides when something
// happens to the pool.
func TestDisturbances(t *testing.T) {
	t.Parallel()
	for _, tt := range disturbances {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.long {
				realpool.NeedLong(t)
			}
			tt.run(t)
		})
	}
}

// run has the disturbance happen to a pool of its own, and to others if the
// original does not do the same every time.
func (tt *disturbance) run(t *testing.T) {
	t.Helper()
	r, first, bad := tt.happens(t)
	for try := 2; len(bad) > 0 && tt.unsteady != "" && try <= 3; try++ {
		t.Logf("once more, for the original is not steady (%s):\n%s", tt.unsteady, strings.Join(bad, "\n"))
		var now *job
		r, now, bad = tt.happens(t)
		steady(t, first, now)
	}
	known := tt.known
	if !r.atLeast(tt.knownSince) {
		known = ""
	}
	judge(t, bad, known)
}

func (tt *disturbance) happens(t *testing.T) (r *rig, ours *job, bad []string) {
	t.Helper()
	r = newRigBelow(t, "SHADOW_QUEUE_UPDATE_INTERVAL = 1\n"+tt.lines, tt.master)
	script := tt.script
	if script == "" {
		script = waits
	}
	var jobs [2]*job
	for i, s := range r.sides {
		jobs[i] = s.submit(t, "job", "executable = job.sh\noutput = out\nerror = err\nshould_transfer_files = YES\n"+tt.submit, "", func(dir string) {
			r.files(dir, map[string]string{"job.sh": strings.ReplaceAll(script, "@DIR@", dir)})
		})
	}
	for _, j := range jobs {
		j.made("ready")
	}
	for _, j := range jobs {
		j.until("start in the queue", patience, func() bool {
			started := j.queued("NumJobStarts")
			return started != "0" && started != "undefined" && (j.queued("TransferInFinished") != "undefined" || j.queued("ShouldTransferFiles") == "NO")
		})
	}
	tt.act(r, jobs)
	for _, j := range jobs {
		if got := j.codes(); tt.want != "" && got != tt.want {
			t.Errorf("%s: events %s, want %s", j.side.name, got, tt.want)
		}
	}
	bad = compareJobs(jobs[0], jobs[1], append(slices.Clone(tt.differ), disturbed...))
	for _, j := range jobs {
		j.remove()
	}
	for i, s := range r.sides {
		if i == 0 && !r.atLeast(says) {
			continue // its starter may wait for the lease
		}
		if s.rig.running[s.name] != nil {
			r.within("scratch of "+s.name+" is gone", patience, func() bool { return len(s.scratch()) == 0 })
		}
	}
	return r, jobs[1], bad
}
