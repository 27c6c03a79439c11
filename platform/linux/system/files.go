// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/execpoint/execpoint/lib/check"
)

// Files tells the checks of a configuration about the files of this machine.
type Files struct{}

// Facts follows links, as the daemon will.
func (Files) Facts(path string) (check.FileFacts, error) {
	info, err := os.Stat(path)
	if err != nil {
		return check.FileFacts{}, err
	}
	facts := check.FileFacts{Dir: info.IsDir(), Executable: info.Mode()&0o111 != 0 || runtime.GOOS == "windows"}
	if runtime.GOOS == "windows" {
		return facts, nil // permissions there are not told by a mode
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return facts, nil
		}
		const others = 0o002
		guarded := info.IsDir() && info.Mode()&os.ModeSticky != 0
		if info.Mode().Perm()&others != 0 && !guarded {
			facts.OthersMay = at
			return facts, nil
		}
		if at == filepath.Dir(at) {
			return facts, nil
		}
	}
}
