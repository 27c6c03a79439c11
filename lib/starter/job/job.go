// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/jobenv"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/runner"
	"github.com/execpoint/execpoint/lib/transfer"
)

const devNull = "/dev/null"

// Job is what the job ad says about running it.
type Job struct {
	Ad    *classad.Ad
	Iwd   string // its initial directory on the submit side
	Moves bool   // files are moved; otherwise it runs in Iwd
	Cmd   string // path to execute
	Args  []string
	Stdin string // path, "" for none
	Proxy string // path of its X.509 proxy, "" for none
	// StdinStream is what is read at the submit machine instead, "" for none.
	StdinStream string
	Stdout      StdFile
	Stderr      StdFile
}

// StdFile is an output of the job: where it writes, and where that goes.
type StdFile struct {
	Path string // "" for none
	Dest string // submit side; "" when it is written in place
	// Stream is the path at the submit machine to which it is written while the
	// job runs, "" if it is not.
	Stream string
}

// Read reads ad. scratch is the path of the scratch directory; files says whether
// files are moved there. iwd is the initial directory, "" for that of the ad.
func Read(ad *classad.Ad, iwd, scratch string, files runner.Files) (*Job, error) {
	j := &Job{Ad: ad, Iwd: iwd, Moves: files == runner.Moved}
	if j.Iwd == "" {
		j.Iwd = j.Text("Iwd")
	}
	var err error
	if v2, ok := ad.EvalString("Arguments", nil); ok {
		j.Args, err = jobenv.ArgsFromV2(v2)
	} else {
		j.Args = jobenv.ArgsFromV1(j.Text("Args"))
	}
	j.Cmd = j.command(scratch)
	j.Stdin = j.input(scratch)
	j.Stdout = j.output("Out", "TransferOut", sandbox.StdoutFile, scratch)
	j.Stderr = j.output("Err", "TransferErr", sandbox.StderrFile, scratch)
	j.Proxy = j.proxy(scratch)
	if j.Moves && j.Stdout.Dest != "" && j.Stdout.Dest == j.Stderr.Dest {
		j.Stderr = j.Stdout // both in one file
	}
	return j, err
}

// KeepsStd reports whether a run of the job adds to the standard output and error
// of the runs before, which came back with its checkpoint, rather than to empty
// them: it checkpoints, or says EraseOutputAndErrorOnRestart = false.
func (j *Job) KeepsStd() bool {
	yes := func(attr string) bool {
		v, _ := j.Ad.EvalBool(attr, nil)
		return v
	}
	return yes("WantCheckpointSignal") || yes("WantFTOnCheckpoint") || !j.Flag("EraseOutputAndErrorOnRestart")
}

// StartDir is where the job's program begins: in RemoteIwd (remote_initialdir) if it
// names one, a directory of this machine which may be no sandbox; a relative one
// is below the scratch directory, where HTCondor's starter works. Files are moved,
// and standard files opened, as if it were not there.
func (j *Job) StartDir(scratch string) string {
	if remote := j.Text("RemoteIwd"); remote != "" {
		return Under(scratch, remote)
	}
	return j.RunDir(scratch)
}

// RunDir is where the job's files are.
func (j *Job) RunDir(scratch string) string {
	if j.Moves {
		return scratch
	}
	return j.Iwd
}

// Text is the value of an attribute that is a text, "" for another.
func (j *Job) Text(name string) string {
	s, _ := j.Ad.EvalString(name, nil)
	return s
}

// Flag is the value of an attribute that is true unless the ad says otherwise.
func (j *Job) Flag(name string) bool {
	v, defined := j.Ad.EvalBool(name, nil)
	return v || !defined
}

func (j *Job) command(scratch string) string {
	cmd := j.Text("Cmd")
	switch {
	case cmd == "":
		return ""
	case j.Moves && j.Flag("TransferExecutable"):
		return filepath.Join(scratch, filepath.Base(cmd))
	case filepath.IsAbs(cmd):
		return cmd
	}
	if keep, _ := j.Ad.EvalBool("PreserveRelativeExecutable", nil); keep {
		return cmd
	}
	return filepath.Join(j.StartDir(scratch), cmd)
}

func (j *Job) input(scratch string) string {
	in := j.Text("In")
	switch {
	case in == "" || in == devNull:
		return ""
	case j.Moves && j.Flag("TransferIn"):
		return filepath.Join(scratch, filepath.Base(in))
	}
	return Under(j.RunDir(scratch), in)
}

func (j *Job) output(attr, moved, name, scratch string) StdFile {
	out := j.Text(attr)
	switch {
	case out == "" || out == devNull:
		return StdFile{}
	case j.Moves && j.Flag(moved):
		return StdFile{Path: filepath.Join(scratch, name), Dest: Under(j.Iwd, out)}
	}
	return StdFile{Path: Under(j.RunDir(scratch), out)}
}

// Under is name, below dir if it is relative.
func Under(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// Wanted says which output is wanted back.
type Wanted uint8

// What of the output is wanted.
const (
	Nothing  Wanted = iota
	StdFiles        // the standard files alone
	All
)

// Outputs plans what comes back: the standard files at least.
func (j *Job) Outputs(scratch string, wanted Wanted) (transfer.Output, error) {
	out, err := transfer.OutputOf(j.Ad, j.Iwd)
	if err != nil {
		return out, err
	}
	if wanted != All {
		out.Listed, out.Names = true, nil
	}
	for _, f := range []StdFile{j.Stdout, j.Stderr} {
		name, err := filepath.Rel(scratch, f.Path)
		if f.Path == "" || err != nil || !filepath.IsLocal(name) {
			continue
		}
		if f.Dest == "" {
			continue // written in place, and sent back if that is here
		}
		if len(out.Std) == 0 || out.Std[0].Name != name {
			out.Std = append(out.Std, transfer.Std{Name: name, Dest: f.Dest})
		}
	}
	out.Quiet[sandbox.JobAdFile], out.Quiet[sandbox.MachineAdFile] = true, true
	return out, nil
}

// WantsOutput tells which files are sent back after an end.
func (j *Job) WantsOutput(status host.ExitStatus, evicted bool) Wanted {
	when := strings.ToUpper(j.Text("WhenToTransferOutput"))
	switch {
	case !j.Moves, evicted && when != "ON_EXIT_OR_EVICT":
		return Nothing
	case !evicted && when == "ON_SUCCESS" && !j.succeeded(status):
		return StdFiles
	}
	return All
}

// succeeded compares the end with what the job calls success: exit code 0
// unless JobSuccessExitCode says another.
func (j *Job) succeeded(status host.ExitStatus) bool {
	want := int64(0)
	if n, ok := j.Ad.EvalInt("JobSuccessExitCode", nil); ok {
		want = n
	}
	return status.Exited && int64(status.Code) == want
}

// KillSignal is the signal that asks the job to go: that of the manner if the
// job names one, else KillSig, else SIGTERM.
func (j *Job) KillSignal(manner protocol.Manner, number host.SignalNumber) int {
	attrs := []string{"KillSig"}
	switch manner {
	case protocol.MannerRemove:
		attrs = []string{"RemoveKillSig", "KillSig"}
	case protocol.MannerHold:
		attrs = []string{"HoldKillSig", "KillSig"}
	}
	for _, attr := range attrs {
		if n, ok := j.Ad.EvalInt(attr, nil); ok && n > 0 && n <= 64 {
			return int(n)
		}
		name := strings.TrimSpace(j.Text(attr))
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

// Limits are the core and stack sizes the job may have.
func (j *Job) Limits() (core, stack int64) {
	core, stack = 0, host.Unlimited
	if n, ok := j.Ad.EvalInt("CoreSize", nil); ok {
		core = max(n, host.Unlimited)
	}
	if n, ok := j.Ad.EvalInt("StackSize", nil); ok && n >= 0 {
		stack = n
	}
	return core, stack
}

// ForSandbox is the job ad that the job finds: its paths are those here.
func (j *Job) ForSandbox(scratch string) *classad.Ad {
	ad := classad.NewAd()
	ad.SetParent(j.Ad)
	keep := func(attr, orig string) {
		if _, done := j.Ad.Lookup(orig); !done {
			if e, ok := j.Ad.Lookup(attr); ok {
				ad.Set(orig, e)
			}
		}
	}
	keep("Cmd", "OrigCmd")
	keep("Iwd", "OrigIwd")
	ad.SetString("Iwd", j.RunDir(scratch))
	if !j.Moves {
		if j.Proxy != "" {
			ad.SetString(attrProxy, j.Proxy)
		}
		return ad
	}
	for _, f := range []struct {
		attr, orig, name string
		file             StdFile
	}{{"Out", "OriginalOut", sandbox.StdoutFile, j.Stdout}, {"Err", "OriginalErr", sandbox.StderrFile, j.Stderr}} {
		if f.file.Dest != "" {
			keep(f.attr, f.orig)
			ad.SetString(f.attr, filepath.Base(f.file.Path))
		}
	}
	return ad
}

// Streams reports whether the job has any.
func (j *Job) Streams() bool {
	return j.StdinStream != "" || j.Stdout.Stream != "" || j.Stderr.Stream != ""
}

// Stream turns the standard files that the job wants to stream into streams.
func (j *Job) Stream() {
	wants := func(attr, file string) string {
		name := j.Text(file)
		if yes, _ := j.Ad.EvalBool(attr, nil); !yes || name == "" || name == devNull {
			return ""
		}
		return name
	}
	if in := wants("StreamIn", "In"); in != "" {
		j.Stdin, j.StdinStream = "", in
	}
	if out := wants("StreamOut", "Out"); out != "" {
		j.Stdout = StdFile{Stream: out}
	}
	if out := wants("StreamErr", "Err"); out != "" {
		j.Stderr = StdFile{Stream: out}
	}
}

// Checkpoints reports whether the job exits to have its state saved.
func (j *Job) Checkpoints() bool {
	yes, _ := j.Ad.EvalBool("WantFTOnCheckpoint", nil)
	return yes
}

// Saved reports whether the job's program has ended like that to have its state
// saved, and to be started again.
func (j *Job) Saved(status host.ExitStatus) bool {
	if !j.Checkpoints() || !j.Moves {
		return false
	}
	want, _ := Promised(j.Ad, "SuccessCheckpoint")
	return SameEnd(status, want)
}
