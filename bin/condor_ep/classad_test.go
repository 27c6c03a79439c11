// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/tool/adtext"
)

func TestClassadCommands(t *testing.T) {
	t.Parallel()
	const (
		slot = "testdata/classad/slot.ad"
		job  = "testdata/classad/job.json"
		good = "testdata/classad/good.new"
		free = "testdata/classad/awake.ad"
	)
	for _, tt := range []struct {
		name, args     string // args are separated by |
		stdin          string
		status         int
		stdout, stderr string
		help           bool // stderr ends in how the command is written
	}{
		{
			name: "values", args: `eval|1 + 2|"a" == "A"|Missing|1/0|{1, 1+1}|1.5|-010`,
			stdout: "3\ntrue\nundefined\nerror\n{ 1,1 + 1 }\n1.500000000000000E+00\n-10\n",
		}, {
			name: "an expression that begins with a minus sign", args: `eval|--|-1`,
			stdout: "-1\n",
		}, {
			name: "two ads", args: "eval|-my|" + slot + "|--target|" + job + `|MY.Cpus|TARGET.Owner|Owner|START|MY.Owner`,
			stdout: "8\n\"bob\"\n\"bob\"\nfalse\nundefined\n",
		}, {
			name: "an ad from the standard input", args: "eval|-my|-|A + B", stdin: `[A = 1; B = 2]`,
			stdout: "3\n",
		}, {
			name: "the dialect of expressions: old", args: `eval|-format|old|"a\nb"`,
			stdout: `"a\nb"` + "\n",
		}, {
			name: "the dialect of expressions: new", args: `eval|-new|--format=old|"a\nb"`,
			stdout: "\"a\nb\"\n",
		}, {
			name: "values in the old syntax", args: `eval|-format|old|1.5|relTime(90)|[a=1;b="x"]`,
			stdout: "1.5\nrelTime(\"01:30\")\n[ a = 1; b = \"x\" ]\n",
		}, {
			name: "values in JSON", args: `eval|-format|json|1.5|undefined|error|{1,"a",x}|[a=1;b="x"]`,
			stdout: "1.5\nnull\n\"\\/Expr(error)\\/\"\n[1,\"a\",\"\\/Expr(x)\\/\"]\n{\"a\": 1,\"b\": \"x\"}\n",
		}, {
			name: "values in XML", args: `eval|-format|xml|1.5|undefined|error|{1,"<"}|[a=1]|true`,
			stdout: "<r>1.500000000000000E+00</r>\n<un/>\n<er/>\n<l><i>1</i><s>&lt;</s></l>\n<c><a n=\"a\"><i>1</i></a></c>\n<b v=\"t\"/>\n",
		}, {
			name: "debug and giving up", args: `eval|debug(1 + 1) + 1|userHome()`,
			stdout: "3\nerror\n",
			stderr: "debug: 1 + 1 is 2\ncondor_ep classad eval: userHome(): given up: too deep, too long, or a function that fails\n",
		}, {
			name: "expressions that do not parse", args: "eval|1 +|1|KeyboardIdle >\n\t* 2", status: exitUsage,
			stderr: "condor_ep classad eval: <expression>:1:4: expected a value, a name or (, found end of the expression\n" +
				"1 +\n   ^\n" +
				"condor_ep classad eval: <expression>:2:2: expected a value, a name or (, found \"*\"\n" +
				"\t* 2\n\t^\n",
		}, {
			name: "ads that do not parse", args: "eval|-my|testdata/classad/bad.ad|-target|testdata/classad/bad.json|1", status: exitUsage,
			stderr: "condor_ep classad eval: testdata/classad/bad.ad:2:15: expected ), found end of the expression (attribute Memory)\n" +
				"Memory = (1024\n              ^\n" +
				"condor_ep classad eval: testdata/classad/bad.json:2:11: expected : after the name, found \"1024\"\n" +
				" \"Memory\" 1024}\n          ^\n",
		}, {
			name: "an ad that is not there", args: "print|testdata/classad/none.ad", status: exitUsage,
			stderr: "condor_ep classad print: testdata/classad/none.ad: no such file\n",
		}, {
			name: "a syntax that the text does not have", args: "print|-syntax|new|-", stdin: "A = 1\n", status: exitUsage,
			stderr: "condor_ep classad print: <stdin>:1:1: expected an ad that begins with [, found 'A'\nA\n^\n",
		}, {
			name: "printing in the old syntax", args: "print|" + slot,
			stdout: `ClaimId = "<secret>"
Cpus = 8
KeyboardIdle = 12
Memory = 1024
Name = "slot1@ep"
Rank = 2.5
Requirements = START && MY.WithinResourceLimits
START = KeyboardIdle > 15 * 60 && (TARGET.Owner == "alice" || LoadAvg < 0.3)
WithinResourceLimits = (TARGET.RequestCpus <= MY.Cpus && TARGET.RequestMemory <= MY.Memory)
`,
		}, {
			name: "printing in the new syntax", args: "print|-format|new|" + good,
			stdout: `[ Rank = TARGET.Memory / 1.024000000000000E+03; Owner = "alice"; RequestCpus = 1; Requirements = TARGET.Cpus >= RequestCpus; RequestMemory = 512 ]
`,
		}, {
			name: "printing as JSON", args: "print|--format|json|-", stdin: "B = \"x\"\nClaimId = \"s\"\nA = B + 1\n",
			stdout: `{"A": "\/Expr(B + 1)\/","B": "x","ClaimId": "s"}` + "\n",
		}, {
			name: "printing as XML", args: "print|-format=xml|" + job,
			stdout: `<c><a n="Owner"><s>bob</s></a><a n="RequestCpus"><i>1</i></a><a n="Requirements"><e>TARGET.Cpus &gt;= 1</e></a><a n="RequestMemory"><i>4096</i></a></c>` + "\n",
		}, {
			name: "a match", args: "match|" + free + "|" + good,
			stdout: free + " accepts " + good + ": Requirements is true, rank 0.0\n" +
				good + " accepts " + free + ": Requirements is true, rank 1.0\n",
		}, {
			name: "no match", args: "match|" + slot + "|" + job, status: exitSomeFailed,
			stdout: slot + " does not accept " + job + `: Requirements is false, rank 2.5
  KeyboardIdle > 15 * 60 is false, in START
    MY.KeyboardIdle is 12
  TARGET.Owner == "alice" || LoadAvg < 0.3 is undefined, in START
    TARGET.Owner is "bob"
    LoadAvg is undefined, no such attribute
  TARGET.RequestMemory <= MY.Memory is false, in WithinResourceLimits
    TARGET.RequestMemory is 4096
    MY.Memory is 1024
` + job + " accepts " + slot + ": Requirements is true, rank 0.0\n",
		}, {
			name: "the other side", args: "match|" + good + "|-", stdin: "Cpus = 0\n", status: exitSomeFailed,
			stdout: good + ` does not accept <stdin>: Requirements is false, rank 0.0
  TARGET.Cpus >= RequestCpus is false
    TARGET.Cpus is 0
    MY.RequestCpus is 1
<stdin> does not accept ` + good + ": it has no Requirements, rank 0.0\n",
		}, {
			name: "a constant, a circle and a failure", args: "match|" + free + "|-", status: exitSomeFailed,
			stdin: "Requirements = START && A && userHome() && Memory\nSTART = false\nA = B\nB = A\nMemory = 0\n",
			stdout: free + ` accepts <stdin>: Requirements is true, rank 0.0
<stdin> does not accept ` + free + `: Requirements is false, rank 0.0
  START is false
    MY.START is false
  A is undefined, in B, in A
    MY.A is undefined
    MY.B is undefined
  userHome() is error
  Memory is 0
    MY.Memory is 0
`,
		}, {
			name: "no match for programs", args: "match|-json|" + free + "|-", stdin: `{"Requirements": "\/Expr(Arch == \"ARM\" && Cpus)\/", "Rank": "x"}`, status: exitSomeFailed,
			stdout: `{"match":false,"sides":[{"ad":"testdata/classad/awake.ad","other":"<stdin>","accepts":true,"requirements":{"type":"boolean","value":"true"},"rank":0},` +
				`{"ad":"<stdin>","other":"testdata/classad/awake.ad","accepts":false,"requirements":{"type":"undefined","value":"undefined"},"rank":0,` +
				`"failed":[{"expr":"Arch == \"ARM\"","value":{"type":"undefined","value":"undefined"},"reads":[{"name":"Arch","value":{"type":"undefined","value":"undefined"},"missing":true}]}]}]}` + "\n",
		}, {
			name: "a rank that is no number of JSON", args: "match|-json|-|" + free, stdin: "Rank = -1e308 * 10\n", status: exitSomeFailed,
			stdout: `{"match":false,"sides":[{"ad":"<stdin>","other":"testdata/classad/awake.ad","accepts":false,"missing":true,"rank":null},` +
				`{"ad":"testdata/classad/awake.ad","other":"<stdin>","accepts":true,"requirements":{"type":"boolean","value":"true"},"rank":0}]}` + "\n",
		}, {
			name: "a match with a bad ad", args: "match|testdata/classad/bad.ad|" + job, status: exitUsage,
			stderr: "condor_ep classad match: testdata/classad/bad.ad:2:15: expected ), found end of the expression (attribute Memory)\n" +
				"Memory = (1024\n              ^\n",
		},
		{name: "help", args: "--help", stdout: commands.EP.Group("classad")},
		{name: "help of a command", args: "print|-h", stdout: commands.EP.Help("classad print")},
		{name: "help before a command", args: "help|print", stdout: commands.EP.Help("classad print")},
		{name: "no command", args: "", status: exitUsage, stderr: "condor_ep classad: unknown command \"\"; there are eval, match, print\ncondor_ep classad -help shows them\n"},
		{name: "a slip", args: "eavl", status: exitUsage, stderr: "condor_ep classad: unknown command \"eavl\"; did you mean eval?\ncondor_ep classad -help shows them\n"},
		{name: "JSON", args: `eval|-json|{1,"a"}`, stdout: "[1,\"a\"]\n"},
		{name: "no expression", args: "eval", status: exitUsage, help: true, stderr: "condor_ep classad eval: want an expression\n\n"},
		{name: "one ad", args: "match|a", status: exitUsage, help: true, stderr: "condor_ep classad match: want two ad files, got 1\n\n"},
		{name: "standard input twice", args: "match|-|-", status: exitUsage, help: true, stderr: "condor_ep classad match: only one of the two ads can be the standard input\n\n"},
		{name: "standard input twice in eval", args: "eval|-my|-|-target|-|1", status: exitUsage, help: true, stderr: "condor_ep classad eval: only one of -my and -target can be the standard input\n\n"},
		{name: "no file", args: "print", status: exitUsage, help: true, stderr: "condor_ep classad print: want one ad file, got 0\n\n"},
		{name: "a format", args: "print|-format|yaml|a", status: exitUsage, help: true, stderr: "condor_ep classad print: -format is \"yaml\", want old, new, json, xml\n\n"},
		{name: "a syntax", args: "eval|-syntax|yaml|1", status: exitUsage, help: true, stderr: "condor_ep classad eval: -syntax is \"yaml\", want auto, old, new, json, xml\n\n"},
		{name: "an option", args: "eval|-nope|1", status: exitUsage, stderr: "condor_ep classad eval: unknown option -nope\ncondor_ep classad eval -help shows the options\n"},
		{name: "a batch of one", args: "eval|-batch|-new|1", status: exitUsage, help: true, stderr: "condor_ep classad eval: -batch stands alone, got -batch -new 1\n\n"},
		{name: "a batch of files", args: "match|-batch|a|b", status: exitUsage, help: true, stderr: "condor_ep classad match: -batch stands alone, got -batch a b\n\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			status, stdout, stderr := runClassad(tt.stdin, strings.Split(tt.args, "|")...)
			if status != tt.status {
				t.Errorf("status %d, want %d", status, tt.status)
			}
			want := tt.stdout
			if strings.HasPrefix(tt.args, "match|") && tt.stdout != "" && !strings.Contains(tt.args, "-json") {
				want = map[int]string{exitOK: "match\n", exitSomeFailed: "no match\n"}[tt.status] + want
			}
			if d := cmp.Diff(want, stdout); d != "" {
				t.Errorf("stdout: -want +got\n%s", d)
			}
			if tt.help {
				command := "classad " + strings.Split(tt.args, "|")[0]
				tt.stderr += commands.EP.Usage(command) + "condor_ep " + command + " -help says more\n"
			}
			if d := cmp.Diff(tt.stderr, stderr); d != "" {
				t.Errorf("stderr: -want +got\n%s", d)
			}
		})
	}
}

func TestClassadBrokenOutput(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"eval", "1"}, {"print", "testdata/classad/slot.ad"},
		{"match", "testdata/classad/slot.ad", "testdata/classad/job.json"},
	} {
		var stderr bytes.Buffer
		status := cmdClassad(args, strings.NewReader(""), brokenPipe{}, &stderr)
		want := "condor_ep classad " + args[0] + ": io: read/write on closed pipe\n"
		if status != exitUsage || stderr.String() != want {
			t.Errorf("%v: status %d, %q", args, status, stderr.String())
		}
	}
}

// TestClassadPrintMany prints a file of several ads in each syntax and reads
// it back.
func TestClassadPrintMany(t *testing.T) {
	t.Parallel()
	const old = "A = 1\nB = \"x\"\n\nA = 2\n"
	for _, format := range adtext.Formats() {
		var there, back, errs strings.Builder
		if status := cmdClassad([]string{"print", "-format", format, "-"}, strings.NewReader(old), &there, &errs); status != exitOK {
			t.Fatalf("%s: status %d: %s", format, status, errs.String())
		}
		if status := cmdClassad([]string{"print", "-"}, strings.NewReader(there.String()), &back, &errs); status != exitOK {
			t.Fatalf("%s: %q: status %d: %s", format, there.String(), status, errs.String())
		}
		if d := cmp.Diff(old, back.String()); d != "" {
			t.Errorf("%s: by way of %q: %s", format, there.String(), d)
		}
	}
}

func runClassad(stdin string, args ...string) (status int, stdout, stderr string) {
	var o, e bytes.Buffer
	status = cmdClassad(args, strings.NewReader(stdin), &o, &e)
	return status, o.String(), e.String()
}

// TestBatchPipe feeds a batch one line at a time and waits for each answer.
func TestBatchPipe(t *testing.T) {
	t.Parallel()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	status := make(chan int)
	go func() {
		s := cmdClassad([]string{"eval", "-batch"}, inR, outW, io.Discard)
		outW.Close()
		status <- s
	}()
	answers := bufio.NewReader(outR)
	for i := range 3 {
		if _, err := fmt.Fprintf(inW, `{"id":"%d","expr":"%d + 1","want":["value"]}`+"\n", i, i); err != nil {
			t.Fatal(err)
		}
		got, err := answers.ReadString('\n')
		if want := fmt.Sprintf(`{"id":"%d","value":"%d"}`+"\n", i, i+1); got != want || err != nil {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	}
	inW.Close()
	if s := <-status; s != exitOK {
		t.Errorf("status %d", s)
	}
}

// brokenPipe takes nothing.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestBatchBrokenOutput(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	in := strings.NewReader(`{"id":"a","expr":"1","want":["value"]}`)
	if got := cmdClassad([]string{"eval", "-batch"}, in, brokenPipe{}, &stderr); got != exitUsage {
		t.Errorf("status %d", got)
	}
	if want := "condor_ep classad eval: io: read/write on closed pipe\n"; stderr.String() != want {
		t.Errorf("got %q, want %q", stderr.String(), want)
	}
}

// TestBatchStatus: what a batch prints, and the status that says whether every
// record was read.
func TestBatchStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		command, in, want string
		status            int
	}{
		{"eval", `{"id":"a","expr":"1","want":["value"]}`, `{"id":"a","value":"1"}`, exitOK},
		{"eval", `{"id":"a","expr":"1 < 2","tz":"Asia/Tokyo","want":["value"]}`, `{"id":"a","value":"true"}`, exitOK},
		{"eval", `{"id":"a"}`, `{"id":"a","error":"line 1: no want: the list of answers asked for"}`, exitSomeFailed},
		{"match", `{"id":"a","machine":""}`, `{"id":"a","error":"line 1: no job"}`, exitSomeFailed},
	} {
		status, stdout, stderr := runClassad(tt.in, tt.command, "-batch")
		if status != tt.status || stdout != tt.want+"\n" || stderr != "" {
			t.Errorf("%s %s: status %d, %s, %s", tt.command, tt.in, status, stdout, stderr)
		}
	}
}
