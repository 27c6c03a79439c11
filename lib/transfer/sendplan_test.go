// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// show prints a plan: what is sent, and after an arrow where it is stored.
func show(p SendPlan) string {
	var parts []string
	for _, item := range p.Items {
		if item.URL != "" {
			item.Source += "->" + item.URL
		}
		parts = append(parts, item.Source)
	}
	return strings.Join(parts, " ")
}

func TestPlanOutput(t *testing.T) {
	t.Parallel()
	std := Ending{Stdout: "_condor_stdout", Stderr: "_condor_stderr", Changed: []string{"_condor_stderr", "_condor_stdout", "x.sh", "new", "proxy"}}
	with := func(change func(*Ending)) Ending {
		e := std
		change(&e)
		return e
	}
	for name, tt := range map[string]struct {
		job   string
		e     Ending
		want  string
		final bool
	}{
		"a list":            {`TransferOutput = "a, d/b,c/"`, std, "a d/b c/ _condor_stdout _condor_stderr", true},
		"an empty list":     {`TransferOutput = ""`, std, "_condor_stdout _condor_stderr", true},
		"a listed stdout":   {`TransferOutput = "_condor_stdout,a"`, std, "_condor_stdout a _condor_stderr", true},
		"streamed, no list": {`Cmd = "x.sh"`, Ending{Changed: std.Changed}, "new proxy", true},
		"streamed":          {`TransferOutput = "a"`, Ending{}, "a", true},
		"no list":           {`Cmd = "/data/u/x.sh"; x509userproxy = "/tmp/proxy"`, std, "_condor_stderr _condor_stdout new", true},
		"no list, earlier":  {`Cmd = "x.sh"`, with(func(e *Ending) { e.Earlier = []string{"old", "new"} }), "old new _condor_stderr _condor_stdout proxy", true},
		"spooled":           {`SpooledOutputFiles = "s"; TransferOutput = "a"`, std, "s _condor_stdout _condor_stderr", true},
		"added":             {`TransferOutput = "a"`, with(func(e *Ending) { e.Added = []string{"b", "a"} }), "a b _condor_stdout _condor_stderr", true},
		"failed":            {`TransferOutput = "a"; FailureFiles = "core,log"`, with(func(e *Ending) { e.Failed = true }), "core log _condor_stdout _condor_stderr", true},
		"failed, no list":   {``, with(func(e *Ending) { e.Failed = true }), "_condor_stdout _condor_stderr", true},
		"evicted":           {`TransferOutput = "a"; FailureFiles = "f"; OutputDestination = "http://h/"`, with(func(e *Ending) { e.Occasion, e.Failed = AtEviction, true }), "a _condor_stdout _condor_stderr", false},
		"evicted, no spool": {`TransferOutput = "b"; SpoolOnEvict = false; TransferOutputRemaps = "b=https://h/b"`, Ending{Occasion: AtEviction}, "b->https://h/b", true},
		"evicted, no list":  {``, with(func(e *Ending) { e.Occasion, e.Earlier = AtEviction, []string{"old"} }), "_condor_stderr _condor_stdout x.sh new proxy", false},
		"checkpoint":        {`TransferOutput = "a"; TransferCheckpoint = "ck, d"`, with(func(e *Ending) { e.Occasion = AtCheckpoint }), "ck d _condor_stdout _condor_stderr", false},
		"checkpoint, as is": {`TransferOutput = "a"`, with(func(e *Ending) { e.Occasion = AtCheckpoint }), "a _condor_stdout _condor_stderr", false},
		"absolute":          {`TransferOutput = "/x/scratch/d/a,/etc/passwd"`, Ending{Scratch: "/x/scratch"}, "d/a /etc/passwd", true},
		"remaps": {`TransferOutput = "a,b,c"; TransferOutputRemaps = "a=/elsewhere;b = https://h/b;d=s3://x/d"`, Ending{},
			"a b->https://h/b c", true},
		"remaps, evicted": {`TransferOutput = "b"; TransferOutputRemaps = "b=https://h/b"`, Ending{Occasion: AtEviction}, "b", false},
		"destination": {`TransferOutput = "d/a"; OutputDestination = "https://h/out"; TransferOutputRemaps = "d/a=https://h/no"; OriginalOut = "/data/u/job.out"; OriginalErr = "osdf:///err"`, std,
			"d/a->https://h/out/d/a _condor_stdout _condor_stderr->osdf:///err", true},
	} {
		p, err := PlanOutput(parse(t, strings.ReplaceAll(tt.job, "; ", "\n")), tt.e)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := show(p); got != tt.want || p.Final != tt.final {
			t.Errorf("%s: %q, final %v\nwant %q, %v", name, got, p.Final, tt.want, tt.final)
		}
		for _, never := range []string{".job.ad", ".machine.ad", ".update.ad", ".chirp.config", ".execution_overlay.ad"} {
			if !p.Quiet[never] {
				t.Errorf("%s: %s could be sent", name, never)
			}
		}
	}
	p, err := PlanOutput(parse(t, strings.ReplaceAll(`TransferCheckpoint = "c"; CheckpointDestination = "https://h/ck/"; GlobalJobId = "ap#1.0#17"; PreserveRelativePaths = true; EncryptOutputFiles = "a*"; DontEncryptOutputFiles = "b"`, "; ", "\n")),
		Ending{Occasion: AtCheckpoint, Number: 3})
	if err != nil || !p.Preserve || len(p.Encrypt) != 1 || len(p.DontEncrypt) != 1 || p.Checkpoint == nil {
		t.Fatalf("%+v, %v", p, err)
	}
	if got := p.Checkpoint.destination("d/c"); got != "https://h/ck/ap_1.0_17/0003/d/c" {
		t.Errorf("a checkpoint goes to %s", got)
	}
	if _, err := PlanOutput(parse(t, `TransferOutputRemaps = "nonsense"`), Ending{}); err == nil || !strings.Contains(err.Error(), "TransferOutputRemaps") {
		t.Errorf("bad remaps: %v", err)
	}
}

func TestChanged(t *testing.T) {
	t.Parallel()
	r := root(t)
	put(t, r.Name(), map[string]string{"same": "1", "grown": "1", "touched": "1", "d/in": "1"})
	before, err := List(r)
	if err != nil {
		t.Fatal(err)
	}
	put(t, r.Name(), map[string]string{"grown": "12", "new": "", ".dot": "1"})
	if err := r.Chtimes("touched", time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := r.Symlink("same", "link"); err != nil {
		t.Skip(err)
	}
	if err := r.Symlink("/etc/passwd", "out"); err != nil {
		t.Fatal(err)
	}
	got, err := Changed(r, before)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{".dot", "grown", "link", "new", "touched"}, got); diff != "" {
		t.Error(diff)
	}
}

// What earlier runs had changed is sent if it is still there: a name of the
// spool's alone is none.
func TestEarlier(t *testing.T) {
	t.Parallel()
	r := root(t)
	put(t, r.Name(), map[string]string{"a": "1", "d/in": "1", "b": ""})
	job := parse(t, `TransferIntermediate = "b, _condor_checkpoint_MANIFEST.0000,d,a,../x,/etc/passwd"`)
	if diff := cmp.Diff([]string{"b", "a"}, Earlier(r, job)); diff != "" {
		t.Error(diff)
	}
	if got := Earlier(r, parse(t, "x = 1")); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestRenames(t *testing.T) {
	t.Parallel()
	rename, err := Renames("a=b; d=e/f;d/x = y;up=../../z")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "b", "b": "b", "d": "e/f", "d/c": "e/f/c", "d/c/g": "e/f/c/g", "d/x": "y", "other/a": "other/a", "up": "../../z"} {
		if got := rename(name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
	if _, err := Renames("nonsense"); err == nil {
		t.Error("nonsense is taken")
	}
	// what leads out does not pass
	from, into := root(t), root(t)
	put(t, from.Name(), map[string]string{"a": "A", "up": "U"})
	if m := move(t, from, into, SendPlan{Items: items("a")}, SendOptions{}, ReceiveOptions{Rename: rename}); m.receiveErr != nil || treeOf(t, into)["b"] != "A" {
		t.Errorf("%v", m.receiveErr)
	}
	if m := move(t, from, into, SendPlan{Items: items("up")}, SendOptions{}, ReceiveOptions{Rename: rename}); failure(t, m.receiveErr).HoldSubcode != subNotPermitted {
		t.Errorf("%v", m.receiveErr)
	}
}

func TestIsURL(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"http://h/x": "http", "chtc+HTTPS://h": "https", "file:///x": "file", "s3://b/o": "s3", "data:x": "", "://x": "", "a b://x": "", "1http://x": "", "http://": "", "a/b://c": "",
	} {
		if got := isURL(name); got != (want != "") || got && methodOf(name) != want {
			t.Errorf("%s: %v, %s", name, got, methodOf(name))
		}
	}
}

func TestGlobbed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"a*", "ab", true}, {"*.dat", "x.dat", true}, {"*.dat", "x.data", false}, {"a*b*c", "a1b2c", true}, {"a*b*c", "acb", false}, {"a*a", "a", false}, {"*", "", true},
	} {
		if got := globbed(tt.pattern, tt.name); got != tt.want {
			t.Errorf("%q against %q: %v", tt.name, tt.pattern, got)
		}
	}
}
