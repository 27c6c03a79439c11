// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"encoding/json"
	"fmt"
	"io"
)

// Measure is condor_mips or condor_kflops, which differ in what they measure
// alone. HTCondor's programs look at no arguments and print the attribute and
// a line of dashes, which is what the startd reads.
func Measure(p *Program, args []string, stdout, stderr io.Writer, measure func() (attribute string, n int64, err error)) int {
	fs := p.Flags("", stdout, stderr)
	asJSON, version := fs.Bool("json", false, ""), fs.Bool("version", false, "")
	switch err := fs.Parse(args); {
	case err != nil:
		return StatusOf(err)
	case fs.NArg() > 0:
		return fs.Misuse("unexpected argument %q", fs.Arg(0))
	case *version:
		return PrintVersion(stdout)
	}
	attribute, n, err := measure()
	if err == nil && *asJSON {
		err = json.NewEncoder(stdout).Encode(map[string]int64{attribute: n})
	} else if err == nil {
		_, err = fmt.Fprintf(stdout, "%s = %d\n--\n", attribute, n)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
		return No
	}
	return OK
}
