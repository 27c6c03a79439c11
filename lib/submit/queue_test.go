// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/google/go-cmp/cmp"
)

// files is a small file system below /home/ann for DirFS.
func files() func(dir string) fs.FS {
	root := fstest.MapFS{
		"home/ann/a.dat":          {Data: make([]byte, 3000)},
		"home/ann/b.dat":          {Data: []byte("x")},
		"home/ann/c.txt":          {Data: []byte("x")},
		"home/ann/d.dat/in.dat":   {Data: []byte("x")},
		"home/ann/sub/e.dat":      {Data: make([]byte, 2048)},
		"home/ann/sub/f.dat":      {Data: make([]byte, 1)},
		"home/ann/prog":           {Data: make([]byte, 5000), Mode: 0o755},
		"home/ann/list":           {Data: []byte("# people\nx1, one word\n\n  y2,two\nz3 \\\n three\n")},
		"home/ann/empty":          {Mode: 0o755},
		"home/ann/dos.sh":         {Data: []byte("#!/bin/sh\r\necho\r\n"), Mode: 0o755},
		"home/ann/dosdata":        {Data: []byte("MZ\r\nx\r\n"), Mode: 0o755},
		"opt/data/g.dat":          {Data: []byte("x")},
		"home/ann/words/with sp":  {Data: []byte("x")},
		"home/ann/words/other.sp": {Data: []byte("x")},
	}
	return func(dir string) fs.FS {
		dir = strings.Trim(path.Clean(dir), "/")
		if dir == "" || dir == "." {
			return root
		}
		sub, err := fs.Sub(root, dir)
		if err != nil {
			return fstest.MapFS{}
		}
		return sub
	}
}

func options() Options {
	return Options{Cluster: 7, Now: time.Date(2026, 11, 20, 14, 0, 56, 0, time.UTC), Owner: "ann", Domain: "example.org", Host: "ap.example.org",
		Cwd: "/home/ann", Env: []string{"HOME=/home/ann", "LANG=C", "EMPTY=", "MULTI=a\nb"}, DirFS: files()}
}

// args returns the Arguments of all jobs of a description.
func args(t *testing.T, text string) []string {
	t.Helper()
	d, err := Parse("t.sub", text, options())
	if err != nil {
		t.Errorf("%s\n%v", text, err)
		return nil
	}
	jobs, err := d.Jobs()
	if err != nil {
		t.Errorf("%s\n%v", text, err)
		return nil
	}
	var list []string
	for i, ad := range jobs {
		if n, ok := ad.EvalInt("ProcId", nil); !ok || n != int64(i) {
			t.Errorf("%s\njob %d has ProcId %d", text, i, n)
		}
		s, ok := ad.EvalString("Args", nil)
		if !ok {
			s, _ = ad.EvalString("Arguments", nil)
		}
		list = append(list, s)
	}
	return list
}

func TestQueue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		queue string // with the lines before it
		args  string // the arguments command
		want  []string
	}{
		{"queue", "$(Cluster) $(Process) $(ItemIndex) $(Step)", []string{"7 0 0 0"}},
		{"queue 3", "$(ProcId)/$(Step)/$(JobId)", []string{"0/0/7.0", "1/1/7.1", "2/2/7.2"}},
		{"QUEUE 1+1", "$(ClusterId).$(Process)", []string{"7.0", "7.1"}},
		{"N = 2\nqueue $(N)", "$(Process)", []string{"0", "1"}},
		{"queue 0\nqueue 1", "$(Process)", []string{"0"}},
		{"queue x in (a, b c)", "$(x) $(ItemIndex)", []string{"a 0", "b 1", "c 2"}},
		{"queue in (a b)", "$(Item)", []string{"a", "b"}},
		{"queue x in a b  c", "$(x)", []string{"a", "b", "c"}},
		{"queue 2 x in (a, b)", "$(x)$(Step)$(Row)$(Process)", []string{"a000", "a101", "b012", "b113"}},
		{"queue x in (\n  a, b\n# no\n\n  c\n)", "$(x)", []string{"a", "b", "c"}},
		{"queue x in ( a\n b\n)", "$(x)", []string{"a", "b"}},
		{"queue x,y from (\n1, 2 and more\n3 4\n5\n)", "$(x)|$(y)", []string{"1|2 and more", "3|4", "5|"}},
		{"queue x y from (\n1,2\n)", "$(x)|$(y)", []string{"1|2"}},
		{"queue x,y,z from (\n1 , 2 ,\n)", "[$(x)][$(y)][$(z)]", []string{"[1][2][]"}},
		{"queue x, y from (a b)", "$(x)$(y)", []string{"ab"}},
		{"queue x,y from list", "$(x):$(y)", []string{"x1:one word", "y2:two", "z3:three"}},
		{"queue 2 who from list", "$(who)", []string{"x1, one word", "x1, one word", "y2,two", "y2,two", "z3 three", "z3 three"}},
		{"queue x from (\na\x1fb\n)", "$(x)", []string{"a\x1fb"}},
		{"queue x,y from (\na b\x1f c d\n)", "$(x);$(y)", []string{"a b;c d"}},
		{"queue x matching *.dat", "$(x)", []string{"a.dat", "b.dat", "d.dat/"}},
		{"queue x matching files *.dat *.txt a*", "$(x)", []string{"a.dat", "b.dat", "c.txt"}},
		{"queue x matching dirs (*)", "$(x)", []string{"d.dat/", "sub/", "words/"}},
		{"queue x matching any sub/*.dat", "$(x)", []string{"sub/e.dat", "sub/f.dat"}},
		{"queue x matching ./sub/e* ../ann/b* /opt/data/*", "$(x)", []string{"./sub/e.dat", "../ann/b.dat", "/opt/data/g.dat"}},
		{"queue x in [1:3] (a b c d)", "$(x) $(ItemIndex)", []string{"b 1", "c 2"}},
		{"queue x in [::2] (a b c d)", "$(x)", []string{"a", "c"}},
		{"queue x in [-2:] (a b c d)", "$(x)", []string{"c", "d"}},
		{"queue x in [1] (a b c d)", "$(x)", []string{"b"}},
		{"queue x in [:-1] (a b c d)", "$(x)", []string{"a", "b", "c"}},
		{"queue x from [1:] list", "$(x)", []string{"y2,two", "z3 three"}},
		{"queue x matching files [0:1] *.dat", "$(x)", []string{"a.dat"}},
		{"V = in_file\nqueue x in (a)", "$(V) $(x)", []string{"in_file a"}},
		{"x = fixed\nqueue x in (a)\nqueue", "$(x)", []string{"a", "fixed"}},
		{"Process = 9\nqueue 2", "$(Process) $(ProcId)", []string{"9 0", "9 1"}},
		{"L = a b\nqueue x in $(L)", "$(x)", []string{"a", "b"}},
		{"queue x in (a b) \nqueue 1", "<$(x:none)> $(Process)", []string{"<a> 0", "<b> 1", "<none> 2"}},
	} {
		text := "executable = prog\narguments = " + tt.args + "\n" + tt.queue + "\n"
		if d := cmp.Diff(tt.want, args(t, text)); d != "" {
			t.Errorf("%s\n%s", text, d)
		}
	}
}

// A loop variable may be a command.
func TestQueueOverCommands(t *testing.T) {
	t.Parallel()
	got := args(t, "executable = prog\nqueue arguments from (\n-n 1 $(Process)\n-n 2\n)\n")
	if d := cmp.Diff([]string{"-n 1 0", "-n 2"}, got); d != "" {
		t.Error(d)
	}
}

// Settings count for the queue statements below them.
func TestSettingsInOrder(t *testing.T) {
	t.Parallel()
	got := args(t, "executable = prog\narguments = $(A)\nA = 1\nqueue\nA = 2\nqueue\nA = $(A)3\nqueue 1\n")
	if d := cmp.Diff([]string{"1", "2", "23"}, got); d != "" {
		t.Error(d)
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	for cond, want := range map[string]string{
		"true": "yes", "FALSE": "no", "1": "yes", "0": "no", "$(ONE)": "yes", "! $(ONE)": "no",
		"defined ONE": "yes", "defined NOPE": "no", "!defined NOPE": "yes", "$(IsLinux)": "yes", "$INT(ONE+1)": "error",
	} {
		text := "executable = prog\nONE = 1\nif " + cond + "\narguments = yes\n  if 0\nbroken line\n  else\n  endif\nelse\narguments = no\nendif\nqueue\n"
		if want == "error" {
			if _, err := Parse("t.sub", text, options()); err == nil {
				t.Errorf("%s: no error", cond)
			}
			continue
		}
		if got := args(t, text); len(got) != 1 || got[0] != want {
			t.Errorf("if %s: %q, want %s", cond, got, want)
		}
	}
	text := "executable = prog\nif 0\narguments = a\nelif 1\narguments = b\nelif 1\narguments = c\nelse\narguments = d\nendif\nqueue\n"
	if d := cmp.Diff([]string{"b"}, args(t, text)); d != "" {
		t.Error(d)
	}
}

// Jobs of one statement share what they have in common, and a job that lacks
// something of the first has no parent.
func TestSharedParent(t *testing.T) {
	t.Parallel()
	d, err := Parse("t.sub", "executable = prog\noutput = out.$(Process)\nqueue priority in (1 2 3)\n", options())
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := d.Jobs()
	if err != nil {
		t.Fatal(err)
	}
	for i, ad := range jobs {
		out, _ := ad.EvalString("Out", nil)
		prio, _ := ad.EvalInt("JobPrio", nil)
		if out != fmt.Sprintf("out.%d", i) || prio != int64(i+1) {
			t.Errorf("job %d: Out %q JobPrio %d", i, out, prio)
		}
		if ad.Parent() == nil || ad.Parent() != jobs[0].Parent() {
			t.Errorf("job %d does not share its parent", i)
		}
	}
	d, err = Parse("t.sub", "executable = prog\nqueue description,x from (\nfirst 1\n)\nqueue description from (\nsome\n$(NONE)\n)\n", options())
	if err != nil {
		t.Fatal(err)
	}
	if jobs, err = d.Jobs(); err != nil {
		t.Fatal(err)
	}
	if _, ok := jobs[2].Lookup("JobDescription"); ok || jobs[2].Parent() != nil {
		t.Error("the third job has a description")
	}
	if s, _ := jobs[2].EvalString("Cmd", nil); s != "/home/ann/prog" {
		t.Errorf("the third job has Cmd %q", s)
	}
}

// A million jobs are the limit, and they are made in reasonable time and
// space.
func TestManyJobs(t *testing.T) {
	t.Parallel()
	d, err := Parse("t.sub", "executable = /bin/true\narguments = $(Process)\nqueue 20000\n", options())
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := d.Jobs()
	if err != nil || len(jobs) != 20000 || d.Len() != 20000 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	if s, _ := jobs[19999].EvalString("Args", nil); s != "19999" {
		t.Errorf("last job has Args %q", s)
	}
	for _, q := range []string{"queue 1000001", "queue 1000000\nqueue 1", "queue 600000 x in (a b)", "queue -1"} {
		if _, err := Parse("t.sub", "executable = /bin/true\n"+q+"\n", options()); err == nil || !strings.Contains(err.Error(), "1000000") {
			t.Errorf("%s: %v", q, err)
		}
	}
}

func BenchmarkJobs(b *testing.B) {
	text := "executable = /bin/true\narguments = -n $(Process) $(x)\noutput = out.$(Process)\nerror = err.$(Process)\nlog = log\n" +
		"request_memory = 100M\nrequirements = TARGET.HasFileTransfer\nqueue 100 x in (a b c d e f g h i j)\n"
	d, err := Parse("t.sub", text, options())
	if err != nil {
		b.Fatal(err)
	}
	var jobs []*classad.Ad
	b.ReportAllocs()
	for b.Loop() {
		if jobs, err = d.Jobs(); err != nil || len(jobs) != 1000 {
			b.Fatal(len(jobs), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/job")
}

func BenchmarkParse(b *testing.B) {
	text := "executable = /bin/true\narguments = $(Process)\nlog = log\nqueue 10\n"
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("t.sub", text, options()); err != nil {
			b.Fatal(err)
		}
	}
}
