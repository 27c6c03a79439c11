// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// AppendXML appends the record of an event as an ad in XML, as HTCondor writes a log
// whose job says StarterUserLogUseXML. Only events that a starter writes have such a
// record; others are Unsupported. Resource tables and the properties of an Execute event
// are left out: a starter has none.
func AppendXML(dst []byte, h Header, ev Event) ([]byte, error) {
	ad := classad.NewAd()
	ad.SetInt("EventTypeNumber", int64(ev.Code()))
	layout := "2006-01-02T15:04:05"
	if h.Time.Nanosecond() >= 1000 {
		layout += ".000" // as HTCondor has it, unless the microseconds are 0
	}
	ad.SetString("EventTime", h.Time.Format(layout))
	ad.SetInt("Cluster", int64(h.Cluster))
	ad.SetInt("Proc", int64(h.Proc))
	ad.SetInt("Subproc", int64(h.Subproc))
	kind := ""
	text := func(name, value string) {
		if value != "" {
			ad.SetString(name, value)
		}
	}
	switch e := ev.(type) {
	case Execute:
		kind = "ExecuteEvent"
		text("ExecuteHost", e.Host)
		text("SlotName", e.SlotName)
	case Terminated:
		kind = "JobTerminatedEvent"
		e.Exit.set(ad)
		text("CoreFile", e.Exit.CoreFile)
		for name, u := range map[string]Usage{
			"RunLocalUsage": e.Local, "RunRemoteUsage": e.Remote, "TotalLocalUsage": e.TotalLocal, "TotalRemoteUsage": e.TotalRemote,
		} {
			ad.SetString(name, u.String())
		}
		ad.SetReal("SentBytes", float64(e.Sent))
		ad.SetReal("ReceivedBytes", float64(e.Received))
		ad.SetReal("TotalSentBytes", float64(e.TotalSent))
		ad.SetReal("TotalReceivedBytes", float64(e.TotalReceived))
	case Evicted:
		kind = "JobEvictedEvent"
		ad.SetBool("Checkpointed", e.Checkpointed)
		ad.SetBool("TerminatedAndRequeued", e.Requeued != nil)
		ad.SetBool("TerminatedNormally", false)
		if e.Requeued != nil {
			e.Requeued.set(ad)
		}
		ad.SetString("RunLocalUsage", e.Local.String())
		ad.SetString("RunRemoteUsage", e.Remote.String())
		ad.SetReal("SentBytes", float64(e.Sent))
		ad.SetReal("ReceivedBytes", float64(e.Received))
		text("Reason", e.Reason)
		if e.ReasonCode != 0 {
			ad.SetInt("ReasonCode", int64(e.ReasonCode))
			ad.SetInt("ReasonSubCode", int64(e.ReasonSubcode))
		}
	case Suspended:
		kind = "JobSuspendedEvent"
		ad.SetInt("NumberOfPIDs", int64(e.Processes))
	case Unsuspended:
		kind = "JobUnsuspendedEvent"
	case RemoteError:
		kind = "RemoteErrorEvent"
		text("Daemon", e.Daemon)
		text("ExecuteHost", e.Host)
		text("ErrorMsg", e.Text)
		if e.Message {
			ad.SetInt("CriticalError", 0)
		}
		if e.ReasonCode != 0 {
			ad.SetInt("HoldReasonCode", int64(e.ReasonCode))
			ad.SetInt("HoldReasonSubCode", int64(e.ReasonSubcode))
		}
	default:
		return dst, errs.E("eventlog.AppendXML", errs.Unsupported, fmt.Sprintf("%T", ev), nil)
	}
	ad.SetString("MyType", kind)
	// One attribute to a line, for people. A < of a value is written in another way, so
	// that this is no value.
	lines := strings.ReplaceAll(ad.XML(), `<a n="`, "\n    "+`<a n="`)
	return append(append(dst, strings.TrimSuffix(lines, "</c>")...), "\n</c>\n"...), nil
}

// String writes the usage as events in XML have it.
func (u Usage) String() string {
	dst := appendDayClock([]byte("Usr "), u.User)
	return string(appendDayClock(append(dst, ", Sys "...), u.System))
}

// set writes how a job ended.
func (x Exit) set(ad *classad.Ad) {
	ad.SetBool("TerminatedNormally", x.Signal == 0)
	if x.Signal == 0 {
		ad.SetInt("ReturnValue", int64(x.Status))
	} else {
		ad.SetInt("TerminatedBySignal", int64(x.Signal))
	}
}
