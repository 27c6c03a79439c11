// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package access

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// stage is a directory of a user and one of root beside it.
type stage struct {
	*testing.T
	files     Files
	user      *host.Identity
	own, root string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can act for others")
	}
	// One user per test, who need not exist, with a group that root is not in.
	s := &stage{T: t, user: &host.Identity{Name: "somebody", UID: 61234, GID: 61235, Groups: []uint32{61236}}}
	dir := t.TempDir()
	for d := dir; d != os.TempDir(); d = filepath.Dir(d) {
		s.must(os.Chmod(d, 0o755))
	}
	s.own, s.root = filepath.Join(dir, "own"), filepath.Join(dir, "root")
	s.must(os.Mkdir(s.own, 0o755))
	s.must(os.Chown(s.own, int(s.user.UID), int(s.user.GID)))
	s.must(os.Mkdir(s.root, 0o755))
	s.write(filepath.Join(s.root, "shadow"), "secret\n", 0, 0)
	return s
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) write(path, text string, uid, gid int) {
	s.Helper()
	s.must(os.WriteFile(path, []byte(text), 0o644))
	s.must(os.Chown(path, uid, gid))
}

func (s *stage) untouched() {
	s.Helper()
	if b, err := os.ReadFile(filepath.Join(s.root, "shadow")); err != nil || string(b) != "secret\n" {
		s.Errorf("the file of root is %q, %v", b, err)
	}
	if entries, err := os.ReadDir(s.root); err != nil || len(entries) != 1 {
		s.Errorf("the directory of root holds %v, %v", entries, err)
	}
}

func TestOverwrite(t *testing.T) {
	s := newStage(t)
	path := filepath.Join(s.own, "out")
	for _, text := range []string{"a first text\n", "another\n"} {
		f, err := s.files.Overwrite(s.user, path)
		s.must(err)
		_, err = io.WriteString(f, text)
		s.must(errors.Join(err, f.Close()))
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%q, %v", b, err)
		}
	}
	info, err := os.Stat(path)
	s.must(err)
	if st := info.Sys().(*syscall.Stat_t); st.Uid != s.user.UID || st.Gid != s.user.GID || info.Mode() != 0o644 {
		t.Errorf("made as %d:%d with %v", st.Uid, st.Gid, info.Mode())
	}
	// A group that lets the user in does so here.
	shared := filepath.Join(s.root, "shared")
	s.must(os.Mkdir(shared, 0o770))
	s.must(os.Chmod(shared, 0o770))
	s.must(os.Chown(shared, 0, int(s.user.Groups[0])))
	f, err := s.files.Overwrite(s.user, filepath.Join(shared, "out"))
	s.must(err)
	s.must(f.Close())
}

// TestOverwriteUnderAttack has the user lead root to files that are not the
// user's to write.
func TestOverwriteUnderAttack(t *testing.T) {
	shadow := func(s *stage) string { return filepath.Join(s.root, "shadow") }
	for _, tt := range []struct {
		name string
		lay  func(s *stage, path string) // what the user put at path
		path string                      // below own
		want error
	}{
		{"symbolic link", func(s *stage, path string) { s.must(os.Symlink(shadow(s), path)) }, "out", unix.ELOOP},
		{"symbolic link to nothing", func(s *stage, path string) { s.must(os.Symlink(filepath.Join(s.root, "new"), path)) }, "out", unix.ELOOP},
		{"symbolic link to its own file", func(s *stage, path string) {
			s.write(path+".real", "x", int(s.user.UID), int(s.user.GID))
			s.must(os.Symlink(path+".real", path))
		}, "out", unix.ELOOP},
		{"directory that is a link", func(s *stage, path string) { s.must(os.Symlink(s.root, filepath.Dir(path))) }, "log/new", unix.EACCES},
		{"hard link", func(s *stage, path string) { s.must(os.Link(shadow(s), path)) }, "out", unix.EACCES},
		{"hard link to a file that it may write", func(s *stage, path string) {
			s.write(path+".other", "mine\n", int(s.user.UID), int(s.user.GID))
			s.must(os.Link(path+".other", path))
		}, "out", unix.EMLINK},
		{"named pipe", func(s *stage, path string) {
			s.must(unix.Mkfifo(path, 0o666))
			s.must(os.Chmod(path, 0o666))
		}, "out", unix.ENXIO},
		{"named pipe with a reader", func(s *stage, path string) {
			s.must(unix.Mkfifo(path, 0o666))
			s.must(os.Chmod(path, 0o666))
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			s.must(err)
			s.Cleanup(func() { unix.Close(fd) })
		}, "out", unix.EINVAL},
		{"device", func(s *stage, path string) {
			s.must(unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
			s.must(os.Chmod(path, 0o666))
		}, "out", nil},
		{"directory", func(s *stage, path string) { s.must(os.Mkdir(path, 0o777)) }, "out", unix.EISDIR},
		{"file of root", func(s *stage, path string) { s.write(path, "root's\n", 0, 0) }, "out", unix.EACCES},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t)
			path := filepath.Join(s.own, tt.path)
			tt.lay(s, path)
			f, err := s.files.Overwrite(s.user, path)
			if err == nil {
				f.Close()
				t.Fatal("it was opened")
			}
			if tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if !strings.Contains(err.Error(), path) {
				t.Errorf("the path is not named: %v", err)
			}
			s.untouched()
			if b, err := os.ReadFile(path + ".other"); err == nil && string(b) != "mine\n" {
				t.Errorf("the other name shows %q", b)
			}
		})
	}
}

func TestEnter(t *testing.T) {
	s := newStage(t)
	closed := filepath.Join(s.root, "closed")
	s.must(os.Mkdir(closed, 0o700))
	for dir, want := range map[string]error{
		s.own: nil, s.root: nil, closed: unix.EACCES, filepath.Join(s.own, "none"): unix.ENOENT, filepath.Join(s.root, "shadow"): unix.ENOTDIR,
	} {
		if err := s.files.Enter(s.user, dir); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", dir, err, want)
		}
	}
}

// TestRightsOfOthers looks that acting for somebody changes nothing in the rest
// of the process, side by side.
func TestRightsOfOthers(t *testing.T) {
	s := newStage(t)
	before, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	s.must(err)
	closed := filepath.Join(s.root, "closed")
	s.must(os.Mkdir(closed, 0o700))
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 20 {
				if err := s.files.Enter(s.user, closed); !errors.Is(err, unix.EACCES) {
					t.Errorf("as the user: %v", err)
				}
			}
		})
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for range 50 {
				uid, _ := unix.SetfsuidRetUid(-1)
				gid, _ := unix.SetfsgidRetGid(-1)
				if _, err := os.Stat(closed + "/."); err != nil || uid != 0 || gid != 0 {
					t.Errorf("as root: %d:%d, %v", uid, gid, err)
				}
			}
		})
	}
	all.Wait()
	groups, err := unix.Getgroups()
	s.must(err)
	if slices.Contains(groups, int(s.user.Groups[0])) {
		t.Errorf("the process is in the groups %v", groups)
	}
	if after, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || after != before {
		t.Errorf("dumpable was %d and is %d, %v", before, after, err)
	}
}

func TestCannotBecome(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root can")
	}
	u := &host.Identity{Name: "somebody", UID: 61234, GID: 61235}
	if err := new(Files).Enter(u, "/"); !errs.Is(err, errs.Denied) {
		t.Errorf("%v", err)
	}
}
