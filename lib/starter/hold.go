// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"errors"
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/runner"
	"github.com/execpoint/execpoint/lib/transfer"
)

// holds says why a job has to be held, in HTCondor's words.
type holds struct {
	slot  string // "slot1_1@host.example.org"
	errno host.Errno
	// bare leaves the slot out of the reason: a shadow puts it in front itself.
	bare bool
}

// number gives the errno of err and its text; without one it is 0 and Go's
// text.
func (h holds) number(err error) (int, string) {
	if n, text, ok := h.errno(err); ok {
		return n, text
	}
	return 0, err.Error()
}

func (h holds) from(code reason.Code, subcode int, text string) *protocol.Hold {
	if !h.bare {
		text = reason.From(h.slot, text)
	}
	return &protocol.Hold{Code: int(code), Subcode: subcode, Reason: text}
}

// refusal is a job that no runner takes, or that its own cannot run; nil where err
// says no such thing.
func (h holds) refusal(err error) *protocol.Hold {
	var r *runner.Refusal
	if !errors.As(err, &r) {
		return nil
	}
	return h.from(r.Code, r.Subcode, r.Text)
}

// std is a standard file that could not be opened. what is "standard input",
// "standard output" or "standard error".
func (h holds) std(path, what string, err error) *protocol.Hold {
	n, text := h.number(err)
	code := reason.UnableToOpenOutput
	if what == "standard input" {
		code = reason.UnableToOpenInput
	}
	return h.from(code, n, fmt.Sprintf("Failed to open '%s' as %s: %s (errno %d)", path, what, text, n))
}

// iwd is an initial directory that cannot be entered.
func (h holds) iwd(path string, err error) *protocol.Hold {
	n, text := h.number(err)
	return h.from(reason.IwdError, n, fmt.Sprintf("Cannot access initial working directory %s: %s", path, text))
}

// broken is a job ad that cannot be run as it is.
func (h holds) broken(err error) *protocol.Hold {
	return h.from(reason.FailedToCreateProcess, 0, fmt.Sprintf("Failed to start the job: %v", err))
}

// input is an input transfer that failed.
func (h holds) input(err error) *protocol.Hold {
	details, n := h.details(err)
	text := fmt.Sprintf("Transfer input files failure at access point %s while sending files to execution point %s. Details: %s", h.host(), h.slot, details)
	var f *transfer.Failure
	if errors.As(err, &f) && f.Writing {
		text = fmt.Sprintf("Transfer input files failure at execution point %s while receiving files from access point %s. Details: %s", h.slot, h.host(), details)
	}
	return &protocol.Hold{Code: int(reason.TransferInputError), Subcode: n, Reason: text}
}

// output is an output transfer that failed.
func (h holds) output(err error) *protocol.Hold {
	details, n := h.details(err)
	text := fmt.Sprintf("Transfer output files failure at execution point %s while sending files to access point %s. Details: %s", h.slot, h.host(), details)
	var f *transfer.Failure
	if errors.As(err, &f) && f.Writing {
		text = fmt.Sprintf("Transfer output files failure at access point %s while receiving files from execution point %s. Details: %s", h.host(), h.slot, details)
	}
	return &protocol.Hold{Code: int(reason.TransferOutputError), Subcode: n, Reason: text}
}

func (h holds) details(err error) (string, int) {
	var f *transfer.Failure
	if !errors.As(err, &f) {
		n, text := h.number(err)
		return text, n
	}
	n, text := h.number(f.Err)
	details := fmt.Sprintf("%s file %s: (errno %d) %s", f.Verb(), f.Path, n, text)
	if !f.Writing {
		details = fmt.Sprintf("%d total failures: first failure: %s", f.Total, details)
	}
	return details, n
}

// host is the name of this machine without its domain: the access point is
// here too.
func (h holds) host() string {
	_, full, ok := strings.Cut(h.slot, "@")
	if !ok {
		full = h.slot
	}
	name, _, _ := strings.Cut(full, ".")
	return name
}
