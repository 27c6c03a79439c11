// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package realpool

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
)

// Version is that of the real programs under a prefix, as condor_version tells
// it, and is noted in the test's log. A test that compares with what they do
// asks it before it expects what only newer ones do.
func Version(tb testing.TB, prefix string) cedar.Version {
	tb.Helper()
	cmd := exec.Command(filepath.Join(prefix, "bin", "condor_version"))
	lib := filepath.Join(prefix, "lib")
	cmd.Env = append(os.Environ(), "CONDOR_CONFIG=ONLY_ENV", "LD_LIBRARY_PATH="+lib+":"+filepath.Join(lib, "condor"))
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("condor_version: %v", err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	version, ok := cedar.ParseVersion(strings.TrimSpace(line))
	if !ok {
		tb.Fatalf("condor_version says %q", line)
	}
	tb.Logf("HTCondor %v", version)
	return version
}

// Older returns what the configuration of a pool of that version needs besides,
// for ours to stand in it. Servers before these releases do not show by the
// name of the directory that they ask for in FS to whom a client is connected,
// and no client since then, ours or the original's, makes it unless it is told to.
func Older(v cedar.Version) string {
	switch {
	case v.AtLeast(25, 11, 1), v.Major == 25 && v.Minor == 0 && v.Patch >= 12,
		v.Major == 24 && (v.Minor == 0 || v.Minor == 12) && v.Patch >= 22:
		return ""
	}
	return "SEC_FS_ENFORCE_CHANNEL_BINDING = False\n"
}
