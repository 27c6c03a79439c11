// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package idle

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/machine/proctext"
	"github.com/execpoint/execpoint/platform/linux"
)

const start = 1_800_000_000

// desk is a machine in a directory, at a time that the test moves.
type desk struct {
	t     testing.TB
	root  linux.Root
	clock *clock.Fake
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	d := &desk{t: t, root: linux.RootAt(t.TempDir()), clock: clock.NewFake(time.Unix(start, 0))}
	for _, dir := range []string{d.root.Dev + "/pts", d.root.Run} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// used makes the file below /dev if need be and sets when it was last read and
// written, in seconds before the start; negative is after it.
func (d *desk) used(name string, read, written int64) {
	d.t.Helper()
	d.usedPath(filepath.Join(d.root.Dev, name), read, written)
}

func (d *desk) usedPath(path string, read, written int64) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		d.t.Fatal(err)
	}
	f.Close()
	if err := os.Chtimes(path, time.Unix(start-read, 0), time.Unix(start-written, 0)); err != nil {
		d.t.Fatal(err)
	}
}

// logins writes utmp anew; its times differ from those before.
func (d *desk) logins(lines ...string) {
	d.t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		d.t.Fatal(err)
	}
	size := proctext.UtmpRecordSize(unix.ByteSliceToString(u.Machine[:]))
	var text []byte
	for _, line := range lines {
		rec := make([]byte, size)
		const userProcess = 7
		binary.NativeEndian.PutUint16(rec, userProcess)
		copy(rec[8:40], line)
		text = append(text, rec...)
	}
	path := filepath.Join(d.root.Run, "utmp")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		d.t.Fatal(err)
	}
	at := d.clock.Now().Wall
	if err := os.Chtimes(path, at, at); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) irq(number, actions, counts string) {
	d.t.Helper()
	dir := filepath.Join(d.root.Sys, "kernel/irq", number)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		d.t.Fatal(err)
	}
	for name, text := range map[string]string{"actions": actions, "per_cpu_count": counts} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644); err != nil {
			d.t.Fatal(err)
		}
	}
}

// want checks the idle times; never stands for the time since 1970.
const never = time.Duration(-1)

func (d *desk) want(w *Watcher, step string, keyboard, console time.Duration) {
	d.t.Helper()
	now := d.clock.Now()
	got, err := w.Idle(now)
	if err != nil {
		d.t.Errorf("%s: %v", step, err)
	}
	for _, p := range []*time.Duration{&keyboard, &console} {
		if *p == never {
			*p = machine.NeverUsed(now)
		}
	}
	if got.Keyboard != keyboard || got.Console != console {
		d.t.Errorf("%s: keyboard %v, console %v, want %v, %v", step, got.Keyboard, got.Console, keyboard, console)
	}
	if got.Keyboard > got.Console {
		d.t.Errorf("%s: keyboard %v is above console %v", step, got.Keyboard, got.Console)
	}
}

// row: S1-006
func TestLogins(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.used("tty1", 600, 5)
	d.used("pts/0", 40, 1)
	d.used("pts/7", 3, 3) // nobody's
	d.used("console", 7200, 7200)
	d.logins("tty1", "pts/0", "pts/0", ":0")
	w := New(d.root, Options{ConsoleDevices: []string{"mouse", "console"}})
	d.want(w, "two logins; only reading counts", 40*time.Second, 2*time.Hour)

	d.clock.Advance(20 * time.Second)
	d.want(w, "time goes by", 60*time.Second, 2*time.Hour+20*time.Second)

	d.used("tty1", -20, 0)
	d.want(w, "a key on tty1", 0, 2*time.Hour+20*time.Second)

	d.clock.Advance(10 * time.Second)
	d.used("console", -30, 0)
	d.want(w, "the console is a keyboard too", 0, 0)

	// Everybody goes home: the time counts on from the last key, and neither
	// a jump of the wall clock nor a terminal that is nobody's changes that.
	d.clock.Advance(5 * time.Second)
	d.logins()
	w.console = nil
	d.want(w, "last logout", 15*time.Second, never)
	d.clock.JumpWall(-time.Hour)
	d.want(w, "wall clock set back", 15*time.Second, never)
	d.clock.Advance(time.Minute)
	d.clock.JumpWall(48 * time.Hour)
	d.want(w, "wall clock set forward", 75*time.Second, never)

	d.used("pts/7", -3600*47, 0)
	d.logins("pts/7")
	d.want(w, "somebody comes", 95*time.Second, never)
}

func TestTimesInTheFuture(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.used("tty1", -500, 0)
	d.logins("tty1", "pts/9")
	d.want(New(d.root, Options{}), "used in the future is used now", 0, never)
}

func TestNobodyEver(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.logins()
	w := New(d.root, Options{ConsoleDevices: []string{"mouse", " ", ""}})
	d.want(w, "no device is there", never, never)
	got, err := w.Idle(d.clock.Now())
	if err != nil || !got.HasConsole || got.Console != start*time.Second {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = New(d.root, Options{ConsoleDevices: []string{"  "}}).Idle(d.clock.Now())
	if err != nil || got.HasConsole {
		t.Errorf("without a device there is no console: %+v, %v", got, err)
	}
	d.used("mouse", start, start) // read at time 0: never
	d.want(w, "a device that was never read", never, never)
}

func TestWithoutUtmp(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.used("tty9", 10, 10) // a console that nobody has opened
	d.used("ttyS0", 5, 5)
	d.used("pts/ptmx", 1, 1)
	w := New(d.root, Options{})
	d.want(w, "nobody is there", never, never)
	d.used("tty2", 300, 300)
	d.used("vcs2", 0, 0)
	d.used("vcsa2", 0, 0)
	d.want(w, "a console in use", 300*time.Second, never)
	d.used("pts/3", 90, 2)
	d.want(w, "a pseudo-terminal", 90*time.Second, never)
	if err := os.Remove(filepath.Join(d.root.Dev, "pts/3")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(d.root.Dev, "vcs2")); err != nil {
		t.Fatal(err)
	}
	d.clock.Advance(time.Second)
	d.want(w, "both gone; the last use is remembered", 91*time.Second, never)
	d.used("pts/3", 50, 50)
	d.logins("tty9")
	d.want(w, "utmp is back", 11*time.Second, never)
}

// row: S4-032
func TestEveryTerminal(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.used("tty1", 600, 1)
	d.used("ttyp3", 70, 1)
	d.used("ptyq0", 900, 1)
	d.used("video0", 1, 1)
	d.logins("tty1")
	d.want(New(d.root, Options{}), "utmp is trusted", 600*time.Second, never)
	w := New(d.root, Options{EveryTerminal: true})
	d.want(w, "all tty and pty devices", 70*time.Second, never)
	d.used("pts/4", 8, 1)
	d.want(w, "all pseudo-terminals", 8*time.Second, never)
	d.used("ttyUSB0", 6, 1)
	d.want(w, "a new device", 6*time.Second, never)
}

// row: S4-033
func TestConsoleDevices(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.logins()
	stand := filepath.Join(t.TempDir(), "keyboard")
	w := New(d.root, Options{ConsoleDevices: []string{"mouse", "/dev/input/mice", stand}})
	d.want(w, "none is there", never, never)
	d.used("mouse", 500, 3)
	d.want(w, "a name below /dev; writing does not count", 500*time.Second, 500*time.Second)
	d.used("input/mice", 400, 400)
	d.want(w, "the prefix /dev/ is dropped", 400*time.Second, 400*time.Second)
	d.usedPath(stand, 300, 350)
	d.want(w, "a stand-in, read last", 300*time.Second, 300*time.Second)
	d.usedPath(stand, 300, 20)
	d.want(w, "a stand-in, touched last", 20*time.Second, 20*time.Second)
	d.clock.Advance(10 * time.Second)
	d.used("mouse", -10, 0)
	d.want(w, "the mouse moves", 0, 0)
}

func TestConsoleDevicePaths(t *testing.T) {
	t.Parallel()
	root := linux.RootAt("/m")
	for entry, want := range map[string]device{
		"mouse":            {path: "/m/dev/mouse"},
		"input/mice":       {path: "/m/dev/input/mice"},
		"/dev/input/mice":  {path: "/m/dev/input/mice"},
		"/dev/":            {path: "/dev/", stand: true},
		"/tmp/keyboard":    {path: "/tmp/keyboard", stand: true},
		"./keyboard":       {path: "./keyboard", stand: true},
		"../keys/keyboard": {path: "../keys/keyboard", stand: true},
		"a/../../mem":      {path: "/m/mem"},
	} {
		if got := consoleDevice(root, entry); got != want {
			t.Errorf("%s: %+v, want %+v", entry, got, want)
		}
	}
}

func TestOptionsFrom(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		config string
		want   Options
	}{
		{"", Options{ConsoleDevices: []string{"mouse", "console"}}},
		{"CONSOLE_DEVICES = /tmp/keyboard", Options{ConsoleDevices: []string{"/tmp/keyboard"}}},
		{"CONSOLE_DEVICES = a b,c\nSTARTD_HAS_BAD_UTMP = True", Options{ConsoleDevices: []string{"a", "b", "c"}, EveryTerminal: true}},
	} {
		snap, err := config.Parse("ep.conf", tt.config, config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := OptionsFrom(snap)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%q: %v %s", tt.config, err, diff)
		}
	}
	snap, err := config.Parse("ep.conf", "STARTD_HAS_BAD_UTMP = often", config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OptionsFrom(snap); err == nil || !strings.Contains(err.Error(), "ep.conf:1") {
		t.Errorf("%v", err)
	}
}

func TestInterrupts(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.logins()
	d.irq("1", "i8042", "9,1")
	d.irq("12", "psmouse", "4,0")
	d.irq("24", "ahci[0000:00:1f.2]", "77,0")
	w := New(d.root, Options{ConsoleDevices: []string{"mouse"}})
	d.want(w, "the counters are learnt", never, never)
	d.irq("24", "ahci[0000:00:1f.2]", "99,0")
	d.clock.Advance(time.Minute)
	d.want(w, "the disk is no keyboard", never, never)
	d.irq("1", "i8042", "9,2")
	d.want(w, "a key", 0, 0)
	d.clock.Advance(time.Minute)
	d.want(w, "a minute later", time.Minute, time.Minute)
	d.clock.JumpWall(-time.Hour)
	d.want(w, "whatever the clock on the wall says", time.Minute, time.Minute)
	d.irq("12", "psmouse", "0,0")
	d.want(w, "the mouse was plugged in anew", 0, 0)
	if err := os.RemoveAll(filepath.Join(d.root.Sys, "kernel/irq/12")); err != nil {
		t.Fatal(err)
	}
	d.clock.Advance(time.Second)
	d.want(w, "and taken away", time.Second, time.Second)

	if w := New(d.root, Options{}); len(w.irqs) != 0 {
		t.Error("without console devices interrupts are not watched")
	}
	d.irq("1", "i8042", "many")
	if _, err := w.Idle(d.clock.Now()); err == nil || !strings.Contains(err.Error(), "irq/1/per_cpu_count") {
		t.Errorf("a broken counter: %v", err)
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root can read everything")
	}
	d := newDesk(t)
	d.used("pts/0", 30, 30)
	d.logins("pts/0")
	if err := os.Chmod(filepath.Join(d.root.Run, "utmp"), 0); err != nil {
		t.Fatal(err)
	}
	got, err := New(d.root, Options{}).Idle(d.clock.Now())
	if !errs.Is(err, errs.Denied) || got.Keyboard != 30*time.Second {
		t.Errorf("%+v, %v; want the pseudo-terminals and an error of kind denied", got, err)
	}
}

// The null device and its kin are no keyboards, whatever is read from them.
func TestNullIsNoKeyboard(t *testing.T) {
	t.Parallel()
	root := linux.DefaultRoot()
	w := New(root, Options{ConsoleDevices: []string{"null", "zero"}})
	if !w.hasNull {
		t.Skip("this machine has no null device")
	}
	w.irqs = nil
	w.terminals.root = linux.RootAt(t.TempDir())
	now := linux.Clock().Now()
	if got, err := w.Idle(now); err != nil || got.Console != machine.NeverUsed(now) || got.Keyboard != got.Console {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestThisMachine(t *testing.T) {
	t.Parallel()
	c := linux.Clock()
	w := New(linux.DefaultRoot(), Options{ConsoleDevices: []string{"mouse", "console"}})
	for range 2 {
		now := c.Now()
		got, err := w.Idle(now)
		if err != nil || got.Keyboard < 0 || got.Keyboard > got.Console || got.Console > machine.NeverUsed(now)+time.Second {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func benchmarkIdle(b *testing.B, d *desk, o Options) {
	w := New(d.root, o)
	now := d.clock.Now()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Idle(now); err != nil {
			b.Fatal(err)
		}
	}
}

// A desktop: two logins, console devices, a keyboard interrupt, 64 consoles.
func busyDesk(b *testing.B) *desk {
	d := newDesk(b)
	for n := range 64 {
		d.used("tty"+string(rune('A'+n/8))+string(rune('0'+n%8)), 100, 100)
	}
	d.used("pts/0", 9, 9)
	d.used("pts/1", 9, 9)
	d.used("console", 50, 50)
	d.irq("1", "i8042", "1,2,3,4,5,6,7,8")
	return d
}

func BenchmarkIdleUtmp(b *testing.B) {
	d := busyDesk(b)
	d.logins("pts/0", "pts/1")
	benchmarkIdle(b, d, Options{ConsoleDevices: []string{"mouse", "console"}})
}

func BenchmarkIdleWithoutUtmp(b *testing.B) {
	benchmarkIdle(b, busyDesk(b), Options{ConsoleDevices: []string{"mouse", "console"}})
}

func BenchmarkIdleEveryTerminal(b *testing.B) {
	benchmarkIdle(b, busyDesk(b), Options{ConsoleDevices: []string{"mouse", "console"}, EveryTerminal: true})
}
