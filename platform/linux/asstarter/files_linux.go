// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package asstarter

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/chirp"
	"github.com/execpoint/execpoint/lib/shadow"
)

// files is what Linux knows of files beyond Go's library.
var files = chirp.System{NoWait: unix.O_NONBLOCK | unix.O_NOCTTY, Stat: stat, Statfs: statfs}

func stat(info fs.FileInfo) shadow.Stat {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return shadow.Stat{Size: info.Size(), Mtime: info.ModTime().Unix()}
	}
	return shadow.Stat{
		Dev: int64(st.Dev), Ino: int64(st.Ino), Mode: int64(st.Mode), Nlink: int64(st.Nlink), UID: int64(st.Uid), GID: int64(st.Gid),
		Rdev: int64(st.Rdev), Size: st.Size, BlockSize: int64(st.Blksize), Blocks: st.Blocks,
		Atime: st.Atim.Nano() / 1e9, Mtime: st.Mtim.Nano() / 1e9, Ctime: st.Ctim.Nano() / 1e9,
	}
}

func statfs(f *os.File) (shadow.Statfs, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return shadow.Statfs{}, err
	}
	return shadow.Statfs{
		Type: int64(st.Type), BlockSize: int64(st.Bsize), Blocks: int64(st.Blocks), Free: int64(st.Bfree), Available: int64(st.Bavail),
		Files: int64(st.Files), FilesFree: int64(st.Ffree),
	}, nil
}
