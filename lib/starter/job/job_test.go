// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/runner"
	"github.com/execpoint/execpoint/lib/transfer"
)

func moving(ad *classad.Ad) runner.Files {
	if transfer.Wanted(ad) {
		return runner.Moved
	}
	return runner.InPlace
}

func read(t *testing.T, ad string) *Job {
	t.Helper()
	a, err := classad.ParseAd(ad, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	j, err := Read(a, "", "/s", moving(a))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

const moved = "ShouldTransferFiles = \"YES\"\nIwd = \"/sub\"\n"
const shared = "ShouldTransferFiles = \"NO\"\nIwd = \"/sub\"\n"

// Where a job's program and standard files are, moved and not.
//
// row: S1-032
func TestJobPaths(t *testing.T) {
	t.Parallel()
	type paths struct {
		Cmd, Stdin     string
		Stdout, Stderr [2]string // where it writes, where that goes
	}
	for _, c := range []struct {
		ad   string
		want paths
	}{
		{moved + `Cmd = "dir/prog"`, paths{Cmd: "/s/prog"}},
		{moved + "Cmd = \"dir/prog\"\nTransferExecutable = false", paths{Cmd: "/s/dir/prog"}},
		{moved + "Cmd = \"prog\"\nTransferExecutable = false\nPreserveRelativeExecutable = true", paths{Cmd: "prog"}},
		{moved + "Cmd = \"/bin/p\"\nTransferExecutable = false", paths{Cmd: "/bin/p"}},
		{shared + `Cmd = "dir/prog"`, paths{Cmd: "/sub/dir/prog"}},
		{moved + "In = \"d/in\"\nOut = \"o\"\nErr = \"/abs/e\"", paths{
			Stdin: "/s/in", Stdout: [2]string{"/s/_condor_stdout", "/sub/o"}, Stderr: [2]string{"/s/_condor_stderr", "/abs/e"}}},
		{moved + "In = \"d/in\"\nOut = \"o\"\nErr = \"e\"\nTransferIn = false\nTransferOut = false\nTransferErr = false", paths{
			Stdin: "/s/d/in", Stdout: [2]string{"/s/o", ""}, Stderr: [2]string{"/s/e", ""}}},
		{moved + "Out = \"both\"\nErr = \"both\"", paths{
			Stdout: [2]string{"/s/_condor_stdout", "/sub/both"}, Stderr: [2]string{"/s/_condor_stdout", "/sub/both"}}},
		{moved + "In = \"/dev/null\"\nOut = \"/dev/null\"\nErr = \"\"", paths{}},
		{shared + "In = \"in\"\nOut = \"o\"\nErr = \"/e\"", paths{Stdin: "/sub/in", Stdout: [2]string{"/sub/o", ""}, Stderr: [2]string{"/e", ""}}},
	} {
		j := read(t, c.ad)
		got := paths{j.Cmd, j.Stdin, [2]string{j.Stdout.Path, j.Stdout.Dest}, [2]string{j.Stderr.Path, j.Stderr.Dest}}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", c.ad, diff)
		}
	}
}

func TestJobArguments(t *testing.T) {
	t.Parallel()
	for ad, want := range map[string][]string{
		`Args = "a 'b c'"`:                {"a", "'b", "c'"},
		`Arguments = "a 'b c'"`:           {"a", "b c"},
		"Args = \"x\"\nArguments = \"y\"": {"y"},
		"":                                nil,
	} {
		if got := read(t, ad).Args; len(got)+len(want) > 0 && !cmp.Equal(got, want) {
			t.Errorf("%s: %q", ad, got)
		}
	}
	a, err := classad.ParseAd(`Arguments = "'open"`, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read(a, "", "/s", moving(a)); err == nil {
		t.Error("arguments with an open quote were read")
	}
}

// row: S1-034
func TestKillSignal(t *testing.T) {
	t.Parallel()
	const ad = "KillSig = \"SIGUSR1\"\nRemoveKillSig = \"SIGINT\"\nHoldKillSig = 3\n"
	for _, c := range []struct {
		ad     string
		manner protocol.Manner
		want   int
	}{
		{"", protocol.MannerVacate, 15}, {"", protocol.MannerRemove, 15}, {"", protocol.MannerHold, 15}, {"", "", 15},
		{ad, protocol.MannerVacate, 10}, {ad, protocol.MannerRemove, 2}, {ad, protocol.MannerHold, 3},
		{`KillSig = "SIGUSR1"`, protocol.MannerRemove, 10}, {`KillSig = "SIGUSR1"`, protocol.MannerHold, 10},
		{`KillSig = "12"`, protocol.MannerVacate, 12}, {`KillSig = "nonsense"`, protocol.MannerVacate, 15}, {`KillSig = 99`, protocol.MannerVacate, 15},
	} {
		if got := read(t, c.ad).KillSignal(c.manner, hosttest.SignalNumber); got != c.want {
			t.Errorf("%q, %s: %d, want %d", c.ad, c.manner, got, c.want)
		}
	}
}

func TestWantsOutput(t *testing.T) {
	t.Parallel()
	ok, fails, killed := host.ExitStatus{Exited: true}, host.ExitStatus{Exited: true, Code: 1}, host.ExitStatus{Signal: 9}
	for _, c := range []struct {
		ad      string
		status  host.ExitStatus
		evicted bool
		want    Wanted
	}{
		{moved, fails, false, All},
		{moved + `WhenToTransferOutput = "ON_EXIT"`, killed, true, Nothing},
		{moved + `WhenToTransferOutput = "ON_EXIT_OR_EVICT"`, killed, true, All},
		{moved + `WhenToTransferOutput = "ON_SUCCESS"`, ok, false, All},
		{moved + `WhenToTransferOutput = "ON_SUCCESS"`, fails, false, StdFiles},
		{moved + "WhenToTransferOutput = \"ON_SUCCESS\"\nJobSuccessExitCode = 1", fails, false, All},
		{shared, ok, false, Nothing},
	} {
		if got := read(t, c.ad).WantsOutput(c.status, c.evicted); got != c.want {
			t.Errorf("%s, %v, evicted %v: %v, want %v", c.ad, c.status, c.evicted, got, c.want)
		}
	}
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	j := read(t, moved+"Out = \"o\"\nErr = \"o\"\nTransferOutput = \"a\"")
	out, err := j.Outputs("/s", All)
	if err != nil || !cmp.Equal(out.Std, []transfer.Std{{Name: "_condor_stdout", Dest: "/sub/o"}}) || !cmp.Equal(out.Names, []string{"a"}) || !out.Quiet[".job.ad"] {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err := j.Outputs("/s", StdFiles); err != nil || !out.Listed || len(out.Names) != 0 || len(out.Std) != 1 {
		t.Errorf("standard files alone: %+v, %v", out, err)
	}
}

// Note 32 of the recorded starter, case lim-core-stack.
func TestLimits(t *testing.T) {
	t.Parallel()
	for ad, want := range map[string][2]int64{
		"": {0, host.Unlimited}, "CoreSize = 12345\nStackSize = 262144": {12345, 262144}, "CoreSize = -1": {host.Unlimited, host.Unlimited}, "CoreSize = -7": {-1, -1},
	} {
		if core, stack := read(t, ad).Limits(); [2]int64{core, stack} != want {
			t.Errorf("%s: %d, %d", ad, core, stack)
		}
	}
}

// RemoteIwd is where the program begins and nothing else: its files and standard
// files are where they are without it.
func TestRemoteInitialDir(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ ad, start, cmd, stdout, iwd string }{
		{moved + "RemoteIwd = \"/tmp\"\nCmd = \"p\"\nOut = \"o\"", "/tmp", "/s/p", "/s/_condor_stdout", "/s"},
		{moved + "RemoteIwd = \"/tmp\"\nCmd = \"p\"\nTransferExecutable = false", "/tmp", "/tmp/p", "", "/s"},
		{moved + "RemoteIwd = \"in/side\"\nCmd = \"/bin/p\"\nTransferExecutable = false", "/s/in/side", "/bin/p", "", "/s"},
		{moved + "RemoteIwd = \"\"\nCmd = \"p\"", "/s", "/s/p", "", "/s"},
		{shared + "RemoteIwd = \"/tmp/\"\nCmd = \"p\"\nOut = \"o\"", "/tmp", "/tmp/p", "/sub/o", "/sub"},
		{shared + "Cmd = \"p\"", "/sub", "/sub/p", "", "/sub"},
	} {
		j := read(t, c.ad)
		shown, _ := j.ForSandbox("/s").EvalString("Iwd", nil)
		if j.StartDir("/s") != c.start || j.Cmd != c.cmd || j.Stdout.Path != c.stdout || shown != c.iwd {
			t.Errorf("%q: starts %s in %s, output in %q, Iwd %s; want %+v", c.ad, j.Cmd, j.StartDir("/s"), j.Stdout.Path, shown, c)
		}
	}
}
