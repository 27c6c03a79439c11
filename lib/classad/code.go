// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

func (ev *evaluator) expr(e *Expr) Value { return ev.eval(e.n) }
