// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/host"
)

func jobHooksOf(t *testing.T, text string) *JobHooks {
	t.Helper()
	c, err := config.Parse("text", text, config.Options{Subsystem: "STARTER", LocalName: "slot_type_1"})
	if err != nil {
		t.Fatal(err)
	}
	h, err := JobHooksFrom(c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// What a configuration has under its keywords, in any case, with the prefixes of a
// starter and its slot type.
func TestJobHooksFrom(t *testing.T) {
	t.Parallel()
	if h := jobHooksOf(t, "A_HOOK_DIR = /x\nA_HOOK_PREPARE_JOB =\nB_HOOK_JOB_EXIT_TIMEOUT = 3\n_HOOK_JOB_EXIT = /y"); h != nil {
		t.Errorf("hooks of nothing: %+v", h)
	}
	got := jobHooksOf(t, `
STARTER_DEFAULT_JOB_HOOK_KEYWORD = web
Web_Hook_Dir = /opt/web
WEB_HOOK_PREPARE_JOB = $(WEB_HOOK_DIR)/prepare
WEB_HOOK_PREPARE_JOB_ARGS = one 'two words'
STARTER.WEB_HOOK_PREPARE_JOB_BEFORE_TRANSFER = /opt/before
WEB_HOOK_UPDATE_JOB_INFO = /opt/any
slot_type_1.WEB_HOOK_UPDATE_JOB_INFO = /opt/ofType
slot_type_2.OTHER_HOOK_JOB_EXIT = /opt/ofAnother
SCHEDD.LATE_HOOK_JOB_EXIT = /opt/schedd
DB_HOOK_FETCH_WORK = /opt/fetch
DB_HOOK_JOB_EXIT_TIMEOUT = 7
LAST_HOOK_JOB_EXIT = /opt/last
LAST_HOOK_JOB_EXIT_TIMEOUT = 0
`)
	want := &JobHooks{Default: "web", Sets: map[string]*JobHookSet{
		"WEB": {
			Paths:       map[JobHook]string{PrepareJob: "/opt/web/prepare", PrepareBeforeTransfer: "/opt/before", UpdateJobInfo: "/opt/ofType"},
			PrepareArgs: "one 'two words'", ExitTimeout: 30 * time.Second,
		},
		"DB":   {Paths: map[JobHook]string{}, Others: []string{"/opt/fetch"}, ExitTimeout: 7 * time.Second},
		"LAST": {Paths: map[JobHook]string{JobExit: "/opt/last"}, ExitTimeout: time.Second},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	c, err := config.Parse("text", "A_HOOK_JOB_EXIT = /x\nA_HOOK_JOB_EXIT_TIMEOUT = soon", config.Options{Subsystem: "STARTER"})
	if err != nil {
		t.Fatal(err)
	}
	if h, err := JobHooksFrom(c); err == nil {
		t.Errorf("a time that is none was read: %+v", h)
	}
}

// Which keyword counts.
//
// row: S0-325
func TestChooseJobHooks(t *testing.T) {
	t.Parallel()
	const sets = "FORCED_HOOK_JOB_EXIT = /f\nDEF_HOOK_JOB_EXIT = /d\nOWN_HOOK_JOB_EXIT = /o\nOWN_HOOK_PREPARE_JOB = /bad\nBAD_HOOK_JOB_EXIT = /bad\nFETCH_HOOK_FETCH_WORK = /w\n"
	for _, c := range []struct{ conf, named, keyword, path, said string }{
		{"", "", "", "", ""},
		{"", "own", "own", "/o", "from job ClassAd"},
		{"", "OWN", "OWN", "/o", "from job ClassAd"},
		{"", "nobody", "", "", "Ignoring HookKeyword value of \"nobody\""},
		{"STARTER_DEFAULT_JOB_HOOK_KEYWORD = def", "", "def", "/d", "Using STARTER_DEFAULT_JOB_HOOK_KEYWORD"},
		{"STARTER_DEFAULT_JOB_HOOK_KEYWORD = def", "own", "own", "/o", "from job ClassAd"},
		{"STARTER_DEFAULT_JOB_HOOK_KEYWORD = def", "nobody", "def", "/d", "Ignoring"},
		{"STARTER_DEFAULT_JOB_HOOK_KEYWORD = def", "bad", "def", "/d", "Ignoring"},
		{"STARTER_DEFAULT_JOB_HOOK_KEYWORD = def", "fetch", "fetch", "", "from job ClassAd"},
		{"STARTER_JOB_HOOK_KEYWORD = Forced\nSTARTER_DEFAULT_JOB_HOOK_KEYWORD = def", "own", "Forced", "/f", "Using STARTER_JOB_HOOK_KEYWORD"},
		{"STARTER_JOB_HOOK_KEYWORD = forced\nSTARTER_DEFAULT_JOB_HOOK_KEYWORD = def", "", "forced", "/f", "Using STARTER_JOB_HOOK_KEYWORD"},
		{"STARTER_JOB_HOOK_KEYWORD = none", "own", "none", "", "Using STARTER_JOB_HOOK_KEYWORD"},
	} {
		got := jobHooksOf(t, sets+c.conf).Choose(c.named, func(path string) bool { return path != "/bad" })
		if got.Keyword != c.keyword || got.Path(JobExit) != c.path || !strings.Contains(strings.Join(got.Said, "\n"), c.said) {
			t.Errorf("%q, job %q: %q with %q, %q", c.conf, c.named, got.Keyword, got.Path(JobExit), got.Said)
		}
	}
	if got := (*JobHooks)(nil).Choose("x", nil); got.Path(PrepareJob) != "" || got.Unsound(nil) != nil {
		t.Errorf("%+v", got)
	}
}

// Programs that may not be hooks.
func TestCheckPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	make := func(path string, mode fs.FileMode) string {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	open := make("open/hook", 0o755)
	if err := os.Chmod(filepath.Dir(open), 0o1777); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		make("good", 0o755): "", make("private", 0o700): "", make("group", 0o775): "",
		make("text", 0o644): "is not executable", make("all", 0o777): "is world-writable", open: "in a world-writable directory",
		dir: "is not executable", filepath.Join(dir, "none"): "no such file", "good": "is no absolute path",
	} {
		err := CheckPath("A_HOOK_JOB_EXIT", path, os.Stat)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "A_HOOK_JOB_EXIT")) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	for text, want := range map[string]string{
		"A_HOOK_JOB_EXIT = " + open + "\nA_HOOK_PREPARE_JOB = " + filepath.Join(dir, "good"):         "world-writable directory",
		"A_HOOK_PREPARE_JOB = " + filepath.Join(dir, "good") + "\nA_HOOK_PREPARE_JOB_ARGS = 'open":   "A_HOOK_PREPARE_JOB_ARGS",
		"A_HOOK_PREPARE_JOB = " + filepath.Join(dir, "good") + "\nA_HOOK_PREPARE_JOB_ARGS = a 'b c'": "",
	} {
		c := jobHooksOf(t, text).Choose("a", func(string) bool { return true })
		if err := c.Unsound(os.Stat); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What the end and the output of a prepare hook mean.
//
// row: S0-331, S0-332, S0-333
func TestVerdict(t *testing.T) {
	t.Parallel()
	exit := func(code int) host.ExitStatus { return host.ExitStatus{Exited: true, Code: code} }
	for _, c := range []struct {
		status         host.ExitStatus
		out            string
		code           int
		ok, hold, tell bool
		text           string
	}{
		{exit(0), "", 0, true, false, false, "PREPARE_JOB (hook) succeeded (exited with status 0): <no message>"},
		{exit(0), "A = 1\nHookStatusMessage = \"fine\"\n", 0, true, false, true, "PREPARE_JOB (hook) succeeded (exited with status 0): fine"},
		{exit(3), "", 3, false, true, false, "PREPARE_JOB (hook) failed (exited with status 3): <no message>"},
		{exit(3), "HookStatusMessage = \"bad\"", 3, false, true, false, "PREPARE_JOB (hook) failed (exited with status 3): bad"},
		{exit(0), "HookStatusMessage = \"a\tred \x1b[31malarm\x07\"", 0, true, false, true, "PREPARE_JOB (hook) succeeded (exited with status 0): a red  [31malarm"},
		{exit(0), "HookStatusMessage = \" \t \"", 0, true, false, false, "PREPARE_JOB (hook) succeeded (exited with status 0): <no message>"},
		{exit(3), "HookStatusCode = 0", 0, true, false, false, "PREPARE_JOB (hook) succeeded (reported status 000): <no message>"},
		{exit(0), "HookStatusCode = 7", 7, false, true, false, "PREPARE_JOB (hook) failed (reported status 007): <no message>"},
		{exit(0), "HookStatusCode = 299", 299, false, true, false, "PREPARE_JOB (hook) failed (reported status 299): <no message>"},
		{exit(0), "HookStatusCode = 300", 300, false, false, false, "PREPARE_JOB (hook) failed (reported status 300): <no message>"},
		{exit(5), "HookStatusCode = -1", 5, false, true, false, "PREPARE_JOB (hook) failed (exited with status 5): <no message>"},
		{exit(0), "HookStatusCode = -1", 0, true, false, false, "PREPARE_JOB (hook) succeeded (exited with status 0): <no message>"},
		{exit(0), "HookStatusCode = \"7\"", 0, true, false, false, "PREPARE_JOB (hook) succeeded (exited with status 0): <no message>"},
		{exit(0), "HookStatusCode = 99999999999", 1<<31 - 1, false, false, false, "PREPARE_JOB (hook) failed (reported status 2147483647): <no message>"},
		{host.ExitStatus{Signal: 9}, "HookStatusCode = 0\nHookStatusMessage = \"all well\"", -9, false, false, false, "PREPARE_JOB (hook) failed (died with signal 9): all well"},
		{host.ExitStatus{}, "", -1, false, false, false, "PREPARE_JOB (hook) failed (died with signal 0): <no message>"},
	} {
		v := VerdictOf(PrepareJob, "/opt/hook", c.status, []byte(c.out))
		if v.Code != c.code || v.OK != c.ok || v.Hold != c.hold || v.Tell != c.tell || v.Text != c.text {
			t.Errorf("%v, %q: %+v", c.status, c.out, v)
		}
	}
	long := VerdictOf(PrepareJob, "/h", exit(1), []byte("HookStatusMessage = \""+strings.Repeat("ä", 20000)+"\""))
	if len(long.Text) > maxMessage+100 || !strings.HasSuffix(long.Text, "…") {
		t.Errorf("a message of %d bytes", len(long.Text))
	}
}

// Which lines of the output count.
func TestParseEdits(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]string{
		"":                               "",
		"A = 1\n\n  B=\"x = y\"  \r\n":   "A = 1\nB = \"x = y\"\n",
		"A = 1\nnonsense\nB = 2":         "A = 1\n", // as HTCondor
		"Setting up\nA = 1":              "",
		"A = 1\n-----\nB = 2":            "A = 1\n",
		"A = 1\nA = 2":                   "A = 2\n",
		"Cmd = \"/usr/java/bin/java\"":   "Cmd = \"/usr/java/bin/java\"\n",
		"A = (1\nB = 2":                  "",
		"Env = \"A=1 B=2\"\nX = Y + 1\n": "Env = \"A=1 B=2\"\nX = Y + 1\n",
	} {
		ad, bad := parseEdits([]byte(out))
		if got := ad.Text(classad.Old); got != want {
			t.Errorf("%q: %q, %v", out, got, bad)
		}
	}
	if _, bad := parseEdits([]byte("A = 1\n\nnonsense")); bad == nil || bad.Number != 3 {
		t.Errorf("%+v", bad)
	}
}

func FuzzParseEdits(f *testing.F) {
	for _, seed := range []string{"", "A = 1\nB = \"x\"\n", "nonsense", "A = (1", "HookStatusCode = 5\nHookStatusMessage = \"m\"\n", "\x00=\n", "A=1\r\n\r\nB=2"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		v := VerdictOf(PrepareJob, "/h", host.ExitStatus{Exited: true}, out)
		if v.OK && v.Hold || v.Hold && (v.Code < 1 || v.Code > lastHold) {
			t.Errorf("%+v", v)
		}
		// What counts is read the same when it is printed.
		again, bad := parseEdits([]byte(v.Edits.TextAll(classad.Old)))
		if bad != nil || again.TextAll(classad.Old) != v.Edits.TextAll(classad.Old) {
			t.Errorf("%q: %q, %v", out, again.TextAll(classad.Old), bad)
		}
	})
}
