// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/jobenv"
	"github.com/execpoint/execpoint/lib/reason"
)

// Process runs a job as a plain process of the machine, in a family of its own.
// That is what HTCondor's vanilla universe is, each node of a
// parallel job, and a job of the local universe, for which a schedd starts the starter.
type Process struct{ machine Machine }

// Offer implements Runner. The job has the network of the machine.
func (*Process) Offer() Offer {
	return Offer{Universes: []Universe{Vanilla, Parallel, Local}, Abilities: []string{"HasJobNetworking"}}
}

// Prepare implements Runner. The limits of a process are applied when it starts, so
// that nothing of the machine is changed before.
func (p *Process) Prepare(ctx context.Context, t Task) (Prepared, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return process{p.machine, host.SpawnSpec{User: t.User, Bond: host.Bound, Limits: t.Limits, Space: t.Space, Group: t.Group, Marker: t.Marker, TrackGID: t.TrackGID}}, nil
}

// process is a plain process that can be started.
type process struct {
	machine Machine
	spec    host.SpawnSpec // what is the same for each run
}

func (process) Close() error { return nil } // nothing was made

func (p process) Start(program Program) (*Run, error) {
	spec := p.spec
	spec.Path, spec.Args, spec.Env, spec.Dir = program.Path, append([]string{program.Path}, program.Args...), program.Env, program.Dir
	spec.Stdin, spec.Stdout, spec.Stderr = program.Files[0], program.Files[1], program.Files[2]
	spec.Nice = program.Nice
	family, err := p.machine.Spawner.Spawn(spec)
	switch {
	case errors.Is(err, host.ErrLimit):
		return nil, err
	case err != nil:
		return nil, p.refusal(program, err)
	}
	return &Run{Controls: family, Ending: family, Meter: family, Beside: func(visitor host.SpawnSpec) (host.Family, error) {
		visitor.User, visitor.Bond, visitor.Beside, visitor.TrackGID = spec.User, host.Bound, family, spec.TrackGID
		return p.machine.Spawner.Spawn(visitor)
	}}, nil
}

// refusal is of a program that could not be executed, in HTCondor's words. To begin
// in a directory that the job's user may not enter fails as if there were no program.
// The kernel blames a script when its interpreter is missing: the text says which
// that is.
func (p process) refusal(program Program, err error) *Refusal {
	n, what, ok := 0, "", false
	if p.machine.Errno != nil {
		n, what, ok = p.machine.Errno(err)
	}
	if !ok {
		n, what = 0, err.Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Failed to execute '%s'", program.Path)
	if len(program.Args) > 0 {
		b.WriteString(" with arguments " + jobenv.ArgsToV2(program.Args))
	}
	b.WriteString(": ")
	dir := p.hiding(program.Dir)
	if path := p.hiding(program.Path); path != "" && dir == "" && errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(&b, "the job has its own %s on this machine (MOUNT_UNDER_SCRATCH), which hides the file; have it transferred or keep it elsewhere ", path)
	} else if dir != "" {
		fmt.Fprintf(&b, "Cannot access initial working directory \"%s\": the job has its own %s on this machine (MOUNT_UNDER_SCRATCH), which hides it ", program.Dir, dir)
	} else if program.Dir != program.Home && p.machine.Enter != nil && p.machine.Enter(p.spec.User, program.Dir) != nil {
		fmt.Fprintf(&b, "Cannot access initial working directory \"%s\" ", program.Dir)
	} else if errors.Is(err, os.ErrNotExist) {
		if interp := p.interpreter(program.Path); interp != "" {
			fmt.Fprintf(&b, "invalid interpreter (%s) specified on first line of script ", interp)
		}
	}
	fmt.Fprintf(&b, "(errno=%d: '%s')", n, what)
	return &Refusal{Code: reason.FailedToCreateProcess, Subcode: n, Text: b.String(), Err: err}
}

// hiding is the directory of the machine that the job does not see because it has its
// own in that place, and in which path is; "" for none.
func (p process) hiding(path string) string {
	if p.spec.Space == nil {
		return ""
	}
	for _, m := range p.spec.Space.Mounts {
		if path == m.Target || strings.HasPrefix(path, strings.TrimSuffix(m.Target, "/")+"/") {
			return m.Target
		}
	}
	return ""
}

// interpreter returns what the first line of the script at path names, "" if
// it is no script. It is read as the job's user reads it, who may have put something
// else there since: a pipe, a device, or a link to a file of root's.
func (p process) interpreter(path string) string {
	if p.machine.Read == nil {
		return ""
	}
	f, err := p.machine.Read(p.spec.User, path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	line, err := bufio.NewReader(io.LimitReader(f, 512)).ReadString('\n')
	if err != nil && err != io.EOF {
		return ""
	}
	rest, ok := strings.CutPrefix(line, "#!")
	if words := strings.Fields(rest); ok && len(words) > 0 {
		return words[0]
	}
	return ""
}
