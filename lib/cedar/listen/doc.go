// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package listen is where commands arrive and from where they leave: it
// accepts connections, from a port of its own, from a shared port and from a
// broker behind a firewall, has them secured, and calls the handler of the
// command; and it dials others in all the ways in which a daemon can be
// reached. Commands whose senders wait for no answer are also taken in
// datagrams, see [Server.ServePackets].
//
//	table, err := listen.NewTable(listen.Answer(command.Startd, map[int]listen.Handler{command.DCNop: nop})...)
//	server := &listen.Server{Table: table, Security: secured, Log: log}
//	err = server.Serve(ctx, listener) // until ctx ends
//
// It must never call a handler before the peer was allowed the command, hold
// more connections than its limits say, let one peer use up what others need,
// wait for anybody without a deadline, or die of a handler's panic. What comes
// from a connection never reaches a log unescaped, and secrets not at all.
package listen
