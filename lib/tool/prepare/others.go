// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"fmt"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/run"
)

// What is said of others that use this machine.
const (
	shareRun = "each gives its jobs all cores and all memory: wait for it, or give each its part with NUM_CPUS and MEMORY in a file for -config"
	// Who may not touch the daemon can still leave room for its jobs.
	shareDaemon = "both give their jobs all cores and all memory: drain it meanwhile (condor_drain), or give this run its part with NUM_CPUS and MEMORY in a file for -config"
)

// mostBesides is how many processes of one kind are told one by one: anybody can
// start many that are called so.
const mostBesides = 3

// Machine is where others are looked for.
type Machine struct {
	Runs     func() ([]run.Dir, []run.Owner, error) // that are recorded of this user
	Alive    func(host.ProcID) bool
	Running  func(names ...string) ([]host.Program, error) // the processes of these programs
	UserName func(uid uint32) (string, error)
}

// Others tells of what else gives all of this machine to its jobs: the runs of
// this user that are recorded, and what the processes of the machine seem to be.
// They know nothing of one another. number is that of this run.
func (m Machine) Others(number int) (told []string) {
	recorded := make(map[host.ProcID]bool)
	// The records were read a moment ago, when this run began.
	if dirs, owners, err := m.Runs(); err == nil {
		for i, d := range dirs {
			proc := owners[i].Proc
			if proc.PID == 0 || !m.Alive(proc) {
				continue
			}
			if recorded[proc] = true; d.Number != number {
				told = append(told, fmt.Sprintf("run %d (process %d) uses this machine, too; %s", d.Number, proc.PID, shareRun))
			}
		}
	}
	found, err := m.Running("condor_ep", "condor_startd")
	if err != nil {
		return told // it was a hint
	}
	return append(told, strangers(found, recorded, func(uid uint32) string {
		name, err := m.UserName(uid)
		if err != nil {
			return fmt.Sprintf("user %d", uid)
		}
		return name
	})...)
}

// strangers words processes that look like runs and daemons and are not recorded.
// Of what they call themselves nothing is shown.
func strangers(found []host.Program, recorded map[host.ProcID]bool, user func(uid uint32) string) (told []string) {
	runs, daemons := 0, 0
	for _, f := range found {
		who := fmt.Sprintf("process %d of %s", f.Proc.PID, user(f.UID))
		switch {
		case recorded[f.Proc]:
		case f.Name == "condor_startd":
			if daemons++; daemons <= mostBesides {
				told = append(told, fmt.Sprintf("a condor_startd (%s) uses this machine, too; %s", who, shareDaemon))
			}
		case len(f.Args) > 1 && f.Args[1] == "run": // and not a starter, or a question
			if runs++; runs <= mostBesides {
				told = append(told, fmt.Sprintf("another condor_ep run (%s) uses this machine, too; %s", who, shareRun))
			}
		}
	}
	if more := daemons - mostBesides; more > 0 {
		told = append(told, fmt.Sprintf("%d more processes are called condor_startd", more))
	}
	if more := runs - mostBesides; more > 0 {
		told = append(told, fmt.Sprintf("%d more processes are called condor_ep run", more))
	}
	return told
}
