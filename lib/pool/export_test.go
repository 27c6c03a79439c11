// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

// Flush has what changed sent without waiting for more.
func (p *Pool) Flush() { p.updates.Flush() }
