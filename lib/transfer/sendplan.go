// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/sandbox"
)

// Occasion is why output is sent.
type Occasion int

// The occasions.
const (
	AtExit       Occasion = iota // the job is over: the final transfer
	AtEviction                   // the job is to go on elsewhere: into the spool
	AtCheckpoint                 // the job goes on here: its checkpoint
)

// Ending is what is known when output is sent.
type Ending struct {
	Occasion Occasion
	// Failed says that the job never ran, or ended otherwise than success is
	// defined for it: see Succeeded. Only the files for failures are sent.
	Failed  bool
	Changed []string // names at the top that are new or changed: see Changed
	// Earlier are names at the top that earlier runs of the job had changed: see
	// Earlier.
	Earlier []string
	// Gone says that there is no scratch directory any more. Of a job that lists
	// nothing the standard files are sent all the same: they were there, and the
	// other end is told that they are missing.
	Gone  bool
	Quiet map[string]bool // names never sent, beside those that never are
	// Stdout and Stderr are the names of the standard files in the scratch
	// directory; "" for one that is not sent, because it is streamed, say.
	Stdout, Stderr string
	Added          []string // names that were added while the job ran
	Number         int      // of the checkpoint
	Scratch        string   // path of the scratch directory, for absolute names below it
}

// alwaysQuiet are the starter's own files, which are never sent.
var alwaysQuiet = [...]string{
	sandbox.JobAdFile, sandbox.MachineAdFile, ".update.ad", ".update.ad.tmp", ".chirp.config", ".execution_overlay.ad",
	".starter.log", ".starter.log.old",
	".docker_sock", ".docker_stdout", ".docker_stderror", ".condor_container_launched",
}

// Changed lists what is new or changed at the top of scratch against before:
// plain files, and links to such within, in the order of the directory. Std
// files count like others. If there is no such directory any more the error is
// fs.ErrNotExist.
func Changed(scratch *os.Root, before Listing) ([]string, error) {
	return Output{}.changed(scratch, before)
}

// Earlier lists what earlier runs of job had changed (TransferIntermediate) and is
// still in scratch. The shadow names whatever is in the spool: also manifests of
// checkpoints, which are gone when the job begins, and files that the job has
// removed since.
func Earlier(scratch *os.Root, job *classad.Ad) []string {
	return slices.DeleteFunc(names(text(job, "TransferIntermediate")), func(name string) bool {
		info, err := scratch.Stat(filepath.FromSlash(name))
		return err != nil || !info.Mode().IsRegular()
	})
}

// Renames reads TransferInputRemaps for ReceiveOptions: a name, or else the
// directory it is in, is replaced by what is listed for it.
func Renames(remaps string) (func(name string) string, error) {
	all, err := ParseRemaps(remaps)
	if err != nil {
		return nil, errs.E("transfer.Renames", errs.Invalid, "TransferInputRemaps", err)
	}
	return func(name string) string {
		rest := ""
		for dir := name; dir != "." && dir != "/" && dir != ""; dir = path.Dir(dir) {
			if to, ok := all[dir]; ok {
				return path.Join(filepath.ToSlash(to), rest)
			}
			rest = path.Join(path.Base(dir), rest)
		}
		return name
	}, nil
}

// PlanOutput makes from a job's ad what a starter sends.
func PlanOutput(job *classad.Ad, e Ending) (SendPlan, error) {
	p := SendPlan{
		Final:       e.Occasion == AtExit,
		Encrypt:     names(text(job, "EncryptOutputFiles")),
		DontEncrypt: names(text(job, "DontEncryptOutputFiles")),
		Quiet:       map[string]bool{},
	}
	if e.Occasion == AtEviction {
		p.Final = !flag(job, "SpoolOnEvict", true)
	}
	p.Std = Ending{Stdout: e.Stdout, Stderr: e.Stderr}.withStd(nil)
	p.Preserve, _ = job.EvalBool("PreserveRelativePaths", nil)
	for _, name := range alwaysQuiet {
		p.Quiet[name] = true
	}
	for name := range e.Quiet {
		p.Quiet[name] = true
	}
	list, listed := outputList(job, e)
	if !listed {
		list = e.changed(job, p.Quiet)
	}
	urls := map[string]string{}
	destination := ""
	if p.Final {
		destination = text(job, "OutputDestination")
		remaps, err := ParseRemaps(text(job, "TransferOutputRemaps"))
		if err != nil {
			return SendPlan{}, errs.E("transfer.PlanOutput", errs.Invalid, "TransferOutputRemaps", err)
		}
		for from, to := range remaps {
			if isURL(to) {
				urls[from] = to
			}
		}
	}
	for _, name := range list {
		source := e.relative(name)
		item := SendItem{Source: source}
		switch {
		case destination != "":
			item.URL = e.store(job, destination, source)
		case urls[name] != "":
			item.URL = urls[name]
		case urls[source] != "":
			item.URL = urls[source]
		}
		p.Items = append(p.Items, item)
	}
	if e.Occasion == AtCheckpoint {
		if to := text(job, "CheckpointDestination"); to != "" {
			p.Checkpoint = &Checkpoint{Number: e.Number, Destination: to, GlobalJobID: text(job, "GlobalJobId")}
		}
	}
	return p, nil
}

// outputList is what a job's ad lists, and whether it lists anything: an empty
// list is nothing at all.
func outputList(job *classad.Ad, e Ending) ([]string, bool) {
	var list []string
	if e.Occasion == AtCheckpoint {
		if files, ok := job.EvalString("TransferCheckpoint", nil); ok {
			return e.withStd(names(files)), true
		}
	}
	if e.Failed && (e.Occasion == AtExit || e.Occasion == AtEviction && !flag(job, "SpoolOnEvict", true)) {
		return e.withStd(names(text(job, "FailureFiles"))), true
	}
	files, ok := job.EvalString("SpooledOutputFiles", nil)
	if !ok {
		files, ok = job.EvalString("TransferOutput", nil)
	}
	if !ok {
		return nil, false
	}
	list = names(files)
	for _, name := range e.Added {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return e.withStd(list), true
}

// withStd adds the standard files to a list.
func (e Ending) withStd(list []string) []string {
	for _, name := range []string{e.Stdout, e.Stderr} {
		if name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// changed is what is sent of a job that lists nothing.
func (e Ending) changed(job *classad.Ad, quiet map[string]bool) []string {
	skip := map[string]bool{path.Base(filepath.ToSlash(text(job, "Cmd"))): true}
	skip[ProxyName(job)] = true
	for _, std := range []string{sandbox.StdoutFile, sandbox.StderrFile} {
		skip[std] = std != e.Stdout && std != e.Stderr // streamed, say
	}
	var list []string
	add := func(name string) {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	if e.Occasion == AtExit { // what earlier runs had changed
		for _, name := range e.Earlier {
			add(name)
		}
	}
	for _, name := range e.Changed {
		if !skip[name] && !quiet[name] {
			add(name)
		}
	}
	for _, name := range e.Added {
		add(name)
	}
	if e.Gone {
		return e.withStd(list)
	}
	return list
}

// relative turns a name of a job's list into one below the scratch directory,
// if it is; a slash at its end stays.
func (e Ending) relative(name string) string {
	slash := ""
	if strings.HasSuffix(name, "/") {
		slash = "/"
	}
	if filepath.IsAbs(name) && e.Scratch != "" {
		if rel, err := filepath.Rel(e.Scratch, name); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel) + slash
		}
		return name
	}
	return path.Clean(filepath.ToSlash(name)) + slash
}

// store is where a file goes below OutputDestination, "" to the other end. The
// standard files go to the other end unless their own names are URLs.
func (e Ending) store(job *classad.Ad, destination, name string) string {
	original := ""
	switch name {
	case e.Stdout:
		original = firstText(job, "OriginalOut", "Out")
	case e.Stderr:
		original = firstText(job, "OriginalErr", "Err")
	default:
		return strings.TrimSuffix(destination, "/") + "/" + name
	}
	if isURL(original) {
		return original
	}
	return ""
}

func firstText(job *classad.Ad, names ...string) string {
	for _, n := range names {
		if s := text(job, n); s != "" {
			return s
		}
	}
	return ""
}
