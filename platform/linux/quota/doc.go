// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quota has ext4 and xfs count what is used below a directory, by a project
// of its own (chattr -p, xfs_quota). It owns the numbers of such projects and the calls
// of the kernel. It must never limit anything, nor touch a project that is not its own.
//
// Projects are numbers that nobody hands out. Administrators count from 1, and so does
// Docker; Podman counts from 200000, kubelet from 1048577. Ours are First and the 65535
// after it. One is free when it has no files and no limits, and it is taken when, with
// the directory in it, the directory is all it has: so nothing has to be kept of it, two
// starters at a time do not get one, and what a user has left in a project keeps the next
// job out. Removing the directory gives it back.
package quota
