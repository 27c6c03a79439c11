// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package knobs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/execpoint/execpoint/ci/source"
)

// knob is what the table says about the marks.
type knob struct {
	Name, Obsolete, Daemon string
	Macro                  bool
	NotYet                 string `toml:"not_yet"`
	Aliases                []string
}

func (k knob) inForce() bool {
	return k.Obsolete == "" && k.Daemon == "" && k.NotYet == "" && !k.Macro
}

func table(t *testing.T, root string) []knob {
	t.Helper()
	var doc struct{ Knob []knob }
	if _, err := toml.DecodeFile(filepath.Join(root, "lib", "config", "knobs.toml"), &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Knob
}

// Every knob that the table calls in force is asked for somewhere in the
// programs, and none that it says nothing reads, or only others do, is.
func TestMarks(t *testing.T) {
	t.Parallel()
	root, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := source.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	r := Find(slices.DeleteFunc(files, func(f source.File) bool { return f.IsTest() || !asks(f.Path) }))
	inForce := 0
	all := table(t, root)
	for _, k := range all {
		read := r.Read(k.Name) || slices.ContainsFunc(k.Aliases, r.Read)
		switch {
		case k.inForce():
			inForce++
			if !read && !ofFamily(r, all, k.Name) {
				t.Errorf("%s is in force by lib/config/knobs.toml, and nothing reads it: say macro, daemon or not_yet there", k.Name)
			}
		case (k.NotYet != "" || k.Daemon != "") && read:
			t.Errorf("lib/config/knobs.toml says that the Execution Point does not read %s, and it does: take daemon or not_yet away", k.Name)
		}
		if marks := []bool{k.Macro, k.Daemon != "", k.NotYet != ""}; len(slices.DeleteFunc(marks, func(b bool) bool { return !b })) > 1 {
			t.Errorf("%s has more than one mark", k.Name)
		}
	}
	if inForce < 400 {
		t.Errorf("only %d knobs are in force", inForce)
	}
}

// ofFamily reports whether a knob is one of a family that is asked for, which
// must say enough to be told from others by its name.
func ofFamily(r *Readers, all []knob, name string) bool {
	const enough = 12
	for _, k := range all {
		if !placeholder.MatchString(k.Name) || k.Name == name || len(placeholder.ReplaceAllString(k.Name, "")) < enough {
			continue
		}
		if regexp.MustCompile(`(?i)^`+placeholder.ReplaceAllString(k.Name, `\w+`)+`$`).MatchString(name) && r.Read(k.Name) {
			return true
		}
	}
	return false
}

// asks reports whether a file belongs to what runs jobs. What only looks at a
// configuration, writes one, plays it through or looks for daemons is no reader.
func asks(path string) bool {
	for _, other := range []string{
		"lib/check/", "lib/simulate/", "lib/explain/", "lib/config/internal/", "lib/config/knobs_table.go", "lib/config/obsolete.go",
		"lib/config/suggest.go", "bin/condor_config_val/", "lib/tool/settings/", "lib/tool/ask/", "bin/condor_gpu_discovery/",
	} {
		if strings.HasPrefix(path, other) {
			return false
		}
	}
	return strings.HasPrefix(path, "lib/") || strings.HasPrefix(path, "bin/") || strings.HasPrefix(path, "platform/")
}

func TestFind(t *testing.T) {
	t.Parallel()
	f, err := source.Parse("lib/x/x.go", []byte(`package x
const family = "STARTD_CRON"
func f(s snapshot, n int, role string, ad ad) {
	s.Int("POLLING_INTERVAL")
	s.List(family + "_JOBLIST")
	prefix := "AUTH_SSL_" + role + "_"
	s.String(prefix + "CADIR")
	g("CLIENT")
	s.String("SLOT_TYPE_" + n + "_" + role)
	s.String(fmt.Sprintf("MAX_%s_LOG", role))
	ad.SetString("MAIL", "x")
	submit("mount_under_scratch")
	s.Bool("START")
}
`))
	if err != nil {
		t.Fatal(err)
	}
	r := Find([]source.File{f})
	for name, want := range map[string]bool{
		"POLLING_INTERVAL": true, "Polling_Interval": true, "STARTD_CRON_JOBLIST": true, "SCHEDD_CRON_JOBLIST": false, "AUTH_SSL_CLIENT_CADIR": true,
		"AUTH_SSL_SERVER_CADIR": false, "MAX_STARTD_LOG": true, "MAX_KBDD_LOG": false, "MAX_<SUBSYS>_LOG": true, "MAIL": false,
		"MOUNT_UNDER_SCRATCH": false, "SLOT_TYPE_<N>_START": true, "SLOT_TYPE_<N>_HIDDEN": false, "INTERVAL": false,
	} {
		if got := r.Read(name); got != want {
			t.Errorf("%s: read %v, want %v", name, got, want)
		}
	}
}
