// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"strings"
	"testing"
)

func TestParsePoint(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]Point{
		"36 35 98:0 / /mnt1 rw,noatime master:1 - ext4 /dev/root rw,errors=continue":                 {"98:0", "/mnt1", "ext4", "/dev/root"},
		"36 35 254:16 /sub /a\\040b\\134 rw shared:2 master:1 - xfs /dev/mapper/v\\011g rw,prjquota": {"254:16", `/a b\`, "xfs", "/dev/mapper/v\tg"},
		"22 1 0:21 / /proc rw,nosuid - proc proc rw":                                                 {"0:21", "/proc", "proc", "proc"},
		"36 35 98:0 / /end\\04 rw - fuse.sshfs none":                                                 {"98:0", `/end\04`, "fuse.sshfs", "none"},
	} {
		if got, ok := ParsePoint(line); !ok || got != want {
			t.Errorf("%q: %+v, %v", line, got, ok)
		}
	}
	for _, line := range []string{"", "\n", "36 35 98:0 / /mnt rw ext4 /dev/root rw", "36 35 98:0 / - ext4 /dev/root", "36 35 98:0 / /mnt rw - ext4"} {
		if got, ok := ParsePoint(line); ok {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

// A line of mountinfo names the device and the directory with blanks escaped.
func FuzzParsePoint(f *testing.F) {
	f.Add("36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext4 /dev/mapper/vg-a rw,errors=continue")
	f.Add("36 35 98:0 / / rw - ext4 /dev/root rw")
	f.Fuzz(func(t *testing.T, line string) {
		if p, ok := ParsePoint(line); ok && (p.Number == "" || p.Dir == "" || p.Type == "" || p.Source == "" || !strings.Contains(line, " - ")) {
			t.Errorf("%q: %+v", line, p)
		}
	})
}
