// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package host

// Space is what of the machine a family sees. Whatever makes it is private to the
// family: nobody else sees a mount of it, and the last process takes all of it away.
type Space struct {
	// Mounts are made in their order.
	Mounts []Mount
	// Root is the directory that is / for the family, "" for that of the machine.
	// Mounts are made below it.
	Root string
	// PIDs hides the processes of others: the family's have numbers of their own,
	// and whatever is left of them ends with the main process.
	PIDs bool
	// NoNetwork leaves it a loopback interface and nothing else.
	NoNetwork bool
}

// MainPID is the number that the main process of a family with PIDs has for itself: the
// first one is that which ends the others.
const MainPID = 2

// IsZero reports whether a family with s sees what its parent does.
func (s Space) IsZero() bool {
	return len(s.Mounts) == 0 && s.Root == "" && !s.PIDs && !s.NoNetwork
}

// Mount puts a directory in the place of another. The target is there, as a
// directory.
type Mount struct {
	// Source is the directory that is seen at Target; "" is a file system in
	// memory, empty, of Size bytes at most (0 is the system's default) and Mode.
	Source string
	Target string
	Size   int64
	Mode   uint32
	// ReadOnly forbids the family to write below Target.
	ReadOnly bool
}
