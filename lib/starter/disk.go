// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"time"

	"github.com/execpoint/execpoint/lib/sandbox"
)

// restOfWalk is how many times longer than a walk through the scratch directory the
// time is without one: all walks together take less than 1 % of a core.
const restOfWalk = 100

// diskLooks are the looks at what the scratch directory holds, while the job runs.
// Reports come as often as the owner says (STARTER_UPDATE_INTERVAL), and a walk takes
// as long as the job has files: a report that comes too early has the figures of the
// last walk.
type diskLooks struct {
	next time.Time // the earliest time of the next walk
}

// look walks, unless it is too early; else it returns what was.
func (d *diskLooks) look(walk func() sandbox.Usage, was sandbox.Usage) sandbox.Usage {
	began := time.Now()
	if began.Before(d.next) {
		return was
	}
	is := walk()
	ended := time.Now()
	d.next = ended.Add(restOfWalk * ended.Sub(began))
	return is
}
