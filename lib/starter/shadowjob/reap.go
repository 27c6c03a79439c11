// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"io"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
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

// transferCounters are what a job's ad shows of transfers in one direction.
type transferCounters struct {
	starts, finished int64
	going            bool
}

func (d direction) of(ad *classad.Ad) transferCounters {
	var m transferCounters
	m.starts, _ = ad.EvalInt(d.starts, nil)
	m.finished, _ = ad.EvalInt(d.finished, nil)
	m.going, _ = ad.EvalBool(d.going, nil)
	return m
}

// since reports whether a transfer has begun and ended after before.
func (m transferCounters) since(before transferCounters) bool {
	return !m.going && (m.starts > before.starts || m.finished != before.finished)
}

// The shadow is looked at until it shows the end of a transfer, at first without
// a pause, each look being a turn of its loop. One that shows no transfer within
// unshown, the time of its answers not counted, does not show such transfers at all:
// those without a file, of older versions. One that shows a transfer and not its end
// has longer: it may wait for a schedd that has much to do.
const (
	firstPause = time.Millisecond
	mostPause  = 50 * time.Millisecond
	unshown    = time.Second
	unended    = 20 * time.Second
)

// awaitTransferChild waits until the shadow, whose job ad look gets, has seen the end
// of the child that moved files that way, which is itself gone, and reports whether
// it has. last is what the ad showed before, and shows now.
func awaitTransferChild(ctx context.Context, look func(context.Context) (*classad.Ad, error), d direction, last map[direction]transferCounters) bool {
	var waited time.Duration
	for pause := time.Duration(0); ; pause = min(max(2*pause, firstPause), mostPause) {
		if waited += pause; pause > 0 {
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
		m := d.of(ad)
		if m.since(last[d]) {
			last[d] = m
			return true
		}
		limit := unshown
		if m.going {
			limit = unended
		}
		if waited >= limit {
			return false
		}
	}
}

// childEnds is how long the child of a shadow may take to end that has said all
// it had to say.
const childEnds = 10 * time.Second

// drainToEOF reads conn, on which a transfer is over, until the shadow's child that
// made it closes it. The shadow refuses a second transfer before that child has
// exited.
func drainToEOF(ctx context.Context, conn *cedar.Conn) {
	defer conn.Bind(ctx)()
	nc := conn.NetConn()
	_ = nc.SetReadDeadline(time.Now().Add(childEnds))
	if ctx.Err() != nil {
		return // that may have been in place of the deadline by which ctx ends it
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(nc, 4096))
}

// closeAfterPeer is a connection that is drained while other things are done, and
// closed when the shadow's child has closed it.
type closeAfterPeer struct {
	conn *cedar.Conn
	over chan struct{}
}

func newCloseAfterPeer(conn *cedar.Conn) *closeAfterPeer {
	p := &closeAfterPeer{conn: conn, over: make(chan struct{})}
	go func() {
		defer close(p.over)
		drainToEOF(context.Background(), conn)
		_ = conn.Close()
	}()
	return p
}

func (p *closeAfterPeer) await(ctx context.Context) {
	if p != nil {
		select {
		case <-p.over:
		case <-ctx.Done():
		}
	}
}

func (p *closeAfterPeer) cut() {
	if p != nil {
		_ = p.conn.Close()
		<-p.over
	}
}
