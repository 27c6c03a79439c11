// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestParse(t *testing.T) {
	t.Setenv("EXECPOINT_REALPOOL_STORE", "/var/tmp/store")
	for _, tt := range []struct {
		line string // subcommand and arguments
		want string // part of the error; empty for none
	}{
		{"make", ""},
		{"exec -htcondor 23.9 -user tester -- ls -l", ""},
		{"exec", "no command"},
		{"up -with-original extra", `unexpected argument "extra"`},
		{"in condor_q -all", ""},
		{"down -name ../x", `-name "../x": want a file name`},
		{"down -name .x", "does not begin with a dot"},
		{"exec -bind /etc:mnt -- ls", "want SOURCE:TARGET"},
		{"exec -bind /etc:/mnt/etc -- ls", ""},
		{"down -htcondor 25.14", "flag provided but not defined"},
		{"make -store .", "inside the checkout"},
	} {
		t.Run(tt.line, func(t *testing.T) {
			words := strings.Fields(tt.line)
			o, err := parse(io.Discard, words[0], words[1:])
			if got := errorText(err); (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Fatalf("error %q, want %q", got, tt.want)
			}
			if tt.want == "" && o.store != "/var/tmp/store" {
				t.Errorf("store %q", o.store)
			}
		})
	}
}

// Who asks for help has made no mistake.
func TestHelpStatus(t *testing.T) {
	for _, line := range []string{"help", "-h", "up -h", "exec -help"} {
		if status := run(nil, io.Discard, io.Discard, strings.Fields(line)); status != 0 {
			t.Errorf("%s: status %d", line, status)
		}
	}
	if status := run(nil, io.Discard, io.Discard, []string{"up", "-x"}); status != 2 {
		t.Errorf("up -x: status %d", status)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestDefaultStore(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		uid  int
		env  map[string]string
		want string // empty for an error
	}{
		{0, map[string]string{"HOME": "/x"}, "/var/cache/execpoint-realpool"},
		{0, map[string]string{"EXECPOINT_REALPOOL_STORE": "/s"}, "/s"},
		{7, map[string]string{"HOME": "/h", "XDG_CACHE_HOME": "/c"}, "/c/execpoint-realpool"},
		{7, map[string]string{"HOME": "/h", "XDG_CACHE_HOME": "relative"}, "/h/.cache/execpoint-realpool"},
		{7, nil, ""},
	} {
		got, err := defaultStore(func(name string) string { return tt.env[name] }, tt.uid)
		if got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("user %d with %v: %q, %v; want %q", tt.uid, tt.env, got, err, tt.want)
		}
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ htcondor, suite, insists string }{
		{"sid", "sid", ""},
		{"trixie", "trixie", ""},
		{"25.14", "sid", "25.14"},
		{"25.14.1", "sid", "25.14.1"},
		{"23.9", "trixie", "23.9"},
		{"25.1", "", ""},
		{"25.140", "", ""},
		{"", "", ""},
	} {
		r, insists, err := choose(tt.htcondor)
		if r.suite != tt.suite || insists != tt.insists || (err != nil) != (tt.suite == "") {
			t.Errorf("%q: %q, %q, %v; want %q, %q", tt.htcondor, r.suite, insists, err, tt.suite, tt.insists)
		}
	}
	for _, tt := range []struct {
		version, insists string
		want             bool
	}{{"25.14.1", "", true}, {"25.14.1", "25.14", true}, {"25.14.1", "25.1", false}, {"25.14.1", "25.14.1", true}, {"26.0.0", "25.14", false}} {
		if got := isVersion(tt.version, tt.insists); got != tt.want {
			t.Errorf("%s is %s: %v", tt.version, tt.insists, got)
		}
	}
}

func TestParseVersion(t *testing.T) {
	t.Parallel()
	got, err := parseVersion("$CondorVersion: 23.9.6 2026-07-12 PackageID: 23.9.6+dfsg-2.1+b10 $\n$CondorPlatform: X86_64-Debian_13 $\n")
	if got != "23.9.6" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"", "23.9.6", "$CondorVersion:"} {
		if got, err := parseVersion(bad); err == nil {
			t.Errorf("%q is taken for version %q", bad, got)
		}
	}
}

// What a machine lacks is told all at once, each with what to do.
func TestMissing(t *testing.T) {
	t.Parallel()
	whole := func(uid int) machine {
		return machine{
			uid: uid, user: "ann",
			look:     func(string) error { return nil },
			readFile: func(string) ([]byte, error) { return []byte("ann:100000:65536\n"), nil },
			try:      func(...string) (string, error) { return "", nil },
		}
	}
	without := func(m machine, programs ...string) machine {
		m.look = func(p string) error {
			if slices.Contains(programs, p) {
				return errors.New("not there")
			}
			return nil
		}
		return m
	}
	for _, tt := range []struct {
		name   string
		m      machine
		making bool
		want   []string // parts, one of each line
	}{
		{"root", whole(0), true, nil},
		{"user", whole(7), true, nil},
		{"no mmdebstrap", without(whole(0), "mmdebstrap"), true, []string{"apt-get install mmdebstrap"}},
		{"no mmdebstrap, and none needed", without(whole(0), "mmdebstrap"), false, nil},
		{"user lacks packages", without(whole(7), "mmdebstrap", "newuidmap"), true, []string{"apt-get install mmdebstrap", "apt-get install uidmap"}},
		{"no unshare", without(whole(0), "unshare", "mmdebstrap"), true, []string{"apt-get install util-linux"}},
		{"no ranges", func() machine {
			m := whole(7)
			m.readFile = func(string) ([]byte, error) { return nil, os.ErrNotExist }
			return m
		}(), false, []string{"no range in /etc/subuid: usermod --add-subuids", "no range in /etc/subgid"}},
		{"no user namespaces", func() machine {
			m := whole(7)
			m.try = func(...string) (string, error) {
				return "unshare: unshare failed: Operation not permitted", errors.New("1")
			}
			return m
		}(), false, []string{"user namespaces are not allowed here (unshare: unshare failed: Operation not permitted)"}},
		{"root without rights", func() machine {
			m := whole(0)
			m.try = func(...string) (string, error) { return "", errors.New("exit status 1") }
			return m
		}(), false, []string{"CAP_SYS_ADMIN"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := tt.m.missing(tt.making)
			if len(got) != len(tt.want) {
				t.Fatalf("%q, want %d", got, len(tt.want))
			}
			for i, part := range tt.want {
				if !strings.Contains(got[i], part) {
					t.Errorf("%q does not say %q", got[i], part)
				}
			}
		})
	}
}

func TestHasRange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"ann:100000:65536\n", true},
		{"bob:100000:65536\n7:165536:65536", true},
		{"bob:100000:65536\n", false},
		{"ann:100000:1000\n", false},
		{"ann:100000\n", false},
		{"ann:100000:many\n", false},
		{"", false},
	} {
		if got := hasRange(tt.text, "ann", 7); got != tt.want {
			t.Errorf("%q: %v", tt.text, got)
		}
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := openStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	want := packages("")
	for i, st := range []stamp{
		{Suite: "sid", HTCondor: "25.14.0", Packages: want, Made: now.Add(-time.Hour), name: "sid-old"},
		{Suite: "sid", HTCondor: "25.14.1", Packages: want, Made: now, name: "sid-new"},
		{Suite: "sid", HTCondor: "25.14.1", Packages: packages("perl, perl"), Made: now.Add(time.Hour), name: "sid-perl"},
		{Suite: "trixie", HTCondor: "23.9.6", Packages: want, Made: now, name: "trixie"},
		{Suite: "trixie", HTCondor: "23.9.5", Packages: packages("perl"), Made: now.Add(-49 * time.Hour), name: "trixie-perl"},
	} {
		text := `{"Suite":"` + st.Suite + `","HTCondor":"` + st.HTCondor + `","Packages":["` + strings.Join(st.Packages, `","`) + `"],"Made":"` + st.Made.Format(time.RFC3339) + `"}`
		if err := errors.Join(os.Mkdir(s.rootDir(st), 0o755), os.WriteFile(s.rootDir(st)+".json", []byte(text), 0o600)); err != nil {
			t.Fatal(i, err)
		}
	}
	for _, tt := range []struct {
		suite, include, insists, want string
	}{
		{"sid", "", "", "sid-new"},
		{"sid", "", "25.14.0", "sid-old"},
		{"sid", "perl", "", "sid-perl"},
		{"sid", "python3", "", ""},
		{"trixie", "", "23.9", "trixie"},
		{"trixie", "", "25.14", ""},
	} {
		st, ok, err := s.find(tt.suite, packages(tt.include), tt.insists)
		if st.name != tt.want || ok != (tt.want != "") || err != nil {
			t.Errorf("%v: %q, %v, %v", tt, st.name, ok, err)
		}
	}

	// An older root directory goes when nothing uses it, and only its like.
	newest, _, _ := s.find("sid", want, "")
	inUse, err := flock(s.rootDir(stamp{name: "sid-old"})+".lock", unix.LOCK_SH, false)
	if err != nil {
		t.Fatal(err)
	}
	left := func() string {
		all, err := s.stamps()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, st := range all {
			names = append(names, st.name)
		}
		return strings.Join(names, " ")
	}
	if err := s.forget(newest, 24*time.Hour); err != nil || left() != "sid-new sid-old sid-perl trixie" {
		t.Errorf("%v; left %s", err, left())
	}
	_ = inUse.Close()
	if err := s.forget(newest, 24*time.Hour); err != nil || left() != "sid-new sid-perl trixie" {
		t.Errorf("%v; left %s", err, left())
	}

	// What has no stamp was never completed; a run without its process is over.
	half := filepath.Join(dir, "roots", ".sid")
	if err := os.MkdirAll(filepath.Join(half, "usr", "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	alive, lock, err := s.newRun("")
	if err != nil {
		t.Fatal(err)
	}
	over, lock2, err := s.newRun("pool")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.newRun("pool"); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second run of a name: %v", err)
	}
	_ = lock2.Close()
	removed, err := s.sweep()
	if err != nil || !slices.Equal(removed, []string{over, half}) {
		t.Errorf("removed %q, %v", removed, err)
	}
	if released(alive, 0) == nil || released(over, 0) != nil {
		t.Error("the lock of a run does not say whether it lasts")
	}
	_ = lock.Close()
	if err := released(alive, 0); err != nil {
		t.Error(err)
	}

	// A stamp that cannot be read is named, not ignored.
	if err := os.WriteFile(filepath.Join(dir, "roots", "x.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.find("sid", want, ""); err == nil || !strings.Contains(err.Error(), "x.json") {
		t.Errorf("a bad stamp: %v", err)
	}
}

// A store that others can write is refused: what is in it is run as root.
func TestStoreOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := openStore(dir); err == nil || !strings.Contains(err.Error(), "only user") {
		t.Errorf("%v", err)
	}
}

func TestPoolConfig(t *testing.T) {
	t.Parallel()
	const binding, original = "SEC_FS_ENFORCE_CHANNEL_BINDING = False", "original.conf"
	for _, tt := range []struct {
		version       string
		with          bool
		older, second bool
	}{{"25.14.1", false, false, false}, {"25.14.1", true, false, true}, {"23.9.6", true, true, true}, {"25.10.2", false, true, false}, {"26.0.0", false, false, false}} {
		text := poolConfig(stamp{HTCondor: tt.version}, tt.with)
		if strings.Contains(text, binding) != tt.older || strings.Contains(text, original) != tt.second || !strings.Contains(text, "LIBEXEC = /usr/libexec/condor\n") {
			t.Errorf("%v:\n%s", tt, text)
		}
	}
}

func TestLookIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "program"), nil, 0o755), os.WriteFile(filepath.Join(dir, "text"), nil, 0o644), os.Mkdir(filepath.Join(dir, "folder"), 0o755)); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=/", "PATH=/nowhere:" + dir}
	for program, want := range map[string]string{"program": filepath.Join(dir, "program"), "/any/path": "/any/path", "text": "", "folder": "", "absent": ""} {
		got, err := lookIn(env, program)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", program, got, err)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "usage: realpool"},
		{[]string{"fly"}, `no command "fly"`},
		{[]string{"inside"}, "only realpool itself"},
		{[]string{"make", "extra"}, "unexpected argument"},
	} {
		var stderr bytes.Buffer
		if code := run(nil, io.Discard, &stderr, tt.args); code != 2 || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%q: %d, %s", tt.args, code, &stderr)
		}
	}
}
