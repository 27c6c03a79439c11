// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
)

// believed is a plugin that does nothing, and says that all is well.
func believed(says string) Runner {
	return func(_ context.Context, spec PluginSpec) (PluginExit, error) {
		return PluginExit{Output: []byte("one\ntwo\n")}, os.WriteFile(spec.Args[4], []byte(says), 0o600)
	}
}

const allWell = `[ TransferSuccess = true; TransferProtocol = "fake"; TransferTotalBytes = 10000000000 ]`

// A plugin that says it has done well is believed, whatever it has made.
func TestPluginIsBelieved(t *testing.T) {
	t.Parallel()
	p := &Plugins{List: []Plugin{fakeOne}, Run: believed(allWell)}
	into, stats, err := asked(t, p, "fake://h/a", "fake://h/b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := into.Lstat("a"); !os.IsNotExist(err) {
		t.Errorf("a: %v", err)
	}
	if got := stats.Protocols["FAKE"]; got.Files != 1 || got.Bytes != 10000000000 {
		t.Errorf("stats %+v", stats)
	}
	// One result for two files, under no name: both are stored.
	from := root(t)
	put(t, from.Name(), map[string]string{"a": "A", "b": "B"})
	m := move(t, from, root(t), SendPlan{Final: true, Items: []SendItem{{Source: "a", URL: "fake://h/a"}, {Source: "b", URL: "fake://h/b"}}},
		SendOptions{Plugins: p}, ReceiveOptions{})
	if m.sendErr != nil || m.receiveErr != nil || len(m.got.Reported) != 2 {
		t.Errorf("%v, %v, %v", m.sendErr, m.receiveErr, m.got.Reported)
	}
}

// A file that is not there and has a URL is the plugin's to judge.
func TestPluginOfMissingFile(t *testing.T) {
	t.Parallel()
	plan := SendPlan{Final: true, Items: []SendItem{{Source: "none", URL: "fake://h/none"}}}
	for name, tt := range map[string]struct {
		p    *Plugins
		sub  int
		want string // "" is no failure
	}{
		"well":        {&Plugins{List: []Plugin{fakeOne}, Run: (&fakePlugin{}).run}, 0, ""},
		"its code":    {&Plugins{List: []Plugin{fakeOne}, Run: (&fakePlugin{fail: "fake://h/none", exit: PluginExit{Code: 17}}).run}, 17 << 8, "no such [object]"},
		"no plugin":   {&Plugins{}, subPluginUnknown, "plugin for type fake not found!"},
		"of old kind": {&Plugins{List: []Plugin{{Path: "/l/old", Methods: []string{"fake"}, Protocol: 1}}, Run: oldFails}, 4 << 8, "no such thing"},
	} {
		m := move(t, root(t), root(t), plan, SendOptions{Plugins: tt.p}, ReceiveOptions{})
		if tt.want == "" {
			if m.sendErr != nil {
				t.Errorf("%s: %v", name, m.sendErr)
			}
			continue
		}
		if w := failure(t, m.sendErr); w.HoldCode != HoldUpload || w.HoldSubcode != tt.sub || !strings.Contains(w.Reason, tt.want) {
			t.Errorf("%s: %+v", name, w)
		}
	}
	// What is there and cannot be given is no plugin's business.
	from := root(t)
	put(t, from.Name(), map[string]string{"d/x": ""})
	if err := from.Symlink("d", "link"); err != nil {
		t.Fatal(err)
	}
	f := &fakePlugin{}
	for _, name := range []string{"link", "../up", "/etc/passwd"} {
		m := move(t, from, root(t), SendPlan{Final: true, Items: []SendItem{{Source: name, URL: "fake://h/x"}}}, SendOptions{Plugins: &Plugins{List: []Plugin{fakeOne}, Run: f.run}}, ReceiveOptions{})
		if w := failure(t, m.sendErr); len(f.runs) > 0 || w.HoldSubcode >= 256 {
			t.Errorf("%s: %d runs, %+v", name, len(f.runs), w)
		}
	}
}

func oldFails(context.Context, PluginSpec) (PluginExit, error) {
	return PluginExit{Code: 4, Output: []byte("TransferError = \"no such thing\"\n")}, nil
}

// The loader of programs listens to no job.
func TestPluginEnvironment(t *testing.T) {
	t.Parallel()
	p := &Plugins{JobEnv: []string{"LD_PRELOAD=/x", "LD_x=1", "GLIBC_TUNABLES=y"}}
	for _, one := range []Plugin{{Path: "/l/ld_plugin"}, {Path: "/l/glibc_plugin.py"}} {
		if env := p.environment(one); len(env) != 0 {
			t.Errorf("%s: %q", one.Path, env)
		}
	}
	if env := p.environment(Plugin{Path: "ld_plugin", FromJob: true}); len(env) != 2 {
		t.Errorf("the job's own: %q", env)
	}
}

// Absolute paths outside lead to what the opener opens, and nowhere without one.
func TestOutside(t *testing.T) {
	t.Parallel()
	from, into, elsewhere := root(t), root(t), t.TempDir()
	put(t, from.Name(), map[string]string{"here": "H"})
	put(t, elsewhere, map[string]string{"file": "F", "dir/x": "X", "dir/sub/y": "Y", "dir/.job.ad": "quiet"})
	if err := os.Symlink("..", filepath.Join(elsewhere, "dir/up")); err != nil {
		t.Fatal(err)
	}
	open := func(path string) (*os.File, error) { return os.Open(path) }
	file, dir := filepath.Join(elsewhere, "file"), filepath.Join(elsewhere, "dir")
	plan := SendPlan{Final: true, Preserve: true, Quiet: map[string]bool{".job.ad": true}, Items: items("here", file, dir+"/sub/")}
	m := move(t, from, into, plan, SendOptions{Outside: open}, ReceiveOptions{})
	if m.sendErr != nil || m.receiveErr != nil {
		t.Fatal(m.sendErr, m.receiveErr)
	}
	if diff := cmp.Diff(map[string]string{"here": "H", "file": "F", "y": "Y"}, treeOf(t, into)); diff != "" {
		t.Error(diff)
	}
	// A link that leads back up is not followed.
	m = move(t, from, root(t), SendPlan{Final: true, Items: items(dir)}, SendOptions{Outside: open}, ReceiveOptions{})
	if w := failure(t, m.sendErr); !strings.Contains(w.Reason, dir+"/up: ") || !strings.Contains(w.Reason, "symlinks to directories") {
		t.Errorf("%+v", w)
	}
	for name, tt := range map[string]struct {
		open  Outside
		names []string
		want  string
	}{
		"forbidden":   {nil, []string{file}, file + ": (errno 1) Operation not permitted"},
		"not there":   {open, []string{file + "x"}, file + "x: (errno 2) No such file or directory"},
		"up and away": {open, []string{"../x"}, "../x: (errno 1)"},
	} {
		m := move(t, from, root(t), SendPlan{Final: true, Items: items(tt.names...)}, SendOptions{Outside: tt.open}, ReceiveOptions{})
		if w := failure(t, m.sendErr); !strings.Contains(w.Reason, strings.TrimPrefix(tt.want, "..")) {
			t.Errorf("%s: %+v", name, w)
		}
	}
	// A plugin stores it, unless it may read what the job may not.
	f := &fakePlugin{}
	stored := SendPlan{Final: true, Items: []SendItem{{Source: file, URL: "fake://h/f"}}}
	p := &Plugins{List: []Plugin{fakeOne}, Run: f.run}
	m = move(t, from, root(t), stored, SendOptions{Plugins: p, Outside: open}, ReceiveOptions{})
	if m.sendErr != nil || len(f.in) != 1 || !strings.Contains(f.in[0], fmt.Sprintf("LocalFileName = %q", file)) {
		t.Errorf("%v, %q", m.sendErr, f.in)
	}
	p.Privileged = true
	m = move(t, from, root(t), stored, SendOptions{Plugins: p, Outside: open}, ReceiveOptions{})
	if w := failure(t, m.sendErr); len(f.runs) != 1 || w.HoldSubcode != subNotPermitted {
		t.Errorf("%d runs, %+v", len(f.runs), w)
	}
}

func TestOutsideIsBounded(t *testing.T) {
	t.Parallel()
	x := &expander{outside: outsideTree{}, outer: mostOutside}
	if _, err := x.treeOf("/a"); err != errTooMany {
		t.Error(err)
	}
}

// What a plugin does is in the log, in HTCondor's words and categories.
func TestPluginLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	side := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	dir := root(t)
	p := &Plugins{List: []Plugin{fakeOne}, Scratch: "/scratch", Run: believed(allWell), movingEnd: movingEnd{log: side}, OnSuccess: LogAs{Category: "D_ALWAYS"}}
	run := p.Run
	p.Run = func(ctx context.Context, spec PluginSpec) (PluginExit, error) {
		spec.Waiting()
		spec.Args[4] = filepath.Join(dir.Name(), filepath.Base(spec.Args[4]))
		return run(ctx, spec)
	}
	b := batch{plugin: fakeOne, items: []urlItem{{URL: "fake://u:p@h/a?token=t", Name: "a"}, {URL: "fake://h/b", Name: "/d/b"}}}
	if o := p.transfer(t.Context(), dir, b, classInput, nil, &Stats{}); o.result != pluginWell {
		t.Fatalf("%+v", o)
	}
	want := strings.Join([]string{
		`level=DEBUG msg="FILETRANSFER: invoking: /libexec/fake_plugin -infile /scratch/.fake_plugin.in -outfile /scratch/.fake_plugin.out" cat=D_ALWAYS`,
		`level=DEBUG msg="FILETRANSFER: with plugin input: [ Url = \"fake://h/a?...\"; LocalFileName = \"/scratch/a\" ][ Url = \"fake://h/b\"; LocalFileName = \"/d/b\" ]" cat=D_ALWAYS`,
		`level=INFO msg="wait_for_output() callback (multi)" cat=D_TEST`,
		`level=INFO msg="FILETRANSFER: plugin /libexec/fake_plugin: exit_code 0 exit_by_signal: 0 exit_signal: 0" cat=D_ERROR`,
		`level=INFO msg="FILETRANSFER: plugin /libexec/fake_plugin exit=0 stdout:" cat=D_ALWAYS text="one\ntwo\n"`,
	}, "\n") + "\n"
	if diff := cmp.Diff(want, log.String()); diff != "" {
		t.Error(diff)
	}
	log.Reset()
	p.OnFailure = LogAs{Category: "D_TEST", Verbose: true}
	p.logExit("/l/x", pluginError, PluginExit{Signal: 9, Output: bytes.Repeat([]byte("a"), mostSaid+5)}, 0)
	p.logExit("/l/x", pluginTimedOut, PluginExit{TimedOut: true, Code: 62}, 90e9)
	for _, part := range []string{
		"exit_code 0 exit_by_signal: 1 exit_signal: 9", "exit=0 had 16389 bytes of stdout. last 16KB :", "cat=D_TEST text=aaa", "was killed after running for 90 seconds.",
	} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("no %q in\n%.500s", part, log.String())
		}
	}
}

// A record is what HTCondor writes, and nothing that a plugin reports makes two of it.
func TestRecord(t *testing.T) {
	t.Parallel()
	job := parse(t, "ClusterId = 12\nProcId = 3\nOwner = \"ann\"")
	ad := parse(t, `TransferUrl = "fake://u:p@h/a?secret"`+"\nTransferSuccess = true\nDeveloperData = [ b = 1 ]")
	ad.SetString("TransferError", "one\n***\nJobOwner = \"root\"\n")
	record := string(Record(job, ad))
	lines := strings.Split(strings.TrimSuffix(record, "\n"), "\n")
	want := []string{"***", "DeveloperData", "JobClusterId", "JobOwner", "JobProcId", "TransferError", "TransferSuccess", "TransferUrl"}
	var names []string
	for _, line := range lines {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("%s\n%s", diff, record)
	}
	if !slices.Contains(lines, `TransferUrl = "fake://h/a?..."`) || !slices.Contains(lines, "JobClusterId = 12") || !slices.Contains(lines, `JobOwner = "ann"`) {
		t.Error(record)
	}
	ad.SetString("TransferError", strings.Repeat("x", mostRecord))
	if Record(job, ad) != nil {
		t.Error("a record has no bound")
	}
}

// Every file of the input and every result of a plugin is told of.
func TestRecordsOfInput(t *testing.T) {
	t.Parallel()
	from, into := root(t), root(t)
	put(t, from.Name(), map[string]string{"a": "AAA", "d/x": "XX"})
	var told []string
	m := moveWith(t, from, into, SendPlan{Items: items("a", "d", "fake://h/u")}, SendOptions{}, ReceiveOptions{Plugins: &Plugins{List: []Plugin{fakeOne}, Run: (&fakePlugin{}).run}},
		func(ad *classad.Ad) {
			if text(ad, "TransferProtocol") != "cedar" {
				told = append(told, text(ad, "TransferUrl"))
				return
			}
			begun, _ := ad.EvalReal("TransferStartTime", nil)
			ended, _ := ad.EvalReal("TransferEndTime", nil)
			well, _ := ad.EvalBool("TransferSuccess", nil)
			if begun < 1e9 || ended < begun || !well || text(ad, "TransferType") != "download" {
				t.Errorf("%v", ad.Text(classad.New))
			}
			told = append(told, fmt.Sprint(text(ad, "TransferFileName"), " ", number(ad, "TransferFileBytes"), " ", number(ad, "TransferTotalBytes")))
		})
	if m.receiveErr != nil {
		t.Fatal(m.receiveErr)
	}
	if diff := cmp.Diff([]string{"a 3 3", "d 0 0", "d/x 2 2", "fake://h/u"}, told); diff != "" {
		t.Error(diff)
	}
}
