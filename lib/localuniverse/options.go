// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package localuniverse

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/jobqueue"
)

// Options are the arguments by which a schedd starts a starter:
//
//	condor_starter -f -job-cluster 7 -job-proc 0 -header "(7.0) " -job-input-ad - -schedd-addr <...>
type Options struct {
	ID      jobqueue.ID
	Subproc int
	Input   string // the file of the job's ad; "-" is standard input
	Schedd  cedar.Sinful
}

// Asked reports whether these are the arguments of a schedd: those of a startd have
// none that begins like that.
func Asked(args []string) bool {
	for _, arg := range args {
		if arg != "-" && strings.HasPrefix(arg, "-") {
			return true
		}
	}
	return false
}

// Parse reads the arguments. As HTCondor's starter does it takes the beginning of an
// option for the option, as long as nothing else begins so.
func Parse(args []string) (Options, error) {
	o := Options{ID: jobqueue.ID{Cluster: -1, Proc: -1}}
	schedd := ""
	number := func(to *int) func(string) error {
		return func(text string) (err error) {
			if *to, err = strconv.Atoi(text); err == nil && *to < 0 {
				err = strconv.ErrRange
			}
			return err
		}
	}
	text := func(to *string) func(string) error {
		return func(s string) error { *to = s; return nil }
	}
	var none string // what means nothing here
	options := []struct {
		name string
		take func(string) error // nil takes no value
	}{
		{"-f", nil}, {"-t", nil}, {"-b", nil}, {"-header", text(&none)},
		{"-job-cluster", number(&o.ID.Cluster)}, {"-job-proc", number(&o.ID.Proc)}, {"-job-subproc", number(&o.Subproc)},
		{"-job-input-ad", text(&o.Input)}, {"-schedd-addr", text(&schedd)}, {"-local-name", text(&none)}, {"-slot-name", text(&none)},
	}
	for len(args) > 0 {
		arg, found := args[0], -1
		args = args[1:]
		for i, option := range options {
			if option.name == arg {
				found = i
				break
			}
			if len(arg) > 2 && strings.HasPrefix(option.name, arg) {
				if found >= 0 {
					return o, fmt.Errorf("%q: more than one option begins so", arg)
				}
				found = i
			}
		}
		switch {
		case found < 0:
			return o, fmt.Errorf("%q: a schedd starts a job of the local universe with none such; a shadow's and a startd's own arguments are not taken", arg)
		case options[found].take == nil:
			continue
		case len(args) == 0:
			return o, fmt.Errorf("%q: a value is missing", arg)
		}
		if err := options[found].take(args[0]); err != nil {
			return o, fmt.Errorf("%s %q: %w", options[found].name, args[0], err)
		}
		args = args[1:]
	}
	switch {
	case o.Input == "":
		return o, errors.New("-job-input-ad is missing, which says where the job's ad is")
	case schedd == "":
		return o, errors.New("-schedd-addr is missing: only jobs of the local universe are started without a startd")
	case o.ID.Cluster < 0 || o.ID.Proc < 0:
		return o, errors.New("-job-cluster and -job-proc have to name the job")
	}
	var err error
	if o.Schedd, err = cedar.ParseSinful(schedd); err != nil {
		return o, fmt.Errorf("-schedd-addr: %w", err)
	}
	return o, nil
}
