// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

// Asker says who asks the engine for something. A Reply goes to him alone.
type Asker uint8

// Who asks.
const (
	Nobody        Asker = iota // waits for a reply
	OwnQueue                   // the embedded access point, for its jobs
	Peer                       // who has a connection to the pool's side: a schedd, a shadow, a negotiator, an administrator's tool
	ControlSocket              // a tool of this machine
	Reload                     // the daemon itself, which has read its configuration again
	Fetcher                    // the engine itself, for work that it has fetched; its replies need no answer
	askers
)

var askerNames = [...]string{Nobody: "nobody", OwnQueue: "the own queue", Peer: "a peer", ControlSocket: "the control socket", Reload: "a reload", Fetcher: "fetched work"}

// String names who asks.
func (a Asker) String() string {
	if a < askers {
		return askerNames[a]
	}
	return "unknown asker"
}

// Ref names a request: who asks, and the number that the asker gave it. Requests of
// different askers are different whatever their numbers are. The zero Ref is that of
// an event without a Reply.
type Ref struct {
	By Asker
	N  uint64
}

// IsZero reports whether no reply is wanted.
func (r Ref) IsZero() bool { return r.By == Nobody }
