// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const timeLayout = "2006-01-02 15:04:05"

// endMark is the line that ends a record.
const endMark = "..."

// Texts longer than this are cut, as a record is written with one write.
const maxText = 8191

// Append writes one record to dst and returns the longer slice.
func Append(dst []byte, h Header, ev Event) []byte {
	dst = appendPadded(dst, int(ev.Code()))
	dst = append(dst, " ("...)
	dst = appendPadded(dst, h.Cluster)
	dst = append(dst, '.')
	dst = appendPadded(dst, h.Proc)
	dst = append(dst, '.')
	dst = appendPadded(dst, h.Subproc)
	dst = append(dst, ") "...)
	dst = h.Time.AppendFormat(dst, timeLayout)
	dst = append(dst, ' ')
	dst = ev.appendBody(dst)
	return append(dst, endMark+"\n"...)
}

// appendPadded writes n with at least three digits.
func appendPadded(dst []byte, n int) []byte {
	if n >= 0 && n < 100 {
		dst = append(dst, '0')
		if n < 10 {
			dst = append(dst, '0')
		}
	}
	return strconv.AppendInt(dst, int64(n), 10)
}

// appendText writes s as part of one line: line ends and other control
// characters become blanks, so that no text can start a record of its own.
func appendText(dst []byte, s string) []byte {
	if len(s) > maxText {
		s = s[:maxText]
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < ' ' && c != '\t' || c == 0x7f {
			c = ' '
		}
		dst = append(dst, c)
	}
	return dst
}

// appendLine writes before, the text and a line end.
func appendLine(dst []byte, before, text string) []byte {
	dst = append(dst, before...)
	dst = appendText(dst, text)
	return append(dst, '\n')
}

func appendCodes(dst []byte, code, subcode int) []byte {
	dst = append(dst, "Code "...)
	dst = strconv.AppendInt(dst, int64(code), 10)
	dst = append(dst, " Subcode "...)
	return strconv.AppendInt(dst, int64(subcode), 10)
}

func (e Submit) appendBody(dst []byte) []byte {
	dst = appendLine(dst, "Job submitted from host: ", e.Host)
	if e.LogNotes != "" {
		dst = appendLine(dst, "    ", e.LogNotes)
	}
	if e.UserNotes != "" {
		dst = appendLine(dst, "    ", e.UserNotes)
	}
	if e.Warning != "" {
		dst = appendLine(dst, "    "+submitWarning, e.Warning)
	}
	return dst
}

const submitWarning = "WARNING: Committed job submission into the queue with the following warning(s): "

func (e Execute) appendBody(dst []byte) []byte {
	dst = appendLine(dst, "Job executing on host: ", e.Host)
	if e.SlotName != "" {
		dst = appendLine(dst, "\tSlotName: ", e.SlotName)
	}
	props := e.Props
	byName := func(a, b Property) int { return compareFold(a.Name, b.Name) }
	if !slices.IsSortedFunc(props, byName) {
		props = slices.Clone(props)
		slices.SortStableFunc(props, byName)
	}
	for _, p := range props {
		dst = appendText(append(dst, '\t'), p.Name)
		dst = appendLine(dst, " = ", p.Value)
	}
	return dst
}

// compareFold orders names as HTCondor orders attributes: ignoring case.
func compareFold(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) }

func (e ExecutableError) appendBody(dst []byte) []byte {
	dst = append(dst, '(')
	dst = strconv.AppendInt(dst, int64(e.Kind), 10)
	switch e.Kind {
	case NotExecutable:
		return append(dst, ") Job file not executable.\n"...)
	case BadLink:
		return append(dst, ") Job not properly linked for Condor.\n"...)
	}
	return append(dst, ") [Bad error number.]\n"...)
}

func appendUsage(dst []byte, u Usage, what string) []byte {
	dst = append(dst, "\t\tUsr "...)
	dst = appendDayClock(dst, u.User)
	dst = append(dst, ", Sys "...)
	dst = appendDayClock(dst, u.System)
	dst = append(dst, "  -  "...)
	dst = append(dst, what...)
	return append(dst, " Usage\n"...)
}

// appendDayClock writes d as days and hours:minutes:seconds.
func appendDayClock(dst []byte, d time.Duration) []byte {
	s := int64(max(d, 0) / time.Second)
	dst = strconv.AppendInt(dst, s/86400, 10)
	for i, part := range [...]int64{s / 3600 % 24, s / 60 % 60, s % 60} {
		dst = append(dst, " ::"[i], byte('0'+part/10), byte('0'+part%10))
	}
	return dst
}

func appendCount(dst []byte, n int64, what string) []byte {
	dst = append(dst, '\t')
	dst = strconv.AppendInt(dst, n, 10)
	dst = append(dst, "  -  "...)
	dst = append(dst, what...)
	return append(dst, '\n')
}

func (x Exit) append(dst []byte) []byte {
	if x.Signal == 0 {
		dst = append(dst, "\t(1) Normal termination (return value "...)
		dst = strconv.AppendInt(dst, int64(x.Status), 10)
		return append(dst, ")\n"...)
	}
	dst = append(dst, "\t(0) Abnormal termination (signal "...)
	dst = strconv.AppendInt(dst, int64(x.Signal), 10)
	dst = append(dst, ")\n"...)
	if x.CoreFile == "" {
		return append(dst, "\t(0) No core file\n"...)
	}
	return appendLine(dst, "\t(1) Corefile in: ", x.CoreFile)
}

func (e Evicted) appendBody(dst []byte) []byte {
	dst = append(dst, "Job was evicted."...)
	if e.ReasonCode != 0 {
		dst = appendCodes(append(dst, ' '), e.ReasonCode, e.ReasonSubcode)
	}
	switch {
	case e.Requeued != nil:
		dst = append(dst, "\n\t(0) Job terminated and was requeued\n"...)
	case e.Checkpointed:
		dst = append(dst, "\n\t(1) Job was checkpointed.\n"...)
	default:
		dst = append(dst, "\n\t(0) CPU times\n"...)
	}
	dst = appendUsage(dst, e.Remote, "Run Remote")
	dst = appendUsage(dst, e.Local, "Run Local")
	dst = appendCount(dst, e.Sent, "Run Bytes Sent By Job")
	dst = appendCount(dst, e.Received, "Run Bytes Received By Job")
	if e.Requeued != nil {
		dst = e.Requeued.append(dst)
	}
	if e.Reason != "" {
		before := "\tReason: "
		if e.Requeued != nil {
			before = "\t"
		}
		dst = appendLine(dst, before, e.Reason)
	}
	return appendResources(dst, e.Resources)
}

func (e Terminated) appendBody(dst []byte) []byte {
	dst = append(dst, "Job terminated.\n"...)
	dst = e.Exit.append(dst)
	dst = appendUsage(dst, e.Remote, "Run Remote")
	dst = appendUsage(dst, e.Local, "Run Local")
	dst = appendUsage(dst, e.TotalRemote, "Total Remote")
	dst = appendUsage(dst, e.TotalLocal, "Total Local")
	dst = appendCount(dst, e.Sent, "Run Bytes Sent By Job")
	dst = appendCount(dst, e.Received, "Run Bytes Received By Job")
	dst = appendCount(dst, e.TotalSent, "Total Bytes Sent By Job")
	dst = appendCount(dst, e.TotalReceived, "Total Bytes Received By Job")
	return appendResources(dst, e.Resources)
}

func (e ImageSize) appendBody(dst []byte) []byte {
	dst = append(dst, "Image size of job updated: "...)
	dst = strconv.AppendInt(dst, e.Size, 10)
	dst = append(dst, '\n')
	if e.MemoryUsage >= 0 {
		dst = appendCount(dst, e.MemoryUsage, "MemoryUsage of job (MB)")
	}
	if e.ResidentSetSize >= 0 {
		dst = appendCount(dst, e.ResidentSetSize, "ResidentSetSize of job (KB)")
	}
	if e.ProportionalSetSize > 0 {
		dst = appendCount(dst, e.ProportionalSetSize, "ProportionalSetSize of job (KB)")
	}
	return dst
}

func (e ShadowException) appendBody(dst []byte) []byte {
	dst = appendLine(dst, "Shadow exception!\n\t", e.Message)
	dst = appendCount(dst, e.Sent, "Run Bytes Sent By Job")
	return appendCount(dst, e.Received, "Run Bytes Received By Job")
}

func (e Generic) appendBody(dst []byte) []byte { return appendLine(dst, "", e.Info) }

func (e Aborted) appendBody(dst []byte) []byte {
	return appendReason(append(dst, "Job was aborted.\n"...), e.Reason)
}

func appendReason(dst []byte, reason string) []byte {
	if reason == "" {
		return dst
	}
	return appendLine(dst, "\t", reason)
}

func (e Suspended) appendBody(dst []byte) []byte {
	dst = append(dst, "Job was suspended.\n\tNumber of processes actually suspended: "...)
	return append(strconv.AppendInt(dst, int64(e.Processes), 10), '\n')
}

func (Unsuspended) appendBody(dst []byte) []byte { return append(dst, "Job was unsuspended.\n"...) }

func (e Held) appendBody(dst []byte) []byte {
	dst = appendReason(append(dst, "Job was held.\n"...), cmp.Or(e.Reason, noReason))
	return append(appendCodes(append(dst, '\t'), e.ReasonCode, e.ReasonSubcode), '\n')
}

const noReason = "Reason unspecified"

func (e Released) appendBody(dst []byte) []byte {
	return appendReason(append(dst, "Job was released.\n"...), e.Reason)
}

func (e RemoteError) appendBody(dst []byte) []byte {
	if e.Message {
		dst = append(dst, "Message from "...)
	} else {
		dst = append(dst, "Error from "...)
	}
	dst = appendText(dst, e.Daemon)
	dst = appendText(append(dst, " on "...), e.Host)
	dst = append(dst, ":\n"...)
	for line := range strings.SplitSeq(strings.TrimSuffix(e.Text, "\n"), "\n") {
		if e.Text != "" {
			dst = appendLine(dst, "\t", line)
		}
	}
	if e.ReasonCode != 0 {
		dst = append(appendCodes(append(dst, '\t'), e.ReasonCode, e.ReasonSubcode), '\n')
	}
	return dst
}

func (e Disconnected) appendBody(dst []byte) []byte {
	dst = appendLine(dst, "Job disconnected, attempting to reconnect\n    ", e.Reason)
	dst = appendText(append(dst, "    Trying to reconnect to "...), e.StartdName)
	return appendLine(dst, " ", e.StartdAddr)
}

func (e Reconnected) appendBody(dst []byte) []byte {
	dst = appendLine(dst, "Job reconnected to ", e.StartdName)
	dst = appendLine(dst, "    startd address: ", e.StartdAddr)
	return appendLine(dst, "    starter address: ", e.StarterAddr)
}

func (e ReconnectFailed) appendBody(dst []byte) []byte {
	dst = appendLine(dst, "Job reconnection failed\n    ", e.Reason)
	dst = appendText(append(dst, "    Can not reconnect to "...), e.StartdName)
	return append(dst, ", rescheduling job\n"...)
}

func (e AttributeUpdate) appendBody(dst []byte) []byte {
	if e.OldValue == "" {
		dst = appendText(append(dst, "Setting job attribute "...), e.Name)
	} else {
		dst = appendText(append(dst, "Changing job attribute "...), e.Name)
		dst = appendText(append(dst, " from "...), e.OldValue)
	}
	return appendLine(dst, " to ", e.Value)
}

// transferTexts are the first lines of a FileTransfer event, by step.
var transferTexts = [...]string{
	InputQueued:    "Entered queue to transfer input files",
	InputStarted:   "Started transferring input files",
	InputFinished:  "Finished transferring input files",
	OutputQueued:   "Entered queue to transfer output files",
	OutputStarted:  "Started transferring output files",
	OutputFinished: "Finished transferring output files",
}

// String returns the line written for s, "unknown step" for a wrong one.
func (s TransferStep) String() string {
	if s > 0 && int(s) < len(transferTexts) {
		return transferTexts[s]
	}
	return "unknown step"
}

func (e FileTransfer) appendBody(dst []byte) []byte {
	dst = appendLine(dst, "", e.Step.String())
	if e.Queued {
		dst = append(dst, "\tSeconds spent in queue: "...)
		dst = append(strconv.AppendInt(dst, int64(e.QueueDelay/time.Second), 10), '\n')
	}
	if e.Host != "" {
		dst = appendLine(dst, "\tTransferring to host: ", e.Host)
	}
	return dst
}

func (e Other) appendBody(dst []byte) []byte {
	dst = appendLine(dst, "", e.Head)
	for _, l := range e.Lines {
		before := ""
		if isEndMark(l) || looksLikeHeader(l) {
			before = "\t"
		}
		dst = appendLine(dst, before, l)
	}
	return dst
}
