// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// StartdHook is a hook of slots that fetch work. It is spelled as in the name of the
// knob, <Keyword>_HOOK_<StartdHook>.
type StartdHook string

// The hooks of the startd.
const (
	FetchWork  StartdHook = "FETCH_WORK"  // has a job to offer, or not
	ReplyFetch StartdHook = "REPLY_FETCH" // is told what became of it
	EvictClaim StartdHook = "EVICT_CLAIM" // is told that the claim of fetched work is over
)

// Path returns the program of the hook under a keyword, "" where there is none. The
// error says why it may not be used.
func (h StartdHook) Path(cfg *config.Snapshot, keyword string, stat func(path string) (fs.FileInfo, error)) (string, error) {
	knob := keyword + "_HOOK_" + string(h)
	path := strings.TrimSpace(cfg.String(knob))
	if path == "" {
		return "", nil
	}
	return path, CheckPath(knob, path, stat)
}

// PID is the process id of the program.
func (r *Run) PID() int { return r.family.Main().PID }

// The universes that fetched work may have.
const java = 10

// Work reads the job that a fetch hook has printed, one attribute to a line, nil for
// none. As with HTCondor's startd one line that is no attribute makes all of it
// worthless: half a job must not run.
func Work(output []byte) (*classad.Ad, error) {
	const op = "hook.Work"
	var ad *classad.Ad
	number := 0
	for line := range bytes.Lines(output) {
		number++
		text := strings.TrimSpace(string(line))
		if text == "" {
			continue
		}
		if ad == nil {
			ad = classad.NewAd()
		}
		err := error(nil)
		if len(text) > maxLine {
			err = fmt.Errorf("longer than %d bytes", maxLine)
		} else {
			err = insert(ad, "", text)
		}
		if err != nil {
			return nil, errs.E(op, errs.Invalid, "", fmt.Errorf("nothing of the output counts: %w", BadLine{Number: number, Text: shorten(text), Err: err}))
		}
	}
	return ad, nil
}

// CompleteWork gives a fetched job what the document says that it has by default, and
// the keyword by which its starter finds the hooks of the job. Its files are where it
// runs: nothing moves them. The error says what it lacks to be run at all; byRoot says
// that the startd runs as root, so that the job has to name its user.
func CompleteWork(job *classad.Ad, keyword string, byRoot bool) error {
	if v, ok := job.EvalString("HookKeyword", nil); !ok || v == "" {
		job.SetString("HookKeyword", keyword)
	}
	job.SetString("ShouldTransferFiles", "NO")
	for name, value := range map[string]int64{"ClusterId": 1, "ProcId": 0, "JobUniverse": vanilla} {
		if _, said := job.Lookup(name); !said {
			job.SetInt(name, value)
		}
	}
	text := func(name string) string {
		v, _ := job.EvalString(name, nil)
		return strings.TrimSpace(v)
	}
	universe, ok := job.EvalInt("JobUniverse", nil)
	switch {
	case text("Cmd") == "":
		return errors.New("the job has no Cmd, the path of its program")
	case byRoot && text("Owner") == "":
		return errors.New("the job has no Owner, the user that it runs as")
	case !ok || universe != vanilla && universe != java:
		return fmt.Errorf("the job's JobUniverse is %v; want %d (vanilla) or %d (Java)", job.Eval("JobUniverse", nil), vanilla, java)
	}
	return nil
}

// About is what the hooks ReplyFetch and EvictClaim read: the job's ad, a line of five
// dashes, the ad of the slot, and with a claim its id, by which the hook's owner may
// give orders about it.
func About(job, slot *classad.Ad, claim string) string {
	var b strings.Builder
	b.WriteString(job.Text(classad.Old))
	b.WriteString("-----\n")
	if slot != nil {
		b.WriteString(slot.Text(classad.Old))
	}
	if claim != "" {
		fmt.Fprintf(&b, "ClaimId = %s\n", classad.Literal(classad.String(claim)).Text(classad.Old))
	}
	return b.String()
}
