// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
)

// fakePlugin is a plugin's program, in this process: it makes every file that
// is asked for with the URL as its contents, and remembers its runs.
type fakePlugin struct {
	runs []PluginSpec
	in   []string
	exit PluginExit
	err  error
	fail string // a URL that fails
	mute bool   // it reports nothing
	out  string // reported in place of results
}

func (f *fakePlugin) run(_ context.Context, spec PluginSpec) (PluginExit, error) {
	f.runs = append(f.runs, spec)
	if f.err != nil {
		return PluginExit{}, f.err
	}
	list, err := os.ReadFile(spec.Args[2])
	if err != nil {
		return PluginExit{}, err
	}
	f.in = append(f.in, string(list))
	var out strings.Builder
	for _, ad := range parseAds(list) {
		url, name := text(ad, "Url"), text(ad, "LocalFileName")
		if url == "" {
			continue
		}
		well := url != f.fail
		if well && !slices.Contains(spec.Args, "-upload") {
			if err := os.WriteFile(name, []byte(url), 0o600); err != nil {
				return PluginExit{}, err
			}
		}
		fmt.Fprintf(&out, "[ TransferUrl = %q; TransferFileName = %q; TransferProtocol = \"fake\"; TransferSuccess = %v; TransferTotalBytes = %d;", url, name, well, len(url))
		if !well {
			fmt.Fprint(&out, ` TransferError = "no such [object]\n";`)
		}
		fmt.Fprint(&out, "]\n")
	}
	if f.out != "" {
		out.Reset()
		out.WriteString(f.out)
	}
	if !f.mute {
		if err := os.WriteFile(spec.Args[4], []byte(out.String()), 0o600); err != nil {
			return PluginExit{}, err
		}
	}
	return f.exit, nil
}

var fakeOne = Plugin{Path: "/libexec/fake_plugin", Methods: []string{"fake"}, Multi: true, Protocol: 4}

// asked sends URLs to a receiver with plugins.
func asked(t *testing.T, p *Plugins, urls ...string) (into *os.Root, stats Stats, err error) {
	t.Helper()
	from := root(t)
	into = root(t)
	var owned []string
	m := move(t, from, into, SendPlan{Items: items(urls...)}, SendOptions{}, ReceiveOptions{
		Plugins: p, Executable: "run.sh",
		Owner: func(_ *os.Root, name string, _ bool) error {
			owned = append(owned, name)
			return nil
		},
	})
	if (m.sendErr == nil) != (m.receiveErr == nil) {
		t.Errorf("the ends differ: %v, %v", m.sendErr, m.receiveErr)
	}
	return into, m.got, m.receiveErr
}

func TestPluginInput(t *testing.T) {
	t.Parallel()
	f := &fakePlugin{}
	job := parse(t, "PluginData = [ a = 1 ]\nfake_PluginData = \"x\"\nother_PluginData = 2")
	p := &Plugins{List: []Plugin{fakeOne}, Run: f.run, Job: job, Env: []string{"_CONDOR_JOB_AD=/x"}, JobEnv: []string{"FAKE_DEBUG=1", "HOME=/h", "fake_x=2", "FAKE=3", "FAKERY_=4"}, Lifetime: time.Minute}
	_, _, err := asked(t, p, "fake://h/d/a?token=t", "x+fake://h/run.sh", "data:,no")
	if err == nil {
		t.Error("data: has no slashes, and so is a file that does not exist")
	}
	into, stats, err := asked(t, p, "fake://h/d/a?token=t", "x+fake://h/run.sh")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "fake://h/d/a?token=t", "run.sh": "x+fake://h/run.sh"}, treeOf(t, into)); diff != "" {
		t.Error(diff)
	}
	if info, err := into.Stat("run.sh"); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the executable: %v, %v", info.Mode(), err)
	}
	run := f.runs[len(f.runs)-1]
	if run.Waiting == nil {
		t.Error("nobody is told that the program runs")
	}
	run.Waiting = nil
	want := PluginSpec{
		Path: "/libexec/fake_plugin", Dir: into.Name(), Timeout: time.Minute, Every: 60 * time.Second,
		Args: []string{"/libexec/fake_plugin", "-infile", filepath.Join(into.Name(), ".fake_plugin.in"), "-outfile", filepath.Join(into.Name(), ".fake_plugin.out")},
		Env:  []string{"_CONDOR_JOB_AD=/x", "FAKE_DEBUG=1", "fake_x=2"},
	}
	if diff := cmp.Diff(want, run); diff != "" {
		t.Error(diff)
	}
	var list []string
	for _, ad := range parseAds([]byte(f.in[len(f.in)-1])) {
		list = append(list, ad.Text(classad.New))
	}
	if got := strings.Join(list, "\n"); len(list) != 4 || !strings.Contains(list[0], "PluginData = [ a = 1 ]") || !strings.Contains(list[1], `Protocol = "fake"`) ||
		!strings.Contains(list[2], `Url = "fake://h/d/a?token=t"`) || strings.Contains(got, "other_") {
		t.Errorf("the list is\n%s", got)
	}
	if got := stats.Protocols["FAKE"]; got.Files != 2 || len(stats.PluginResults) != 3 || number(stats.PluginResults[0], "TransferClass") != classInput {
		t.Errorf("stats %+v", stats)
	}
	if got := stats.Ad(); !got.Equal(parse(t, "Protocols = \"FAKE\"\nFAKEFilesCount = 2\nFAKESizeBytes = 37")) {
		t.Errorf("TransferStats = %v", got.Text(classad.New))
	}
}

// How a plugin ends decides about the numbers of the hold.
func TestPluginFailures(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		f     fakePlugin
		sub   int
		retry bool
		want  string
	}{
		"exit code":      {fakePlugin{exit: PluginExit{Code: 3}, fail: "fake://h/a"}, 3 << 8, false, `non-zero exit (3) from /libexec/fake_plugin. |Error: no such [object]\n ( URL file = fake://h/a )|`},
		"signal":         {fakePlugin{exit: PluginExit{Signal: 11}, mute: true}, 11, false, "(signal 11), no valid classads"},
		"time-out":       {fakePlugin{exit: PluginExit{TimedOut: true}, mute: true}, subTimeout, false, "timed out after 60 seconds"},
		"not to be run":  {fakePlugin{err: errors.New("exec format error")}, subPluginNotRun, true, "Failed to execute /libexec/fake_plugin: exec format error"},
		"nothing said":   {fakePlugin{mute: true}, subPluginNoResult, false, "no valid classads in output file /"},
		"nonsense said":  {fakePlugin{out: "[[[ \"]\" "}, subPluginNoResult, false, "no valid classads"},
		"failed quietly": {fakePlugin{exit: PluginExit{Code: 2}, out: "[ TransferSuccess = true; TransferUrl = \"u\" ]"}, 2 << 8, false, "did not report a TransferError message"},
		"no verdict":     {fakePlugin{out: "[ TransferUrl = \"u\" ]"}, 0, false, "without producing a TransferSuccess result"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := asked(t, &Plugins{List: []Plugin{fakeOne}, Run: tt.f.run, Lifetime: time.Minute}, "fake://h/a", "fake://h/b")
			if w := failure(t, err); w.HoldCode != HoldDownload || w.HoldSubcode != tt.sub || w.Retry != tt.retry || !strings.Contains(w.Reason, tt.want) {
				t.Errorf("%+v", w)
			}
		})
	}
}

// All URLs together are bounded, as each one is.
func TestURLsAreBounded(t *testing.T) {
	t.Parallel()
	var urls []string
	for i := range maxURLText/(8<<20) + 1 {
		urls = append(urls, fmt.Sprintf("fake://h/%s/%d", strings.Repeat("x", 8<<20), i))
	}
	f := &fakePlugin{}
	m := move(t, root(t), root(t), SendPlan{Items: items(urls...)}, SendOptions{}, ReceiveOptions{Plugins: &Plugins{List: []Plugin{fakeOne}, Run: f.run}})
	if w := failure(t, m.receiveErr); w.HoldCode != HoldDownload || !strings.Contains(w.Reason, "URLs of more than") || len(f.runs) > 0 {
		t.Errorf("%.300v, %d runs", w, len(f.runs))
	}
}

// A plugin that leaves a pipe in place of its report, by its name or behind a
// link, is not waited for.
func TestPluginLeavesPipe(t *testing.T) {
	t.Parallel()
	mkfifo, err := exec.LookPath("mkfifo")
	if err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, linked := range []bool{false, true} {
		dir := root(t)
		p := &Plugins{List: []Plugin{fakeOne}, Scratch: dir.Name(), Run: func(_ context.Context, spec PluginSpec) (PluginExit, error) {
			report := spec.Args[4]
			err := os.Remove(report)
			if pipe := "pipe"; linked && err == nil {
				err = os.Symlink(pipe, report)
				report = filepath.Join(spec.Dir, pipe)
			}
			return PluginExit{}, errors.Join(err, exec.CommandContext(ctx, mkfifo, report).Run())
		}}
		done := make(chan outcome, 1)
		go func() {
			done <- p.transfer(ctx, dir, batch{plugin: fakeOne, items: []urlItem{{URL: "fake://h/a", Name: "a"}}}, classInput, nil, &Stats{})
		}()
		select {
		case o := <-done:
			if o.result != pluginError || !strings.Contains(o.text, "unable to open output file") {
				t.Errorf("linked %v: %+v", linked, o)
			}
		case <-ctx.Done():
			t.Fatalf("linked %v: the pipe is waited for", linked)
		}
	}
}

func TestPluginOutput(t *testing.T) {
	t.Parallel()
	from, into := root(t), root(t)
	put(t, from.Name(), map[string]string{"a": "A", "b": "BB", "d/c": "C", "here": "H"})
	f := &fakePlugin{}
	p := &Plugins{List: []Plugin{fakeOne}, Run: f.run}
	plan := SendPlan{Final: true, Items: []SendItem{
		{Source: "here"}, {Source: "a", URL: "fake://h/a"}, {Source: "d", URL: "fake://h/out"}, {Source: "b", URL: "fake://h/b"},
	}}
	m := move(t, from, into, plan, SendOptions{Plugins: p}, ReceiveOptions{})
	if m.sendErr != nil || m.receiveErr != nil {
		t.Fatal(m.sendErr, m.receiveErr)
	}
	if len(f.runs) != 1 || f.runs[0].Args[len(f.runs[0].Args)-1] != "-upload" {
		t.Errorf("runs %+v", f.runs)
	}
	var reported []string
	for _, ad := range m.got.Reported {
		reported = append(reported, fmt.Sprint(text(ad, "Filename"), " ", text(ad, "OutputDestination"), " ", number(ad, "Result"), number(ad, "ProtocolVersion"), number(ad, "Command")))
	}
	if diff := cmp.Diff([]string{"a fake://h/a 0 1 999", "c fake://h/out/c 0 1 999", "b fake://h/b 0 1 999"}, reported); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"here": "H"}, treeOf(t, into)); diff != "" {
		t.Error(diff)
	}
	if number(m.sent.PluginResults[0], "TransferClass") != classOutput || m.sent.Protocols["FAKE"].Files != 3 {
		t.Errorf("stats %+v", m.sent)
	}
	for name, tt := range map[string]struct {
		p    *Plugins
		sub  int
		want string
	}{
		"fails":      {&Plugins{List: []Plugin{fakeOne}, Run: (&fakePlugin{fail: "fake://h/b", exit: PluginExit{Code: 1}}).run}, 1 << 8, "no such [object]"},
		"no plugin":  {&Plugins{}, subPluginUnknown, "plugin for type fake not found!"},
		"no URLs":    {&Plugins{Disabled: true}, subPluginBroken, "disabled by configuration"},
		"not at all": {nil, subPluginBroken, "disabled by configuration"},
		"signal":     {&Plugins{List: []Plugin{fakeOne}, Run: (&fakePlugin{exit: PluginExit{Signal: 9}, mute: true}).run}, 9, "(signal 9), no valid classads"},
		"not to run": {&Plugins{List: []Plugin{fakeOne}, Run: (&fakePlugin{err: errors.New("exec format error")}).run}, subPluginNotRun, "exec format error"},
	} {
		m := move(t, from, root(t), plan, SendOptions{Plugins: tt.p}, ReceiveOptions{})
		if w := failure(t, m.sendErr); w.HoldCode != HoldUpload || w.HoldSubcode != tt.sub || w.Retry || !strings.Contains(w.Reason, tt.want) {
			t.Errorf("%s: %+v", name, w)
		}
		if w := failure(t, m.receiveErr); w.HoldCode != HoldUpload {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

// A checkpoint goes to its URL, and its manifest to the other end.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	from, into := root(t), root(t)
	put(t, from.Name(), map[string]string{"ck": "abc", "d/e": ""})
	f := &fakePlugin{}
	plan := SendPlan{Items: items("ck", "d"), Checkpoint: &Checkpoint{Number: 7, Destination: "fake://h/ck", GlobalJobID: "ap#1.0#17"}}
	m := move(t, from, into, plan, SendOptions{Plugins: &Plugins{List: []Plugin{fakeOne}, Run: f.run}}, ReceiveOptions{})
	if m.sendErr != nil || m.receiveErr != nil || m.got.Final {
		t.Fatal(m.sendErr, m.receiveErr)
	}
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad *ck\n" +
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 *d/e\n"
	own := sha256.Sum256([]byte(want))
	got := treeOf(t, into)["_condor_checkpoint_MANIFEST.0007"]
	if got != want+hex.EncodeToString(own[:])+" *_condor_checkpoint_MANIFEST.0007\n" {
		t.Errorf("the manifest is\n%s", got)
	}
	if _, err := from.Stat("_condor_checkpoint_MANIFEST.0007"); err == nil {
		t.Error("the manifest is left")
	}
	urls := []string{}
	for _, ad := range m.got.Reported {
		urls = append(urls, text(ad, "OutputDestination"))
		if v, _ := ad.EvalBool("CheckpointURL", nil); !v {
			t.Errorf("no CheckpointURL: %v", ad)
		}
	}
	if diff := cmp.Diff([]string{"fake://h/ck/ap_1.0_17/0007/ck", "fake://h/ck/ap_1.0_17/0007/d/e"}, urls); diff != "" {
		t.Error(diff)
	}
}

// A plugin that fails at a checkpoint: one that says so by its end has the job
// held; one that ends well and reports a file leaves it to the other end, which
// keeps the manifest and wants the next checkpoint. HTCondor does the same.
func TestCheckpointFails(t *testing.T) {
	t.Parallel()
	const url = "fake://h/ck/ap_1.0/0000/b"
	report := func(ad string) fakePlugin {
		return fakePlugin{out: `[ TransferSuccess = true; TransferUrl = "fake://h/ck/ap_1.0/0000/a"; TransferFileName = "a" ]` + ad}
	}
	for name, tt := range map[string]struct {
		plugin fakePlugin
		retry  bool
		kept   bool // this end tells of no failure, so that the other end keeps the manifest
	}{
		"one file":       {fakePlugin{fail: url}, true, true},
		"as it ends":     {fakePlugin{fail: url, exit: PluginExit{Code: 1}}, false, false},
		"not why":        {report(`[ TransferSuccess = false; TransferUrl = "` + url + `"; TransferFileName = "b" ]`), false, false},
		"not which file": {report(`[ TransferSuccess = false; TransferError = "x"; TransferUrl = "` + url + `" ]`), false, false},
		"not whether":    {report(`[ TransferError = "x"; TransferUrl = "` + url + `"; TransferFileName = "b" ]`), false, false},
	} {
		from := root(t)
		put(t, from.Name(), map[string]string{"a": "A", "b": "B"})
		plan := SendPlan{Items: items("a", "b"), Checkpoint: &Checkpoint{Destination: "fake://h/ck", GlobalJobID: "ap#1.0"}}
		m := move(t, from, root(t), plan, SendOptions{Plugins: &Plugins{List: []Plugin{fakeOne}, Run: tt.plugin.run}}, ReceiveOptions{})
		w := failure(t, m.sendErr)
		if w.Retry != tt.retry || w.Broken {
			t.Errorf("%s: %+v", name, w)
		}
		if mine := !strings.Contains(w.Reason, "; SHADOW at 10.0.0.2 failed due to remote transfer hook error"); mine == tt.kept {
			t.Errorf("%s: who judges says %s", name, w.Reason)
		}
		if m.sent.Files != 1 { // the manifest, in any case
			t.Errorf("%s: %d files were sent", name, m.sent.Files)
		}
	}
}

func TestQuery(t *testing.T) {
	t.Parallel()
	says := func(s string) Runner {
		return func(_ context.Context, spec PluginSpec) (PluginExit, error) {
			if spec.Args[1] != "-classad" {
				t.Errorf("args %q", spec.Args)
			}
			return PluginExit{Output: []byte(s)}, nil
		}
	}
	p, err := Query(t.Context(), says("warning: x\nMultipleFileSupport = true\n# x\nProtocolVersion = 4\nSupportedMethods = \"http,HTTPS, ftp\"\n"), "/l/curl_plugin", nil, 0)
	if err != nil || !p.Multi || p.Protocol != 4 || !slices.Equal(p.Methods, []string{"http", "https", "ftp"}) || p.name() != "CURL" {
		t.Errorf("%+v, %v", p, err)
	}
	for _, bad := range []string{"", "\n", "PluginType = \"FileTransfer\"", "SupportedMethods = \"\"", "SupportedMethods = 3"} {
		if p, err := Query(t.Context(), says(bad), "/l/x", nil, 0); err == nil {
			t.Errorf("%q: %+v", bad, p)
		}
	}
	all := &Plugins{List: []Plugin{p}, Run: says("")}
	if got := all.Methods(); !slices.Equal(got, []string{"data", "ftp", "http", "https"}) {
		t.Errorf("methods %q", got)
	}
	if one, builtin, ok := all.find("https"); !ok || builtin || one.Path != p.Path {
		t.Error("a configured plugin does not win over what is built in")
	}
	all.Run = nil
	if _, builtin, ok := all.find("https"); !ok || !builtin {
		t.Error("nothing is built in for https")
	}
}

// Programs are asked when a URL needs them, and not before.
func TestLoad(t *testing.T) {
	t.Parallel()
	f := &fakePlugin{}
	asked := 0
	p := &Plugins{Programs: []string{"/l/broken", "/l/fake_plugin"}, Run: func(ctx context.Context, spec PluginSpec) (PluginExit, error) {
		switch {
		case spec.Args[1] != "-classad":
			return f.run(ctx, spec)
		case spec.Path == "/l/broken":
			return PluginExit{}, errors.New("not today")
		}
		asked++
		return PluginExit{Output: []byte("SupportedMethods = \"fake\"\nMultipleFileSupport = true\n")}, nil
	}}
	from := root(t)
	put(t, from.Name(), map[string]string{"a": "A"})
	if m := move(t, from, root(t), SendPlan{Items: items("a")}, SendOptions{Plugins: p}, ReceiveOptions{Plugins: p}); m.receiveErr != nil || asked != 0 {
		t.Errorf("asked %d times, %v", asked, m.receiveErr)
	}
	if m := move(t, from, root(t), SendPlan{Items: items("fake://h/a")}, SendOptions{}, ReceiveOptions{Plugins: p}); m.receiveErr != nil || asked != 1 {
		t.Errorf("asked %d times, %v", asked, m.receiveErr)
	}
	m := move(t, from, root(t), SendPlan{Items: items("other://h/a")}, SendOptions{}, ReceiveOptions{Plugins: p})
	if w := failure(t, m.receiveErr); w.HoldSubcode != subPluginUnknown || !strings.Contains(w.Reason, "plugin for type other not found!") || !strings.HasSuffix(w.Reason, "plugin for type other not found!|FILETRANSFER:1:FILETRANSFER: Failed to execute /l/broken -classad: Not today skipping") {
		t.Errorf("%+v", w)
	}
	if bad := p.Load(t.Context()); len(bad) != 1 || !slices.Contains(p.Methods(), "fake") || len(p.Load(t.Context())) != 0 {
		t.Errorf("%v, %q", bad, p.Methods())
	}
}

// Programs are asked side by side: each of these ends when the other was asked,
// too. They count in the order of FILETRANSFER_PLUGINS, whoever ends first.
func TestLoadSideBySide(t *testing.T) {
	t.Parallel()
	asked := map[string]chan struct{}{"/l/one": make(chan struct{}), "/l/two": make(chan struct{})}
	other := map[string]string{"/l/one": "/l/two", "/l/two": "/l/one"}
	p := &Plugins{Programs: []string{"/l/one", "/l/two"}, Run: func(ctx context.Context, spec PluginSpec) (PluginExit, error) {
		close(asked[spec.Path])
		select {
		case <-asked[other[spec.Path]]:
		case <-ctx.Done():
			return PluginExit{}, ctx.Err()
		}
		return PluginExit{Output: []byte("SupportedMethods = \"same\"\nMultipleFileSupport = true\n")}, nil
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if bad := p.Load(ctx); len(bad) > 0 || len(p.List) != 2 || p.List[0].Path != "/l/one" || p.List[1].Path != "/l/two" {
		t.Errorf("%v, %+v", bad, p.List)
	}
}

// A plugin of the old kind takes source and destination, one file at a time.
func TestOldPlugin(t *testing.T) {
	t.Parallel()
	var runs []string
	p := &Plugins{List: []Plugin{{Path: "/l/old", Methods: []string{"old"}, Protocol: 1}}, Run: func(_ context.Context, spec PluginSpec) (PluginExit, error) {
		runs = append(runs, strings.Join(spec.Args, " "))
		switch {
		case strings.HasSuffix(spec.Args[1], "bad"):
			return PluginExit{Code: 4, Output: []byte("hello\nTransferError = \"no such thing\"\n")}, nil
		case strings.HasPrefix(spec.Args[1], "old:"):
			return PluginExit{}, os.WriteFile(spec.Args[2], []byte("abc"), 0o600)
		}
		return PluginExit{}, nil
	}}
	into, stats, err := asked(t, p, "old://h/a", "old://h/b")
	if err != nil || treeOf(t, into)["b"] != "abc" || len(runs) != 2 || runs[0] != "/l/old old://h/a "+filepath.Join(into.Name(), "a") {
		t.Errorf("%v, %q", err, runs)
	}
	if got := stats.Protocols["OLD"]; got.Files != 2 || got.Bytes != 6 {
		t.Errorf("stats %+v", stats)
	}
	_, _, err = asked(t, p, "old://h/bad", "old://h/b")
	if f := failure(t, err); f.HoldSubcode != 4<<8 || f.Reason != "FILETRANSFER:1:non-zero exit (4) from /l/old. |Error: no such thing ( URL file = old://h/bad )|" {
		t.Errorf("%+v", f)
	}
	from := root(t)
	put(t, from.Name(), map[string]string{"a": "A"})
	runs = nil
	m := move(t, from, root(t), SendPlan{Items: []SendItem{{Source: "a", URL: "old://h/a"}}}, SendOptions{Plugins: p}, ReceiveOptions{})
	if m.sendErr != nil || m.receiveErr != nil || len(runs) != 1 || !strings.HasSuffix(runs[0], "/a old://h/a") {
		t.Errorf("%v, %v, %q", m.sendErr, m.receiveErr, runs)
	}
}

func TestJobPlugins(t *testing.T) {
	t.Parallel()
	got, err := JobPlugins(parse(t, `TransferPlugins = "tar,Zip=/data/u/arc_plugin.py; osdf = stash"`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Plugin{
		{Path: "arc_plugin.py", Methods: []string{"tar", "zip"}, Multi: true, Protocol: 2, FromJob: true},
		{Path: "stash", Methods: []string{"osdf"}, Multi: true, Protocol: 2, FromJob: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"tar", "=x", "tar=..", "tar="} {
		if p, err := JobPlugins(parse(t, `TransferPlugins = "`+bad+`"`)); err == nil {
			t.Errorf("%q: %+v", bad, p)
		}
	}
	// the program lies in the scratch directory
	f := &fakePlugin{}
	into, _, err := asked(t, &Plugins{List: []Plugin{{Path: "my_plugin", Methods: []string{"fake"}, Multi: true, Protocol: 2, FromJob: true}}, Run: f.run}, "fake://h/a")
	if err != nil || f.runs[0].Path != filepath.Join(into.Name(), "my_plugin") || !f.runs[0].FromJob {
		t.Errorf("%v, %+v", err, f.runs)
	}
}

// web is a server that is not always in the mood.
func web(t *testing.T) *httptest.Server {
	var tries atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ok", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "body") })
	mux.HandleFunc("GET /moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusFound) })
	mux.HandleFunc("GET /loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("GET /away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
	})
	mux.HandleFunc("GET /busy", func(w http.ResponseWriter, _ *http.Request) {
		if tries.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "at last")
	})
	mux.HandleFunc("GET /cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "half")
	})
	mux.HandleFunc("PUT /in", func(w http.ResponseWriter, r *http.Request) {
		if b, err := io.ReadAll(r.Body); err != nil || string(b) != "A" || r.ContentLength != 1 {
			t.Errorf("stored %q, %d, %v", b, r.ContentLength, err)
		}
		w.WriteHeader(http.StatusCreated)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestBuiltin(t *testing.T) {
	t.Parallel()
	s := web(t)
	for path, tt := range map[string]struct{ want, fail string }{
		"/ok":            {"body", ""},
		"/ok?secret=1":   {"body", ""},
		"/moved":         {"body", ""},
		"/busy":          {"at last", ""},
		"/none?secret=1": {"", "The requested URL returned error: 404 (Not Found) ( URL file = " + s.URL + "/none?... )"},
		"/loop":          {"", "more than 20 redirects"},
		"/away":          {"", "redirect to a URL of another kind: file"},
		"/cut":           {"", "unexpected EOF"},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			into, stats, err := asked(t, &Plugins{}, s.URL+path)
			if tt.fail != "" {
				f := failure(t, err)
				if f.HoldCode != HoldDownload || f.HoldSubcode != 1<<8 || !strings.Contains(f.Reason, "|Error: ") || !strings.Contains(f.Reason, tt.fail) {
					t.Errorf("%+v", f)
				}
				if got := treeOf(t, into); len(got) != 0 {
					t.Errorf("left %q", got)
				}
				return
			}
			name, _, _ := strings.Cut(path[1:], "?")
			if err != nil || treeOf(t, into)[name] != tt.want {
				t.Errorf("%v, %q", err, treeOf(t, into))
			}
			if got := stats.Protocols["HTTP"]; got.Files != 1 || got.Bytes != int64(len(tt.want)) {
				t.Errorf("stats %+v", stats)
			}
		})
	}
	from := root(t)
	put(t, from.Name(), map[string]string{"a": "A"})
	if m := move(t, from, root(t), SendPlan{Items: []SendItem{{Source: "a", URL: s.URL + "/in"}}}, SendOptions{Plugins: &Plugins{}}, ReceiveOptions{}); m.sendErr != nil || m.receiveErr != nil {
		t.Error(m.sendErr, m.receiveErr)
	}
	if m := move(t, from, root(t), SendPlan{Items: []SendItem{{Source: "a", URL: s.URL + "/no"}}}, SendOptions{Plugins: &Plugins{}}, ReceiveOptions{}); failure(t, m.sendErr).HoldCode != HoldUpload {
		t.Errorf("%+v", m)
	}
}

func TestDataURL(t *testing.T) {
	t.Parallel()
	for u, want := range map[string]string{
		"data:,a%20b": "a b", "data:text/plain;base64,aGk=": "hi", "data://text/plain,x": "x", "data:,": "",
	} {
		if got, err := dataURL(u); err != nil || got != want {
			t.Errorf("%s: %q, %v", u, got, err)
		}
	}
	for _, bad := range []string{"data:", "data:;base64,???", "data:,%zz"} {
		if got, err := dataURL(bad); err == nil {
			t.Errorf("%s: %q", bad, got)
		}
	}
	into, _, err := asked(t, &Plugins{}, "data://text/plain;base64,aGk=")
	if err != nil || treeOf(t, into)["plain;base64,aGk="] != "hi" {
		t.Errorf("%v %q", err, treeOf(t, into))
	}
}
