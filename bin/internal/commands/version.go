// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"io"
	"runtime"
)

// Version is that of this project.
const Version = "0.1.0"

// behavesAs is config.Version. The small programs do without the packages of the
// configuration language; a test holds the two together.
const behavesAs = "25.14.0"

// CondorVersion is how every program names itself to programs that look for
// HTCondor's words: the version of HTCondor that it behaves as, and its own.
const CondorVersion = "$CondorVersion: " + behavesAs + " execpoint-" + Version + " $"

// PrintVersion answers -version, in the two lines of HTCondor's programs, and
// returns the status to exit with.
func PrintVersion(w io.Writer) int {
	if _, err := fmt.Fprintf(w, "%s\n%s\n", CondorVersion, platform(runtime.GOARCH, runtime.GOOS)); err != nil {
		return No
	}
	return OK
}

// platform is what the program was built for, in HTCondor's words for machines
// and systems.
func platform(arch, system string) string {
	for _, name := range [...]*string{&arch, &system} {
		if theirs, ok := map[string]string{"amd64": "X86_64", "arm64": "aarch64", "linux": "Linux", "windows": "Windows", "darwin": "macOS"}[*name]; ok {
			*name = theirs
		}
	}
	return fmt.Sprintf("$CondorPlatform: %s-%s $", arch, system)
}
