// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commands is the table of every program of this project: its
// commands, their options and their exit statuses. The text of -help, the page
// docs/commands.md and the tests are made from it, and the flags of condor_ep
// are held against it each time a command line is read.
//
// It owns the words of the command line. It must never do what a command does.
//
//	fs := commands.EP.Flags("run", stdout, stderr)
//	keep := fs.Bool("keep", false, "")
//	if err := fs.Parse(args); err != nil {
//		return commands.StatusOf(err) // help or what is wrong is printed
//	}
package commands

//go:generate go test . -run ^TestPage$ -update

// Program is one program.
type Program struct {
	Name    string
	Does    string // one sentence without a subject: "run jobs on this machine"
	Version string // the option that prints the version
	// Commands are those that the first word of the command line chooses. A
	// program without such a word has one command, whose name is empty.
	Commands []Command
	More     string // paragraphs below the list of commands
}

// Command is one command of a program.
type Command struct {
	Name     string   // "run", "classad eval"; "" for the only one
	Brief    string   // a few words for the list of commands
	Synopsis []string // what may stand behind the name, one way each
	Does     string   // paragraphs
	Options  []Option
	Statuses []Status
	// OptionsFirst has every word behind the first that is no option taken as
	// it is, as an expression such as -1 has to be.
	OptionsFirst bool
}

// Option is one option of a command. One without a name is a heading for those
// below it.
type Option struct {
	Name string // without its dash
	Arg  string // what follows it; "" for a switch. ":x" follows a colon
	Also []string
	Text string
}

// Status is an exit status and what it says.
type Status struct {
	Code int
	Says string
}

// The exit statuses of the programs that are not HTCondor's. condor_startd,
// condor_config_val and condor_gpu_discovery have those of HTCondor's programs
// of the same name.
const (
	OK      = 0  // done, and the answer is yes
	No      = 1  // done, and the answer is no, or it was refused
	Misused = 2  // the command line, or a file that it names, cannot be used
	Never   = 3  // jobs can never run here
	Restart = 75 // drained, and to be started again; RestartForceExitStatus=75 has systemd do that
)

// find returns the command of a name; nil if there is none.
func (p *Program) find(name string) *Command {
	for i := range p.Commands {
		if p.Commands[i].Name == name {
			return &p.Commands[i]
		}
	}
	return nil
}

// All are the programs, in the order of the page.
func All() []*Program {
	return []*Program{&EP, &Startd, &Starter, &ConfigVal, &GPUDiscovery, &Mips, &Kflops}
}
