// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first used. A starter is
// the daemon's program too, begins for each job, and checks nothing.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
