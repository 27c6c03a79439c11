// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/host"
)

// files are those of a machine that belong to whom it says.
type files struct {
	host.Owners
	host.Access
	of    map[string]host.Entry
	alone bool
	as    *host.Identity // with whose rights a func was called
}

func (m *files) Entry(path string) (host.Entry, error) {
	if e, ok := m.of[path]; ok {
		return e, nil
	}
	return host.Entry{}, fs.ErrNotExist
}

func (m *files) UserName(uid uint32) (string, error) {
	if uid == 1000 {
		return "ann", nil
	}
	return "", errors.New("no such user")
}

func (m *files) Alone(string) error {
	if m.alone {
		return nil
	}
	return errors.New("others may write")
}

func (m *files) As(u *host.Identity, f func() error) error {
	m.as = u
	return f()
}

// TestSubmitterOf: whose the jobs are goes by the directory of the submit file, and root
// stands for nothing that others could have put there.
func TestSubmitterOf(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "job.sub")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	snap, err := config.Parse("c", "", config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	root := host.Entry{Mode: 0o755}
	for _, tt := range []struct {
		name      string
		dir, file host.Entry
		alone     bool
		input     bool
		user      string // "" for who runs this process
		open, err string
	}{
		{"a user's directory", host.Entry{UID: 1000, Mode: 0o700}, root, true, false, "ann", "", ""},
		{"a directory of nobody that is known", host.Entry{UID: 7}, root, true, false, "", "", "is of the user 7, as whom no job can run"},
		{"root's own", root, root, true, false, "", "", ""},
		{"root's, where others may write", root, root, false, false, "nobody", file, ""},
		{"root's, with a file of another", root, host.Entry{UID: 1000, Mode: 0o644}, true, false, "nobody", file, ""},
		{"root's, with a file that others may change", root, host.Entry{Mode: 0o666}, true, false, "nobody", file, ""},
		{"standard input where others may write", root, root, false, true, "nobody", dir, ""},
	} {
		m := &files{of: map[string]host.Entry{dir: tt.dir, file: tt.file}, alone: tt.alone}
		find := func(name string) (*host.Identity, error) {
			return &host.Identity{Name: name, Home: "/home/" + name}, nil
		}
		s, err := SubmitterOf(Users{Find: find, Files: m, Owners: m}, snap, file, tt.input)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.err)
			continue
		}
		got := ""
		if s.User != nil {
			got = s.User.Name
		}
		if got != tt.user || s.open != tt.open {
			t.Errorf("%s: %q, open %q; want %q and %q", tt.name, got, s.open, tt.user, tt.open)
		}
		if err := s.As(func() error { return nil }); err != nil || m.as != s.User {
			t.Errorf("%s: as %v, %v", tt.name, m.as, err)
		}
		if env := strings.Join(s.Env([]string{"SECRET=root's"}), " "); (s.User == nil) != strings.Contains(env, "SECRET") {
			t.Errorf("%s: %s", tt.name, env)
		}
	}
}
