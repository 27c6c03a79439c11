// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import "time"

// Jump follows a wall clock that was set by d: every time that is published
// moves with it, so that how long ago something was stays what it was. Times
// of claims are the caller's: see SetActivation.
func (m *Machine) Jump(d time.Duration) {
	m.started.Wall = m.started.Wall.Add(d)
	m.configured.Wall = m.configured.Wall.Add(d)
	if !m.benchmarked.IsZero() {
		m.SetLastBenchmark(m.benchmarked.Add(d))
	}
	for _, a := range m.slots {
		a.entered.Wall = a.entered.Wall.Add(d)
		a.began.Wall = a.began.Wall.Add(d)
		a.latchedBy = nil
		for i := range a.latches {
			if l := &a.latches[i]; !l.changed.IsZero() {
				l.changed.Wall = l.changed.Wall.Add(d)
			}
		}
		a.setState()
		a.share()
	}
}
