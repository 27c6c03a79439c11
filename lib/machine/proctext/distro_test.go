// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package proctext

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

type distroCase struct {
	issues    [4]string // issue, redhat-release, system-release, issue.net; "-" is absent
	osRelease string
	want      Distro
}

func distroCases() []distroCase {
	none := [4]string{"-", "-", "-", "-"}
	issue := func(text string) [4]string { return [4]string{text, "-", "-", "-"} }
	return []distroCase{
		{issue("Debian GNU/Linux 12 \\n \\l\n\n"), "", Distro{"Debian GNU/Linux 12", "Debian", 12, 1200, "Debian12", "issue"}},
		{issue("Ubuntu 22.04.3 LTS \\n \\l\n\n"), "", Distro{"Ubuntu 22.04.3 LTS", "Ubuntu", 22, 2204, "Ubuntu22", "issue"}},
		{issue("Debian GNU/Linux trixie/sid \\n \\l\n"), "", Distro{"Debian GNU/Linux trixie/sid", "Debian", 0, 0, "Debian0", "issue"}},
		{[4]string{"\\S\nKernel \\r on an \\m\n\n", "Red Hat Enterprise Linux release 9.3 (Plow)\n", "Red Hat Enterprise Linux release 9.3 (Plow)\n", "-"}, "",
			Distro{"Red Hat Enterprise Linux release 9.3 (Plow)", "RedHat", 9, 903, "RedHat9", "redhat-release"}},
		{[4]string{"\\S\n", "CentOS Stream release 8\n", "-", "-"}, "", Distro{"CentOS Stream release 8", "CentOS", 8, 800, "CentOS8", "redhat-release"}},
		{[4]string{"\\S\n", "AlmaLinux release 9.2 (Turquoise Kodkod)\n", "-", "-"}, "", Distro{"AlmaLinux release 9.2 (Turquoise Kodkod)", "AlmaLinux", 9, 902, "AlmaLinux9", "redhat-release"}},
		{[4]string{"\\S\n", "Rocky Linux release 8.10 (Green Obsidian)\n", "-", "-"}, "", Distro{"Rocky Linux release 8.10 (Green Obsidian)", "Rocky", 8, 810, "Rocky8", "redhat-release"}},
		{[4]string{"\\S\n", "-", "Amazon Linux release 2 (Karoo)\n", "-"}, "", Distro{"Amazon Linux release 2 (Karoo)", "AmazonLinux", 2, 200, "AmazonLinux2", "system-release"}},
		{issue("\nWelcome to openSUSE Leap 15.5 - Kernel \\r (\\l).\n"), "NAME=\"openSUSE Leap\"\nPRETTY_NAME=\"openSUSE Leap 15.5\"\n", Distro{"openSUSE Leap 15.5", "openSUSE", 15, 1505, "openSUSE15", "os-release"}},
		{issue("Welcome to SUSE Linux Enterprise Server 15 SP5 (x86_64) - Kernel %r (%t).\n"), "", Distro{"Welcome to SUSE Linux Enterprise Server 15 SP5 (x86_64) - Kernel %r (%t).", "SUSE", 15, 1500, "SUSE15", "issue"}},
		{issue("Scientific Linux CERN SLC release 6.9 (Carbon)\n"), "", Distro{"Scientific Linux CERN SLC release 6.9 (Carbon)", "SLCern", 6, 609, "SLCern6", "issue"}},
		{issue("Scientific Linux SLF release 6.9\n"), "", Distro{"Scientific Linux SLF release 6.9", "SLFermi", 6, 609, "SLFermi6", "issue"}},
		{issue("Scientific Linux release 7.9 (Nitrogen)\n"), "", Distro{"Scientific Linux release 7.9 (Nitrogen)", "SL", 7, 709, "SL7", "issue"}},
		{issue("Fedora release 39 (Thirty Nine)\n"), "", Distro{"Fedora release 39 (Thirty Nine)", "Fedora", 39, 3900, "Fedora39", "issue"}},
		{[4]string{"Authorised users only!\n", "-", "-", "Debian GNU/Linux 12\n"}, "", Distro{"Debian GNU/Linux 12", "Debian", 12, 1200, "Debian12", "issue.net"}},
		{issue("Welcome to Alpine Linux 3.18\n"), "NAME=\"Alpine Linux\"\nPRETTY_NAME=\"Alpine Linux v3.18\"\n", Distro{"Alpine Linux v3.18", "LINUX", 3, 318, "LINUX3", "os-release"}},
		{none, "PRETTY_NAME='Arch Linux'\n", Distro{"Arch Linux", "LINUX", 0, 0, "LINUX0", "os-release"}},
		{none, "PRETTY_NAME=Solus\n", Distro{"Solus", "LINUX", 0, 0, "LINUX0", "os-release"}},
		{none, "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n", Distro{"Debian GNU/Linux 13 (trixie)", "Debian", 13, 1300, "Debian13", "os-release"}},
		{none, "", Distro{"Unknown", "LINUX", 0, 0, "LINUX0", ""}},
		{none, "PRETTY_NAME=\"unclosed Debian 9", Distro{"unclosed Debian 9", "Debian", 9, 900, "Debian9", "os-release"}},
		{none, "PRETTY_NAME=\"\n", Distro{"Unknown", "LINUX", 0, 0, "LINUX0", ""}},
		{issue("Debian \xff\xfe 11\n"), "", Distro{"Debian ?? 11", "Debian", 11, 1100, "Debian11", "issue"}},
		{issue("Debian 99999999999999999999\n"), "", Distro{"Debian 99999999999999999999", "Debian", 0, 0, "Debian0", "issue"}},
		{issue("\x1b[H\x1b[2JDebian\tGNU/Linux 12\r\n"), "", Distro{"Debian GNU/Linux 12", "Debian", 12, 1200, "Debian12", "issue"}},
		{issue("\x1b[1;31mDebian\x07 11\x1b[0"), "", Distro{"Debian? 11", "Debian", 11, 1100, "Debian11", "issue"}},
		{issue("\\n\\l\n"), "", Distro{"Unknown", "LINUX", 0, 0, "LINUX0", ""}},
		{issue("Debian 10 " + strings.Repeat("x", 500) + "\n"), "", Distro{"Debian 10 " + strings.Repeat("x", 189), "Debian", 10, 1000, "Debian10", "issue"}},
	}
}

func TestNameDistro(t *testing.T) {
	t.Parallel()
	for _, tt := range distroCases() {
		var issues [4][]byte
		for i, text := range tt.issues {
			if text != "-" {
				issues[i] = []byte(text)
			}
		}
		if diff := cmp.Diff(tt.want, NameDistro(issues, []byte(tt.osRelease))); diff != "" {
			t.Errorf("%.60q, %q: %s", tt.issues, tt.osRelease, diff)
		}
	}
}

func FuzzNameDistro(f *testing.F) {
	for _, tt := range distroCases() {
		f.Add(tt.issues[0], tt.issues[1], tt.osRelease)
	}
	f.Fuzz(func(t *testing.T, issue, release, osRelease string) {
		d := NameDistro([4][]byte{[]byte(issue), []byte(release)}, []byte(osRelease))
		if d.LongName == "" || d.Name == "" || d.AndVer == "" || !utf8.ValidString(d.LongName) || d.MajorVer < 0 || d.Ver/100 != d.MajorVer {
			t.Errorf("%+v", d)
		}
		if strings.ContainsFunc(d.LongName, unicode.IsControl) {
			t.Errorf("a name that no terminal should see: %q", d.LongName)
		}
	})
}

func TestArch(t *testing.T) {
	t.Parallel()
	for machine, want := range map[string]string{"x86_64": "X86_64", "amd64": "X86_64", "i686": "INTEL", "i386": "INTEL", "aarch64": "aarch64",
		"ppc64": "PPC64", "ppc64le": "ppc64le", "ia64": "IA64", "riscv64": "riscv64", "": ""} {
		if got := Arch(machine); got != want {
			t.Errorf("Arch(%s) = %s, want %s", machine, got, want)
		}
	}
}
