// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
)

// lastHold is the greatest HookStatusCode that puts a job on hold. A greater one has it
// run elsewhere.
const lastHold = 299

// maxMessage bounds HookStatusMessage, which goes into logs and the reason of a hold.
const maxMessage = 4 << 10

// Verdict is what a prepare hook says of its job.
type Verdict struct {
	// Edits are the attributes that it printed, never nil. They count if OK.
	Edits *classad.Ad
	// Unread is the first line of its output that is no attribute, nil for none. What
	// comes after it does not count, as with HTCondor.
	Unread *BadLine
	OK     bool
	// Hold says that the job is to be held with Code as subcode. One that is not OK
	// runs elsewhere without it.
	Hold bool
	Code int    // the status, or minus the signal
	Text string // for the job's event log: which hook it was, how it ended, what it says
	// Tell says that Text is to be told although all is well: the hook gave a message.
	Tell bool
}

// VerdictOf reads what a prepare hook printed and how it ended. A HookStatusCode of 0 or
// more in its output stands for its exit status, unless a signal ended it.
func VerdictOf(h JobHook, path string, status host.ExitStatus, output []byte) Verdict {
	v := Verdict{Code: status.Code}
	v.Edits, v.Unread = parseEdits(output)
	how := fmt.Sprintf("exited with status %d", status.Code)
	switch code, ok := v.Edits.EvalInt("HookStatusCode", nil); {
	case !status.Exited:
		v.Code, how = -status.Signal, fmt.Sprintf("died with signal %d", status.Signal)
		if v.Code == 0 {
			v.Code = -1 // it has no status at all
		}
	case ok && code >= 0:
		v.Code = int(min(code, 1<<31-1))
		how = fmt.Sprintf("reported status %03d", v.Code)
	}
	v.OK, v.Hold = v.Code == 0, v.Code > 0 && v.Code <= lastHold
	message, _ := v.Edits.EvalString("HookStatusMessage", nil)
	message = strings.TrimSpace(strings.Map(printable, message))
	v.Tell = v.OK && message != ""
	word := "failed"
	if v.OK {
		word = "succeeded"
	}
	switch {
	case message == "":
		message = "<no message>"
	case len(message) > maxMessage:
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	v.Text = fmt.Sprintf("%s %s (%s): %s", h.name(path), word, how, message)
	return v
}

// printable makes a blank of what would begin a line of its own in an event log, or be
// obeyed by a terminal.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return ' '
}

// parseEdits reads lines "Name = expression" up to the first one that is something else.
func parseEdits(output []byte) (*classad.Ad, *BadLine) {
	ad := classad.NewAd()
	for n := 1; len(output) > 0; n++ {
		line, rest, _ := bytes.Cut(output, []byte{'\n'})
		output = rest
		text := strings.TrimSpace(string(line))
		if text == "" {
			continue
		}
		if err := insert(ad, "", text); err != nil {
			return ad, &BadLine{Number: n, Text: shorten(text), Err: err}
		}
	}
	return ad, nil
}
