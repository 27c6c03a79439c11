// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/runner"
)

// java is a runner of another universe, which takes its time.
type java struct {
	plain  runner.Runner
	takes  time.Duration
	fails  error
	closed atomic.Int32
	after  atomic.Bool // it was closed when the scratch directory was gone
}

func (*java) Offer() runner.Offer {
	return runner.Offer{Universes: []runner.Universe{runner.Java}, Waits: true}
}

func (j *java) Prepare(ctx context.Context, t runner.Task) (runner.Prepared, error) {
	select {
	case <-time.After(j.takes):
	case <-ctx.Done(): // though it is made ready all the same
	}
	if j.fails != nil {
		return nil, j.fails
	}
	ready, err := j.plain.Prepare(context.WithoutCancel(ctx), t)
	return javaReady{ready, j, t.Scratch}, err
}

type javaReady struct {
	runner.Prepared
	of      *java
	scratch string
}

func (r javaReady) Start(p runner.Program) (*runner.Run, error) {
	p.Args = append([]string{"-version"}, p.Args...)
	return r.Prepared.Start(p)
}

func (r javaReady) Close() error {
	_, err := os.Stat(r.scratch)
	r.of.after.Store(err != nil)
	r.of.closed.Add(1)
	return errors.Join(err, r.Prepared.Close())
}

// talkJava is a starter that has a runner of the java universe, with a job for it.
func talkJava(t *testing.T, execute string, j *java) *talk {
	k := newTalk(t, execute, sleeper(time.Minute, 4), func(h *Host) {
		plain := runner.All(runner.Machine{Spawner: h.Spawner, Errno: h.Errno})
		j.plain, h.runners = plain[0], append(plain, j)
	})
	k.plan(func(p *protocol.Plan) { p.JobAd += "JobUniverse = 10\n" })
	k.hears("sandbox", "transfer-in-start", "transfer-in-done")
	return k
}

// A job goes to the runner that takes it, which is prepared once the input is there
// and undone before the scratch directory goes.
func TestAnotherRunner(t *testing.T) {
	inBubble(t, func(t *testing.T, execute string) {
		j := &java{takes: time.Hour}
		k := talkJava(t, execute, j)
		next[protocol.Running](k)
		if d := k.passed(); d != time.Hour {
			t.Errorf("it runs after %v", d)
		}
		if args := k.machine.Families()[0].Spec.Args; !slices.Equal(args, []string{"/bin/job", "-version"}) {
			t.Errorf("%q", args)
		}
		k.send(protocol.Suspend{}, protocol.Continue{})
		next[protocol.Suspended](k)
		next[protocol.Continued](k)
		k.hears("usage", "transfer-out-start", "transfer-out-done")
		rec := k.end()
		if rec.Status != (host.ExitStatus{Exited: true, Code: 4}) || rec.Usage.UserCPU != time.Second || rec.Held != nil {
			t.Errorf("%+v", rec)
		}
		if j.closed.Load() != 1 || j.after.Load() {
			t.Errorf("closed %d times, after the scratch directory: %v", j.closed.Load(), j.after.Load())
		}
	})
}

// An order to leave ends a preparation, and what was made ready by then is undone.
func TestLeavesWhilePrepared(t *testing.T) {
	inBubble(t, func(t *testing.T, execute string) {
		j := &java{takes: time.Hour}
		k := talkJava(t, execute, j)
		synctest.Wait()
		k.send(protocol.HardKill{Leave: protocol.Leave{Reason: "enough"}})
		rec := k.end()
		if !rec.Evicted || rec.Reason != "enough" || rec.Held != nil || k.passed() != 0 || len(k.machine.Families()) != 0 {
			t.Errorf("after %v: %+v", k.passed(), rec)
		}
		if j.closed.Load() != 1 || j.after.Load() {
			t.Errorf("closed %d times", j.closed.Load())
		}
	})
}

// A runner that refuses a job has it held; one that fails has the machine blamed, and
// nobody holds the job for it.
func TestRunnerRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T, execute string) {
		j := &java{fails: &runner.Refusal{Code: reason.InvalidDockerImage, Subcode: 7, Text: "no such jar"}}
		k := talkJava(t, execute, j)
		if h := next[protocol.Held](k).Hold; h.Code != int(reason.InvalidDockerImage) || h.Subcode != 7 || h.Reason != "Error from slot1@h: no such jar" {
			t.Errorf("%+v", h)
		}
		if rec := k.end(); rec.Held == nil || rec.Fault != nil || rec.Evicted || len(k.machine.Families()) != 0 || j.closed.Load() != 0 {
			t.Errorf("%+v", rec)
		}

		k = talkJava(t, execute, &java{fails: errors.New("no daemon")})
		rec := k.end()
		if rec.Held != nil || rec.Fault == nil || rec.Fault.Kind != protocol.FaultSpawn || !strings.Contains(rec.Fault.Reason, "no daemon") || !rec.Evicted {
			t.Errorf("%+v", rec)
		}
	})
}

// Every knob by which an owner asks for something reaches the starter.
func TestOwnerKnobs(t *testing.T) {
	t.Parallel()
	var asked []string
	_, err := runner.Choose(runner.All(runner.Machine{}), runner.Request{Job: classad.NewAd(), Wanted: func(knob string) bool {
		asked = append(asked, knob)
		return false
	}})
	if err != nil || len(asked) == 0 || len(asked) != len(ownerKnobs) {
		t.Errorf("asked for %q: %v", asked, err)
	}
	for _, knob := range asked {
		if of := ownerKnobs[knob]; of == nil || of(configured(t, knob+" = TARGET.Wanted\n")).String() != "TARGET.Wanted" {
			t.Errorf("%s does not come with the plan", knob)
		}
	}
}

// The shadow of a job that is refused holds it, with the code and the reason. No
// process was started, and the job did not begin.
func TestShadowHoldsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		job, knob string
		code      int64
		reason    string
	}{
		{job: "WantDocker = true\nDockerImage = \"centos\"\n", code: 35, reason: "The job asks for a Docker container (DockerImage), which this Execution Point does not offer"},
		{job: "JobUniverse = 10\n", code: 6, reason: "The job asks for the java universe (JobUniverse 10), which this Execution Point does not offer"},
		{knob: "TARGET.ProcId == 0 && MY.Memory > 5", code: 35, reason: "The job asks for a container, as the owner of this machine wants (SINGULARITY_JOB), which this Execution Point does not offer"},
	} {
		p := newPoolPlan(t, tt.job, sleeper(0, 0), func(_ *pool, plan *protocol.Plan) {
			if tt.knob != "" {
				plan.Settings = configured(t, "SINGULARITY_JOB = "+tt.knob+"\n")
			}
		})
		rec := p.last()
		end := <-p.ended
		if end.Held == nil || rec.Held == nil || len(p.machine.Families()) != 0 || slices.Contains(p.calls(), "begin_execution") {
			t.Fatalf("%q: %+v, %+v, calls %v", tt.job, end, rec, p.calls())
		}
		code, _ := end.Held.Ad.EvalInt("HoldReasonCode", nil)
		if text, _ := end.Held.Ad.EvalString("ErrorMsg", nil); code != tt.code || text != tt.reason {
			t.Errorf("%q: held with %d %s", tt.job, code, text)
		}
		if rec.Fault != nil {
			t.Errorf("%q: the machine is blamed: %+v", tt.job, rec.Fault)
		}
	}
}
