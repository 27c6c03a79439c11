// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// files looks for what the job brings and for the directories of what it writes,
// as condor_submit does, which tries to open them. skip_filechecks = true leaves
// that out.
func (b *builder) files() {
	if b.d.opts.DirFS == nil || b.boolean(false, "skip_filechecks") {
		return
	}
	program := aProgram
	if !b.boolean(true, "transfer_executable", "TransferExecutable") {
		program = aFile
	}
	if name, ok := b.fileName("executable", "Cmd"); ok && b.text("Cmd") != "/bin/sh" {
		// One that is not transferred may be relative to the job's own directory.
		if cmd := b.text("Cmd"); isAbs(cmd) {
			b.mustBe(name, cmd, program)
		}
	}
	if name, ok := b.fileName("input", "stdin"); ok {
		b.mustBe(name, fullPath(b.iwd, name), aFile)
	}
	if list, ok := b.get("transfer_input_files", "TransferInputFiles"); ok && b.text("ShouldTransferFiles") != "NO" {
		for name := range strings.SplitSeq(unquote(list), ",") {
			if name = strings.Trim(name, blanks); name != "" && !isURL(name) {
				b.mustBe(name, fullPath(b.iwd, name), anything)
			}
		}
	}
	for _, c := range [...][2]string{{"output", "stdout"}, {"error", "stderr"}, {"log", "UserLog"}} {
		if name, ok := b.fileName(c[0], c[1]); ok {
			b.mustTake(name, fullPath(b.iwd, unquote(name)))
		}
	}
}

// fileName is the value of a command that names one file of this machine; the
// null file is none.
func (b *builder) fileName(names ...string) (string, bool) {
	name, ok := b.get(names...)
	if ok && isURL(name) {
		b.bad(0, Problem{Value: name, Message: "transfer of URLs is not supported", Want: "a file", Kind: errs.Unsupported})
		return "", false
	}
	return name, ok && name != nullFile
}

// text is a string that the job has as an attribute.
func (b *builder) text(attr string) string {
	if e := b.expr(attr); e != nil {
		s, _ := e.Eval(nil).AsString()
		return s
	}
	return ""
}

// What is expected under a name.
type being string

const (
	aFile      being = "a file"
	aDirectory being = "a directory"
	anything   being = "a file or directory"
	aProgram   being = "a program" // a file that is moved to the job and run
)

// said is what a user reads of it.
func (k being) said() string {
	if k == aProgram {
		return string(aFile)
	}
	return string(k)
}

// mustBe reports that there is nothing of the kind under a name, which the user
// wrote as short in the command looked at last.
func (b *builder) mustBe(short, name string, want being) {
	wrong := b.d.wrong(name, want)
	if wrong == "" {
		return
	}
	expected := want.said() + " that exists, or skip_filechecks = true"
	switch wrong {
	case isEmpty:
		expected = "a program or script, or skip_filechecks = true"
	case isWindows:
		expected = "the line ends of Unix, as dos2unix makes them, or skip_filechecks = true"
	}
	b.bad(max(strings.Index(b.value.raw, short), 0), Problem{Value: name, Message: wrong, Want: expected})
}

// mustTake reports that a file cannot be written: its directory is not there, or the
// rights are lacking. An empty name is another's to refuse.
func (b *builder) mustTake(short, name string) {
	dir := path.Dir(name)
	if b.d.wrong(dir, aDirectory) != "" || b.d.opts.Writable == nil {
		b.mustBe(short, dir, aDirectory)
		return
	}
	if why := b.d.unwritable(name); why != "" {
		b.bad(max(strings.Index(b.value.raw, short), 0), Problem{Value: name, Message: why, Want: "a file that " + b.d.opts.Owner + " may write, or skip_filechecks = true"})
	}
}

// unwritable says why a file cannot be written, with the memory of wrong.
func (d *Description) unwritable(name string) string {
	key := "written:" + name
	if said, ok := d.found[key]; ok {
		return said
	}
	said := ""
	if err := d.opts.Writable(name); err != nil {
		var at *fs.PathError
		if said = "it cannot be written: " + err.Error(); errors.As(err, &at) {
			said = "it cannot be written: " + at.Err.Error()
			if at.Path != name {
				said = "it cannot be made in " + at.Path + ": " + at.Err.Error()
			}
		}
	}
	if len(d.found) >= maxShared {
		d.found = map[string]string{}
	}
	d.found[key] = said
	return said
}

// wrong says what is wrong with a file, with a memory, as many jobs have the same.
func (d *Description) wrong(name string, want being) string {
	key := string(want) + ":" + name
	if said, ok := d.found[key]; ok {
		return said
	}
	said := ""
	switch info, err := d.opts.look(name); {
	case err != nil:
		said = "there is no such " + strings.TrimPrefix(want.said(), "a ")
		if errors.Is(err, fs.ErrPermission) {
			said = "it cannot be looked at: permission denied"
		}
	case want != anything && want != aDirectory && info.IsDir():
		said = "this is a directory"
	case want == aProgram && info.Mode().IsRegular():
		said = d.opts.neverRuns(name, info)
	case want == aDirectory && !info.IsDir():
		said = "this is no directory"
	}
	if d.found == nil || len(d.found) >= maxShared {
		d.found = map[string]string{}
	}
	d.found[key] = said
	return said
}

// What condor_submit refuses of a program that is moved to the job, too.
const (
	isEmpty   = "this file is empty"
	isWindows = "this script has line ends of Windows, so that its interpreter is not found"
)

// neverRuns says why a file cannot be run, "" if nothing speaks against it.
func (o *Options) neverRuns(name string, info fs.FileInfo) string {
	if info.Size() == 0 {
		return isEmpty
	}
	dir, base := splitDir(name)
	f, err := o.DirFS(dir).Open(base)
	if err != nil {
		return "" // who may only execute it can run it
	}
	head := make([]byte, 127) // what Linux reads of a first line
	n, _ := io.ReadFull(f, head)
	_ = f.Close() // nothing was written
	line, _, whole := bytes.Cut(head[:n], []byte("\n"))
	if whole && bytes.HasPrefix(line, []byte("#!")) && bytes.HasSuffix(line, []byte("\r")) {
		return isWindows
	}
	return ""
}

// alone speaks of what nobody does without a pool: what would change when or
// where a job runs is refused, and of the rest the user is told.
func (b *builder) alone() {
	b.amounts()
	for _, c := range [...]struct{ name, attr, who string }{
		{"concurrency_limits", "ConcurrencyLimits", "a negotiator, which counts the limits"},
		{"concurrency_limits_expr", "", "a negotiator, which counts the limits"},
		{"next_job_start_delay", "NextJobStartDelay", "a schedd"},
	} {
		if text, ok := b.get(c.name, c.attr); ok && text != "0" {
			b.bad(0, Problem{Value: text, Message: "this command is not supported without a pool; it needs " + c.who, Kind: errs.Unsupported})
		}
	}
	for _, c := range [...]struct{ name, attr, idle, why string }{
		{"notification", "JobNotification", "never", "no mail is sent without a pool"},
		{"leave_in_queue", "LeaveJobInQueue", "false", "the queue ends with its jobs, without a pool"},
		{"keep_claim_idle", "KeepClaimIdle", "0", "no slot is kept for later jobs without a pool"},
	} {
		if text, ok := b.get(c.name, c.attr); ok && !strings.EqualFold(text, c.idle) && !b.warned[c.name] {
			b.warned[c.name] = true
			b.bad(0, Problem{Value: text, Message: c.why, Warning: true})
		}
	}
}
