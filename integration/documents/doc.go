// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package documents runs the examples of the README and of the pages for each
// reader, as a person would who copies them from the top of the page to its
// end: in a fresh copy of what git has, with the programs that go build makes,
// and compares what is printed with what the page shows.
//
// In an indented block a line that begins with "$ " is a command, and what
// follows is what it prints; a command that shows nothing may print anything.
// A … stands for any text, alone on a line for any lines. Numbers of seconds
// and the name of the machine may differ. A block that begins with "$ cat FILE"
// gives the contents of a file that the next commands need, where the
// repository has none of that name. Every command must exit with 0.
//
// Root sees one line more for each run, which docs/job-user.md shows: as whom the
// jobs run. Under root that line is looked for, once, and then taken out.
//
// It owns how a page is read and run. It must never change the repository.
package documents
