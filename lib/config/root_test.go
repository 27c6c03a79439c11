// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFindRoot looks on machines with these files; those that end in / are
// directories.
func TestFindRoot(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		env      []string
		files    string
		tilde    string
		windows  bool
		registry string
		root     string
		looked   []string
		err      string
	}{
		{name: "variable", env: []string{"A=1", "CONDOR_CONFIG=/my/config"}, files: "/my/config /etc/condor/condor_config", root: "/my/config", looked: []string{"/my/config"}},
		{name: "variable names nothing", env: []string{"CONDOR_CONFIG=/my/config"}, files: "/etc/condor/condor_config", looked: []string{"/my/config"}, err: "does not exist"},
		{name: "variable names a directory", env: []string{"CONDOR_CONFIG=/my"}, files: "/my/", looked: []string{"/my"}, err: "is a directory"},
		{name: "variable names what cannot be read", env: []string{"CONDOR_CONFIG=/secret"}, looked: []string{"/secret"}, err: "permission denied"},
		{name: "environment only", env: []string{"CONDOR_CONFIG=only_env"}, files: "/etc/condor/condor_config", looked: []string{"only_env"}},
		{name: "command", env: []string{"CONDOR_CONFIG=/bin/gen -x |"}, root: "/bin/gen -x |", looked: []string{"/bin/gen -x |"}},
		{name: "command the wrong way", env: []string{"CONDOR_CONFIG=| /bin/gen"}, looked: []string{"| /bin/gen"}, err: "does not exist"},
		{name: "case of the variable", env: []string{"condor_config=/my/config"}, files: "/my/config /etc/condor/condor_config", root: "/etc/condor/condor_config", looked: []string{"/etc/condor/condor_config"}},
		{name: "etc", files: "/etc/condor/condor_config /usr/local/etc/condor_config", root: "/etc/condor/condor_config", looked: []string{"/etc/condor/condor_config"}},
		{name: "usr local", files: "/etc/condor/condor_config/ /usr/local/etc/condor_config", root: "/usr/local/etc/condor_config", looked: []string{"/etc/condor/condor_config", "/usr/local/etc/condor_config"}},
		{name: "home", tilde: "/var/lib/condor", files: "/var/lib/condor/condor_config", root: "/var/lib/condor/condor_config",
			looked: []string{"/etc/condor/condor_config", "/usr/local/etc/condor_config", "/var/lib/condor/condor_config"}},
		{name: "nowhere", looked: []string{"/etc/condor/condor_config", "/usr/local/etc/condor_config"}, err: "there is no root configuration"},
		{name: "windows registry", windows: true, registry: `c:\condor\condor_config`, files: `c:\condor\condor_config /etc/condor/condor_config`, root: `c:\condor\condor_config`, looked: []string{`c:\condor\condor_config`}},
		{name: "windows variable first", windows: true, env: []string{"Condor_Config=d:/x"}, registry: `c:\condor\condor_config`, files: `c:\condor\condor_config d:/x`, root: "d:/x", looked: []string{"d:/x"}},
		{name: "windows registry command", windows: true, registry: "gen |", root: "gen |", looked: []string{"gen |"}},
		{name: "windows nowhere", windows: true, files: "/etc/condor/condor_config", err: `HKEY_LOCAL_MACHINE\Software\Condor`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := Places{Env: tt.env, Tilde: tt.tilde, Windows: tt.windows}
			if tt.registry != "" {
				p.Registry = func(name string) (string, bool) { return tt.registry, name == "CONDOR_CONFIG" }
			}
			p.Open = func(path string) (bool, error) {
				for _, f := range strings.Fields(tt.files) {
					if strings.TrimSuffix(f, "/") == path {
						return strings.HasSuffix(f, "/"), nil
					}
				}
				if path == "/secret" {
					return false, fs.ErrPermission
				}
				return false, fs.ErrNotExist
			}
			root, looked, err := FindRoot(p)
			if d := cmp.Diff(tt.looked, looked); d != "" || root != tt.root {
				t.Errorf("root %q, looked %s", root, d)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if pr := (*Problem)(nil); err != nil && (!errors.As(err, &pr) || pr.Class != RootMissing) {
				t.Errorf("error of another class: %v", err)
			}
		})
	}
}
