// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/integration/realpool"
)

// kind is whose Execution Point is judged.
type kind string

const (
	original kind = "original"
	ours     kind = "ours"
)

// kinds are what EXECPOINT_PEER_KIND asks for.
func kinds(word string) ([]kind, error) {
	switch word {
	case "", "both":
		return []kind{original, ours}, nil
	case string(original), string(ours):
		return []kind{kind(word)}, nil
	}
	return nil, fmt.Errorf("EXECPOINT_PEER_KIND=%s; want both, original or ours", word)
}

// ourPrograms stand in for the original's of the same names.
var ourPrograms = []string{"condor_startd", "condor_starter"}

// installation is where an HTCondor is.
type installation struct {
	realpool.Installation
	Bindings string // the folder that has the Python packages
}

// packaged says whether a distribution's package put it there: it has its
// programs among all others then, and what only HTCondor uses in folders of its
// own.
func (in installation) packaged() bool { return in.Libexec != filepath.Join(in.Prefix, "libexec") }

// bindings are the Python packages that tests use.
var bindings = []string{"htcondor2", "classad2", "htcondor_cli", "htcondor", "classad"}

// findBindings finds the folder of the Python packages.
func findBindings(prefix string) (string, error) {
	for _, dir := range []string{"lib/python3", "lib/python3/dist-packages", "lib64/python3/site-packages"} {
		dir = filepath.Join(prefix, dir)
		if _, err := os.Stat(filepath.Join(dir, bindings[0])); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no Python bindings are in %s/lib/python3", prefix)
}

// overlay makes a tree of links to an installation, in the shape that it has
// under a prefix of its own. The programs in the folder instead, unless that is
// "", are in place of the original's.
func overlay(dir string, in installation, instead string) error {
	lib, packaged := filepath.Join(in.Prefix, "lib"), in.packaged()
	its := func(name string) bool {
		return !packaged || strings.HasPrefix(name, "condor") || strings.HasPrefix(name, "classad") || strings.HasPrefix(name, "htcondor")
	}
	library := func(name string) bool {
		if packaged {
			return strings.HasPrefix(name, "libcondor") || strings.HasPrefix(name, "libclassad") || strings.HasPrefix(name, "libchirp") || name == "libgetpwnam.so"
		}
		return name != "python3"
	}
	any := func(string) bool { return true }
	for _, part := range []struct {
		from, to string
		want     func(name string) bool
	}{
		{filepath.Join(in.Prefix, "bin"), "bin", its},
		{filepath.Join(in.Prefix, "sbin"), "sbin", func(name string) bool {
			return its(name) && (instead == "" || !slices.Contains(ourPrograms, name))
		}},
		{in.Libexec, "libexec", any},
		{lib, "lib", library},
		{filepath.Join(lib, "condor"), "lib", any},
		{in.Bindings, "lib/python3", func(name string) bool { return !packaged || slices.Contains(bindings, name) }},
	} {
		if err := links(part.from, filepath.Join(dir, part.to), part.want); err != nil {
			return err
		}
	}
	for _, name := range []string{"etc", "include", "share", "man"} {
		if packaged {
			break
		}
		if _, err := os.Stat(filepath.Join(in.Prefix, name)); err == nil {
			if err := os.Symlink(filepath.Join(in.Prefix, name), filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	if instead == "" {
		return nil
	}
	return links(instead, filepath.Join(dir, "sbin"), any)
}

// links makes a folder with links to the entries of another that are wanted. An
// entry that is there stays, and a folder that is not there has no entries.
func links(from, to string, want func(name string) bool) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !want(e.Name()) {
			continue
		}
		if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// buildOurs builds our programs, without cgo as packages have them.
func buildOurs(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	args := []string{"build", "-o", dir + "/"}
	for _, name := range ourPrograms {
		args = append(args, "github.com/execpoint/execpoint/bin/"+name)
	}
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

func TestOverlay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		files   []string
		libexec string
		want    map[string]string // where a link leads; "" for none
	}{
		{"under a prefix", []string{"bin/condor_q", "bin/other", "sbin/condor_master", "sbin/condor_startd", "libexec/curl_plugin",
			"lib/condor_ssh_to_job_sshd_config_template", "lib/libclassad.so", "lib/condor/libssl.so", "lib/python3/htcondor2/__init__.py", "etc/examples/x"}, "libexec",
			map[string]string{"bin/condor_q": "bin/condor_q", "bin/other": "bin/other", "sbin/condor_startd": "sbin/condor_startd", "libexec/curl_plugin": "libexec/curl_plugin",
				"lib/libclassad.so": "lib/libclassad.so", "lib/condor": "lib/condor", "lib/libssl.so": "lib/condor/libssl.so",
				"lib/python3/htcondor2": "lib/python3/htcondor2", "etc": "etc"}},
		{"of a package", []string{"bin/condor_q", "bin/htcondor", "bin/perl", "sbin/condor_master", "sbin/condor_startd", "sbin/sshd", "libexec/condor/condor_shared_port",
			"lib/condor/condor_ssh_to_job_sshd_config_template", "lib/libclassad.so", "lib/libc.so", "lib/python3/dist-packages/htcondor2/__init__.py",
			"lib/python3/dist-packages/pytest/__init__.py", "etc/x"}, "libexec/condor",
			map[string]string{"bin/condor_q": "bin/condor_q", "bin/htcondor": "bin/htcondor", "bin/perl": "", "sbin/condor_startd": "sbin/condor_startd", "sbin/sshd": "",
				"libexec/condor_shared_port": "libexec/condor/condor_shared_port", "lib/condor_ssh_to_job_sshd_config_template": "lib/condor/condor_ssh_to_job_sshd_config_template",
				"lib/libclassad.so": "lib/libclassad.so", "lib/libc.so": "", "lib/python3/htcondor2": "lib/python3/dist-packages/htcondor2", "lib/python3/pytest": "", "etc": ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			prefix, instead := t.TempDir(), t.TempDir()
			for _, name := range tt.files {
				write(t, filepath.Join(prefix, name), "")
			}
			for _, name := range ourPrograms {
				write(t, filepath.Join(instead, name), "")
			}
			in := installation{Installation: realpool.Installation{Prefix: prefix, Libexec: filepath.Join(prefix, tt.libexec)}}
			var err error
			if in.Bindings, err = findBindings(prefix); err != nil || in.packaged() != (tt.libexec != "libexec") {
				t.Fatalf("packaged is %v, %v", in.packaged(), err)
			}
			for _, mine := range []bool{false, true} {
				dir, from := t.TempDir(), ""
				if mine {
					from = instead
				}
				if err := overlay(dir, in, from); err != nil {
					t.Fatal(err)
				}
				for name, want := range tt.want {
					if want != "" {
						want = filepath.Join(prefix, want)
					}
					if mine && name == "sbin/condor_startd" {
						want = filepath.Join(instead, "condor_startd")
					}
					if got, _ := os.Readlink(filepath.Join(dir, name)); got != want {
						t.Errorf("ours %v: %s leads to %q, want %q", mine, name, got, want)
					}
				}
			}
		})
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for word, want := range map[string][]kind{"": {original, ours}, "both": {original, ours}, "ours": {ours}, "original": {original}, "none": nil} {
		got, err := kinds(word)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: got %q, %v", word, got, err)
		}
	}
}
