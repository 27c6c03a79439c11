// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
)

// Promised is the ending that attributes with a prefix name: ...ExitCode, or
// ...ExitSignal where ...ExitBySignal is true. said tells whether any does.
func Promised(ad *classad.Ad, prefix string) (status host.ExitStatus, said bool) {
	code, haveCode := ad.EvalInt(prefix+"ExitCode", nil)
	signal, haveSignal := ad.EvalInt(prefix+"ExitSignal", nil)
	if by, _ := ad.EvalBool(prefix+"ExitBySignal", nil); by {
		return host.ExitStatus{Signal: int(signal)}, haveCode || haveSignal
	}
	return host.ExitStatus{Exited: true, Code: int(code)}, haveCode || haveSignal
}

// SameEnd reports whether two processes ended in the same way.
func SameEnd(a, b host.ExitStatus) bool {
	return a.Exited == b.Exited && a.Code == b.Code && a.Signal == b.Signal
}

// signalTexts are what the field calls the signals of Linux, from 1.
var signalTexts = [...]string{
	"Hangup", "Interrupt", "Quit", "Illegal instruction", "Trace/breakpoint trap", "Aborted", "Bus error",
	"Floating point exception", "Killed", "User defined signal 1", "Segmentation fault", "User defined signal 2",
	"Broken pipe", "Alarm clock", "Terminated", "Stack fault", "Child exited", "Continued", "Stopped (signal)", "Stopped",
	"Stopped (tty input)", "Stopped (tty output)", "Urgent I/O condition", "CPU time limit exceeded", "File size limit exceeded",
	"Virtual timer expired", "Profiling timer expired", "Window changed", "I/O possible", "Power failure", "Bad system call",
}

// firstRealTime is the number of SIGRTMIN as programs see it.
const firstRealTime = 34

// SignalText is what the field calls a signal, with its number.
func SignalText(n int) string {
	text := fmt.Sprintf("Unknown signal %d", n)
	switch {
	case n >= 1 && n <= len(signalTexts):
		text = signalTexts[n-1]
	case n >= firstRealTime && n <= 64:
		text = fmt.Sprintf("Real-time signal %d", n-firstRealTime)
	}
	return fmt.Sprintf("signal %d (%s)", n, text)
}
