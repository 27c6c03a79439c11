// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import "slices"

// Code names a rule. A code never changes its meaning.
type Code string

// The codes.
const (
	Unreadable   Code = "EP001"
	BadIf        Code = "EP002"
	BadInclude   Code = "EP003"
	BadTemplate  Code = "EP004"
	Said         Code = "EP005"
	BadMacro     Code = "EP006"
	Doubtful     Code = "EP007"
	BadArguments Code = "EP008"

	NearMiss     Code = "EP010"
	Obsolete     Code = "EP011"
	Unset        Code = "EP012"
	OldAttribute Code = "EP013"
	NoEffect     Code = "EP014"
	SetTwice     Code = "EP015"
	NoDaemon     Code = "EP016"
	NotRead      Code = "EP017"

	WrongType       Code = "EP020"
	OutOfRange      Code = "EP021"
	Unparsable      Code = "EP022"
	AlwaysError     Code = "EP023"
	NearAttribute   Code = "EP024"
	WrongAd         Code = "EP025"
	TimeMisuse      Code = "EP026"
	Unquoted        Code = "EP027"
	NotDefined      Code = "EP028"
	CronIncomplete  Code = "EP029"
	OwnerUndefined  Code = "EP030"
	OwnerByState    Code = "EP031"
	OwnerOfJob      Code = "EP032"
	NeverSuspends   Code = "EP033"
	NeverContinues  Code = "EP034"
	PreemptUnasked  Code = "EP035"
	KillUnasked     Code = "EP036"
	VacateUndefined Code = "EP037"
	NeverStarts     Code = "EP038"
	NoCondition     Code = "EP039"
	NeverMet        Code = "EP040"

	SlotTooLarge Code = "EP050"
	SlotOdd      Code = "EP051"
	SlotUnused   Code = "EP052"
	WeightOther  Code = "EP053"

	NoSuchFile   Code = "EP060"
	NotProgram   Code = "EP061"
	OthersWrite  Code = "EP062"
	ConfigUnsafe Code = "EP063"
	NoDirectory  Code = "EP064"
	ToBeMade     Code = "EP065"
)

// Rule is one row of the table of findings.
type Rule struct {
	Code     Code
	Severity Severity
	Title    string // what is found
	Why      string // what happens, and why it is wrong
	Instead  string // what to do in general; a finding says it for the case
	Example  string // a configuration with the finding
}

// Rules returns the table in the order of codes. The caller must not change
// what is in it.
func Rules() []Rule { return ruleTable[:] }

func ruleOf(code Code) Rule {
	i := slices.IndexFunc(ruleTable[:], func(r Rule) bool { return r.Code == code })
	return ruleTable[i]
}

var ruleTable = [...]Rule{
	{Unreadable, Error, "a line that cannot be read",
		"Reading stops there, so that nothing below the line counts and no daemon starts.",
		"Write NAME = value; a value of several lines begins with NAME @=tag and ends with @tag.",
		"START = True\nthis is no setting\n"},
	{BadIf, Error, "if, elif, else or endif that do not fit together",
		"A condition may test a number, a boolean, defined NAME or version; every if needs its endif in the same file.",
		"Close every if, and write the condition in one of these forms.",
		"if defined FOO\nSTART = True\n"},
	{BadInclude, Error, "a file or command that cannot be included",
		"A daemon that cannot read a file it was told to read does not start.",
		"Correct the path, or use include ifexist, or REQUIRE_LOCAL_CONFIG_FILE = False.",
		"include : /no/such/file.conf\n"},
	{BadTemplate, Error, "a template that does not exist",
		"use names a category and a template in it; an unknown one stops the reading.",
		"Write the name of a template of that category.",
		"use POLICY : Desktopp\n"},
	{Said, Error, "an error or warning statement that is reached",
		"The configuration itself, or a template that was used with too few arguments, says that something is wrong.",
		"Do what the message says.",
		"error : this machine is not ready\n"},
	{BadMacro, Error, "a macro that cannot be expanded",
		"$INT, $EVAL and their kin need text they can evaluate, and no name may lead back to itself.",
		"Give the function what it needs.",
		"A = $INT(B)\nB = no number\nNUM_CPUS = $(A)\n"},
	{Doubtful, Warning, "a statement that hardly means what it says",
		"It can be read, but the reading differs from what most people expect.",
		"Write it as the finding says.",
		"START : True\n"},
	{BadArguments, Warning, "arguments of a template that it cannot use",
		"A template ignores arguments that it has no place for, and puts the others into expressions as they are written.",
		"Give the arguments that the template takes.",
		"use POLICY : Preempt_If(NOBODY_SETS_THIS)\n"},

	{NearMiss, Warning, "a name that is almost a knob",
		"Any name may be set, so that a misspelt knob is no error: it just has no effect.",
		"Write the name of the knob.",
		"MEMROY = 4096\nSTRAT = True\n"},
	{Obsolete, Warning, "a knob of an older HTCondor",
		"It has no effect any more, or only under its new name.",
		"Use what took its place.",
		"NUM_VIRTUAL_MACHINES = 2\n"},
	{Unset, Warning, "$(NAME) of something that nothing sets",
		"It expands to nothing, and what is left of the value means something else or nothing at all.",
		"Set the name, or give a default: $(NAME:default).",
		"START = KeyboardIdle > 60 $(NightOnly)\n"},
	{OldAttribute, Warning, "an attribute of an older HTCondor",
		"Ads no longer have it, so that the expression is undefined, or they will not for long.",
		"Use what took its place.",
		"PREEMPT = (CurrentTime - EnteredCurrentActivity) > 3600\n"},
	{NoEffect, Warning, "a setting for one slot or slot type that is not looked at",
		"START, RANK and their kin are replaced for a slot type, not for a slot, and IS_OWNER belongs to the whole machine.",
		"Set it for the slot type, or test SlotID in the expression.",
		"SLOT1_START = False\n"},
	{SetTwice, Warning, "a knob that is set twice in one file",
		"The last value counts, and the one above is not used. Often a line was copied and only one of the two changed.",
		"Delete the line that does not count, or build the value with $(NAME).",
		"START = True\nSTART = KeyboardIdle > 900\n"},
	{NoDaemon, Warning, "a name in DAEMON_LIST that is almost a daemon",
		"condor_master starts what DAEMON_LIST names and finds the program in the knob of the same name. Without one it starts nothing.",
		"Write the name of the daemon.",
		"DAEMON_LIST = MASTER, STRATD\n"},

	{NotRead, Warning, "a knob that nothing reads",
		"HTCondor's own Execution Point acts by it, this one does not yet: the setting has no effect. Knobs of other daemons and macros are no finding; docs/knobs.md marks every knob.",
		"Do as the finding says, and take the line out.",
		"USER_JOB_WRAPPER = /usr/bin/env\n"},

	{WrongType, Error, "a value of the wrong type",
		"The daemon does not start with it, or uses the default.",
		"Write a value of the knob's type.",
		"POLLING_INTERVAL = often\n"},
	{OutOfRange, Error, "a number out of its range",
		"The daemon does not start with it.",
		"Write a number in the range.",
		"UPDATE_INTERVAL = -5\n"},
	{Unparsable, Error, "an expression that does not parse",
		"The slot has no such expression then: it is published as error, or left out, and every decision that needs it goes the other way.",
		"Correct the expression at the column.",
		"START = (KeyboardIdle > 60\n"},
	{AlwaysError, Warning, "a part of an expression that always comes to error",
		"Arithmetic with a string is an error, whatever the ads say, and makes everything around it one. Often parentheses are missing: * binds tighter than ==.",
		"Put parentheses around the comparison.",
		"RANK = (Owner == \"coltrane\" * 1000) + ImageSize\n"},
	{NearAttribute, Warning, "an attribute that is almost a known one",
		"A name that no ad has is undefined, and so is what it is compared with.",
		"Write the name of the attribute.",
		"PREEMPT = KeybordIdle < 60\n"},
	{WrongAd, Warning, "MY or TARGET of an attribute that only the other ad has",
		"MY is the slot and TARGET the job; MY.Owner never looks at the job, so that it is always undefined.",
		"Write TARGET. for what the job has and MY. for what the slot has.",
		"START = KeyboardIdle > 900 || MY.RequestMemory < 4096\n"},
	{TimeMisuse, Warning, "a point in time that is taken for a duration",
		"time(), EnteredCurrentActivity, JobStart and their kin count seconds since 1970: compared with a number of minutes they are always larger. The difference is a duration only the right way round.",
		"Write (time() - EnteredCurrentActivity) > 600.",
		"PREEMPT = EnteredCurrentActivity > 600\n"},
	{Unquoted, Warning, "an attribute whose value should be a string in quotes",
		"A word in an expression is the name of an attribute, and so it is in the value of an attribute in STARTD_ATTRS. A bare word is the name of another attribute, which nobody has: it comes to undefined, without an error.",
		"Put the text in double quotes.",
		"GenomeDBName = FruitFlies\nSTARTD_ATTRS = GenomeDBName\n"},
	{NotDefined, Warning, "an attribute that is listed but not set",
		"STARTD_ATTRS lists names; the value of each is the setting of the same name. Without one the slot does not have the attribute.",
		"Set the name, or take it off the list.",
		"STARTD_ATTRS = IsDesktop\n"},
	{CronIncomplete, Warning, "a cron job that never runs",
		"A job needs an executable, and a periodic one a period.",
		"Set what is missing.",
		"STARTD_CRON_JOBLIST = health\nSTARTD_CRON_HEALTH_MODE = Periodic\nSTARTD_CRON_HEALTH_PERIOD = 5m\n"},

	{OwnerUndefined, Error, "IS_OWNER that may be undefined",
		"The daemon ends with a fatal error when IS_OWNER is neither true nor false, at startup or at any time later. A cron job's attribute is undefined until the job has run.",
		"Compare with =?= or =!=, which always give true or false.",
		"IS_OWNER = ConsoleIdle < 60\n"},
	{OwnerByState, Error, "IS_OWNER that depends on the slot's state",
		"IS_OWNER decides between Owner and Unclaimed. If it looks at the state it changes with its own answer, and the slot moves to and fro for ever.",
		"Leave State and Activity out of IS_OWNER.",
		"IS_OWNER = State != \"Owner\"\n"},
	{OwnerOfJob, Error, "IS_OWNER that needs a job",
		"IS_OWNER is asked with the job of a request, and also when there is no job: between jobs, in Owner and in Unclaimed. What only a job has is undefined then, and the daemon ends with a fatal error.",
		"Compare with =?= or =!=, which always give true or false; or leave to START what depends on the job.",
		"IS_OWNER = TARGET.Owner == \"alice\"\n"},
	{NeverSuspends, Warning, "SUSPEND without WANT_SUSPEND",
		"SUSPEND is looked at only while WANT_SUSPEND is true. By default it is false, so that no job is ever suspended.",
		"Set WANT_SUSPEND to True, or to the jobs that may be suspended.",
		"SUSPEND = KeyboardIdle < 60\n"},
	{NeverContinues, Error, "jobs that are suspended and never continue",
		"CONTINUE cannot become true, so that a job that was suspended stays so until it is preempted.",
		"Let CONTINUE say when the machine is free again.",
		"WANT_SUSPEND = True\nSUSPEND = KeyboardIdle < 60\nCONTINUE = KeyboardIdle > 60 && False\n"},
	{PreemptUnasked, Warning, "PREEMPT that is never looked at",
		"While WANT_SUSPEND is true a running job is suspended instead of preempted; PREEMPT is looked at again once it is suspended, which never happens here.",
		"Restrict WANT_SUSPEND, or say when to SUSPEND.",
		"WANT_SUSPEND = True\nPREEMPT = KeyboardIdle < 60\n"},
	{KillUnasked, Warning, "KILL that PREEMPT never reaches",
		"KILL cuts short the time a job has for leaving. With WANT_VACATE false PREEMPT gives it no time: the job is killed at once.",
		"Set WANT_VACATE to True, or leave KILL out.",
		"WANT_VACATE = False\nPREEMPT = KeyboardIdle < 60\nKILL = (time() - EnteredCurrentActivity) > 60\n"},
	{VacateUndefined, Error, "WANT_VACATE that may be undefined",
		"The daemon ends with a fatal error when it has to preempt a job and WANT_VACATE is neither true nor false.",
		"Compare with =?= or =!=, which always give true or false.",
		"WANT_VACATE = NoSuchThing\n"},
	{NeverStarts, Warning, "START that can never be true",
		"No job ever runs here. To close a machine on purpose write START = False.",
		"Let START say which jobs may run, and when.",
		"START = KeyboardIdle > 60 && False\n"},
	{NoCondition, Warning, "a condition that is neither true nor false",
		"A string, error or undefined counts as false.",
		"Write True, False or a comparison.",
		"PREEMPT = \"true\"\n"},
	{NeverMet, Warning, "comparisons that exclude each other",
		"No value is below 30 and above 900, so that the whole is never true; joined by || such comparisons are true of every number.",
		"Exchange && and ||, or the numbers. A time over midnight is ClockMin > 1200 || ClockMin < 360.",
		"START = KeyboardIdle < 30 && KeyboardIdle > 900\n"},

	{SlotTooLarge, Error, "slots that do not fit the machine",
		"Slots that ask for more than there is are broken, and their resources are not used.",
		"Ask for less; shares of one resource add up to 100%.",
		"SLOT_TYPE_1 = cpus=80%\nNUM_SLOTS_TYPE_1 = 2\n"},
	{SlotOdd, Warning, "a description of slots that says too little or too much",
		"It can be built, but a part of it is not what the text seems to say.",
		"Write it as the finding says.",
		"SLOT_TYPE_1 = cpus=1, cogs=50%\nNUM_SLOTS_TYPE_1 = 1\n"},
	{SlotUnused, Warning, "a slot type that makes no slots",
		"Without NUM_SLOTS_TYPE_<N> the description SLOT_TYPE_<N> and all that is set for the type is not looked at.",
		"Set NUM_SLOTS_TYPE_<N>.",
		"SLOT_TYPE_1 = 100%\n"},
	{WeightOther, Warning, "SLOT_WEIGHT of something else than Cpus, Memory and Disk",
		"The negotiator reckons with SLOT_WEIGHT where it has nothing of a slot but its cores, memory and disk. Anything else is undefined there, and the use is charged wrongly.",
		"Write it with Cpus, Memory and Disk, the same on all machines of the pool.",
		"SLOT_WEIGHT = KFlops / 1000\n"},

	{NoSuchFile, Error, "a program that is not there",
		"What needs it fails, often only when a job arrives.",
		"Correct the path, or install the program.",
		"STARTD_CRON_JOBLIST = probe\nSTARTD_CRON_probe_EXECUTABLE = /no/such/probe\nSTARTD_CRON_probe_PERIOD = 5m\n"},
	{NotProgram, Error, "a program that cannot be run",
		"It is a directory, or has no permission to be executed.",
		"chmod a+x, or name the right file.",
		"STARTD_CRON_JOBLIST = probe\nSTARTD_CRON_probe_EXECUTABLE = /etc/hostname\nSTARTD_CRON_probe_PERIOD = 5m\n"},
	{OthersWrite, Error, "a program that others may write to",
		"The daemon runs it as root. Who may write to the file or to a directory above it may run anything as root.",
		"chmod o-w, and give it to root.",
		"STARTD_CRON_JOBLIST = probe\nSTARTD_CRON_probe_EXECUTABLE = /tmp/probe\nSTARTD_CRON_probe_PERIOD = 5m\n"},
	{ConfigUnsafe, Error, "a configuration file that others may write to",
		"Who may write to it decides what the daemon does and, through programs it names, may run anything as root.",
		"chmod o-w, and give it to root.",
		"include : /tmp/shared.conf\n"},
	{NoDirectory, Error, "a directory in which no job can run",
		"SLOT<N>_EXECUTE is a place that the owner has prepared, such as a disk of its own: the daemon makes none, and the slot is broken without it. A file is no place for jobs either.",
		"Make the directory, mount the disk, or correct the path.",
		"SLOT1_EXECUTE = /no/such/directory\n"},
	{ToBeMade, Warning, "a directory for jobs that is not there yet",
		"The daemon makes the directory EXECUTE where it is missing; HTCondor's own does not begin without it. A misspelt path, and a disk that is not mounted, look the same.",
		"Make the directory, or correct the path.",
		"EXECUTE = /no/such/directory\n"},
}
