// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/jobenv"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

const devNull = "/dev/null"

// job is what the job ad says about running it.
type job struct {
	ad       *classad.Ad
	iwd      string // its initial directory on the submit side
	transfer bool   // files are moved; otherwise it runs in iwd
	cmd      string // path to execute
	args     []string
	stdin    string // path, "" for none
	// stdinStream is what is read at the submit machine instead, "" for none.
	stdinStream string
	stdout      stdFile
	stderr      stdFile
}

// stdFile is an output of the job: where it writes, and where that goes.
type stdFile struct {
	path string // "" for none
	dest string // submit side; "" when it is written in place
	// stream is the path at the submit machine to which it is written while the
	// job runs, "" if it is not.
	stream string
}

// readJob reads ad. scratch is the path of the scratch directory; move says
// that files are moved there.
func readJob(ad *classad.Ad, iwd, scratch string, move bool) (*job, error) {
	j := &job{ad: ad, iwd: iwd, transfer: move}
	if j.iwd == "" {
		j.iwd = j.text("Iwd")
	}
	var err error
	if v2, ok := ad.EvalString("Arguments", nil); ok {
		j.args, err = jobenv.ArgsFromV2(v2)
	} else {
		j.args = jobenv.ArgsFromV1(j.text("Args"))
	}
	j.cmd = j.command(scratch)
	j.stdin = j.input(scratch)
	j.stdout = j.output("Out", "TransferOut", sandbox.StdoutFile, scratch)
	j.stderr = j.output("Err", "TransferErr", sandbox.StderrFile, scratch)
	if j.transfer && j.stdout.dest != "" && j.stdout.dest == j.stderr.dest {
		j.stderr = j.stdout // both in one file
	}
	return j, err
}

// keepsStd reports whether a run of the job adds to the standard output and error
// of the runs before, which came back with its checkpoint, rather than to empty
// them: it checkpoints, or says EraseOutputAndErrorOnRestart = false.
func (j *job) keepsStd() bool {
	yes := func(attr string) bool {
		v, _ := j.ad.EvalBool(attr, nil)
		return v
	}
	return yes("WantCheckpointSignal") || yes("WantFTOnCheckpoint") || !j.flag("EraseOutputAndErrorOnRestart")
}

// startDir is where the job's program begins: in RemoteIwd (remote_initialdir) if it
// names one, a directory of this machine which may be no sandbox; a relative one
// is below the scratch directory, where HTCondor's starter works. Files are moved,
// and standard files opened, as if it were not there.
func (j *job) startDir(scratch string) string {
	if remote := j.text("RemoteIwd"); remote != "" {
		return under(scratch, remote)
	}
	return j.runDir(scratch)
}

// runDir is where the job's files are.
func (j *job) runDir(scratch string) string {
	if j.transfer {
		return scratch
	}
	return j.iwd
}

func (j *job) text(name string) string {
	s, _ := j.ad.EvalString(name, nil)
	return s
}

func (j *job) flag(name string) bool {
	v, defined := j.ad.EvalBool(name, nil)
	return v || !defined
}

func (j *job) command(scratch string) string {
	cmd := j.text("Cmd")
	switch {
	case cmd == "":
		return ""
	case j.transfer && j.flag("TransferExecutable"):
		return filepath.Join(scratch, filepath.Base(cmd))
	case filepath.IsAbs(cmd):
		return cmd
	}
	if keep, _ := j.ad.EvalBool("PreserveRelativeExecutable", nil); keep {
		return cmd
	}
	return filepath.Join(j.startDir(scratch), cmd)
}

func (j *job) input(scratch string) string {
	in := j.text("In")
	switch {
	case in == "" || in == devNull:
		return ""
	case j.transfer && j.flag("TransferIn"):
		return filepath.Join(scratch, filepath.Base(in))
	}
	return under(j.runDir(scratch), in)
}

func (j *job) output(attr, moved, name, scratch string) stdFile {
	out := j.text(attr)
	switch {
	case out == "" || out == devNull:
		return stdFile{}
	case j.transfer && j.flag(moved):
		return stdFile{path: filepath.Join(scratch, name), dest: under(j.iwd, out)}
	}
	return stdFile{path: under(j.runDir(scratch), out)}
}

func under(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// outputs plans what comes back. whole says that the job is to get all of it,
// otherwise just its standard files.
func (j *job) outputs(scratch string, whole bool) (transfer.Output, error) {
	out, err := transfer.OutputOf(j.ad, j.iwd)
	if err != nil {
		return out, err
	}
	if !whole {
		out.Listed, out.Names = true, nil
	}
	for _, f := range []stdFile{j.stdout, j.stderr} {
		name, err := filepath.Rel(scratch, f.path)
		if f.path == "" || err != nil || !filepath.IsLocal(name) {
			continue
		}
		if f.dest == "" {
			continue // written in place, and sent back if that is here
		}
		if len(out.Std) == 0 || out.Std[0].Name != name {
			out.Std = append(out.Std, transfer.Std{Name: name, Dest: f.dest})
		}
	}
	out.Quiet[sandbox.JobAdFile], out.Quiet[sandbox.MachineAdFile] = true, true
	return out, nil
}

// wantsOutput tells whether files are sent back after an end, and whether all
// of them.
func (j *job) wantsOutput(status host.ExitStatus, evicted bool) (any, whole bool) {
	when := strings.ToUpper(j.text("WhenToTransferOutput"))
	switch {
	case !j.transfer:
		return false, false
	case evicted:
		return when == "ON_EXIT_OR_EVICT", true
	case when == "ON_SUCCESS":
		return true, j.succeeded(status)
	}
	return true, true
}

// succeeded compares the end with what the job calls success: exit code 0
// unless JobSuccessExitCode says another.
func (j *job) succeeded(status host.ExitStatus) bool {
	want := int64(0)
	if n, ok := j.ad.EvalInt("JobSuccessExitCode", nil); ok {
		want = n
	}
	return status.Exited && int64(status.Code) == want
}

// killSignal is the signal that asks the job to go: that of the manner if the
// job names one, else KillSig, else SIGTERM.
func (j *job) killSignal(manner protocol.Manner, number host.SignalNumber) int {
	attrs := []string{"KillSig"}
	switch manner {
	case protocol.MannerRemove:
		attrs = []string{"RemoveKillSig", "KillSig"}
	case protocol.MannerHold:
		attrs = []string{"HoldKillSig", "KillSig"}
	}
	for _, attr := range attrs {
		if n, ok := j.ad.EvalInt(attr, nil); ok && n > 0 && n <= 64 {
			return int(n)
		}
		name := strings.TrimSpace(j.text(attr))
		if n, err := strconv.Atoi(name); err == nil && n > 0 && n <= 64 {
			return n
		}
		if n, ok := number(name); ok {
			return n
		}
	}
	n, _ := number("SIGTERM")
	return n
}

// limits are the core and stack sizes the job may have.
func (j *job) limits() (core, stack int64) {
	core, stack = 0, host.Unlimited
	if n, ok := j.ad.EvalInt("CoreSize", nil); ok {
		core = max(n, host.Unlimited)
	}
	if n, ok := j.ad.EvalInt("StackSize", nil); ok && n >= 0 {
		stack = n
	}
	return core, stack
}

// forSandbox is the job ad that the job finds: its paths are those here.
func (j *job) forSandbox(scratch string) *classad.Ad {
	ad := classad.NewAd()
	ad.SetParent(j.ad)
	keep := func(attr, orig string) {
		if _, done := j.ad.Lookup(orig); !done {
			if e, ok := j.ad.Lookup(attr); ok {
				ad.Set(orig, e)
			}
		}
	}
	keep("Cmd", "OrigCmd")
	keep("Iwd", "OrigIwd")
	ad.SetString("Iwd", j.runDir(scratch))
	if !j.transfer {
		return ad
	}
	for _, f := range []struct {
		attr, orig, name string
		file             stdFile
	}{{"Out", "OriginalOut", sandbox.StdoutFile, j.stdout}, {"Err", "OriginalErr", sandbox.StderrFile, j.stderr}} {
		if f.file.dest != "" {
			keep(f.attr, f.orig)
			ad.SetString(f.attr, filepath.Base(f.file.path))
		}
	}
	return ad
}
