// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"slices"

	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/role"
)

// Activate runs one activation in this process for a caller in the same process,
// rather than for a startd at the other end of two streams: the first order is the
// plan, report is called for each report, one at a time, and must not wait for long.
// orders is closed when nobody is there any more to give some. env is the process's
// environment. It returns when the last report was made and the sandbox is gone; the
// error is what was wrong with that.
func Activate(ctx context.Context, env []string, orders <-chan protocol.Order, report func(protocol.Report), h Host) error {
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool { return protocol.IsLean(entry) || role.Is(entry) })
	return newActivation(h, env, report).run(ctx, orders)
}
