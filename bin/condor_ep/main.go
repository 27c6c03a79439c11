// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Condor_ep is the tool for people: it runs jobs on this machine without a
// pool, and shows what a running Execution Point does and why.
//
//	condor_ep run [-config FILE] [-json] [-keep] JOB.sub
//	condor_ep status [-json]
//	condor_ep drain [-graceful|-quick|-fast] [-reason TEXT] [-start EXPR] [-check EXPR] [-...-on-completion] [-json]
//	condor_ep drain -cancel [-request-id ID] [-json]
//	condor_ep vacate [-fast] [-json] SLOT|-all
//	condor_ep rehome [-schedd-pool POOL] [-cancel] [-timeout N] [-reboot] [-json] EP SCHEDD
//	condor_ep history [-file FILE] [-limit N] [-constraint EXPR] [-json|-long]
//	condor_ep explain [-json] [-job FILE] [SLOT|JOB]
//	condor_ep explain [-config FILE] [-machine FILE.json] [-set NAME=EXPR] [-job FILE] [-json] [SLOT]
//	condor_ep simulate [-compare OTHER.conf] [-svg FILE] [-json] SCENARIO
//	condor_ep classad eval|match|print …
//	condor_ep check [-json] [-warnings-ok] [-machine FILE] [FILE…]
//	condor_ep slots [-config FILE] [-machine FILE.json] [-json|-long]
//
// The commands of classad show what an expression or a match comes to, for a
// person or, with -batch, for a program that asks line by line.
//
// It holds flags, printing and the choice of the platform; all else is lib/run
// and below. It must never decide anything about a slot or a job.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/execpoint/execpoint/bin/internal/asstarter"
	"github.com/execpoint/execpoint/lib/starter"
)

// Exit statuses, as the documentation promises them.
const (
	exitOK         = 0 // all jobs exited 0
	exitSomeFailed = 1 // some did not
	exitUsage      = 2 // bad command line, submit file or configuration
	exitNever      = 3 // jobs that can never run here
)

// version is what status shows and ads carry.
const version = "0.1.0"

func main() {
	os.Exit(tool(os.Args[1:], os.Stdout, os.Stderr))
}

// tool runs one command and returns its exit status.
func tool(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	switch args[0] {
	case "run":
		return cmdRun(args[1:], stdout, stderr)
	case "status":
		return cmdStatus(args[1:], stdout, stderr)
	case "explain":
		return cmdExplain(args[1:], stdout, stderr)
	case "drain":
		return cmdDrain(args[1:], stdout, stderr)
	case "vacate":
		return cmdVacate(args[1:], stdout, stderr)
	case "rehome":
		return cmdRehome(args[1:], stdout, stderr)
	case "history":
		return cmdHistory(args[1:], stdout, stderr)
	case "check":
		return cmdCheck(args[1:], stdout, stderr)
	case "slots":
		return cmdSlots(args[1:], os.Stdin, stdout, stderr)
	case "simulate":
		return cmdSimulate(args[1:], os.Stdin, stdout, stderr)
	case "classad":
		return cmdClassad(args[1:], os.Stdin, stdout, stderr)
	case starter.Command:
		return asstarter.Main(args[1:])
	case "version", "-version", "--version":
		fmt.Fprintf(stdout, "condor_ep %s\n", version)
		return exitOK
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
		return exitOK
	}
	fmt.Fprintf(stderr, "condor_ep: unknown command %q\n\n%s", args[0], usage)
	return exitUsage
}

const usage = `usage: condor_ep COMMAND [OPTIONS]

  run [-config FILE] [-json] [-keep] JOB.sub
        run the jobs of a submit file on this machine and wait for them
        -config FILE  configuration of the Execution Point (default: all of
                      the machine in one partitionable slot, any job runs)
        -json         one JSON object a line instead of text
        -keep         leave sandboxes and logs in place
        Sandboxes and logs are in a directory among the temporary files. Where
        a run is found by status and the like is recorded in /run/execpoint
        (root), XDG_RUNTIME_DIR, or the temporary files; EXECPOINT_RUNTIME_DIR
        names another directory, in which only its user may write
  status [-json]
        show the slots of the Execution Points that run here
  explain [-json] [-job FILE] [SLOT|JOB]
        show why a slot or a job of a running Execution Point is as it is, and
        what would have to change; all slots if none is named, and with -job
        what becomes of a job that might be submitted
        -job FILE      its ad, or a submit file (*.sub)
  explain [-config FILE] [-machine FILE.json] [-set NAME=EXPR]... [-job FILE]
          [-json] [SLOT]
        the same of an Execution Point with that configuration, on this machine
        as it is now or on a described one; nothing is started
        -config FILE   the configuration (default: that of this machine)
        -machine FILE  as for slots
        -set NAME=EXPR an attribute that the slots are to have instead of theirs
  drain [-graceful|-quick|-fast] [-reason TEXT] [-start EXPR] [-check EXPR]
        [-resume-on-completion|-exit-on-completion|-restart-on-completion|
        -reconfig-on-completion] [-pid N] [-json]
        empty the machine of jobs, and let none in
        -graceful      each job keeps its retirement and its vacate time
        -quick         its vacate time only
        -fast          neither
        -reason TEXT   why (default: by the user who asks)
        -start EXPR    jobs that are let in meanwhile
        -check EXPR    what must be true of every slot, or nothing is drained
        -...-on-completion  what to do when every slot is drained (default: to
                       stay drained): take jobs again, end, end to be started
                       again, read the configuration again and take jobs again
        -pid N         which Execution Point, if several run here
  drain -cancel [-request-id ID] [-pid N] [-json]
        take it back
  vacate [-fast] [-pid N] [-json] SLOT|-all
        end the claim of a slot, or of every slot; with -fast at once
  rehome [-schedd-pool POOL] [-cancel] [-timeout SECONDS] [-reboot] [-json]
         EP-NAME SCHEDD-NAME
        have an Execution Point of the pool end all its jobs and go over to the
        access point SCHEDD-NAME, until that is taken back
        -schedd-pool POOL  the collector that knows it (default: COLLECTOR_HOST)
        -cancel            take it back; no job is ended
        -timeout SECONDS   go back unless it has taken slots by then (default:
                           0, never)
        -reboot            reboot the machine when its jobs are gone, if its
                           STARTD_REHOME_ALLOW_REBOOT lets
  history [-file FILE|-config FILE] [-limit N] [-constraint EXPR]
          [-json|-long]
        show the jobs that have ended here, the newest first
        -file FILE        a history, such as a startd_history
        -config FILE      the history of that configuration
        -limit N          so many at most
        -constraint EXPR  those whose ad it is true of
  check [-json] [-warnings-ok] [-machine FILE.json] [FILE...]
        list everything that is wrong with the configuration of this machine,
        or with each FILE as one; nothing is started
        -json          one JSON object a finding
        -warnings-ok   show warnings, but count only errors
        -machine FILE  for a described machine instead of this one, as for slots
  slots [-config FILE] [-machine FILE.json] [-json|-long]
        show the slots that a configuration makes; nothing is started
        -config FILE   the configuration (default: that of this machine)
        -machine FILE  a machine to divide instead of this one: an object with
                       cpus, memory_mb, disk_kb, swap_kb and resources
        -json          a list of the slots' ads
        -long          the ads in the old syntax
  slots -record
        answer JSON records (id, config, scripts, args, detected,
        query_delay_s) from the standard input, one to a line, with the ads of
        the slots and of the daemon
  simulate [-config FILE] [-machine FILE.json] [-compare OTHER.conf]
           [-svg FILE] [-json] [-width N] [-seed N] SCENARIO
        show what a policy does with the jobs, people and commands of a
        scenario, in virtual time; nothing is started
        -config FILE   instead of the scenario's own configuration
        -machine FILE  instead of the scenario's machine
        -compare FILE  what another configuration would have done
        -svg FILE      draw what each slot did
        -width N       columns of the picture for a terminal (default 100)
        -seed N        instead of the scenario's seed
  simulate -record
        play JSON records of real runs (id, config, knobs, scripts, job,
        actions, end) from the standard input, one to a line, and answer with
        the moves of each slot
  classad eval [-my FILE] [-target FILE] [-new] [-format F] [-syntax S] EXPR...
        print what expressions come to
        -my FILE      the ad they belong to
        -target FILE  the other ad of a match
        -new          the expressions are in the new syntax
        -format F     of values: old, new (the default), json or xml
        -syntax S     of ad files: old, new, json or auto (the default)
  classad match [-json] [-syntax S] FILE FILE
        hold two ads against each other and say what fails
  classad print [-format F] [-syntax S] FILE
        print an ad (-format: old, which is the default, new, json or xml)
  classad eval -batch
  classad match -batch
        answer JSON records from the standard input, one to a line

An ad file holds one ad; - is the standard input. Put -- before an expression
that begins with a minus sign.

Exit status of run: 0 all jobs exited 0; 1 some did not; 2 bad command line,
submit file or configuration; 3 jobs that can never run here; 75 drained, and
to be started again.
Exit status of drain and vacate: 0 done; 1 refused, or nothing runs here; 2 bad
command line.
Exit status of check: 0 nothing found; 1 something is wrong; 2 bad command line,
or a file that cannot be read.
Exit status of slots: 0 every slot can be made; 1 some cannot; 2 bad command
line, configuration or description of a machine.
Exit status of simulate: 0 done; 1 something in the timeline was refused, or a
record could not be played; 2 bad command line, scenario or configuration.
Exit status of classad: 0 done; 1 the ads do not match, or a record of a batch
could not be read; 2 bad command line, file or expression.
`
