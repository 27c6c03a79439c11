// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package realpool

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
)

// Installation is an HTCondor of this machine: one that was built and installed
// under a prefix, or a distribution's package.
type Installation struct {
	Prefix  string // RELEASE_DIR
	Lib     string // LIB
	Libexec string // LIBEXEC
	Version cedar.Version
}

// Find finds the installation whose programs are in PATH. Without one the test
// ends as Missing says.
func Find(tb testing.TB) Installation {
	tb.Helper()
	path, err := exec.LookPath("condor_collector")
	if err != nil {
		path, err = exec.LookPath("condor_ping") // the others are where it is
	}
	if err != nil {
		Missing(tb, "HTCondor is not here: neither condor_collector nor condor_ping is in PATH", "install the package condor of Debian, or add HTCondor's bin and sbin to PATH")
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		tb.Fatal(err)
	}
	prefix := filepath.Dir(filepath.Dir(path))
	in := Installation{
		Prefix:  prefix,
		Lib:     holder("condor_ssh_to_job_sshd_config_template", filepath.Join(prefix, "lib")),
		Libexec: holder("condor_shared_port", filepath.Join(prefix, "libexec")),
	}
	in.Version = in.version(tb)
	return in
}

// holder is the directory that has a file: dir, or its subdirectory condor,
// where packages have what only HTCondor uses.
func holder(name, dir string) string {
	packaged := filepath.Join(dir, "condor")
	if _, err := os.Stat(filepath.Join(packaged, name)); err == nil {
		return packaged
	}
	return dir
}

// knobs are lines of configuration that tell daemons where everything is. The
// defaults suit only an installation under one prefix.
func (in Installation) knobs() string {
	return fmt.Sprintf("RELEASE_DIR = %s\nLIB = %s\nLIBEXEC = %s\n", in.Prefix, in.Lib, in.Libexec)
}

// Program is the path of a program of HTCondor's, or "" if there is none of that
// name.
func (in Installation) Program(name string) string {
	for _, dir := range []string{filepath.Join(in.Prefix, "bin"), filepath.Join(in.Prefix, "sbin"), in.Libexec} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// Library is the path of a library that HTCondor loads by name, or "" if there
// is none. Debian has those beside all others, not in LIB.
func (in Installation) Library(name string) string {
	for _, dir := range []string{in.Lib, filepath.Join(in.Prefix, "lib")} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// Env is what programs of HTCondor need in their environment to start.
func (in Installation) Env() []string {
	lib := filepath.Join(in.Prefix, "lib")
	return []string{
		"PATH=" + filepath.Join(in.Prefix, "bin") + ":" + filepath.Join(in.Prefix, "sbin") + ":" + os.Getenv("PATH"),
		"LD_LIBRARY_PATH=" + lib + ":" + filepath.Join(lib, "condor"),
	}
}
