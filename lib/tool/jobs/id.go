// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"fmt"
	"strconv"
	"strings"
)

// IsID reports whether text names a job as people do: 3.0.
func IsID(text string) bool {
	cluster, proc, ok := strings.Cut(text, ".")
	_, err1 := strconv.ParseUint(cluster, 10, 31)
	_, err2 := strconv.ParseUint(proc, 10, 31)
	return ok && err1 == nil && err2 == nil
}

// OfJob is the constraint on the ads of one job, and on what constraint says; "" says
// nothing. id is one of IsID.
func OfJob(id, constraint string) string {
	cluster, proc, _ := strings.Cut(id, ".")
	c, _ := strconv.ParseUint(cluster, 10, 31)
	p, _ := strconv.ParseUint(proc, 10, 31)
	of := fmt.Sprintf("ClusterId == %d && ProcId == %d", c, p)
	if constraint == "" {
		return of
	}
	return of + " && (" + constraint + ")"
}
