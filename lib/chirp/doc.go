// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chirp is what a job talks to when it reaches back to its submit
// machine: a small server on the loopback interface, found through the file
// .chirp.config, that speaks the Chirp protocol of lines and hands the requests
// on to the shadow. A job without a shadow has a [Local] instead, which is its
// submit directory and its ad on this machine.
//
//	allow := chirp.AllowFrom(job, settings)
//	proxy, err := chirp.Listen(chirp.Config{Allow: allow, Remote: caller, Job: job, Settings: settings})
//	os.WriteFile(".chirp.config", []byte(proxy.ConfigText()), 0o600)
//	go proxy.Serve(ctx)
//
// It owns the protocol and the delayed updates of the job's attributes. It must
// never touch a file of this machine for a request, but for a Local one of the
// submit directory with the rights of the job's user; answer anybody who has not
// shown the cookie, hold more of a file than a few pieces, or let a job that
// stops in the middle of a request keep others waiting.
package chirp
