// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// A shadow moves files in a child, and gives itself up if it is asked for
// another transfer before it has seen that child end; the job has to run again
// then. The end of the connection does not tell, since the child's parent may
// not have had a turn since. The job's ad does: the shadow writes there that
// files are no longer moved after it has seen the child end, and nowhere else.
// HTCondor keeps a second between transfers instead.

// A direction of transfers is the three attributes by which the job's ad shows
// them: how often they began, when the last was over (a second since 1970), and
// whether one is under way. Older shadows, those of 24.0 too, do not count.
type direction struct{ starts, finished, going string }

var (
	inward  = direction{"NumInputTransferStarts", "TransferInFinished", "TransferringInput"}
	outward = direction{"NumOutputTransferStarts", "TransferOutFinished", "TransferringOutput"}
)

// motion is what a job's ad shows of transfers in one direction.
type motion struct {
	starts, finished int64
	going            bool
}

func (d direction) of(ad *classad.Ad) motion {
	var m motion
	m.starts, _ = ad.EvalInt(d.starts, nil)
	m.finished, _ = ad.EvalInt(d.finished, nil)
	m.going, _ = ad.EvalBool(d.going, nil)
	return m
}

// since reports whether a transfer has begun and ended after before.
func (m motion) since(before motion) bool {
	return !m.going && (m.starts > before.starts || m.finished != before.finished)
}

// The shadow is looked at until it shows the end of a transfer, at first without
// a pause, each look being a turn of its loop. One that does not show it within
// unshown does not show such transfers at all: those without a file, of older
// versions.
const (
	firstPause = time.Millisecond
	mostPause  = 50 * time.Millisecond
	unshown    = time.Second
)

// reaped waits until the shadow has seen the end of the child that moved files
// that way, which is itself gone, and reports whether it has.
func (s *shadowJob) reaped(ctx context.Context, d direction) bool {
	return reaped(ctx, s.caller.JobInfo, d, s.motions)
}

func reaped(ctx context.Context, look func(context.Context) (*classad.Ad, error), d direction, last map[direction]motion) bool {
	began := time.Now()
	for pause := time.Duration(0); ; pause = min(max(2*pause, firstPause), mostPause) {
		if pause > 0 {
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return false
			}
		}
		ad, err := look(ctx)
		if err != nil {
			return false
		}
		if m := d.of(ad); m.since(last[d]) {
			last[d] = m
			return true
		}
		if time.Since(began) >= unshown {
			return false
		}
	}
}
