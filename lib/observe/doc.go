// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe shows a running Execution Point to people and programs: the
// daemon log in HTCondor's layout, and a control socket that answers what the
// slots do and why. It only carries what others computed: it must never decide
// anything, change state, or see a claim secret.
//
//	l, err := net.Listen("unix", path)
//	go observe.Serve(l, nil, func(r observe.Request) observe.Response { … }, nil)
//	resp, err := observe.Call(ctx, path, observe.Request{Op: observe.OpStatus})
package observe
