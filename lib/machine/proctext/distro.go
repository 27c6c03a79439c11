// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package proctext

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Distro names a Linux distribution in HTCondor's words (arch.cpp).
type Distro struct {
	LongName string // OpSysLongName: Debian GNU/Linux 12
	Name     string // OpSysName and OpSysShortName: Debian, LINUX when unknown
	MajorVer int    // OpSysMajorVer: 12, 0 when unknown
	Ver      int    // OpSysVer: 1200
	AndVer   string // OpSysAndVer: Debian12
	Source   string // the file below /etc that told, "" when none did
}

// IssueFiles are the files below /etc whose first line may name the
// distribution, in the order in which they are asked.
func IssueFiles() [4]string {
	return [4]string{"issue", "redhat-release", "system-release", "issue.net"}
}

// unknownDistro is what HTCondor calls a distribution it cannot place.
const unknownDistro = "LINUX"

// longest bounds a line that names a distribution, as HTCondor's buffer does.
const longest = 199

// NameDistro picks the distribution. issues are the contents of IssueFiles,
// nil for a file that is not there; osRelease is /etc/os-release or nil. The
// first issue line that holds a known name wins; then PRETTY_NAME; then the
// word Unknown.
func NameDistro(issues [4][]byte, osRelease []byte) Distro {
	var d Distro
	for i, name := range IssueFiles() {
		line := issueLine(issues[i])
		if distroName(line) != unknownDistro {
			d.LongName, d.Source = line, name
			break
		}
	}
	if d.LongName == "" {
		d.LongName, d.Source = prettyName(osRelease), "os-release"
	}
	if d.LongName == "" {
		d.LongName, d.Source = "Unknown", ""
	}
	d.Name = distroName(d.LongName)
	d.MajorVer, d.Ver = version(d.LongName)
	d.AndVer = d.Name + strconv.Itoa(d.MajorVer)
	return d
}

// issueLine returns the first line without trailing blanks, without the
// escapes \n and \l that getty would replace, and without the terminal
// sequences some administrators colour it with, whose digits are no version.
func issueLine(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	s := Printable(withoutSequences(string(line[:min(len(line), longest)])))
	for {
		s = strings.TrimRight(s, " ")
		// Two characters alone are left, whatever they are.
		if len(s) > 2 && (strings.HasSuffix(s, `\n`) || strings.HasSuffix(s, `\l`)) {
			s = s[:len(s)-2]
			continue
		}
		return s
	}
}

// withoutSequences removes the sequences that begin with ESC [ and end with a
// letter or another character from @ on.
func withoutSequences(s string) string {
	var b strings.Builder
	for {
		plain, rest, found := strings.Cut(s, "\x1b[")
		b.WriteString(plain)
		if !found {
			return b.String()
		}
		end := strings.IndexFunc(rest, func(r rune) bool { return r >= '@' && r <= '~' })
		if end < 0 {
			return b.String()
		}
		s = rest[end+1:]
	}
}

// prettyName returns the quoted PRETTY_NAME of an os-release file. HTCondor
// reads only a double-quoted value; single quotes and bare words, which the
// format also allows, are read as well.
func prettyName(text []byte) string {
	for line := range bytes.Lines(text) {
		value, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("PRETTY_NAME="))
		if !ok {
			continue
		}
		s := Printable(string(value[:min(len(value), longest)]))
		if s != "" && (s[0] == '"' || s[0] == '\'') {
			s, _, _ = strings.Cut(s[1:], s[:1])
		}
		return s
	}
	return ""
}

// Printable returns s with every character that a terminal could take for a
// command, and everything that is not UTF-8, replaced by a question mark.
// Tabs become blanks and a carriage return at the end is dropped.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, strings.TrimRight(s, "\r"))
}

func distroName(long string) string {
	s := strings.ToLower(long)
	has := func(words ...string) bool {
		for _, w := range words {
			if !strings.Contains(s, w) {
				return false
			}
		}
		return true
	}
	switch {
	case has("red", "hat"):
		return "RedHat"
	case has("fedora"):
		return "Fedora"
	case has("ubuntu"):
		return "Ubuntu"
	case has("debian"):
		return "Debian"
	case has("scientific", "cern"):
		return "SLCern"
	case has("scientific", "slf"):
		return "SLFermi"
	case has("scientific"):
		return "SL"
	case has("centos"):
		return "CentOS"
	case has("rocky"):
		return "Rocky"
	case has("almalinux"):
		return "AlmaLinux"
	case has("amazon linux"):
		return "AmazonLinux"
	case has("opensuse"):
		return "openSUSE"
	case has("suse"):
		return "SUSE"
	}
	return unknownDistro
}

// version reads the first number of a name as the major version and up to two
// digits after a dot as the minor version: "CentOS 8.2" is 8 and 802.
func version(long string) (major, ver int) {
	if long == "Unknown" {
		return 0, 0
	}
	isDigit := func(i int) bool { return i < len(long) && long[i] >= '0' && long[i] <= '9' }
	i := 0
	for i < len(long) && !isDigit(i) {
		i++
	}
	for ; isDigit(i); i++ {
		if major = major*10 + int(long[i]-'0'); major > 1<<20 {
			return 0, 0
		}
	}
	minor := 0
	if i < len(long) && long[i] == '.' {
		for n := 1; n <= 2 && isDigit(i+n); n++ {
			minor = minor*10 + int(long[i+n]-'0')
		}
	}
	return major, major*100 + minor
}

// Arch turns the kernel's machine word into HTCondor's architecture word. A
// word that HTCondor has no name for, such as aarch64, stays as it is.
func Arch(machine string) string {
	switch machine {
	case "i86pc", "i686", "i586", "i486", "i386":
		return "INTEL"
	case "ia64":
		return "IA64"
	case "x86_64", "amd64":
		return "X86_64"
	case "Power Macintosh", "ppc", "ppc32":
		return "PPC"
	case "ppc64":
		return "PPC64"
	}
	return machine
}
