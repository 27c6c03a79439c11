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

// TestAs has the user lead root through names below a directory that nothing
// leads out of, as a file transfer would go.
func TestAs(t *testing.T) {
	s := newStage(t)
	root, err := os.OpenRoot(s.own)
	s.must(err)
	defer root.Close()
	secret := filepath.Join(s.root, "secret")
	s.write(secret, "secret\n", 0, 0)
	s.must(os.Chmod(secret, 0o600))
	s.must(os.Link(secret, filepath.Join(s.own, "result"))) // as where hard links are not protected
	s.must(os.Mkdir(filepath.Join(s.own, "roots"), 0o755))
	for what, f := range map[string]func() error{
		"reading":  func() error { _, err := root.ReadFile("result"); return err },
		"writing":  func() error { return root.WriteFile("result", nil, 0o644) },
		"mode":     func() error { return root.Chmod("result", 0o666) },
		"owner":    func() error { return root.Lchown("result", int(s.user.UID), int(s.user.GID)) },
		"removing": func() error { return root.Remove("roots/none") },
		"making":   func() error { return root.Mkdir("roots/new", 0o777) },
	} {
		want := os.ErrPermission
		if what == "removing" {
			want = os.ErrNotExist
		}
		if err := s.files.As(s.user, f); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	// Longer work of one holds up nobody.
	s.must(s.files.As(s.user, func() error {
		if err := s.files.Enter(s.user, s.own); err != nil {
			return err
		}
		return root.WriteFile("new", []byte("x"), 0o640)
	}))
	info, err := root.Lstat("new")
	s.must(err)
	if st := info.Sys().(*syscall.Stat_t); st.Uid != s.user.UID || st.Gid != s.user.GID {
		t.Errorf("made as %d:%d", st.Uid, st.Gid)
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "secret\n" {
		t.Errorf("the secret is %q, %v", b, err)
	}
	if err := s.files.As(s.user, func() error { return os.ErrClosed }); !errors.Is(err, os.ErrClosed) {
		t.Errorf("%v, want what the function returned", err)
	}
}

// TestReadAndAppend opens standard files of a job that goes on where it was.
func TestReadAndAppend(t *testing.T) {
	s := newStage(t)
	path := filepath.Join(s.own, "file")
	s.write(path, "before ", int(s.user.UID), int(s.user.GID))
	f, err := s.files.Append(s.user, path)
	s.must(err)
	_, err = io.WriteString(f, "after")
	s.must(errors.Join(err, f.Close()))
	in, err := s.files.Read(s.user, path)
	s.must(err)
	b, err := io.ReadAll(in)
	s.must(errors.Join(err, in.Close()))
	if string(b) != "before after" {
		t.Errorf("%q", b)
	}
	null, err := s.files.Read(s.user, os.DevNull)
	s.must(err)
	s.must(null.Close())
	secret := filepath.Join(s.root, "secret")
	s.write(secret, "secret\n", 0, 0)
	s.must(os.Chmod(secret, 0o600))
	hard, soft, pipe := filepath.Join(s.own, "hard"), filepath.Join(s.own, "soft"), filepath.Join(s.own, "pipe")
	s.must(errors.Join(os.Link(secret, hard), os.Symlink(secret, soft), unix.Mkfifo(pipe, 0o666), os.Chmod(pipe, 0o666)))
	for _, tt := range []struct {
		path         string
		read, append error
	}{
		{hard, unix.EACCES, unix.EACCES}, {soft, unix.EACCES, unix.ELOOP}, {pipe, unix.EINVAL, unix.ENXIO},
		{filepath.Join(s.own, "none"), unix.ENOENT, unix.ENOENT}, {s.own, unix.EINVAL, unix.EISDIR},
	} {
		if _, err := s.files.Read(s.user, tt.path); !errors.Is(err, tt.read) {
			t.Errorf("reading %s: %v, want %v", tt.path, err, tt.read)
		}
		if _, err := s.files.Append(s.user, tt.path); !errors.Is(err, tt.append) {
			t.Errorf("appending to %s: %v, want %v", tt.path, err, tt.append)
		}
	}
}

// TestGive gives away what root made, and nothing else that is found in its
// place.
func TestGive(t *testing.T) {
	s := newStage(t)
	root, err := os.OpenRoot(s.own)
	s.must(err)
	defer root.Close()
	owner := func(path string) uint32 {
		info, err := os.Lstat(path)
		s.must(err)
		return info.Sys().(*syscall.Stat_t).Uid
	}
	in := func(name string) string { return filepath.Join(s.own, name) }
	s.write(in("made"), "x", 0, 0)
	s.must(os.Mkdir(in("dir"), 0o700))
	s.write(in("its own"), "x", int(s.user.UID), int(s.user.GID))
	for _, name := range []string{"made", "dir", "its own"} {
		if err := s.files.Give(s.user, root, name); err != nil || owner(in(name)) != s.user.UID {
			t.Errorf("%s: %v, of %d", name, err, owner(in(name)))
		}
	}
	secret := filepath.Join(s.root, "shadow")
	s.must(errors.Join(os.Link(secret, in("hard")), os.Symlink(secret, in("soft")), unix.Mkfifo(in("pipe"), 0o666)))
	s.write(in("others"), "x", 61299, 61299)
	for _, name := range []string{"hard", "soft", "pipe", "others", "none"} {
		if err := s.files.Give(s.user, root, name); err == nil {
			t.Errorf("%s was given away", name)
		}
	}
	if owner(secret) != 0 {
		t.Error("a file of root is the user's")
	}
}
