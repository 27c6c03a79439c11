// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// put makes files below dir: text by path, a directory where the path ends in
// a slash, a link where the text begins with "-> ".
func put(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch to, link := strings.CutPrefix(text, "-> "); {
		case strings.HasSuffix(name, "/"):
			err = errors.Join(err, os.MkdirAll(path, 0o755))
		case link:
			err = errors.Join(err, os.Symlink(to, path))
		default:
			err = errors.Join(err, os.WriteFile(path, []byte(text), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// tree reads back what put makes, with modes that are not the usual ones.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch {
		case e.IsDir():
			got[rel+"/"] = ""
		case e.Type()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			got[rel] = "-> " + to
		default:
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			got[rel] = string(text)
			if info.Mode() != 0o644 {
				got[rel] += fmt.Sprintf(" (%v)", info.Mode())
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func root(t testing.TB) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestCopyIn(t *testing.T) {
	t.Parallel()
	sub, scratch := t.TempDir(), root(t)
	put(t, sub, map[string]string{
		"prog": "code", "in": "input", "tree/leaf": "l", "tree/deep/er": "e", "tree/link": "-> leaf", "tree/up": "-> ..", "tree/empty/": "",
		"contents/one": "1", "contents/two/three": "3", "alias": "-> in", "secret": "s",
	})
	if err := errors.Join(os.Chmod(filepath.Join(sub, "prog"), 0o640), os.Chmod(filepath.Join(sub, "secret"), 0o4400)); err != nil {
		t.Fatal(err)
	}
	old := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(sub, "in"), old, old); err != nil {
		t.Fatal(err)
	}
	in, err := InputOf(parse(t, "Cmd = \"prog\"\nIn = \"in\"\nTransferInput = \"tree,contents/,alias,secret,in\"\n"), sub)
	if err != nil {
		t.Fatal(err)
	}
	got, err := in.CopyIn(t.Context(), scratch)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"prog": "code (-rwxr-x---)", "in": "input", "tree/": "", "tree/leaf": "l", "tree/deep/": "", "tree/deep/er": "e", "tree/link": "l",
		"tree/empty/": "", "one": "1", "two/": "", "two/three": "3", "alias": "input", "secret": "s (-r--------)",
	}
	if diff := cmp.Diff(want, tree(t, scratch.Name())); diff != "" {
		t.Error(diff)
	}
	if got.Files != 10 || got.Bytes != int64(len("code")+3*len("input")+6) {
		t.Errorf("%+v", got)
	}
	if info, err := scratch.Stat("in"); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("the time of in is %v (%v), want that of the original", info.ModTime(), err)
	}
}

func TestCopyInFailures(t *testing.T) {
	t.Parallel()
	sub := t.TempDir()
	put(t, sub, map[string]string{"there": "x", "dangling": "-> nowhere", "dir/broken": "-> nowhere", "fine": "y"})
	for _, c := range []struct {
		list, path string
		total      int
		is         error
		arrived    []string
	}{
		{"gone,there,also-gone,fine", "gone", 2, fs.ErrNotExist, []string{"there", "fine"}},
		{"dangling", "dangling", 1, fs.ErrNotExist, nil},
		{"dir", "dir/broken", 1, fs.ErrNotExist, nil},
		{"there/", "there", 1, nil, nil},
	} {
		scratch := root(t)
		in, err := InputOf(parse(t, fmt.Sprintf("TransferInput = %q\n", c.list)), sub)
		if err != nil {
			t.Fatal(err)
		}
		_, err = in.CopyIn(t.Context(), scratch)
		var f *Failure
		if !errors.As(err, &f) || f.Path != filepath.Join(sub, c.path) || f.Total != c.total || f.Writing || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %+v", c.list, err)
			continue
		}
		if want := "reading from file " + filepath.Join(sub, c.path) + ": "; !strings.HasPrefix(f.Error(), want) {
			t.Errorf("%s: %v", c.list, f)
		}
		for _, name := range c.arrived {
			if _, err := scratch.Stat(name); err != nil {
				t.Errorf("%s: %s did not arrive: %v", c.list, name, err)
			}
		}
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	sub, scratch := t.TempDir(), root(t)
	put(t, sub, map[string]string{"a": "x"})
	put(t, scratch.Name(), map[string]string{"a": "x"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in := Input{Items: []Item{{Source: filepath.Join(sub, "a"), Name: "a"}}}
	if _, err := in.CopyIn(ctx, scratch); !errors.Is(err, context.Canceled) {
		t.Errorf("CopyIn: %v", err)
	}
}

// What comes back by itself is note 41 of the recorded starter.
func TestCopyOutChanged(t *testing.T) {
	t.Parallel()
	sub, scratch := t.TempDir(), root(t)
	outside := t.TempDir()
	put(t, outside, map[string]string{"secret": "s"})
	put(t, scratch.Name(), map[string]string{"same": "1", "grown": "1", "touched": "1", "mode": "1", ".job.ad": "ad"})
	before, err := List(scratch)
	if err != nil {
		t.Fatal(err)
	}
	put(t, scratch.Name(), map[string]string{
		"grown": "12", "new": "n", ".dot": "d", "empty": "", "link": "-> new", "dangling": "-> nowhere", "up": "-> " + outside + "/secret",
		"dirlink": "-> dir", "dir/x": "x", "_condor_stdout": "out", ".job.ad": "changed",
	})
	later := time.Now().Add(time.Hour)
	if err := errors.Join(
		os.Chtimes(filepath.Join(scratch.Name(), "touched"), later, later),
		os.Chmod(filepath.Join(scratch.Name(), "mode"), 0o755),
		os.Chmod(filepath.Join(scratch.Name(), "new"), 0o4750|fs.ModeSetuid),
	); err != nil {
		t.Fatal(err)
	}
	put(t, sub, map[string]string{"grown": "was here", "elsewhere/": "", "new": "-> elsewhere/target"})
	put(t, sub, map[string]string{"elsewhere/target": "old"})
	out := Output{
		Iwd: sub, Quiet: map[string]bool{".job.ad": true},
		Std: []Std{{Name: "_condor_stdout", Dest: filepath.Join(sub, "elsewhere/out.txt")}},
	}
	got, err := out.CopyOut(t.Context(), scratch, before)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"elsewhere/": "", "elsewhere/out.txt": "out", "grown": "12", "touched": "1", "mode": "1 (-rwxr-xr-x)", ".dot": "d", "empty": "",
		"new": "-> elsewhere/target", "elsewhere/target": "n (-rwxr-x---)", // a link on the submit side is written through
		"link": "n (-rwxr-x---)",
	}
	if diff := cmp.Diff(want, tree(t, sub)); diff != "" {
		t.Error(diff)
	}
	if got.Files != 8 || got.Bytes != int64(len("out")+2+1+1+1+1+1) {
		t.Errorf("%+v", got)
	}
}

func TestCopyOutListed(t *testing.T) {
	t.Parallel()
	sub, scratch := t.TempDir(), root(t)
	put(t, scratch.Name(), map[string]string{"a": "1", "d/x": "2", "d/e/y": "3", "d/l": "-> x", "d/out": "-> /etc/passwd", "unlisted": "4"})
	out, err := OutputOf(parse(t, fmt.Sprintf("TransferOutput = \"a,d,%s/unlisted\"\nTransferOutputRemaps = \"a=b\"\n", scratch.Name())), sub)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.CopyOut(t.Context(), scratch, nil); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"b": "1", "d/": "", "d/x": "2", "d/e/": "", "d/e/y": "3", "d/l": "2", "unlisted": "4"}
	if diff := cmp.Diff(want, tree(t, sub)); diff != "" {
		t.Error(diff)
	}
}

// Named pipes are no files, and nobody waits for who writes to them.
func TestPipesAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	mkfifo, err := exec.LookPath("mkfifo")
	if err != nil {
		t.Skip(err)
	}
	sub, scratch := t.TempDir(), root(t)
	for _, dir := range []string{sub, scratch.Name()} {
		if err := exec.Command(mkfifo, filepath.Join(dir, "pipe")).Run(); err != nil {
			t.Fatal(err)
		}
	}
	put(t, scratch.Name(), map[string]string{"link": "-> pipe"})
	dest := filepath.Join(sub, "out")
	for what, move := range map[string]func() error{
		"standard output": func() error {
			_, err := Output{Std: []Std{{Name: "pipe", Dest: dest}}, Listed: true}.CopyOut(t.Context(), scratch, nil)
			return err
		},
		"a link as standard output": func() error {
			_, err := Output{Std: []Std{{Name: "link", Dest: dest}}, Listed: true}.CopyOut(t.Context(), scratch, nil)
			return err
		},
		"an input file": func() error {
			_, err := Input{Items: []Item{{Source: filepath.Join(sub, "pipe"), Name: "in"}}}.CopyIn(t.Context(), scratch)
			return err
		},
	} {
		done := make(chan error, 1)
		go func() { done <- move() }()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), "not a plain file") {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: the pipe is waited for", what)
		}
	}
}

func TestCopyOutFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list, path string // path with ${SUB} and ${SCRATCH}
		writing    bool
		total      int
		remap      string
	}{
		{"gone,a,gone2", "${SCRATCH}/gone", false, 2, ""},
		{"../x", "../x", false, 1, ""},
		{"/etc/passwd", "/etc/passwd", false, 1, ""},
		{"up", "${SCRATCH}/up", false, 1, ""},
		{"a", "${SUB}/no/dir/a", true, 1, "a = no/dir/a"},
		{"a", "${SUB}/taken", true, 1, "a = taken"},
	} {
		sub, scratch := t.TempDir(), root(t)
		put(t, scratch.Name(), map[string]string{"a": "1", "up": "-> /etc/passwd"})
		put(t, sub, map[string]string{"taken/full": ""})
		out, err := OutputOf(parse(t, fmt.Sprintf("TransferOutput = %q\nTransferOutputRemaps = %q\n", c.list, c.remap)), sub)
		if err != nil {
			t.Fatal(err)
		}
		_, err = out.CopyOut(t.Context(), scratch, nil)
		var f *Failure
		want := strings.NewReplacer("${SUB}", sub, "${SCRATCH}", scratch.Name()).Replace(c.path)
		if !errors.As(err, &f) || f.Path != want || f.Writing != c.writing || f.Total != c.total {
			t.Errorf("%s: %+v, want %s", c.list, err, want)
		}
		for name := range tree(t, sub) {
			if strings.Contains(name, ".part") {
				t.Errorf("%s: %s was left", c.list, name)
			}
		}
	}
}

// The destination is never half a file: it is the old one until the new one is
// whole.
func TestAtomic(t *testing.T) {
	t.Parallel()
	dest := filepath.Join(t.TempDir(), "file")
	put(t, filepath.Dir(dest), map[string]string{"file": "old"})
	f, commit, err := create(dest, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("half"); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(dest); string(text) != "old" {
		t.Errorf("while it is written the file holds %q", text)
	}
	boom := errors.New("boom")
	if err := commit(boom); !errors.Is(err, boom) {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(map[string]string{"file": "old"}, tree(t, filepath.Dir(dest))); diff != "" {
		t.Error(diff)
	}
}

// What is no plain file is written into, not replaced.
func TestSpecialDestination(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(os.DevNull); err != nil {
		t.Skipf("needs a null device: %v", err)
	}
	_, commit, err := create(os.DevNull, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if err := commit(nil); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("the null device is now %v (%v)", info.Mode(), err)
	}
}

func BenchmarkCopyOut(b *testing.B) {
	sub, scratch := b.TempDir(), root(b)
	put(b, scratch.Name(), map[string]string{"_condor_stdout": "o", "_condor_stderr": "e", "result": strings.Repeat("r", 10000)})
	out := Output{Iwd: sub, Std: []Std{{"_condor_stdout", filepath.Join(sub, "out")}, {"_condor_stderr", filepath.Join(sub, "err")}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := out.CopyOut(context.Background(), scratch, nil); err != nil {
			b.Fatal(err)
		}
	}
}
