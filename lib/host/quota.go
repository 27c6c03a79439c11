// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import "os"

// Quotas have file systems count what is used of them below a directory.
// Implementations are safe for concurrent use.
type Quotas interface {
	// Count has the file system of an empty directory that nobody else uses yet count
	// what will be in it. dir is the counter's then, and stays the caller's after an
	// error, which is Unsupported where the file system does not count, or not for this
	// process. Nothing is limited.
	Count(dir *os.File) (Counter, error)
}

// Counter is what a file system counts of one directory. A user of the machine can
// take his own files out of the count, or others' of his into it: Linux lets an owner
// choose the project of his files. It tells how use changes, and what is believed is
// what was seen. Methods are safe for concurrent use, but for Close.
type Counter interface {
	// Name says for a log by what it is counted.
	Name() string
	// Used is what is counted now. Files are of all kinds, directories too, without
	// the directory itself.
	Used() (Fill, error)
	// Close lets go of it. The count ends with the last file.
	Close() error
}
