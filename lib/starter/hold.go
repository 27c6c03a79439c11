// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/jobenv"
	"github.com/execpoint/execpoint/lib/reason"
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

func (h holds) from(code reason.Code, subcode int, text string) *Hold {
	if !h.bare {
		text = reason.From(h.slot, text)
	}
	return &Hold{Code: int(code), Subcode: subcode, Reason: text}
}

// exec is a program that could not be executed: because of dir, where it was to
// begin, unless that is "". The kernel blames the script when its interpreter is
// missing; say which that is.
func (h holds) exec(path string, args []string, dir string, err error) *Hold {
	n, text := h.number(err)
	var b strings.Builder
	fmt.Fprintf(&b, "Failed to execute '%s'", path)
	if len(args) > 0 {
		b.WriteString(" with arguments " + jobenv.ArgsToV2(args))
	}
	b.WriteString(": ")
	if dir != "" {
		fmt.Fprintf(&b, "Cannot access initial working directory \"%s\" ", dir)
	} else if errors.Is(err, os.ErrNotExist) {
		if interp := interpreter(path); interp != "" {
			fmt.Fprintf(&b, "invalid interpreter (%s) specified on first line of script ", interp)
		}
	}
	fmt.Fprintf(&b, "(errno=%d: '%s')", n, text)
	return h.from(reason.FailedToCreateProcess, n, b.String())
}

// interpreter returns what the first line of the script at path names, "" if
// it is no script.
func interpreter(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, 512)).ReadString('\n')
	if err != nil && err != io.EOF {
		return ""
	}
	rest, ok := strings.CutPrefix(line, "#!")
	if words := strings.Fields(rest); ok && len(words) > 0 {
		return words[0]
	}
	return ""
}

// std is a standard file that could not be opened. what is "standard input",
// "standard output" or "standard error".
func (h holds) std(path, what string, err error) *Hold {
	n, text := h.number(err)
	code := reason.UnableToOpenOutput
	if what == "standard input" {
		code = reason.UnableToOpenInput
	}
	return h.from(code, n, fmt.Sprintf("Failed to open '%s' as %s: %s (errno %d)", path, what, text, n))
}

// iwd is an initial directory that cannot be entered.
func (h holds) iwd(path string, err error) *Hold {
	n, text := h.number(err)
	return h.from(reason.IwdError, n, fmt.Sprintf("Cannot access initial working directory %s: %s", path, text))
}

// broken is a job ad that cannot be run as it is.
func (h holds) broken(err error) *Hold {
	return h.from(reason.FailedToCreateProcess, 0, fmt.Sprintf("Failed to start the job: %v", err))
}

// input is an input transfer that failed.
func (h holds) input(err error) *Hold {
	details, n := h.details(err)
	text := fmt.Sprintf("Transfer input files failure at access point %s while sending files to execution point %s. Details: %s", h.host(), h.slot, details)
	var f *transfer.Failure
	if errors.As(err, &f) && f.Writing {
		text = fmt.Sprintf("Transfer input files failure at execution point %s while receiving files from access point %s. Details: %s", h.slot, h.host(), details)
	}
	return &Hold{Code: int(reason.TransferInputError), Subcode: n, Reason: text}
}

// output is an output transfer that failed.
func (h holds) output(err error) *Hold {
	details, n := h.details(err)
	text := fmt.Sprintf("Transfer output files failure at execution point %s while sending files to access point %s. Details: %s", h.slot, h.host(), details)
	var f *transfer.Failure
	if errors.As(err, &f) && f.Writing {
		text = fmt.Sprintf("Transfer output files failure at access point %s while receiving files from execution point %s. Details: %s", h.host(), h.slot, details)
	}
	return &Hold{Code: int(reason.TransferOutputError), Subcode: n, Reason: text}
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
