// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
)

var workOutputs = []struct {
	name, output, want, problem string
}{
	{"nothing", "", "", ""},
	{"empty lines", "\n  \n", "", ""},
	{"a job", "Cmd = \"/bin/true\"\n\nProcId=3\n", "Cmd = \"/bin/true\"\nProcId = 3\n", ""},
	{"no end of line, blanks, an expression", "  Cmd = \"/bin/true\"\r\nRequestCpus = 1 + 1", "Cmd = \"/bin/true\"\nRequestCpus = 1 + 1\n", ""},
	{"half a job", "Cmd = \"/bin/true\"\nwhat is this\n", "", "line 2"},
	{"no expression", "Cmd = \"/bin/true\n", "", "line 1"},
	{"no text", "Cmd = \"\xff\"\n", "", "UTF-8"},
	{"a long line", "Cmd = \"" + strings.Repeat("x", maxLine) + "\"\n", "", "longer"},
}

// row: S0-308, S0-314
func TestWork(t *testing.T) {
	t.Parallel()
	for _, c := range workOutputs {
		ad, err := Work([]byte(c.output))
		got := ""
		if ad != nil {
			got = ad.Text(classad.Old)
		}
		if got != c.want || (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %q, %v; want %q, %q", c.name, got, err, c.want, c.problem)
		}
	}
}

// What a hook prints is a job that can be completed and told of, or an error.
func FuzzWork(f *testing.F) {
	for _, c := range workOutputs {
		f.Add([]byte(c.output))
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		ad, err := Work(output)
		if err != nil && ad != nil {
			t.Errorf("%v, and a job", err)
		}
		if ad == nil {
			return
		}
		_ = CompleteWork(ad, "FOO", true)
		if v, ok := ad.EvalString("ShouldTransferFiles", nil); !ok || v != "NO" {
			t.Errorf("its files are moved: %q", v)
		}
		if _, ok := ad.Lookup("JobUniverse"); !ok {
			t.Error("it has no universe")
		}
		if text := About(ad, nil, "<1.2.3.4:5>#1#1#secret"); !strings.Contains(text, "\n-----\nClaimId = \"<1.2.3.4:5>#1#1#secret\"\n") {
			t.Errorf("what hooks are told: %q", text)
		}
	})
}

// row: S0-316, S0-318, S0-324
func TestCompleteWork(t *testing.T) {
	t.Parallel()
	const cmd, owner = "Cmd = \"/bin/true\"\n", "Owner = \"alice\"\n"
	for _, c := range []struct {
		name, ad string
		root     bool
		want     string // what is added
		problem  string
	}{
		{"the least", cmd, false, "ClusterId = 1\nHookKeyword = \"FOO\"\nJobUniverse = 5\nProcId = 0\nShouldTransferFiles = \"NO\"\n", ""},
		{"all of its own", cmd + owner + "ClusterId = 7\nProcId = 8\nHookKeyword = \"BAR\"\nJobUniverse = 10\nShouldTransferFiles = \"YES\"\n", true, "ShouldTransferFiles = \"NO\"\n", ""},
		{"a keyword that is no text", cmd + "HookKeyword = 3\n", false, "ClusterId = 1\nHookKeyword = \"FOO\"\nJobUniverse = 5\nProcId = 0\nShouldTransferFiles = \"NO\"\n", ""},
		{"no program", owner, true, "", "no Cmd"},
		{"an empty program", owner + "Cmd = \" \"\n", true, "", "no Cmd"},
		{"no owner under root", cmd, true, "", "no Owner"},
		{"another universe", cmd + "JobUniverse = 9\n", false, "", "JobUniverse is 9"},
		{"a universe that is no number", cmd + "JobUniverse = \"vanilla\"\n", false, "", "JobUniverse is"},
	} {
		ad, err := Work([]byte(c.ad))
		if err != nil {
			t.Fatal(err)
		}
		was := ad.Clone()
		err = CompleteWork(ad, "FOO", c.root)
		if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %v, want %q", c.name, err, c.problem)
			continue
		}
		if c.problem != "" {
			continue
		}
		for name, e := range was.All() {
			if now, ok := ad.Lookup(name); ok && now.String() == e.String() {
				ad.Delete(name)
			}
		}
		if diff := cmp.Diff(c.want, ad.Text(classad.Old)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// row: S0-315
func TestStartdHookPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sound, open, plain := filepath.Join(dir, "sound"), filepath.Join(dir, "open"), filepath.Join(dir, "plain")
	for path, mode := range map[string]fs.FileMode{sound: 0o755, open: 0o777, plain: 0o644} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	cfg := parseConfig(t, "FOO_HOOK_FETCH_WORK = "+sound+"\nFOO_HOOK_REPLY_FETCH = "+open+"\nFOO_HOOK_EVICT_CLAIM = "+plain+"\nBAR_HOOK_FETCH_WORK = "+dir+"/none\nBAZ_HOOK_FETCH_WORK = sound\n")
	for _, c := range []struct {
		keyword string
		hook    StartdHook
		problem string
	}{
		{"FOO", FetchWork, ""}, {"foo", FetchWork, ""}, {"FOO", ReplyFetch, "world-writable"}, {"FOO", EvictClaim, "not executable"},
		{"BAR", FetchWork, "none"}, {"BAR", ReplyFetch, ""}, {"BAZ", FetchWork, "absolute"},
	} {
		path, err := c.hook.Path(cfg, c.keyword, os.Stat)
		if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) || (path == "") != (c.keyword == "BAR" && c.hook == ReplyFetch) {
			t.Errorf("%s %s: %q, %v", c.keyword, c.hook, path, err)
		}
	}
}
