// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/execpoint/execpoint/lib/host"
)

// made makes a sandbox of the starter with that pid.
func made(t *testing.T, execute string, pid int) *Sandbox {
	t.Helper()
	s, err := Create(Spec{Execute: execute, Starter: host.ProcID{PID: pid}, Mode: 0o700})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Remove() })
	return s
}

// stage stages files as a catalog and returns the path.
func stage(t *testing.T, s *Sandbox, catalog string, files map[string]string) string {
	t.Helper()
	root, path, err := s.Stage(catalog)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, text := range files {
		if err := errors.Join(root.MkdirAll(filepath.Dir(name), 0o755), root.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Seal(catalog); err != nil {
		t.Fatal(err)
	}
	return path
}

func inode(t *testing.T, path string) fs.FileInfo {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// Files that one starter has staged are in the scratch directory of another, as links
// or as copies, and count in one of the two.
func TestMap(t *testing.T) {
	t.Parallel()
	for _, copies := range []bool{false, true} {
		execute := t.TempDir()
		data, job := made(t, execute, 7), made(t, execute, 8)
		path := stage(t, data, "A@ap#1_00=11", map[string]string{"a": "one", "d/b": "two", "d/e/c": "three"})
		if want := filepath.Join(execute, "dir_7/scratch/staging/A@ap#1_00=11"); path != want {
			t.Errorf("staged at %s, want %s", path, want)
		}
		linked, copied, err := job.Map(t.Context(), path, copies)
		if err != nil || linked+copied != 3 || (copied == 3) != copies {
			t.Fatalf("linked %d, copied %d: %v", linked, copied, err)
		}
		for name, want := range map[string]string{"a": "one", "d/b": "two", "d/e/c": "three"} {
			at := filepath.Join(job.Scratch(), name)
			if got, err := os.ReadFile(at); err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			if os.SameFile(inode(t, at), inode(t, filepath.Join(path, name))) == copies {
				t.Errorf("%s: copies %v, and not", name, copies)
			}
			if mode := inode(t, at).Mode(); mode != 0o444 {
				t.Errorf("%s has mode %v", name, mode)
			}
		}
		want := 0
		if copies {
			want = 3
		}
		if u := job.Usage(); u.Files != want {
			t.Errorf("the job has %d files, want %d", u.Files, want)
		}
		if u := data.Usage(); u.Files != 3 {
			t.Errorf("%d files are staged", u.Files)
		}
		// Its own links do not hide the job's files.
		own := filepath.Join(job.Scratch(), "own")
		if err := errors.Join(os.WriteFile(own, []byte("x"), 0o644), os.Link(own, own+"2")); err != nil {
			t.Fatal(err)
		}
		if u := job.Usage(); u.Files != want+2 {
			t.Errorf("the job has %d files, want %d", u.Files, want+2)
		}
		if err := data.Remove(); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(filepath.Join(job.Scratch(), "d/b")); err != nil || string(got) != "two" {
			t.Errorf("when the staging directory is gone: %q, %v", got, err)
		}
	}
}

// Two catalogs may share a directory and no file.
func TestMapSeveral(t *testing.T) {
	t.Parallel()
	execute := t.TempDir()
	data, job := made(t, execute, 7), made(t, execute, 8)
	for _, catalog := range []struct {
		name, file string
		clash      bool
	}{{"A", "d/a", false}, {"B", "d/b", false}, {"C", "d/a", true}, {"D", "d", true}} {
		path := stage(t, data, catalog.name, map[string]string{catalog.file: "x"})
		if _, _, err := job.Map(t.Context(), path, false); (err != nil) != catalog.clash {
			t.Errorf("%s: %v", catalog.name, err)
		}
	}
}

// No path leads Map to what nobody staged.
func TestMapHostile(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	execute := filepath.Join(top, "execute")
	for _, dir := range []string{execute, filepath.Join(top, "dir_1/scratch/staging/A"), filepath.Join(top, "secret")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(top, "secret/key"), []byte("secret"), 0o444); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(top, "secret"), 0o500); err != nil {
		t.Fatal(err)
	}
	data, job := made(t, execute, 7), made(t, execute, 8)
	good := stage(t, data, "A", map[string]string{"a": "one"})
	staging := filepath.Dir(good)
	if err := os.Symlink(filepath.Join(top, "secret"), filepath.Join(staging, "link")); err != nil {
		t.Fatal(err)
	}
	root, open, err := data.Stage("open")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, path := range []string{
		"", "/", "dir_7/scratch/staging/A", filepath.Join(top, "secret"), filepath.Join(top, "dir_1/scratch/staging/A"), filepath.Join(execute, "dir_7"),
		data.Scratch(), staging, filepath.Join(staging, "none"), filepath.Join(staging, "link"), filepath.Join(good, "a"), good + "/../../../../../secret", open,
	} {
		if _, _, err := job.Map(t.Context(), path, false); err == nil {
			t.Errorf("%s was mapped", path)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "/a", "a\x00", "../A", string(make([]byte, 300))} {
		if root, _, err := data.Stage(name); err == nil {
			_ = root.Close()
			t.Errorf("%q was staged", name)
		}
	}
	// A link among the files is never sealed, and one that comes later never mapped.
	if err := root.Symlink("/etc/passwd", "p"); err != nil {
		t.Fatal(err)
	}
	if err := data.Seal("open"); err == nil {
		t.Error("a link was sealed")
	}
	if err := errors.Join(os.Chmod(good, 0o700), os.Symlink("/etc/passwd", filepath.Join(good, "p")), os.Chmod(good, 0o500)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := job.Map(t.Context(), good, false); err == nil {
		t.Error("a link was mapped")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := job.Map(ctx, good, false); err == nil {
		t.Error("it was mapped though the job has to leave")
	}
}

func FuzzStagedBelow(f *testing.F) {
	f.Add("/e/dir_7/scratch/staging/A")
	f.Add("/e/dir_7/scratch/staging/../../..")
	f.Fuzz(func(t *testing.T, path string) {
		s := &Sandbox{dir: "/e/dir_8", name: "dir_8"}
		rel, err := s.stagedBelow(path)
		if err == nil && (!filepath.IsLocal(rel) || filepath.Join("/e", rel) != filepath.Clean(path) || filepath.Base(filepath.Dir(rel)) != stagingDir) {
			t.Errorf("%q is %q", path, rel)
		}
	})
}
