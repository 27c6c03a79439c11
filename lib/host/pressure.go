// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import "time"

// Pressure is how long processes of a family stood still because memory, processors
// or block devices were short (Linux: PSI). nil is unknown, and never none.
type Pressure struct {
	Memory *Stall `json:"memory,omitempty"`
	CPU    *Stall `json:"cpu,omitempty"`
	IO     *Stall `json:"io,omitempty"`
}

// Stall is for how long some processes waited, and for how long all of them at once.
type Stall struct {
	Some time.Duration `json:"some"`
	Full time.Duration `json:"full,omitempty"`
}
