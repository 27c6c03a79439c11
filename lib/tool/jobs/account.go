// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/spelling"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/tool/words"
)

// Account is the paragraph about a job that ended, of its ad in a history: how it
// ended, who asked for that and by which line of policy, its limits, what it used and
// what it left. An ad of HTCondor's, which has no exit record, gives what it has.
func Account(ad *classad.Ad, place *time.Location) string {
	var out []string
	say := func(format string, args ...any) { out = append(out, words.Printable(fmt.Sprintf(format, args...))) }
	at := "at an unknown time"
	if when := number(ad, "CompletionDate"); when > 0 {
		at = "at " + time.Unix(when, 0).In(place).Format(time.DateTime)
	}
	who := text(ad, "Owner")
	if who != "" {
		who = " of " + who
	}
	k, ok := kept(ad)
	how := End(ad)
	if ok {
		how = k.Status.String()
	}
	say("Job %d.%d%s ended on %s %s: it %s.", number(ad, "ClusterId"), number(ad, "ProcId"), who, text(ad, "RemoteHost"), at, sentence(how))
	if why := text(ad, "HoldReason"); why != "" {
		say("It was held: %s (code %d, subcode %d).", stopless(why), number(ad, "HoldReasonCode"), number(ad, "HoldReasonSubCode"))
	}
	if !ok {
		if why := text(ad, "VacateReason"); why != "" {
			say("It was told to leave: %s (code %d).", stopless(why), number(ad, "VacateReasonCode"))
		}
		say("It has no exit record: %s.", noRecord(ad))
		return strings.Join(out, "\n") + "\n"
	}
	asked(say, &k)
	ran(say, &k)
	limits(say, k.Ran.Limits)
	used(say, &k)
	left(say, &k)
	return strings.Join(out, "\n") + "\n"
}

// noRecord is why an ad has none.
func noRecord(ad *classad.Ad) string {
	if End(ad) == "lost" {
		return "its starter was lost"
	}
	return "another program wrote this history, or an earlier version of this one"
}

// kept reads the exit record.
func kept(ad *classad.Ad) (k protocol.Kept, ok bool) {
	record, is := ad.Eval(protocol.AttrExitRecord, nil).AsAd()
	if !is || json.Unmarshal([]byte(record.JSONAll()), &k) != nil {
		return protocol.Kept{}, false
	}
	return k, true
}

// sentence has a word of End or of a status as what "it" did.
func sentence(how string) string {
	switch {
	case how == "has not ended":
		return "never ran"
	case how == "lost":
		return "was lost with its starter"
	case how == "held" || how == "evicted":
		return "was " + how
	case strings.HasPrefix(how, "status "):
		return "exited with " + how
	case strings.HasPrefix(how, "signal "):
		return "died on " + how
	}
	return how
}

func stopless(s string) string { return strings.TrimRight(s, ". ") }

type sayer func(format string, args ...any)

// asked says who had the job leave, and by which line.
func asked(say sayer, k *protocol.Kept) {
	if !k.Evicted {
		return
	}
	by := ""
	if k.Asked != "" {
		by = " by the " + k.Asked
	}
	why := stopless(k.Reason)
	if why == "" {
		why = "no reason was given"
	}
	say("It was told to leave%s: %s (code %d, subcode %d).", by, why, k.Code, k.Subcode)
	if r := k.Rule; r != nil {
		say("The rule was %s = %s, from %s.", r.Name, r.Text, r.Origin)
	}
}

// ran says how long what took.
func ran(say sayer, k *protocol.Kept) {
	var parts []string
	span := func(what string, from, to time.Time) {
		if !from.IsZero() && to.After(from) {
			parts = append(parts, what+" took "+words.Short(to.Sub(from)))
		}
	}
	s := k.Ran.Stages
	span("its input", s.Began, s.Brought)
	if !k.Started.IsZero() {
		exited := s.Exited
		if exited.IsZero() {
			exited = k.Ended
		}
		span("the program", k.Started, exited)
	}
	span("what was left and the output", s.Exited, s.Sent)
	span("all of it", s.Began, k.Ended)
	if len(parts) > 0 {
		say("Of its time %s.", strings.Join(parts, ", "))
	}
}

// limits says what it might take.
func limits(say sayer, l *protocol.LimitsInForce) {
	switch {
	case l == nil:
		return
	case !l.Grouped:
		say("No control group limited it.")
		return
	}
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	kib := func(n int64) string { return words.Size(n << 10) }
	if l.MemoryKiB != nil {
		add("memory of %s", kib(*l.MemoryKiB))
	}
	if l.SoftKiB != nil {
		add("memory of %s before it is slowed down", kib(*l.SoftKiB))
	}
	if l.SwapKiB != nil {
		add("swap of %s", kib(*l.SwapKiB))
	}
	if l.CPUWeight > 0 {
		add("a processor weight of %d", l.CPUWeight)
	}
	if len(l.CPUs) > 0 {
		add("the processors %s", strings.Trim(strings.ReplaceAll(fmt.Sprint(l.CPUs), " ", ", "), "[]"))
	}
	if l.Processes > 0 {
		add("%d processes", l.Processes)
	}
	if l.Closed > 0 {
		add("%s closed", spelling.Count(l.Closed, "device"))
	}
	if len(parts) == 0 {
		parts = []string{"none"}
	}
	say("Its limits were: %s.", strings.Join(parts, ", "))
	for _, lack := range l.Lacks {
		say("A limit was not kept: %s.", stopless(lack))
	}
}

// used says what it took.
func used(say sayer, k *protocol.Kept) {
	if k.Started.IsZero() {
		return
	}
	u := k.Usage
	line := fmt.Sprintf("It used at most %s of memory", words.Size(u.PeakRSSKiB<<10))
	if u.PeakProcs > 0 {
		line += " and " + processes(u.PeakProcs)
	}
	line += fmt.Sprintf(", %s of processor time, and %s of disk at its end", words.Short(u.UserCPU+u.SysCPU), words.Size(k.DiskKiB<<10))
	if u.BlockReadBytes+u.BlockWriteBytes > 0 {
		line += fmt.Sprintf("; it read %s and wrote %s", words.Size(u.BlockReadBytes), words.Size(u.BlockWriteBytes))
	}
	say("%s.", line)
	if p := u.Pressure; p != nil {
		var parts []string
		for _, s := range []struct {
			what string
			of   *host.Stall
		}{{"memory", p.Memory}, {"processors", p.CPU}, {"disks", p.IO}} {
			if s.of != nil {
				parts = append(parts, words.Short(s.of.Some)+" for "+s.what)
			}
		}
		say("It waited %s.", strings.Join(parts, ", "))
	}
	if u.OOMKills > 0 {
		why := "the machine was short of it"
		switch o := u.OverMemory; {
		case o != nil && o.Own:
			why = "it came to its own limit of " + words.Size(o.LimitKiB<<10)
		case o != nil && o.Part:
			why = "a part of it came to a limit that the job itself had set"
		}
		say("The kernel killed %s of it for memory: %s.", processes(int(u.OOMKills)), why)
	}
}

// left says what remained of it.
func left(say sayer, k *protocol.Kept) {
	if k.Leftovers > 0 {
		say("It left %s running, killed then.", processes(k.Leftovers))
	}
	if n := len(k.Left.Undying); n > 0 {
		say("%s of it could not be killed.", processes(n))
	}
	a := k.Left.Audit
	switch {
	case k.Started.IsZero():
		return
	case k.Left.Looked == "":
		say("What it left outside its scratch directory was not looked for.")
	case len(a.Found)+a.More == 0 && a.Shared:
		say("In memory it left nothing; files were not looked for, as others use its account.")
	case len(a.Found)+a.More == 0:
		say("It left nothing outside its scratch directory.")
	}
	for _, f := range a.Found {
		line := "It left "
		if a.Shared && !f.Removed && f.Problem == "" {
			line = "It or another of its account left "
		}
		line += f.Kind + " " + f.Name
		if f.Bytes > 0 {
			line += " of " + words.Size(f.Bytes)
		}
		switch {
		case f.Removed:
			line += ", removed"
		case f.Problem != "":
			line += ", not removed: " + stopless(f.Problem)
		default:
			line += notOurs(a.Shared)
		}
		say("%s.", line)
	}
	if a.More > 0 {
		say("%s more that it left %s not listed.", spelling.Count(a.More, "thing"), verb(a.More))
	}
	if a.Cut {
		say("There was more to look at than is looked at.")
	}
}

// notOurs says why something was not removed.
func notOurs(shared bool) string {
	if shared {
		return ", not removed"
	}
	return ", not removed, for its account is not for jobs alone"
}

func verb(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func processes(n int) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprint(n, " processes")
}
