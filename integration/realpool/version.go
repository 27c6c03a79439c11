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

// version is what condor_version says, which is noted in the test's log. A test
// that compares with HTCondor asks for it before it expects what only newer
// releases do.
func (in Installation) version(tb testing.TB) cedar.Version {
	tb.Helper()
	cmd := exec.Command(filepath.Join(in.Prefix, "bin", "condor_version"))
	cmd.Env = append(append(os.Environ(), in.Env()...), "CONDOR_CONFIG=ONLY_ENV")
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
