// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/machine/proctext"
)

// Prober looks for the programs by which a machine runs more than plain jobs:
// a Java interpreter, Docker, Singularity or Apptainer. Each is really run,
// which takes from milliseconds to a minute, so that a daemon does it beside
// everything else and publishes what comes of it.
type Prober struct {
	// Run runs a program to its end, in the directory / and with nothing on
	// its standard input, and ends it with all its descendants when ctx ends.
	// Output may be cut at a length of its choice, not below 4 KiB. The error
	// says why there is no exit status: it could not be started (an
	// fs.ErrNotExist if it is not there), or was ended.
	Run func(ctx context.Context, argv []string) (Outcome, error)
	// UserNamespace is the number of the user namespace this process is in;
	// 0 if the system has no such thing.
	UserNamespace uint64
	// Arch is Inventory.Arch. Test images differ by it.
	Arch string
	// Runs says of which kinds of job the starters of this Execution Point run
	// any. The program of another kind is not tried, and nothing of it is
	// published: a job that asks for the attribute would be matched, refused and
	// matched again without end.
	Runs func(Kind) bool
}

// Kind is a kind of job that needs a program of the machine.
type Kind string

// The kinds that a Prober knows.
const (
	JavaJobs        Kind = "Java"
	DockerJobs      Kind = "Docker"
	SingularityJobs Kind = "Singularity"
)

// knob names the program of a kind. HTCondor calls them the same in capitals.
func (k Kind) knob() string { return strings.ToUpper(string(k)) }

var errNotRun = errors.New("jobs of this kind are not run by this Execution Point yet: it does not advertise that it can run them")

// Outcome is how a program ended.
type Outcome struct {
	Stdout, Stderr []byte
	Status         int // exit status; not 0 if a signal ended it
}

// patience is how long one program may take where no knob says.
const patience = 20 * time.Second

// Probe returns the attributes of everything that was found and that Runs
// allows. What is not there has none; what is there and does not work has a
// problem that says why, and what HTCondor publishes of it then. It ends when ctx
// ends at the latest.
func (p Prober) Probe(ctx context.Context, snap *config.Snapshot) (*classad.Ad, []error) {
	looks := [...]struct {
		kind Kind
		look func(context.Context, *config.Snapshot, *classad.Ad) error
	}{{JavaJobs, p.java}, {DockerJobs, p.docker}, {SingularityJobs, p.singularity}}
	var (
		ads     [len(looks)]*classad.Ad
		results [len(looks)]error
		looking sync.WaitGroup
	)
	for i, l := range looks {
		ads[i] = classad.NewAd()
		if !p.Runs(l.kind) {
			// Only an owner who named the program waits for the attribute.
			if _, named := given(snap, l.kind.knob()); named {
				results[i] = errs.E("machine.Probe", errs.Unsupported, l.kind.knob(), errNotRun)
			}
			continue
		}
		looking.Go(func() { results[i] = l.look(ctx, snap, ads[i]) })
	}
	looking.Wait()
	found := classad.NewAd()
	var problems []error
	for i, err := range results {
		if err != nil {
			problems = append(problems, errs.E("machine.Probe", errs.Other, "", err))
		}
		found.Update(ads[i])
	}
	return found, problems
}

// JoinAbilities adds every attribute of ad whose name begins with Has to a
// StarterAbilityList, if it is not there.
func JoinAbilities(list string, ad *classad.Ad) string {
	words := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	known := make(map[string]bool, len(words))
	for _, w := range words {
		known[strings.ToLower(w)] = true
	}
	for _, name := range ad.Names() {
		if low := strings.ToLower(name); strings.HasPrefix(low, "has") && !known[low] {
			words = append(words, name)
		}
	}
	return strings.Join(words, ",")
}

// run runs a program for at most limit. found is false if it is not there.
func (p Prober) run(ctx context.Context, limit time.Duration, argv []string) (out Outcome, found bool, err error) {
	cause := fmt.Errorf("took longer than %v", limit)
	within, cancel := context.WithTimeoutCause(ctx, limit, cause)
	defer cancel()
	out, err = p.Run(within, argv)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return out, false, nil
	case err != nil && within.Err() != nil && ctx.Err() == nil:
		return out, true, errs.E("machine.run", errs.Expired, strings.Join(argv, " "), cause)
	case err != nil:
		return out, true, errs.E("machine.run", errs.Other, strings.Join(argv, " "), err)
	}
	return out, true, nil
}

// failed says how a program failed, by its status and first words.
func failed(argv []string, out Outcome) error {
	words := firstLine(out.Stderr)
	if words == "" {
		words = firstLine(out.Stdout)
	}
	if words != "" {
		words = ": " + words
	}
	return errs.E("machine.run", errs.Broken, strings.Join(argv, " "), fmt.Errorf("exit status %d%s", out.Status, words))
}

// maxWords bounds what is taken over from the output of a program.
const maxWords = 1024

// firstLine returns the first line that is not empty, as one that can be
// printed.
func firstLine(text []byte) string {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return proctext.Printable(string(line[:min(len(line), maxWords)]))
		}
	}
	return ""
}

// Programs returns the scanner that probes and puts what it finds among the
// attributes of the machine and into StarterAbilityList. It takes as long as
// Probe.
func Programs(p Prober, snap *config.Snapshot) Scanner { return programs{p, snap} }

type programs struct {
	prober Prober
	snap   *config.Snapshot
}

func (programs) Name() string { return "programs" }

func (s programs) Scan(ctx context.Context, inv *Inventory) error {
	s.prober.Arch = inv.Arch
	found, problems := s.prober.Probe(ctx, s.snap)
	if found.Len() > 0 {
		list, _ := inv.Attrs.EvalString(abilityList, nil)
		inv.Attrs.Update(found)
		inv.Attrs.SetString(abilityList, JoinAbilities(list, found))
	}
	return errors.Join(problems...)
}

const abilityList = "StarterAbilityList"

// Unprobe takes out of ad what Programs may have put there, before it is asked
// again.
func Unprobe(ad *classad.Ad) {
	for _, name := range ad.Names() {
		for _, prefix := range ProbedAttributes() {
			if len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
				ad.Delete(name)
			}
		}
	}
}

// ProbedAttributes are the beginnings of the names of all attributes that
// Probe may find. An EP whose jobs and expressions mention none of them need
// not probe.
func ProbedAttributes() []string {
	return []string{"HasJava", "Java", "HasDocker", "Docker", "HasContainer", "HasSingularity", "Singularity", "HasSandboxImage", "HasSIF",
		"HasPidNamespaces", abilityList}
}
