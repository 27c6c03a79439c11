// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/eventlog"
)

// alike replaces what must differ between two runs of a job: the side, times,
// ids of jobs and processes, addresses.
func (j *job) alike(text string) string {
	s := j.side
	text = strings.NewReplacer(j.dir, "SUBMITDIR", s.dir, "EPDIR", "@"+s.name+"@", "@EP@", `"`+s.name+`"`, `"EP"`).Replace(text)
	for _, n := range normal {
		text = n.pattern.ReplaceAllString(text, n.with)
	}
	return s.rig.older(strings.ReplaceAll(text, strconv.Itoa(j.cluster), "CLUSTER"))
}

var normal = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`(?m)^(\d{3}) \(\d+\.(\d+)\.\d+\) \d{4}-\d\d-\d\d \d\d:\d\d:\d\d`), "$1 (ID.$2) TIME"},
	{regexp.MustCompile(`<\d+\.\d+\.\d+\.\d+:\d+[^>\s]*>`), "<ADDRESS>"},
	{regexp.MustCompile(`slot\d+(_\d+)?@`), "slotN@"},
	{regexp.MustCompile(`slot\d+_\d+\b`), "slotN"},
	{regexp.MustCompile(`\bdir_\d+\b`), "dir_PID"},
	{regexp.MustCompile(`Usr \d+ \d\d:\d\d:\d\d, Sys \d+ \d\d:\d\d:\d\d`), "Usr TIME, Sys TIME"},
	{regexp.MustCompile(`(?m)^(\t   Cpus) +: [ \d.]{8}.*?( +\d+ +\d+ *)$`), "$1: USAGE$2"}, // as wide as the widest of the measured
	{regexp.MustCompile(`(Partitionable Resources :) +(Usage) +(Request) +(Allocated) *`), "$1 $2 $3 $4"},
	{regexp.MustCompile(`_PID=\d+`), "_PID=PID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?`), "TIME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ?`), "TIME"},
	// What was used of memory and disk, and how much disk the slot got of
	// what was free just then.
	{regexp.MustCompile(`(?m)^(\t   (?:Disk|Memory) \([KM]B\) +):.*$`), "$1: SIZES"},
	{regexp.MustCompile(`(?m)^(\t   TimeExecute \(s\) +):.*$`), "$1: SECONDS"},
	{regexp.MustCompile(`(?m)^(\t   TimeSlotBusy \(s\) +):.*$`), "$1: SECONDS"},
	{regexp.MustCompile(`(Number of processes actually suspended: )\d+`), "${1}N"}, // a shell may just have a child
	{regexp.MustCompile(`(?m)^(\tJob terminated of its own accord at) .*( with .*)$`), "$1 TIME$2"},
	{regexp.MustCompile(`\b(127\.0\.0\.1):\d+`), "$1:PORT"},
}

// log is the event log without what must differ, and without the events of
// image sizes, which come by the clock. The events of transfers come last, as
// the shadow's children write them when they get to it; after a failure they
// may not get to it at all.
func (j *job) log() string {
	var b strings.Builder
	events := j.events()
	late := func(e realpool.Event) int {
		if e.Code == eventlog.CodeFileTransfer {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(events, func(a, b realpool.Event) int {
		return cmp.Or(cmp.Compare(a.Proc, b.Proc), cmp.Compare(late(a), late(b)))
	})
	failed := j.count(eventlog.CodeRemoteError) > 0
	for _, e := range events {
		if e.Code == eventlog.CodeImageSize || failed && strings.Contains(e.Text, "Finished transferring") {
			continue
		}
		text := j.alike(e.Text)
		if j.varies {
			text = bytesSent.ReplaceAllString(text, "\tSIZE$1")
		}
		b.WriteString(text + "\n...\n")
	}
	return j.side.rig.older(b.String())
}

var bytesSent = regexp.MustCompile(`\t\d+(  -  (?:Run|Total) Bytes Sent By Job)`)

// tree tells all files below the job's directory: type, mode, size and
// content, but for the description and the event log.
func (j *job) tree() string {
	j.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(j.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(j.dir, path)
		switch name {
		case ".", "job.sub", "job.log", "pid":
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v", j.alike(name), info.Mode())
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			fmt.Fprintf(&b, " -> %s", j.alike(to))
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if strings.HasPrefix(name, "core.") { // a core has its own process in it
				b.WriteString(" a core")
			} else if bytes.IndexByte(content, 0) >= 0 { // no text, and it may be large
				fmt.Fprintf(&b, " %d bytes, sha256 %x", len(content), sha256.Sum256(content))
			} else if text := j.alike(string(content)); len(text) > 4096 {
				fmt.Fprintf(&b, " %d bytes, sha256 %x", len(text), sha256.Sum256([]byte(text)))
			} else {
				fmt.Fprintf(&b, "\n    %s", strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    "))
			}
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		j.t.Error(err)
	}
	return j.side.rig.older(b.String()) // some of it is more than one file's
}

// allowed are attributes of a job's final ad in which the two sides may
// differ, as patterns, and why.
var allowed = []struct{ pattern, why string }{
	{"ClusterId", "two jobs"}, {"GlobalJobId", "two jobs"}, {"Rig", "chooses the side"}, {"*ClaimId*", "two claims"},
	{"Iwd", "a directory for each"}, {"UserLog", "a directory for each"}, {"LastRejMatch*", "of the negotiator"}, {"*LastMatch*", "of the negotiator"},
	{"*Date", "a time"}, {"JobFinishedHookDone", "a time"}, {"*Time", "a time"}, {"*Mtime", "a time"}, {"TransferInFinished", "a time"}, {"*Started", "a time"}, {"*Finished", "a time"}, {"*Queued", "a time"},
	{"*WallClockTime", "a duration"}, {"*Duration", "a duration"}, {"RecentStats*", "a duration"}, {"ScratchDirFileCount", "measured while the last files are written"}, {"*Seconds", "a duration"}, {"CommittedSlotTime", "a duration"}, {"CumulativeSlotTime", "a duration"},
	{"LastJobLeaseRenewal", "a time"}, {"SpooledOutputFiles", "in the order of the directory"}, {"EnteredCurrentStatus", "a time"}, {"TimerRemove*", "a time"}, {"ServerTime", "a time"}, {"StageIn*", "a time"}, {"StageOut*", "a time"}, {"ActivationDuration", "a duration"}, {"*UserPrio*", "of the negotiator"},
	{"RemoteUserCpu", "a duration"}, {"RemoteSysCpu", "a duration"}, {"Cumulative*Cpu", "a duration"}, {"*CpusUsage", "a duration"},
	{"ImageSize*", "measured"}, {"ResidentSetSize*", "measured"}, {"ProportionalSetSize*", "measured"}, {"DiskUsage*", "measured"}, {"MemoryUsage", "measured"},
	{"*NetworkInputMb", "measured"}, {"Block*", "measured"},
	{"DiskProvisioned", "a share of what was free just then"},
	{"StarterIpAddr", "an address"}, {"*IpAddr", "an address"}, {"PublicClaimId*", "two claims"}, {"RemoteHost", "the side's name"}, {"*RemoteHost", "the side's name"},
	{"JobPid", "a process"}, {"StartdName", "the side's name"}, {"*SlotName", "the side's name"},
	{"JobCurrentStartTransfer*", "a time"}, {"*JobStart*Date", "a time"},
	{"AutoClusterId", "of the schedd"}, {"AutoClusterAttrs", "of the schedd"}, {"ScheddBday", "of the schedd"}, {"MachineAttrSlotWeight0", "of the schedd"},
	{"NumMatches", "a matter of luck"}, {"NumShadowStarts", "a claim may be gone just when it is used"}, {"StatsLifetimeStarter", "a duration"}, {"StatsLastUpdateTimeStarter", "a time"},
	{"TransferSocket", "an address"}, {"LastVacateTime", "a time"}, {"*VacateTime", "a time"}, {"JobRunCount", "as NumShadowStarts"},
	{"WallClockCheckpoint", "a duration"}, {"PeriodicRemoveTime", "a time"}, {"StatsLifetime", "a duration"},
	{"_condor_JOBINFO_MAXINTERVAL", "unknown until the original's clock of updates goes, which some updates are sent before"},
}

// comesAndGoes are attributes that a job may have or not at either side, as
// patterns, and why. All others are there, whatever their value.
var comesAndGoes = []struct{ pattern, why string }{
	{"LastRejMatch*", "the job was not matched at once"}, {"FirstJobMatchDate", "the job was given a claim that there was"},
	{"CpusUsage", "came with an update by the clock"}, {"ScratchDirFileCount", "came with an update by the clock"},
	{"TransferOutFinished", "the shadow's child gets to it or not after a failure"},
	{"Block*", "the original tells what it does not measure as 0, ours does not tell it"}, {"RecentBlock*", "of the same"}, {"*StatsLifetimeStarter", "of the same"},
}

func comesOrGoes(name string) bool {
	return slices.ContainsFunc(comesAndGoes, func(d struct{ pattern, why string }) bool { ok, _ := filepath.Match(d.pattern, name); return ok })
}

// compareAds tells the attributes in which the final ads of two jobs differ.
func compareAds(original, ours *job, more []string) []string {
	a, b := original.final(), ours.final()
	byProc := func(x, y *classad.Ad) int {
		i, _ := x.EvalInt("ProcId", nil)
		k, _ := y.EvalInt("ProcId", nil)
		return cmp.Compare(i, k)
	}
	slices.SortFunc(a, byProc)
	slices.SortFunc(b, byProc)
	if len(a) != len(b) {
		return []string{fmt.Sprintf("%d final ads with the original, %d with ours", len(a), len(b))}
	}
	var bad []string
	for i := range a {
		bad = append(bad, differences(original, ours, a[i], b[i], more)...)
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}

func differences(original, ours *job, a, b *classad.Ad, more []string) (bad []string) {
	free := func(name string) bool {
		is := func(pattern string) bool { ok, _ := filepath.Match(pattern, name); return ok }
		return slices.ContainsFunc(more, is) || slices.ContainsFunc(allowed, func(d struct{ pattern, why string }) bool { return is(d.pattern) })
	}
	older := original.side.rig.olderAttribute
	for name, x := range a.All() {
		if older(name) {
			continue
		}
		y, ok := b.Lookup(name)
		if !ok {
			if !slices.Contains(more, name) && !comesOrGoes(name) {
				bad = append(bad, fmt.Sprintf("%s = %s with the original, absent with ours", name, original.alike(x.Text(classad.Old))))
			}
			continue
		}
		if v, w := original.alike(x.Text(classad.Old)), ours.alike(y.Text(classad.Old)); v != w && !free(name) {
			bad = append(bad, fmt.Sprintf("%s = %s with the original, %s with ours", name, v, w))
		}
	}
	for name, y := range b.All() {
		if _, ok := a.Lookup(name); !ok && !older(name) && !slices.Contains(more, name) && !comesOrGoes(name) {
			bad = append(bad, fmt.Sprintf("%s is absent with the original, %s with ours", name, ours.alike(y.Text(classad.Old))))
		}
	}
	return bad
}

// compareJobs tells in what two jobs, one at each side, did not leave the same.
func compareJobs(original, ours *job, more []string) (bad []string) {
	if !original.side.rig.atLeast(nested) {
		original.varies, ours.varies = true, true
		more = append(slices.Clone(more), "BytesSent")
	}
	if !slices.Equal(original.digits(), ours.digits()) {
		original.varies, ours.varies = true, true
		more = append(slices.Clone(more), "BytesSent", "TransferOutputStats")
	}
	if d := gocmp.Diff(original.log(), ours.log()); d != "" {
		bad = append(bad, "event log (-original +ours):\n"+d)
	}
	if d := gocmp.Diff(original.tree(), ours.tree()); d != "" {
		bad = append(bad, "files (-original +ours):\n"+d)
	}
	if original.count(eventlog.CodeRemoteError) > 0 || original.count(eventlog.CodeShadowException) > 0 && !original.side.rig.atLeast(remoteError) {
		// What the shadow's children count races with the hold.
		more = append(slices.Clone(more), "TransferOutputStats", "TransferInputStats", "TransferInFinished")
	}
	if original.spooled {
		// It leaves the queue some time after its output was fetched, and
		// condor_q shows these where condor_history does not.
		more = append(slices.Clone(more), "ServerTime", "AutoClusterId", "AutoClusterAttrs")
	}
	if d := compareAds(original, ours, more); len(d) > 0 {
		bad = append(bad, "final ads:\n\t"+strings.Join(d, "\n\t"))
	}
	return bad
}

// digits are the lengths of the process ids of the job's starters. They are in
// the path of the scratch directory, and so in what a job prints.
func (j *job) digits() []int {
	var all []int
	for _, e := range j.events() {
		for _, m := range starterDir.FindAllStringSubmatch(e.Text, -1) {
			all = append(all, len(m[1]))
		}
	}
	return all
}

var starterDir = regexp.MustCompile(`/dir_(\d+)\b`)

// steady fails the test if ours did not do at a later try what it did at the
// first: only the original may be unsteady.
func steady(t *testing.T, first, now *job) {
	t.Helper()
	if !slices.Equal(first.digits(), now.digits()) {
		first.varies, now.varies = true, true
	}
	if d := gocmp.Diff(first.log(), now.log()); d != "" {
		t.Errorf("ours is not steady: event log (-first try +this one):\n%s", d)
	}
}

// judge fails the test for what differs, unless it is known why; then it fails
// if nothing differs any more. Two originals have no such excuse.
func judge(t *testing.T, bad []string, known string) {
	t.Helper()
	if os.Getenv(selfCheck) != "" {
		known = ""
	}
	switch {
	case known == "":
		for _, text := range bad {
			t.Error(text)
		}
	case len(bad) == 0:
		t.Errorf("nothing differs; it is not so any more that %s", known)
	default:
		t.Logf("known: %s", known)
	}
}
