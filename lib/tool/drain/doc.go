// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drain makes the request that drains an Execution Point, or ends its
// drain, out of the words in which a person asks for it, and says in a sentence what
// came of it. It owns which of these words exclude one another. It must never
// send anything: the request goes to observe.Call, or over the wire.
package drain
