// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"errors"
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/jobenv"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/runner"
	"github.com/execpoint/execpoint/lib/transfer"
)

// Holds says why a job has to be held, in HTCondor's words.
type Holds struct {
	Slot  string // "slot1_1@host.example.org"
	Errno host.Errno
	// Bare leaves the slot out of the reason: a shadow puts it in front itself.
	Bare bool
}

// Number gives the errno of err and its text; without one it is 0 and Go's
// text.
func (h Holds) Number(err error) (int, string) {
	if n, text, ok := h.Errno(err); ok {
		return n, text
	}
	return 0, err.Error()
}

// From is a hold with this text.
func (h Holds) From(code reason.Code, subcode int, text string) *protocol.Hold {
	if !h.Bare {
		text = reason.From(h.Slot, text)
	}
	return &protocol.Hold{Code: int(code), Subcode: subcode, Reason: text}
}

// Refusal is a job that no runner takes, or that its own cannot run; nil where err
// says no such thing.
func (h Holds) Refusal(err error) *protocol.Hold {
	var r *runner.Refusal
	if !errors.As(err, &r) {
		return nil
	}
	return h.From(r.Code, r.Subcode, r.Text)
}

// Std is a standard file that could not be opened. what is "standard input",
// "standard output" or "standard error".
func (h Holds) Std(path, what string, err error) *protocol.Hold {
	n, text := h.Number(err)
	code := reason.UnableToOpenOutput
	if what == "standard input" {
		code = reason.UnableToOpenInput
	}
	return h.From(code, n, fmt.Sprintf("Failed to open '%s' as %s: %s (errno %d)", path, what, text, n))
}

// Iwd is an initial directory that cannot be entered.
func (h Holds) Iwd(path string, err error) *protocol.Hold {
	n, text := h.Number(err)
	return h.From(reason.IwdError, n, fmt.Sprintf("Cannot access initial working directory %s: %s", path, text))
}

// Broken is a job ad that cannot be run as it is.
func (h Holds) Broken(err error) *protocol.Hold {
	return h.From(reason.FailedToCreateProcess, 0, fmt.Sprintf("Failed to start the job: %v", err))
}

// Input is an input transfer that failed.
func (h Holds) Input(err error) *protocol.Hold {
	details, n := h.details(err)
	text := fmt.Sprintf("Transfer input files failure at access point %s while sending files to execution point %s. Details: %s", h.host(), h.Slot, details)
	var f *transfer.Failure
	if errors.As(err, &f) && f.Writing {
		text = fmt.Sprintf("Transfer input files failure at execution point %s while receiving files from access point %s. Details: %s", h.Slot, h.host(), details)
	}
	return &protocol.Hold{Code: int(reason.TransferInputError), Subcode: n, Reason: text}
}

// Output is an output transfer that failed.
func (h Holds) Output(err error) *protocol.Hold {
	details, n := h.details(err)
	text := fmt.Sprintf("Transfer output files failure at execution point %s while sending files to access point %s. Details: %s", h.Slot, h.host(), details)
	var f *transfer.Failure
	if errors.As(err, &f) && f.Writing {
		text = fmt.Sprintf("Transfer output files failure at access point %s while receiving files from execution point %s. Details: %s", h.host(), h.Slot, details)
	}
	return &protocol.Hold{Code: int(reason.TransferOutputError), Subcode: n, Reason: text}
}

func (h Holds) details(err error) (string, int) {
	var f *transfer.Failure
	if !errors.As(err, &f) {
		n, text := h.Number(err)
		return text, n
	}
	n, text := h.Number(f.Err)
	details := fmt.Sprintf("%s file %s: (errno %d) %s", f.Verb(), f.Path, n, text)
	if !f.Writing {
		details = fmt.Sprintf("%d total failures: first failure: %s", f.Total, details)
	}
	return details, n
}

// host is the name of this machine without its domain: the access point is
// here too.
func (h Holds) host() string {
	_, full, ok := strings.Cut(h.Slot, "@")
	if !ok {
		full = h.Slot
	}
	name, _, _ := strings.Cut(full, ".")
	return name
}

// Script is a program before or after the job that could not be executed.
func (h Holds) Script(path string, args []string, err error) *protocol.Hold {
	n, text := h.Number(err)
	why := "Failed to execute '" + path + "'"
	if len(args) > 0 {
		why += " with arguments " + jobenv.ArgsToV2(args)
	}
	return h.From(reason.FailedToCreateProcess, n, why+": "+text)
}
