// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// faultOf is what a starter said of the machine, nil for nothing.
func faultOf(f *protocol.Fault) *ep.MachineFault {
	if f == nil {
		return nil
	}
	kind := ep.FaultStarter
	if f.Kind == protocol.FaultExecute {
		kind = ep.FaultExecute
	}
	return &ep.MachineFault{Kind: kind, Reason: f.Reason, Doubtful: f.Doubtful}
}

// launchFailure is an error of the launcher, which is the machine's fault. Other
// errors of launch are the shadow's, or the job's.
type launchFailure struct{ error }

func (l launchFailure) Unwrap() error { return l.error }

// faultOfLaunch is the machine's part in why there is no starter, nil for none.
// A plan that no starter would take may be the job's doing.
func faultOfLaunch(err error) *ep.MachineFault {
	var l launchFailure
	if !errors.As(err, &l) {
		return nil
	}
	return &ep.MachineFault{Kind: ep.FaultStarter, Reason: err.Error(), Doubtful: !errs.Is(err, errs.Broken)}
}

// silent is the fault of a starter that ended before its job ran without having
// said how; nil if it was told to go, or has said it.
func (a *activation) silent(st host.ExitStatus) *ep.MachineFault {
	if a.record != nil || !a.job.IsZero() || a.leaving || a.kill {
		return nil
	}
	return &ep.MachineFault{Kind: ep.FaultStarter, Reason: fmt.Sprintf("a starter %v before its job ran, and did not say why", st), Doubtful: true}
}

// What descriptors are kept for.
const (
	starterDescriptors = 12 // to start a starter: pipes, the shadow's connection, what the system needs for a moment
	jobDescriptors     = 4  // of a starter that runs
	spareDescriptors   = 16 // commands, the pool, logs, programs of the owner
	countDescriptors   = time.Second
)

// room is how many activations may be granted before descriptors are counted
// again.
type room struct {
	left    int
	counted clock.Instant
}

// lacking says that there are too few descriptors for another starter, nil if
// there are enough or nobody knows. Connections come without being asked, so the
// count is good for a moment only, and for half of what it found.
func (n *node) lacking(now clock.Instant) *ep.MachineFault {
	if n.o.Host.Descriptors == nil {
		return nil
	}
	if n.faults.room.left > 0 && now.Sub(n.faults.room.counted) < countDescriptors {
		n.faults.room.left--
		return nil
	}
	d, err := n.o.Host.Descriptors()
	if err != nil {
		n.o.Log.Debug("descriptors cannot be counted", "err", err)
		return nil
	}
	starting := 0
	for _, a := range n.starter.live {
		if a.handle == nil {
			starting++
		}
	}
	atOnce := min(starting, mostLaunching)
	free := d.Most - d.Open - spareDescriptors - atOnce*starterDescriptors - (starting-atOnce)*jobDescriptors
	if free < starterDescriptors {
		return &ep.MachineFault{Kind: ep.FaultDescriptors, Reason: fmt.Sprintf(
			"%d of %d file descriptors are in use (starters on their way: %d); a starter needs %d and %d are kept back: raise the limit of open files (ulimit -n, LimitNOFILE)",
			d.Open, d.Most, starting, starterDescriptors, spareDescriptors)}
	}
	n.faults.room = room{left: (free/starterDescriptors - 1) / 2, counted: now}
	return nil
}

// executeTest is a test of an EXECUTE directory that has not ended yet.
type executeTest struct{ done chan error }

// testExecute tests a directory beside the owner, as the user whose job failed
// there. While a file system does not answer the same test is waited for again.
func (n *node) testExecute(place string) {
	t := n.faults.tests[place]
	if t == nil {
		t = &executeTest{done: make(chan error, 1)}
		n.faults.tests[place] = t
		user, access := n.faults.failedAs[place], n.o.Host.Access
		go func() { t.done <- testExecute(place, user, access) }()
	}
	n.mail.around.Go(func() {
		answered := true
		var err error
		select {
		case err = <-t.done:
		case <-time.After(executePatience):
			answered, err = false, errNoAnswer(place)
		case <-n.mail.done:
			return
		}
		n.mail.post(func(now clock.Instant) {
			if answered {
				delete(n.faults.tests, place)
			}
			n.step(now, ep.ExecuteTested{Place: place, Err: err})
		})
	})
}

// faultChanged says that the machine refuses jobs, or takes them again. It is
// the one line of each change, and what a person who waits for jobs is told.
func (n *node) faultChanged(e ep.FaultChanged) {
	n.moved = true
	args := []any{slog.String("fault", e.Kind.String()), slog.String("why", e.Reason)}
	if e.Place != "" {
		args = append(args, slog.String("dir", e.Place))
	}
	if !e.Refusing {
		n.o.Log.Info("the machine takes jobs again", args...)
		return
	}
	n.o.Log.Warn("the machine refuses jobs", append(args, slog.Int("failures", e.Row), slog.Duration("pause", e.Pause.Round(time.Millisecond)))...)
	if n.o.Problem != nil {
		n.o.Problem(fmt.Errorf("no job is started for %v: %s", e.Pause.Round(time.Second), e.Reason))
	}
}

// refusal is why a slot takes no job because of the machine, "" if there is no
// such reason.
func refusal(r ep.Refusal, refused bool, now clock.Instant) string {
	if !refused {
		return ""
	}
	next := "tried again"
	if r.Kind == ep.FaultExecute {
		next = "tested again"
	}
	return fmt.Sprintf("%s (since %v, %s in %v)", r.Reason, r.Since.Wall.Format(time.DateTime), next, max(0, r.Until.Sub(now)).Round(time.Second))
}
