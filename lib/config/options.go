// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import "strconv"

// Options is everything a reading needs. It is not changed. A Snapshot keeps a
// copy, and its functions may be called again by As.
type Options struct {
	// Root is the path of the root file, or a command ending in "|"; "" reads
	// no file and none of the local ones.
	Root string

	// Overrides are settings from a command line. They are applied last and
	// win over files and environment.
	Overrides []Override

	// Later are texts that are read after the environment, in this order: the
	// settings that somebody made from afar. They win over the environment.
	Later []Text

	// Env is the process environment as "K=V". Variables whose name begins
	// with _CONDOR_ (in any case) are settings, applied after all files; all
	// are visible to $ENV(). Nil is an empty environment.
	Env []string

	// Facts are detected values: DETECTED_CORES, DETECTED_CPUS,
	// DETECTED_MEMORY, HOSTNAME, FULL_HOSTNAME, IP_ADDRESS, ARCH, OPSYS,
	// TILDE, USERNAME, PID and so on. They are defined before any file is
	// read. A file may replace those that describe the platform, not those
	// that say who and where the process is.
	Facts map[string]string

	// Subsystem is the daemon's name, as "STARTD"; "" is "TOOL". LocalName
	// distinguishes two daemons of one subsystem.
	Subsystem, LocalName string

	// Home is the directory that holds a person's .condor directory, whose
	// USER_CONFIG_FILE is read after all other files; "" for daemons.
	Home string

	// ReadFile returns the content of a file. An error that is
	// fs.ErrNotExist means that there is none.
	ReadFile func(path string) ([]byte, error)

	// ReadDir returns the names, without the directory, of what is not
	// itself a directory in path. The order does not matter.
	ReadDir func(path string) ([]string, error)

	// RunCommand returns what a command writes to its standard output. A
	// command that ran and failed returns that output and an *ExitError. Nil
	// refuses commands with a Problem.
	RunCommand func(command string) ([]byte, error)

	// WriteFile stores the output of "include command into FILE". Nil does
	// without the copy.
	WriteFile func(path string, data []byte) error

	// Seed picks the values of $RANDOM_CHOICE and $RANDOM_INTEGER. A
	// Snapshot gives the same value each time it is asked; two with
	// different seeds differ. Whoever reads a configuration in earnest takes
	// a seed by chance; the same seed gives the same values.
	Seed uint64

	// Trace, if not nil, is told of each setting that is replaced: the name as
	// the new line writes it, the text it had and where it had it from.
	Trace func(name, before string, at Origin)

	// Windows selects the defaults of that system.
	Windows bool
}

// Override is a setting given on a command line; Where says how, for messages,
// as "-D START=False".
type Override struct {
	Name, Value, Where string
}

// Text is a part of a configuration that is not read from a file; Name stands
// for the file in origins and messages.
type Text struct {
	Name, Text string
}

// ExitError is returned by Options.RunCommand for a command that ran and ended
// with a status other than zero.
type ExitError struct {
	Status int
}

// Error says "exit status N".
func (e *ExitError) Error() string { return "exit status " + strconv.Itoa(e.Status) }

// Version is the version of HTCondor whose language this is; "if version"
// compares with it.
const Version = "25.14.0"

// Limits. A configuration within reason is far below all of them; they keep a
// broken or hostile one from taking the process with it.
const (
	maxSourceBytes  = 16 << 20 // of one file or one command's output
	maxTotalBytes   = 64 << 20 // of all sources of one reading
	maxNameBytes    = 1000
	maxValueBytes   = 256 << 10 // of one value, also expanded
	maxExpandSteps  = 10000     // replacements in expanding one value
	maxExpandDepth  = 64        // function macros within function macros
	maxNameDepth    = 200       // names within the values of names
	maxEarlier      = 50        // origins kept of the values a value was built from
	maxNestedSource = 20        // include within include, use within use
	maxNestedIf     = 63
	maxProblems     = 100
)
