// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"io/fs"
	"os"
)

// PrivateFiles reads files that only their owner may read: keys, passwords,
// tokens. Implementations are safe for concurrent use.
type PrivateFiles interface {
	// ReadPrivate returns the contents of the file at path, links followed,
	// if it is a regular file of the user who runs this process that nobody
	// else may read or write, and no longer than limit bytes. A file that is
	// not there is NotFound, one that others could reach Denied.
	ReadPrivate(path string, limit int64) ([]byte, error)
}

// Entry is what the file system says of one name, links not followed.
type Entry struct {
	Mode  fs.FileMode
	UID   uint32
	Links uint64
}

// Owners is how somebody on this machine shows who he is: he makes a directory,
// and the system says whose it is. Implementations are safe for concurrent use.
type Owners interface {
	// Entry looks at one name. One that is not there is NotFound.
	Entry(path string) (Entry, error)
	// UserName returns the name of a user of this machine.
	UserName(uid uint32) (string, error)
	// MakeDir makes a directory of mode 0700. It fails if the name is there,
	// whatever it is.
	MakeDir(path string) error
	// RemoveDir removes an empty directory and nothing else.
	RemoveDir(path string) error
}

// PrivateDirs opens directories whose contents this process acts upon: what
// another user could have written there is no reason to kill or remove
// anything. All is asked of the open directory, so that nobody can put another
// one in its place. Implementations are safe for concurrent use.
type PrivateDirs interface {
	// OpenPrivate opens the directory at path if Private has nothing against
	// it, path is no symbolic link, and nobody but this user and root can put
	// another one in its place. One that is not there is NotFound, any other
	// that is refused is Denied with the reason.
	OpenPrivate(path string) (*os.Root, error)
	// Private says why others could have written in the open directory: it
	// belongs to another user than the one who runs this process, or its mode
	// lets others write. nil means that they could not.
	Private(dir *os.Root) error
}
