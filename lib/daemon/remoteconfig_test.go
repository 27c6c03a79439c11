// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// remote is what a daemon with these knobs keeps.
func remote(t *testing.T, knobs string, owned func(string) error) *RemoteConfig {
	t.Helper()
	r, err := NewRemoteConfig(snapshot(t, knobs), "STARTD", owned)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// keeps says what a directory has.
func keeps(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = string(text)
	}
	return got
}

func TestPersistentConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	knobs := "ENABLE_PERSISTENT_CONFIG = true\nPERSISTENT_CONFIG_DIR = " + dir + "\n"
	r := remote(t, knobs, nil)
	check := func(what string, err error, want map[string]string) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if d := cmp.Diff(want, keeps(t, dir)); d != "" {
			t.Errorf("%s (-want +got)\n%s", what, d)
		}
	}
	check("nothing to take back", r.Persist("start", ""), map[string]string{})
	check("the first", r.Persist("start", "START = true"), map[string]string{
		".config.STARTD": "RUNTIME_CONFIG_ADMIN = start\n", ".config.STARTD.start": "START = true",
	})
	check("a second of two lines", r.Persist("rehome", "A = 1\nB = 2\n"), map[string]string{
		".config.STARTD": "RUNTIME_CONFIG_ADMIN = start, rehome\n", ".config.STARTD.start": "START = true", ".config.STARTD.rehome": "A = 1\nB = 2\n",
	})
	check("the first again", r.Persist("start", "START = false"), map[string]string{
		".config.STARTD": "RUNTIME_CONFIG_ADMIN = start, rehome\n", ".config.STARTD.start": "START = false", ".config.STARTD.rehome": "A = 1\nB = 2\n",
	})
	// Another life finds the same.
	again := remote(t, knobs, func(path string) error {
		if !strings.HasPrefix(filepath.Base(path), ".config.STARTD") {
			t.Errorf("asked whose %s is", path)
		}
		return nil
	})
	texts, err := again.Texts()
	list := filepath.Join(dir, ".config.STARTD")
	if d := cmp.Diff([]config.Text{
		{Name: list, Text: "RUNTIME_CONFIG_ADMIN = start, rehome\n"}, {Name: list + ".start", Text: "START = false"}, {Name: list + ".rehome", Text: "A = 1\nB = 2\n"},
	}, texts); d != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
	check("taken back", again.Persist("start", ""), map[string]string{
		".config.STARTD": "RUNTIME_CONFIG_ADMIN = rehome\n", ".config.STARTD.rehome": "A = 1\nB = 2\n",
	})
	check("all taken back", again.Persist("rehome", ""), map[string]string{})
	if texts, err := again.Texts(); len(texts) != 0 || err != nil {
		t.Errorf("%v, %v are left", texts, err)
	}
}

func TestRemoteConfigIsGuarded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	on := "ENABLE_PERSISTENT_CONFIG = true\nENABLE_RUNTIME_CONFIG = true\nPERSISTENT_CONFIG_DIR = " + dir + "\n"
	if err := remote(t, "", nil).Persist("a", "A = 1"); !errs.Is(err, errs.Denied) {
		t.Errorf("kept without ENABLE_PERSISTENT_CONFIG: %v", err)
	}
	if err := remote(t, "", nil).Set("a", "A = 1"); !errs.Is(err, errs.Denied) {
		t.Errorf("set without ENABLE_RUNTIME_CONFIG: %v", err)
	}
	if _, err := NewRemoteConfig(snapshot(t, "ENABLE_PERSISTENT_CONFIG = true\n"), "STARTD", nil); !errs.Is(err, errs.Invalid) {
		t.Errorf("no directory: %v", err)
	}
	r := remote(t, on, nil)
	for _, name := range []string{"", "../a", "a/b", "a b", "$", "a\x00"} {
		if err := r.Persist(name, "A = 1"); !errs.Is(err, errs.Invalid) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	for _, text := range []string{"no setting", "if true\nA = 1", "include command : /bin/true", "include : /etc/passwd"} {
		if err := r.Persist("a", text); !errs.Is(err, errs.Invalid) {
			t.Errorf("text %q: %v", text, err)
		}
	}
	if got := keeps(t, dir); len(got) != 0 {
		t.Errorf("kept %v", got)
	}
	if err := r.Persist("a", "A = 1"); err != nil {
		t.Fatal(err)
	}
	strange := errors.New("it is somebody else's")
	if _, err := NewRemoteConfig(snapshot(t, on), "STARTD", func(string) error { return strange }); !errors.Is(err, strange) {
		t.Errorf("somebody else's list: %v", err)
	}
	r.owned = func(string) error { return strange }
	if _, err := r.Texts(); !errors.Is(err, strange) {
		t.Errorf("somebody else's file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".config.STARTD"), []byte("RUNTIME_CONFIG_ADMIN = ../../etc/passwd\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewRemoteConfig(snapshot(t, on), "STARTD", nil); !errs.Is(err, errs.Invalid) {
		t.Errorf("a name that leads elsewhere: %v", err)
	}
}

// No name is one of what files are called while they are written.
func TestNoNameIsInTheWay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	knobs := "ENABLE_PERSISTENT_CONFIG = true\nPERSISTENT_CONFIG_DIR = " + dir + "\n"
	r := remote(t, knobs, nil)
	for _, name := range []string{"tmp", "a.tmp", "a", "tmp.tmp", "b"} {
		if err := r.Persist(name, "A = 1\n"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	texts, err := remote(t, knobs, nil).Texts() // of the next life
	if len(texts) != 6 || err != nil {
		t.Errorf("kept are %v (%v)", texts, err)
	}
}

// Nobody fills the disk with settings.
func TestPersistentConfigIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := remote(t, "ENABLE_PERSISTENT_CONFIG = true\nPERSISTENT_CONFIG_DIR = "+dir+"\n", nil)
	if err := r.Persist("a0", "A = 1"); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < mostRemote; i++ {
		r.kept = append(r.kept, fmt.Sprint("a", i))
	}
	if err := r.Persist("one.more", "A = 1"); !errs.Is(err, errs.Exhausted) {
		t.Errorf("one too many: %v", err)
	}
	if err := r.Persist("a0", "A = 2"); err != nil {
		t.Errorf("one that is there: %v", err)
	}
}

// Who may set what by the command.
func TestSettingFromAfar(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	knobs := "ENABLE_PERSISTENT_CONFIG = true\nENABLE_RUNTIME_CONFIG = true\nPERSISTENT_CONFIG_DIR = " + dir + `
SETTABLE_ATTRS_CONFIG = START, STARTD_*, $feature.*
SETTABLE_ATTRS_ADMINISTRATOR = *
SETTABLE_ATTRS_CLIENT = *
`
	d := newDesk(t, knobs)
	d.answers.Remote = remote(t, knobs, nil)
	d.answers.Allowed = func(_ context.Context, l security.Level, r *security.Request) bool {
		return r.Peer.User == "admin@example" && l == security.Config || l == security.ClientLevel
	}
	for _, tt := range []struct {
		number     int
		name, text string
		want       int64
	}{
		{command.DCConfigPersist, "start", "START = false", 0},
		{command.DCConfigRuntime, "startd_x", "STARTD_X = 2", 0},
		{command.DCConfigRuntime, "$feature.gpus", "use feature:GPUs", 0},
		{command.DCConfigRuntime, "$role.execute", "use role:Execute", -1},
		{command.DCConfigRuntime, "x", "use feature:NoSuch", -1},
		{command.DCConfigPersist, "suspend", "SUSPEND = true", -1},               // not in the list
		{command.DCConfigPersist, "suspend", "", -1},                             // nor to be taken back
		{command.DCConfigPersist, "start", "SUSPEND = true", -1},                 // the line counts, not the name
		{command.DCConfigPersist, "start", "START = true\nSUSPEND = true", -1},   // one line
		{command.DCConfigPersist, "start", "START = true\\", -1},                 // a whole one
		{command.DCConfigPersist, "../start", "START = true", -1},                // no name
		{command.DCConfigPersist, "start", "START : true", -1},                   // no setting
		{command.DCConfigPersist, "start", "START", -1},                          // no setting
		{command.DCConfigPersist, "rehome", "START = true", -1},                  // the name counts too, it is what is replaced
		{command.DCConfigRuntime, "start", "START = $(", 0},                      // what it comes to is another matter
		{command.DCConfigRuntime, "start", "", 0},                                // taken back
		{command.DCConfigRuntime, "start", strings.Repeat("x", 1<<19) + "=", -1}, // too long
	} {
		got := int64(1)
		err := d.ask(t, tt.number, true, func(c *cedar.Conn) { c.PutString(tt.name); c.PutString(tt.text) }, func(c *cedar.Conn) {
			var err error
			if got, err = c.Int(); err != nil {
				t.Error(err)
			}
		})
		if got != tt.want || (err != nil) != (tt.want != 0) {
			t.Errorf("%d %s %.40q: %d, %v; want %d", tt.number, tt.name, tt.text, got, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("an error of several lines: %q", err)
		}
	}
	texts, err := d.answers.Remote.Texts()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range texts {
		got = append(got, x.Text)
	}
	if diff := cmp.Diff([]string{"RUNTIME_CONFIG_ADMIN = start\n", "START = false", "use feature:GPUs", "STARTD_X = 2"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func FuzzSettingName(f *testing.F) {
	for _, text := range []string{"START = false", "use feature:GPUs", "A=1\nB=2", "use x", "=", "a:b", ""} {
		f.Add("start", text)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		knob, err := settingName(name, text)
		if err == nil && (!remoteName(knob) || strings.ContainsAny(strings.TrimRight(text, "\r\n"), "\r\n")) {
			t.Errorf("%q of %q", knob, text)
		}
	})
}
