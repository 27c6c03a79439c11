// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import "github.com/execpoint/execpoint/lib/host"

// Accounts is what a starter needs to know of the users of its machine, and to do
// for them. The zero Accounts knows and can do nothing.
type Accounts struct {
	Home string // home directory of the user that jobs run as, "" if unknown
	// Access is for jobs of another user; nil where there can be none.
	Access host.Access
	// KillUser ends every process of a user, whoever started it, and returns how
	// many there were; nil where that cannot be.
	KillUser func(uid uint32) (int, error)
	// Audit looks for what a job of another user left on the machine; nil where there
	// are none. Conflict is an account that others use now.
	Audit func(host.AuditSpec) (host.Audit, error)
	// UserName is what a user is called on this machine, NotFound for a number
	// that nobody has; nil where nobody can be another user.
	UserName func(uid uint32) (string, error)
	// GroupName is what a group is called, as UserName.
	GroupName func(gid uint32) (string, error)
}
