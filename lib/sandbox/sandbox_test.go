// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// census is a machine on which the processes in alive run.
type census struct {
	boot     string
	alive    map[int]uint64 // start time by pid
	killed   []host.Remains
	left     int
	failing  error
	suspects []string
}

func (c *census) Self() host.ProcID { return host.ProcID{PID: 1, Start: 1} }
func (c *census) Boot() string      { return c.boot }
func (c *census) Alive(p host.ProcID) bool {
	start, ok := c.alive[p.PID]
	return ok && start == p.Start
}
func (c *census) Running(pid int) bool { _, ok := c.alive[pid]; return ok }
func (c *census) KillRemains(r host.Remains) (int, error) {
	c.killed = append(c.killed, r)
	return c.left, c.failing
}

func (c *census) Suspects(r host.Remains, dir string) ([]string, error) {
	return c.suspects, nil
}

func create(t *testing.T, execute string, starter host.ProcID) *Sandbox {
	t.Helper()
	s, err := Create(Spec{Execute: execute, Starter: starter, Mode: Mode("")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// The layout is note 38 of the recorded starter.
func TestLayout(t *testing.T) {
	t.Parallel()
	execute := t.TempDir()
	s := create(t, execute, host.ProcID{PID: 4711, Start: 9})
	if err := s.WriteAds("A = 1\n", "B = 2\n"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"C = 3\n", "C = 4\n"} {
		if err := s.WriteUpdateAd(text); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(s.Dir(), "htcondor/.update.ad")); string(text) != "C = 4\n" {
		t.Errorf("%q, %v", text, err)
	}
	got := map[string]string{}
	err := filepath.WalkDir(execute, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == execute {
			return err
		}
		info, err := e.Info()
		rel, _ := filepath.Rel(execute, path)
		got[rel] = info.Mode().String()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"dir_4711": "drwxr-xr-x", "dir_4711/htcondor": "drwxr-xr-x", "dir_4711/user": "drwx------", "dir_4711/scratch": "drwx------",
		"dir_4711/htcondor/.update.ad": "-rw-r--r--", "dir_4711/scratch/.job.ad": "-r--r--r--", "dir_4711/scratch/.machine.ad": "-r--r--r--",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if s.Scratch() != filepath.Join(execute, "dir_4711/scratch") || s.User() != filepath.Join(execute, "dir_4711/user") || s.Dir() != filepath.Join(execute, "dir_4711") {
		t.Errorf("paths %s, %s, %s", s.Scratch(), s.User(), s.Dir())
	}
}

// TestOwner gives the job's directories away, or leaves none when it may not.
func TestOwner(t *testing.T) {
	t.Parallel()
	execute := t.TempDir()
	s, err := Create(Spec{Execute: execute, Starter: host.ProcID{PID: 4711, Start: 9}, Mode: Mode(""), Owner: &host.Identity{Name: "somebody", UID: 61234, GID: 61235}})
	if os.Geteuid() != 0 {
		if entries, derr := os.ReadDir(execute); !errs.Is(err, errs.Denied) || derr != nil || len(entries) != 0 {
			t.Errorf("%v; left are %v, %v", err, entries, derr)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.WriteAds("A = 1\n", "B = 2\n"), s.Remove()); err != nil {
		t.Error(err)
	}
}

func TestMode(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]fs.FileMode{"user": 0o700, "group": 0o750, "World ": 0o755, "bogus": 0o700, "": 0o700} {
		if got := Mode(word); got != want {
			t.Errorf("Mode(%q) = %v, want %v", word, got, want)
		}
	}
}

// An old sandbox of a pid that came round again is replaced.
func TestCreateReplaces(t *testing.T) {
	t.Parallel()
	execute := t.TempDir()
	old := filepath.Join(execute, "dir_7/scratch/old")
	if err := os.MkdirAll(old, 0o755); err != nil {
		t.Fatal(err)
	}
	create(t, execute, host.ProcID{PID: 7, Start: 1})
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old content is still there: %v", err)
	}
}

func TestCreateSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	execute := filepath.Join(t.TempDir(), "nothing")
	_, err := Create(Spec{Execute: execute, Starter: host.ProcID{PID: 7}})
	if !errs.Is(err, errs.NotFound) || !strings.Contains(err.Error(), "EXECUTE "+execute) {
		t.Errorf("%v", err)
	}
}

// Whatever a job does to its directories they can be removed, and a link that
// leads out is removed, not followed.
func TestRemove(t *testing.T) {
	t.Parallel()
	execute, outside := t.TempDir(), t.TempDir()
	precious := filepath.Join(outside, "precious")
	if err := os.WriteFile(precious, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := create(t, execute, host.ProcID{PID: 7, Start: 1})
	locked := filepath.Join(s.Scratch(), "a/b")
	if err := os.MkdirAll(locked, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(locked, "f"), nil, 0o000),
		os.Symlink(outside, filepath.Join(s.Scratch(), "out")),
		os.Chmod(locked, 0o000), os.Chmod(filepath.Dir(locked), 0o500),
	); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(execute); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("a file outside is gone: %v", err)
	}
	if err := s.Remove(); err != nil {
		t.Errorf("removing again: %v", err)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	s := create(t, t.TempDir(), host.ProcID{PID: 7, Start: 1})
	if err := errors.Join(
		os.MkdirAll(filepath.Join(s.Scratch(), "d/e"), 0o755),
		os.WriteFile(filepath.Join(s.Scratch(), "a"), make([]byte, 1025), 0o644),
		os.WriteFile(filepath.Join(s.Scratch(), "d/e/b"), make([]byte, 1), 0o644),
		os.WriteFile(filepath.Join(s.Scratch(), "empty"), nil, 0o644),
		os.Symlink("/dev/zero", filepath.Join(s.Scratch(), "link")),
	); err != nil {
		t.Fatal(err)
	}
	if got, want := s.Usage(), (Usage{KiB: 3, Files: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A job may make directories, and directories in directories, for as long as it
// likes: a measurement of them ends, and says that it saw a part.
func TestUsageIsBounded(t *testing.T) {
	t.Parallel()
	s := create(t, t.TempDir(), host.ProcID{PID: 7, Start: 1})
	for _, name := range []string{"1", "2", "3", "3/4", "3/5", "6"} {
		if err := os.Mkdir(filepath.Join(s.Scratch(), name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for left, cut := range map[int]bool{5: true, 6: false, 7: false} {
		w := walk{left: left}
		if w.dir(s.scratch, ".", 0); w.Cut != cut {
			t.Errorf("a look at %d of 6 directories is cut: %v", left, w.Cut)
		}
	}
	deep, err := s.scratch.OpenRoot("6")
	for i := 0; i < maxDeep+10 && err == nil; i++ {
		var next *os.Root
		if err = deep.Mkdir("d", 0o755); err == nil {
			next, err = deep.OpenRoot("d")
		}
		deep.Close()
		deep = next
	}
	if err != nil {
		t.Fatal(err)
	}
	defer deep.Close()
	if err := deep.WriteFile("bottom", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if u := s.Usage(); !u.Cut || u.Files != 0 {
		t.Errorf("%+v", u)
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	s := create(t, t.TempDir(), host.ProcID{PID: 7, Start: 1})
	r := Record{Activation: "slot1#1", Slot: "slot1@h", Boot: "b", Starter: host.ProcID{PID: 7, Start: 1}, Group: "g", Marker: "m=1"}
	for _, job := range []host.ProcID{{}, {PID: 8, Start: 2}} {
		r.Job = job
		if err := s.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(s.Dir(), ownDir, recordFile))
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseRecord(text)
	r.Version = 1
	if diff := cmp.Diff(r, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	// cut off in the middle of the last line: the one before counts
	got, err = ParseRecord(text[:len(text)-5])
	if err != nil || !got.Job.IsZero() || got.Activation != "slot1#1" {
		t.Errorf("%+v, %v", got, err)
	}
	want := host.Remains{Boot: "b", Parent: r.Starter, Main: r.Job, Group: "g", Marker: "m=1"}
	if diff := cmp.Diff(want, r.Remains()); diff != "" {
		t.Error(diff)
	}
}

var badRecords = map[string]errs.Kind{
	"":             errs.NotFound,
	`{"version":1`: errs.NotFound,
	"not json\n":   errs.Broken,
	`{"version":2,"starter":{"pid":1}}` + "\n":  errs.Unsupported,
	`{"version":1}` + "\n":                      errs.Broken,
	`{"version":1,"starter":{"pid":-4}}` + "\n": errs.Broken,
}

func TestBadRecords(t *testing.T) {
	t.Parallel()
	for text, kind := range badRecords {
		if _, err := ParseRecord([]byte(text)); errs.KindOf(err) != kind {
			t.Errorf("%q: %v, want %v", text, err, kind)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	for text := range badRecords {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"version":1,"activation":"a","slot":"s","boot":"b","starter":{"pid":7,"start":1}}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if r, err := ParseRecord(text); err == nil && (r.Version != 1 || r.Starter.PID <= 0) {
			t.Errorf("%+v was accepted", r)
		}
	})
}

// What a sweep does with each kind of directory.
func TestSweep(t *testing.T) {
	t.Parallel()
	execute := t.TempDir()
	c := &census{boot: "now", alive: map[int]uint64{10: 100, 11: 110, 15: 1}, left: 2}
	record := func(pid int, start uint64, boot string, keep bool) {
		s := create(t, execute, host.ProcID{PID: pid, Start: start})
		if err := s.Record(Record{Boot: boot, Starter: host.ProcID{PID: pid, Start: start}, Keep: keep, Marker: "m=1"}); err != nil {
			t.Fatal(err)
		}
	}
	record(10, 100, "now", false)    // lives
	record(11, 1, "now", false)      // pid used again by another
	record(12, 120, "now", false)    // dead
	record(13, 130, "now", true)     // dead, to be kept
	record(14, 140, "before", false) // of another boot
	create(t, execute, host.ProcID{PID: 15, Start: 150})
	create(t, execute, host.ProcID{PID: 16, Start: 160}) // no record: only the pid tells
	for _, other := range []string{"dir_0", "dir_x", "dir_", "other", "dir_99999999999"} {
		if err := os.Mkdir(filepath.Join(execute, other), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	swept, err := Sweeper{Census: c}.Sweep(execute)
	if err != nil {
		t.Fatal(err)
	}
	base := func(paths []string) map[string]bool {
		m := map[string]bool{}
		for _, p := range paths {
			m[filepath.Base(p)] = true
		}
		return m
	}
	for _, w := range []struct {
		what      string
		got, want map[string]bool
	}{
		{"live", base(swept.Live), map[string]bool{"dir_10": true, "dir_15": true}},
		{"removed", base(swept.Removed), map[string]bool{"dir_11": true, "dir_12": true, "dir_14": true, "dir_16": true}},
		{"kept", base(swept.Kept), map[string]bool{"dir_13": true}},
	} {
		if diff := cmp.Diff(w.want, w.got); diff != "" {
			t.Errorf("%s:\n%s", w.what, diff)
		}
	}
	if swept.Killed != 8 || len(c.killed) != 4 {
		t.Errorf("killed %d in %d families", swept.Killed, len(c.killed))
	}
	entries, err := os.ReadDir(execute)
	if err != nil || len(entries) != 3+5 {
		t.Errorf("left are %v (%v)", entries, err)
	}
}

// A record counts only in a directory that nobody else could have written in:
// of what another user made no process is killed, and it is removed only where
// not everybody may make directories.
func TestSweepOfForeignSandboxes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		mode    os.FileMode // of EXECUTE
		foreign string      // what the other user could write in
		killed  int
		removed bool
	}{
		{"ours", 0o755, "", 1, true},
		{"ours, where all may write", 0o777, "", 1, true},
		{"of another user", 0o755, "dir_12", 0, true},
		{"of another user, where all may write", 0o777, "dir_12", 0, false},
		{"ours, the record of another user", 0o755, ownDir, 0, true},
	} {
		theirs := errs.E("test", errs.Denied, tt.foreign, errors.New("it belongs to the user 61234"))
		private := func(dir *os.Root) error {
			if filepath.Base(dir.Name()) == tt.foreign {
				return theirs
			}
			return nil
		}
		starter := host.ProcID{PID: 12, Start: 120}
		for what, f := range map[string]func(string, *census) (Swept, error){
			"Reclaim": func(execute string, c *census) (Swept, error) {
				return Sweeper{Census: c, Private: private}.Reclaim(execute, starter)
			},
			"Sweep": func(execute string, c *census) (Swept, error) {
				return Sweeper{Census: c, Private: private}.Sweep(execute)
			},
		} {
			execute := t.TempDir()
			s := create(t, execute, starter)
			if err := errors.Join(s.Record(Record{Boot: "now", Starter: starter}), os.Chmod(execute, tt.mode)); err != nil {
				t.Fatal(err)
			}
			c := &census{boot: "now", left: 1}
			swept, err := f(execute, c)
			if swept.Killed != tt.killed || len(c.killed) != tt.killed || (len(swept.Removed) == 1) != tt.removed {
				t.Errorf("%s, %s: %+v, %v", tt.name, what, swept, err)
			}
			if !tt.removed && (!errs.Is(err, errs.Denied) || !strings.Contains(err.Error(), "it belongs to the user 61234")) || tt.removed && err != nil {
				t.Errorf("%s, %s: %v", tt.name, what, err)
			}
		}
	}
}

// A family that cannot be killed keeps its sandbox, for it may still write.
func TestSweepFails(t *testing.T) {
	t.Parallel()
	execute := t.TempDir()
	s := create(t, execute, host.ProcID{PID: 12, Start: 120})
	if err := s.Record(Record{Boot: "now", Starter: host.ProcID{PID: 12, Start: 120}}); err != nil {
		t.Fatal(err)
	}
	c := &census{boot: "now", failing: errs.E("proc.KillRemains", errs.Transient, "", errors.New("do not die"))}
	swept, err := Sweeper{Census: c}.Sweep(execute)
	if !errs.Is(err, errs.Transient) || len(swept.Removed) != 0 {
		t.Errorf("%+v, %v", swept, err)
	}
	if swept, err := (Sweeper{Census: c}).Sweep(filepath.Join(execute, "nothing")); err != nil || len(swept.Removed) != 0 {
		t.Errorf("no EXECUTE: %+v, %v", swept, err)
	}
	c.failing = nil
	if swept, err := (Sweeper{Census: c}).Reclaim(execute, host.ProcID{PID: 12, Start: 120}); err != nil || len(swept.Removed) != 1 {
		t.Errorf("Reclaim: %+v, %v", swept, err)
	}
	if swept, err := (Sweeper{Census: c}).Reclaim(execute, host.ProcID{PID: 12, Start: 120}); err != nil || len(swept.Removed) != 0 {
		t.Errorf("Reclaim of nothing: %+v, %v", swept, err)
	}
}

// A record that is a link does not make a sweep read something else.
func TestSweepDoesNotFollowLinks(t *testing.T) {
	t.Parallel()
	execute, outside := t.TempDir(), t.TempDir()
	if err := errors.Join(
		os.Symlink(outside, filepath.Join(execute, "dir_5")),
		os.MkdirAll(filepath.Join(execute, "dir_6", ownDir), 0o755),
		os.Symlink("/etc/passwd", filepath.Join(execute, "dir_6", ownDir, recordFile)),
	); err != nil {
		t.Fatal(err)
	}
	swept, err := Sweeper{Census: &census{}}.Sweep(execute)
	if err != nil || len(swept.Removed) != 1 || filepath.Base(swept.Removed[0]) != "dir_6" {
		t.Errorf("%+v, %v", swept, err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("what a link leads to is gone: %v", err)
	}
}

// A named pipe that somebody left as a record does not hold up the daemon's
// start.
func TestSweepDoesNotWaitForPipes(t *testing.T) {
	t.Parallel()
	mkfifo, err := exec.LookPath("mkfifo")
	if err != nil {
		t.Skip(err)
	}
	execute := t.TempDir()
	own := filepath.Join(execute, "dir_6", ownDir)
	if err := errors.Join(os.MkdirAll(own, 0o755), exec.Command(mkfifo, filepath.Join(own, recordFile)).Run()); err != nil {
		t.Fatal(err)
	}
	done := make(chan int, 1)
	go func() {
		swept, err := Sweeper{Census: &census{}}.Sweep(execute)
		if err != nil {
			t.Error(err)
		}
		done <- len(swept.Removed)
	}()
	select {
	case n := <-done:
		if n != 1 {
			t.Errorf("%d were removed", n)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the pipe is waited for")
	}
}

func BenchmarkSandbox(b *testing.B) {
	execute := b.TempDir()
	b.ReportAllocs()
	for b.Loop() {
		s, err := Create(Spec{Execute: execute, Starter: host.ProcID{PID: 7, Start: 1}, Mode: 0o700})
		if err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(s.WriteAds("A = 1\n", "B = 2\n"), s.Record(Record{Starter: host.ProcID{PID: 7}}), s.Remove()); err != nil {
			b.Fatal(err)
		}
	}
}
