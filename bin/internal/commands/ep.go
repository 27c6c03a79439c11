// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import "slices"

// Options that several commands have.
var (
	optConfig  = Option{Name: "config", Arg: "FILE", Text: "the configuration (default: that of this machine, or where it has none, that of condor_ep run)"}
	optMachine = Option{Name: "machine", Arg: "FILE", Text: "a machine to divide instead of this one: a JSON object with cpus, memory_mb, disk_kb, swap_kb and resources"}
	optJSON    = Option{Name: "json", Text: "JSON instead of text"}
	optRuns    = Option{Name: "config", Arg: "FILE", Text: "the condor_startd that runs with this configuration (default: what runs of this user, and with the configuration of this machine)"}
	optLocal   = Option{Name: "local-name", Arg: "NAME", Text: "read the knobs of this local name"}
	optName    = Option{Name: "name", Arg: "NAME", Text: "a condor_startd of this project in a pool, asked over the wire"}
	optPool    = Option{Name: "pool", Arg: "POOL", Text: "the collector that knows NAME (default: COLLECTOR_HOST)"}
	optPID     = Option{Name: "pid", Arg: "N", Text: "which Execution Point, if several run here"}
	optSyntax  = Option{Name: "syntax", Arg: "S", Text: "of ad files: old, new, json or auto (the default)"}
)

// answers are the statuses of a command of condor_ep: what yes and no mean to
// it, and what it cannot use besides a bad command line.
func answers(yes, no, unusable string, more ...Status) []Status {
	if unusable != "" {
		unusable = ", " + unusable
	}
	return append([]Status{{OK, yes}, {No, no}, {Misused, "bad command line" + unusable}}, more...)
}

// onePlace is what commands that change a running Execution Point answer.
var onePlace = answers("done", "refused, or no Execution Point runs here", "or several run here and none is named")

// EP is condor_ep.
var EP = Program{
	Name: "condor_ep", Does: "run jobs on this machine without a pool, and see what an Execution Point does and why", Version: "-version",
	Commands: slices.Concat(epJobs, epOwner, epPlan, epClassad),
}

// epJobs run jobs and show them.
var epJobs = []Command{{
	Name: "run", Brief: "run the jobs of a submit file on this machine and wait for them",
	Synopsis: []string{"[-config FILE] [-local-name NAME] [-json] [-keep] JOB.sub"},
	Does: "Run the jobs of a submit file (- is standard input) on this machine and wait for them. Ctrl-C asks the jobs to leave, a second one ends them at once; each says so. SIGHUP reads the configuration of -config again.\n\n" +
		"What takes longer than half a second before the jobs begin is said, and so is what else gives all of the machine to its jobs: another run or a condor_startd. A job that the owner's policy keeps waiting is told of after some seconds, with the reason.\n\n" +
		"No job runs as root: for root the jobs run as the owner of the submit file's directory (of the working directory for standard input), and where that is root as nobody, or as NOBODY_SLOT_USER and SLOT<N>_USER of the configuration say.\n\n" +
		"Sandboxes and logs are in a directory among the temporary files. Where a run is found by status and the like is recorded in /run/execpoint (root), " +
		"XDG_RUNTIME_DIR, or the temporary files; EXECPOINT_RUNTIME_DIR names another directory, in which only its user may write.",
	Options: []Option{
		{Name: "config", Arg: "FILE", Text: "configuration of the Execution Point (default: that of CONDOR_CONFIG, or else all of the machine in one partitionable slot, and any job runs)"},
		optLocal,
		{Name: "json", Text: "one JSON object a line instead of text"},
		{Name: "keep", Text: "leave sandboxes and logs in place"},
	},
	Statuses: answers("all jobs exited 0", "some did not", "submit file or configuration",
		Status{Never, "jobs that can never run here"}, Status{Restart, "drained, and to be started again"}),
}, {
	Name: "status", Brief: "show the slots of the Execution Points that run here",
	Synopsis: []string{"[-config FILE] [-local-name NAME] [-name NAME [-pool POOL]] [-json]"},
	Does: "Show the slots of the Execution Points that run here: of condor_ep run and of condor_startd, and which of the two each is. Root and the user of a condor_startd may ask it everything; " +
		"status and explain need its level READ (ALLOW_READ), drain and vacate ADMINISTRATOR.",
	Options:  []Option{optRuns, optLocal, optName, optPool, {Name: "json", Text: "one JSON object for each Execution Point, one a line"}},
	Statuses: answers("done", "no Execution Point runs here", "or the records of runs cannot be read"),
}, {
	Name: "explain", Brief: "say why a slot or a job is as it is, and what would have to change",
	Synopsis: []string{"[-name NAME [-pool POOL]] [-json] [-job FILE] [SLOT|JOB]", "[-config FILE] [-local-name NAME] [-machine FILE.json] [-set NAME=EXPR]... [-job FILE] [-json] [SLOT]"},
	Does: "Show why a slot or a job of a running Execution Point is as it is, and what would have to change: all slots if none is named, and with -job what becomes of a job that might be submitted. Of a job that has ended the history tells how.\n\n" +
		"With -machine or -set, or with a -config with which none runs, the same of an Execution Point that might run, on this machine as it is now or on a described one; nothing is started.",
	Options: []Option{
		{Name: "job", Arg: "FILE", Text: "a job that might be submitted: its ad, or a submit file (*.sub)"},
		optConfig, optLocal, optName, optPool, optMachine,
		{Name: "set", Arg: "NAME=EXPR", Text: "an attribute that the slots are to have instead of theirs"},
		{Name: "json", Text: "one JSON object for each slot or job, one a line"},
	},
	Statuses: answers("done", "no Execution Point runs here, or it has no such slot or job", "configuration, job or description of a machine"),
}, {
	Name: "history", Brief: "show the jobs that have ended here, the newest first",
	Synopsis: []string{"[-file FILE|-config FILE|-name NAME [-pool POOL]] [-local-name NAME] [-limit N] [-constraint EXPR] [-json|-jsonl|-long] [JOB]"},
	Does:     "Show the jobs that have ended here, the newest first. Of one JOB (3.0) it is told how each of its runs here ended, who asked for that, its limits, what it used and what it left.",
	Options: []Option{
		{Name: "file", Arg: "FILE", Text: "a history, such as a startd_history"},
		{Name: "config", Arg: "FILE", Text: "the history of that configuration"},
		optLocal, optName, optPool,
		{Name: "limit", Arg: "N", Text: "so many at most"},
		{Name: "constraint", Arg: "EXPR", Text: "those whose ad it is true of"},
		{Name: "json", Text: "one JSON list of the jobs' ads, as condor_history writes it"},
		{Name: "jsonl", Text: "the ads in JSON, one a line"},
		{Name: "long", Text: "the ads in the old syntax"},
	},
	Statuses: answers("done", "part of the history is damaged", "or a history that cannot be read"),
}}

// epOwner are the words of an owner.
var epOwner = []Command{{
	Name: "drain", Brief: "empty the machine of jobs, and let none in",
	Synopsis: []string{"[-graceful|-quick|-fast] [-reason TEXT] [-start EXPR] [-check EXPR] " +
		"[-(resume|exit|restart|reconfig)-on-completion] [-config FILE] [-local-name NAME] [-name NAME [-pool POOL]] [-pid N] [-json]", "-cancel [-request-id ID] [-config FILE] [-local-name NAME] [-name NAME [-pool POOL]] [-pid N] [-json]"},
	Does: "Empty the machine of jobs, and let none in; or take that back.",
	Options: []Option{
		{Name: "graceful", Text: "each job keeps its retirement and its vacate time"},
		{Name: "quick", Text: "its vacate time only"},
		{Name: "fast", Text: "neither"},
		{Name: "reason", Arg: "TEXT", Text: "why (default: by the user who asks)"},
		{Name: "start", Arg: "EXPR", Text: "jobs that are let in meanwhile"},
		{Name: "check", Arg: "EXPR", Text: "what must be true of every slot, or nothing is drained"},
		{Name: "resume-on-completion", Text: "when every slot is drained, take jobs again (default: stay drained)"},
		{Name: "exit-on-completion", Text: "then end"},
		{Name: "restart-on-completion", Text: "then end, to be started again"},
		{Name: "reconfig-on-completion", Text: "then read the configuration again and take jobs again"},
		{Name: "cancel", Text: "take a drain back"},
		{Name: "request-id", Arg: "ID", Text: "which one (default: any)"},
		optRuns, optLocal, optName, optPool, optPID, optJSON,
	},
	Statuses: onePlace,
}, {
	Name: "vacate", Brief: "have the job of a slot leave",
	Synopsis: []string{"[-fast] [-config FILE] [-local-name NAME] [-name NAME [-pool POOL]] [-pid N] [-json] SLOT|-all"},
	Does:     "End the claim of a slot, or of every slot.",
	Options:  []Option{{Name: "fast", Text: "at once, without the job's vacate time"}, {Name: "all", Text: "every slot"}, optRuns, optLocal, optName, optPool, optPID, optJSON},
	Statuses: onePlace,
}, {
	Name: "rehome", Brief: "lend an Execution Point of the pool to one access point",
	Synopsis: []string{"[-schedd-pool POOL] [-cancel] [-timeout SECONDS] [-reboot] [-json] EP-NAME SCHEDD-NAME"},
	Does:     "Have an Execution Point of the pool end all its jobs and go over to the access point SCHEDD-NAME, until that is taken back.",
	Options: []Option{
		{Name: "schedd-pool", Arg: "POOL", Text: "the collector that knows it (default: COLLECTOR_HOST)"},
		{Name: "cancel", Text: "take it back; no job is ended"},
		{Name: "timeout", Arg: "SECONDS", Text: "go back unless it has taken slots by then (default: 0, never)"},
		{Name: "reboot", Text: "reboot the machine when its jobs are gone, if its STARTD_REHOME_ALLOW_REBOOT lets"},
		optJSON,
	},
	Statuses: answers("done", "refused, or one of the two cannot be reached", "or configuration"),
}}

// epPlan are the commands that start nothing.
var epPlan = []Command{{
	Name: "check", Brief: "list everything that is wrong with a configuration",
	Synopsis: []string{"[-local-name NAME] [-json] [-warnings-ok] [-machine FILE.json] [FILE...]"},
	Does:     "List everything that is wrong with the configuration of this machine, or with each FILE as one. docs/checks.md explains each finding by its code.",
	Options:  []Option{optLocal, {Name: "json", Text: "one JSON object a finding"}, {Name: "warnings-ok", Text: "show warnings, but count only errors"}, optMachine},
	Statuses: answers("nothing found", "something is wrong", "or a file that cannot be read"),
}, {
	Name: "slots", Brief: "show the slots that a configuration makes",
	Synopsis: []string{"[-config FILE] [-local-name NAME] [-machine FILE.json] [-json|-long]", "-record"},
	Does:     "Show the slots that a configuration makes; nothing is started.",
	Options: []Option{
		optConfig, optLocal, optMachine,
		{Name: "json", Text: "a JSON list of the slots' ads"},
		{Name: "long", Text: "the ads in the old syntax"},
		{Name: "record", Text: "answer JSON records (id, config, scripts, args, detected, query_delay_s) from the standard input, one to a line, with the ads of the slots and of the daemon"},
	},
	Statuses: answers("every slot can be made", "some cannot, or a record could not be answered", "configuration or description of a machine"),
}, {
	Name: "simulate", Brief: "play a policy in virtual time",
	Synopsis: []string{"[-config FILE] [-machine FILE.json] [-compare OTHER.conf] [-svg FILE] [-json] [-width N] [-seed N] SCENARIO", "-record"},
	Does:     "Show what a policy does with the jobs, people and commands of a scenario, in virtual time; nothing is started. docs/simulate.md describes the file.",
	Options: []Option{
		{Name: "config", Arg: "FILE", Text: "instead of the scenario's own configuration"},
		{Name: "machine", Arg: "FILE", Text: "instead of the scenario's machine"},
		{Name: "compare", Arg: "FILE", Text: "what another configuration would have done"},
		{Name: "svg", Arg: "FILE", Text: "draw what each slot did"},
		{Name: "width", Arg: "N", Text: "columns of the picture for a terminal (default 100)"},
		{Name: "seed", Arg: "N", Text: "instead of the scenario's seed"},
		optJSON,
		{Name: "record", Text: "play JSON records of real runs (id, config, knobs, scripts, job, actions, end) from the standard input, one to a line, and answer with the moves of each slot"},
	},
	Statuses: answers("done", "something in the timeline was refused, or a record could not be played", "scenario or configuration"),
}}

// adFiles stands in the help of every command of classad.
const adFiles = "An ad file holds one ad; - is the standard input."

var epClassad = []Command{{
	Name: "classad eval", Brief: "print what expressions come to",
	Synopsis: []string{"[-my FILE] [-target FILE] [-new] [-format F] [-syntax S] EXPR...", "-batch"}, OptionsFirst: true,
	Does: "Print what expressions come to. " + adFiles + " Put -- before an expression that begins with a minus sign.",
	Options: []Option{
		{Name: "my", Arg: "FILE", Text: "the ad they belong to"},
		{Name: "target", Arg: "FILE", Text: "the other ad of a match"},
		{Name: "new", Text: "the expressions are in the new syntax"},
		{Name: "format", Arg: "F", Text: "of values: old, new (the default), json or xml"},
		{Name: "json", Text: "as -format json"},
		optSyntax,
		{Name: "batch", Text: "answer JSON records from the standard input, one to a line"},
	},
	Statuses: answers("done", "a record of a batch could not be read", "file or expression"),
}, {
	Name: "classad match", Brief: "hold two ads against each other and say what fails",
	Synopsis: []string{"[-json] [-syntax S] FILE FILE", "-batch"},
	Does:     "Hold two ads against each other and say what fails. " + adFiles,
	Options:  []Option{optJSON, optSyntax, {Name: "batch", Text: "answer JSON records from the standard input, one to a line"}},
	Statuses: answers("they match", "they do not match, or a record of a batch could not be read", "or file"),
}, {
	Name: "classad print", Brief: "print an ad in one of four syntaxes",
	Synopsis: []string{"[-format F] [-syntax S] FILE"},
	Does:     "Print an ad. " + adFiles,
	Options:  []Option{{Name: "format", Arg: "F", Text: "old (the default), new, json or xml"}, {Name: "json", Text: "as -format json"}, optSyntax},
	Statuses: []Status{{OK, "done"}, {Misused, "bad command line, or file"}},
}}
