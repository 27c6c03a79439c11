// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package quota

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// onDisk makes a file system of a kind on an empty disk of a virtual machine, and
// returns where it is mounted.
func onDisk(t *testing.T, kind, options string, make ...string) string {
	t.Helper()
	const disk = "/dev/vda"
	if _, err := os.Stat(disk); err != nil || os.Getenv("EXECPOINT_GUEST_INSIDE") == "" {
		t.Skip("needs an empty disk of a virtual machine; integration/guest has one")
	}
	top := t.TempDir()
	shell(t, make[0], append(make[1:], disk)...)
	if err := unix.Mount(disk, top, kind, 0, options); err != nil {
		t.Fatalf("mount of %s: %v", kind, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(top, 0); err != nil {
			t.Error(err)
		}
	})
	return top
}

func shell(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

var kinds = map[string]struct {
	options string
	make    []string
}{
	"ext4": {"prjquota", []string{"mkfs.ext4", "-q", "-F", "-O", "quota,project", "-E", "quotatype=prjquota"}},
	"xfs":  {"prjquota", []string{"mkfs.xfs", "-q", "-f"}},
}

func newDir(t *testing.T, path string) *os.File {
	t.Helper()
	err := os.Mkdir(path, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// uses waits until a project uses what is wanted: xfs takes what was removed off its
// books a moment later.
func uses(t *testing.T, c host.Counter, what string, least, most int64, files int) {
	t.Helper()
	eventually(t, what, func() error {
		f, err := c.Used()
		if err == nil && (f.UsedBytes < least || f.UsedBytes > most || f.Files != files) {
			err = fmt.Errorf("%+v; want %d to %d bytes and %d files", f, least, most, files)
		}
		return err
	})
}

// eventually asks until there is no error.
func eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	err := ask()
	for n := 0; err != nil && n < 100; n++ {
		<-again.C
		err = ask()
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// TestProjects has both file systems count directories, by what new kernels take and by
// what old ones do: files of whoever, those that are deleted and open, and what is
// removed. The project of a directory that is gone is given to the next.
func TestProjects(t *testing.T) {
	for kind, with := range kinds {
		t.Run(kind, func(t *testing.T) {
			top := onDisk(t, kind, with.options, with.make...)
			for i, open := range []func(*os.File) (*kernel, error){open, openDevice} {
				at := filepath.Join(top, fmt.Sprint("a", i))
				dir := newDir(t, at)
				k, err := open(dir)
				if err != nil {
					t.Fatal(err)
				}
				if (i == 1) != (k.device == "/dev/vda") {
					t.Errorf("the device is %q", k.device)
				}
				c, err := k.count()
				if err != nil {
					t.Fatal(err)
				}
				if want := fmt.Sprintf("project %d of its file system", First); c.Name() != want {
					t.Errorf("%s, want %s", c.Name(), want)
				}
				uses(t, c, "empty", 0, 4096, 0)
				write := func(name string, size int) {
					if err := os.WriteFile(filepath.Join(at, name), make([]byte, size), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.Mkdir(filepath.Join(at, "sub"), 0o777); err != nil {
					t.Fatal(err)
				}
				write("sub/one", 3<<20)
				if err := os.Chown(filepath.Join(at, "sub/one"), 12345, 12345); err != nil {
					t.Fatal(err)
				}
				uses(t, c, "a file", 3<<20, 3<<20+64<<10, 2)
				other := newDir(t, filepath.Join(top, fmt.Sprint("b", i)))
				d, err := Projects{}.Count(other)
				if err != nil || d.Name() == c.Name() {
					t.Fatalf("%v, %v", d, err)
				}
				uses(t, d, "another directory", 0, 4096, 0)
				held, err := os.Create(filepath.Join(at, "held"))
				if err == nil {
					_, err = held.Write(make([]byte, 1<<20))
				}
				if err := errors.Join(err, os.Remove(held.Name())); err != nil {
					t.Fatal(err)
				}
				uses(t, c, "a deleted file that is open", 4<<20, 4<<20+64<<10, 3)
				held.Close()
				uses(t, c, "the file is closed", 3<<20, 3<<20+64<<10, 2)
				if err := errors.Join(os.RemoveAll(at), os.Remove(other.Name())); err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(c.Close(), d.Close()); err != nil {
					t.Error(err)
				}
				again, err := open(newDir(t, filepath.Join(top, fmt.Sprint("c", i))))
				if err != nil {
					t.Fatal(err)
				}
				eventually(t, "what is gone", func() error {
					e, err := again.read(First)
					if err == nil && !e.free() {
						err = fmt.Errorf("%+v", e)
					}
					return err
				})
				if err := errors.Join(os.Remove(again.dir.Name()), again.dir.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestProjectsOfOthers leaves to the owner of the machine what is his: a project that
// EXECUTE is in, and one of our numbers that he has given a limit. What a user has put
// into a project keeps the next job out of it.
func TestProjectsOfOthers(t *testing.T) {
	for kind, with := range kinds {
		t.Run(kind, func(t *testing.T) {
			top := onDisk(t, kind, with.options, with.make...)
			his := newDir(t, filepath.Join(top, "his"))
			k, err := open(his)
			if err != nil {
				t.Fatal(err)
			}
			if err := k.join(42); err != nil {
				t.Fatal(err)
			}
			below := newDir(t, filepath.Join(top, "his", "below"))
			if c, err := (Projects{}).Count(below); !errs.Is(err, errs.Unsupported) || !strings.Contains(err.Error(), "project 42") {
				t.Errorf("%v, %v", c, err)
			}
			shell(t, "xfs_quota", "-x", "-f", "-c", fmt.Sprintf("limit -p bhard=4m %d", First), top)
			left, err := os.Create(filepath.Join(top, "left"))
			if err != nil {
				t.Fatal(err)
			}
			theirs := &kernel{dir: left}
			if err := theirs.change(First+1, false); err != nil {
				t.Fatal(err)
			}
			c, err := Projects{}.Count(newDir(t, filepath.Join(top, "job")))
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("project %d of its file system", First+2); c.Name() != want {
				t.Errorf("%s, want %s", c.Name(), want)
			}
			if err := errors.Join(c.Close(), his.Close(), below.Close(), left.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Where nothing counts nothing is changed.
func TestNoProjects(t *testing.T) {
	dirs := map[string]string{"here": t.TempDir(), "/dev/shm": "/dev/shm"}
	if os.Getenv("EXECPOINT_GUEST_INSIDE") != "" {
		dirs["ext4"] = onDisk(t, "ext4", "", "mkfs.ext4", "-q", "-F")
	}
	for name, at := range dirs {
		dir, err := os.Open(at)
		if err != nil {
			continue // a machine without it
		}
		if c, err := (Projects{}).Count(dir); !errs.Is(err, errs.Unsupported) {
			t.Errorf("%s: %v, %v", name, c, err)
		}
		dir.Close()
	}
}
