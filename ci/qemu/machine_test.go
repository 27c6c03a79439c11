// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package qemu

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCgroupsByName(t *testing.T) {
	t.Parallel()
	for _, want := range []Cgroups{V2, V1, Hybrid} {
		if got, err := ParseCgroups(want.String()); got != want || err != nil {
			t.Errorf("%v: %v, %v", want, got, err)
		}
	}
	if _, err := ParseCgroups("v3"); err == nil || !strings.Contains(err.Error(), `"v3": want v2, v1 or hybrid`) {
		t.Errorf("%v", err)
	}
}

// What a command is told comes through the shell as it was.
func TestQuote(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skipf("needs a shell: %v", err)
	}
	for _, text := range []string{"", "plain", "two words", `a'b"c$d`, "`x` \\ \n end", "''", "^Test[^/]*$/^groups=2$"} {
		out, err := exec.Command(sh, "-c", "printf %s "+quote(text)).Output()
		if string(out) != text || err != nil {
			t.Errorf("%q became %q, %v", text, out, err)
		}
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "x.test")
	if err := os.WriteFile(program, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	pack := func(m Machine, c Command) []string {
		t.Helper()
		var b bytes.Buffer
		if err := m.order(&b, c); err != nil {
			t.Fatal(err)
		}
		all := unpack(t, b.Bytes())
		return slices.DeleteFunc(all, func(s string) bool { return strings.HasPrefix(s, "init ") })
	}
	got := pack(Machine{Cgroups: Hybrid, User: Tester, Delegated: true, Systemd: true, Modules: []string{"xfs", "nbd"}, Files: map[string]string{"/b": program, "/a": program}},
		Command{Program: program, Args: []string{"-run", "a b"}, Env: []string{"X=1 2", "Y="}, Dir: "/src/p"})
	want := []string{
		"guest 40755 0:0 ", "guest/order 100644 0:0 cgroups='hybrid'\nuser='tester'\ndelegated='yes'\nmodules='xfs nbd'\nsystemd='yes'\nadded='/a /b'\ndirectory='/src/p'\n",
		"a 100755 0:0 program", "b 100755 0:0 program", "src 40755 0:0 ", "src/p 40755 0:0 ",
		"guest/program 40755 0:0 ", "guest/program/x.test 100755 0:0 program",
		"guest/run 100755 0:0 #!/bin/sh\nexport EXECPOINT_GUEST_INSIDE=hybrid\nexport X='1 2'\nexport Y=''\ncd '/src/p' || exit 126\nexec '/guest/program/x.test' '-run' 'a b'\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = pack(Machine{}, Command{Shell: "echo a\necho b"})
	want = []string{
		"guest 40755 0:0 ", "guest/order 100644 0:0 cgroups='v2'\nuser='root'\ndelegated=''\nmodules=''\nsystemd=''\nadded=''\ndirectory=''\n",
		"guest/run 100755 0:0 #!/bin/sh\nexport EXECPOINT_GUEST_INSIDE=v2\ncd '/' || exit 126\necho a\necho b\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	line := strings.Join(Machine{}.arguments(files{kernel: "K", initrd: "I"}, false), " ")
	for _, want := range []string{"-accel tcg -cpu max", "-smp 1 -m 1024 ", "-kernel K -initrd I "} {
		if !strings.Contains(line, want) {
			t.Errorf("no %q in %s", want, line)
		}
	}
	line = strings.Join(Machine{Memory: 512, CPUs: 2}.arguments(files{system: "S", disks: []string{"D0", "D1"}}, true), " ")
	for _, want := range []string{"-accel kvm -cpu host", "-smp 2 -m 512 ", "-drive file=S,if=none,id=system,format=raw,snapshot=on", "-drive file=D0,if=virtio", "-drive file=D1,if=virtio"} {
		if !strings.Contains(line, want) {
			t.Errorf("no %q in %s", want, line)
		}
	}
}

func TestDefaultStore(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		env  map[string]string
		uid  int
		want string
	}{
		{map[string]string{StoreKnob: "/s", "HOME": "/h"}, 0, "/s"},
		{map[string]string{"HOME": "/h"}, 0, "/var/cache/execpoint-guest"},
		{map[string]string{"HOME": "/h", "XDG_CACHE_HOME": "/c"}, 7, "/c/execpoint-guest"},
		{map[string]string{"HOME": "/h", "XDG_CACHE_HOME": "c"}, 7, "/h/.cache/execpoint-guest"},
		{nil, 7, ""},
	} {
		got, err := defaultStore(func(name string) string { return tt.env[name] }, tt.uid)
		if got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%v: %q, %v", tt, got, err)
		}
	}
}

// What is in the store is run as root, so it is refused where others can write.
func TestStoreOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenStore(dir); err == nil || !strings.Contains(err.Error(), "only user") {
		t.Errorf("%v", err)
	}
}

// A machine that lacks something is told all of it at once, and what to install.
func TestFindTools(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names := []string{emulator, "depmod"}
	for _, p := range inside() {
		names = append(names, p[0])
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("not ELF"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, gone := range []string{"lvm", "mkfs.xfs", "xfs_io"} {
		if err := os.Remove(filepath.Join(dir, gone)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := findTools([]string{"relative", dir})
	var notMade *NotMade
	if !errors.As(err, &notMade) {
		t.Fatalf("%v", err)
	}
	want := NotMade{What: "a guest needs lvm, mkfs.xfs, xfs_io, a busybox without libraries, not found in PATH", Remedy: "apt-get install --no-install-recommends busybox-static lvm2 xfsprogs"}
	if diff := cmp.Diff(want, *notMade); diff != "" {
		t.Error(diff)
	}
}

func TestParseLdd(t *testing.T) {
	t.Parallel()
	const out = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\tlibgone.so => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n"
	if diff := cmp.Diff([]string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"}, parseLdd(out)); diff != "" {
		t.Error(diff)
	}
}

// The newest kernel counts; what was not finished has another name.
func TestKernelOfTheStore(t *testing.T) {
	t.Parallel()
	s, err := OpenStore(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := s.kernel(); ok || err != nil {
		t.Errorf("an empty store has a kernel: %v", err)
	}
	now := time.Now()
	for name, age := range map[string]time.Duration{"kernel-6.1.0-9-cloud-amd64": 0, "kernel-6.1.0-10-cloud-amd64": time.Hour, ".kernel-77": -time.Hour} {
		dir := filepath.Join(s.dir, name)
		if err := errors.Join(os.Mkdir(dir, 0o755), os.Chtimes(dir, now, now.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	if k, ok, err := s.kernel(); !ok || err != nil || k.version != "6.1.0-9-cloud-amd64" {
		t.Errorf("%+v, %t, %v", k, ok, err)
	}
}

// The answer about KVM is for a processor, not for the speed it has just now.
func TestTrialKey(t *testing.T) {
	t.Parallel()
	b := Base{kernel: kernel{version: "6.1"}, emulator: "/q"}
	one := trialKey([]byte("model name\t: A\ncpu MHz\t\t: 2500.1\nflags\t\t: fpu vmx\n"), b)
	if other := trialKey([]byte("model name\t: A\ncpu MHz\t\t: 800.0\nflags\t\t: fpu vmx\n"), b); other != one {
		t.Error("another speed is another processor")
	}
	if other := trialKey([]byte("model name\t: B\ncpu MHz\t\t: 2500.1\nflags\t\t: fpu vmx\n"), b); other == one {
		t.Error("another processor is the same")
	}
	for flags, want := range map[string]bool{"flags : fpu vmx sse": true, "flags\t: svm": true, "flags : fpu svm_lock": false, "bugs : vmx": false} {
		if got := hasVirtual.MatchString("model name : x\n" + flags + "\n"); got != want {
			t.Errorf("%q: %t", flags, got)
		}
	}
}

// Who is in the system already stays as it is.
func TestNewAccounts(t *testing.T) {
	t.Parallel()
	has := "root:x:0:0:root:/:/bin/bash\ngames:x:5:60::/:/bin/sh\n"
	if got, want := newAccounts(has, "root:y\ntester:z\ngame:w\n"), "tester:z\ngame:w\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestKernelWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		m    Machine
		want string
	}{
		{Machine{Cgroups: V1}, ""},
		{Machine{Systemd: true}, " systemd.unit=execpoint.target systemd.show_status=no systemd.unified_cgroup_hierarchy=yes"},
		{Machine{Systemd: true, Cgroups: Hybrid}, " systemd.unit=execpoint.target systemd.show_status=no systemd.unified_cgroup_hierarchy=no"},
		{Machine{Systemd: true, Cgroups: V1}, " systemd.unit=execpoint.target systemd.show_status=no systemd.unified_cgroup_hierarchy=no systemd.legacy_systemd_cgroup_controller=yes"},
	} {
		if got := tt.m.kernelWords(); got != tt.want {
			t.Errorf("%v: %q", tt.m.Cgroups, got)
		}
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	var c tail
	for range 10 * consoleKept / 16 {
		_, _ = c.Write([]byte("0123456789abcd\r\n"))
	}
	_, _ = c.Write([]byte("end"))
	if got := c.String(); len(got) > consoleKept || len(c.text) > 3*consoleKept || !strings.HasSuffix(got, "abcd\nend") {
		t.Errorf("%d of %d bytes, the end %q", len(got), len(c.text), got[len(got)-20:])
	}
}
