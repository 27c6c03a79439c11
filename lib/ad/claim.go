// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"fmt"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/slot"
)

// SetClaim shows who holds the slot and what its request copies into the ad.
// It replaces what an earlier claim left.
func (a *Slot) SetClaim(c *claim.Claim, now clock.Instant) {
	a.ClearClaim()
	put := a.putter(&a.claimAttrs)
	put.text(attrRemoteScheddName, c.Client.Schedd)
	put.text(attrRemoteUser, c.Client.User)
	put.text(attrRemoteOwner, c.Client.Owner)
	put.text(attrRemoteProject, c.Client.Project)
	put.text(attrAccountingGroup, accountingGroup(c.Client))
	put.text(attrClientMachine, c.Client.Host)
	put.text(attrPublicClaimID, c.ID.String())
	put.int(attrClaimEndTime, 0)
	if a.s.Kind == slot.Dynamic && !a.s.Part {
		put.bool(attrIsSplittable, true)
	}
	a.negotiated(put, c.Request)
	capacityUnit(put, c.Request)
	a.m.took(a.s)
	a.SetRank(c.Rank)
	a.copyJob(c.Request)
	a.setTimes(c, nil, now)
	a.share()
}

// negotiated shows under which terms the match was made, as the negotiator
// left them in the request.
func (a *Slot) negotiated(put putter, request *classad.Ad) {
	if request == nil {
		return
	}
	env := classad.Env{Target: a.Ad()}
	for _, name := range [...]string{"ConcurrencyLimits", "RemoteGroup", "RemoteNegotiatingGroup"} {
		v, _ := request.EvalString(name, &env)
		put.text(name, v)
		if name == "RemoteNegotiatingGroup" && v != "" {
			regrouped, _ := request.EvalBool("RemoteAutoregroup", nil)
			put.bool("RemoteAutoregroup", regrouped)
		}
	}
}

// capacityUnit shows that the claim holds an owner's capacity unit, and which. A
// schedd that has made one asks for it with a request of its own (IsOCUHolder), and
// starts only jobs there that want it (OCUWanted), or others' that are willing.
func capacityUnit(put putter, request *classad.Ad) {
	if request == nil {
		return
	}
	if holds, _ := request.EvalBool("IsOCUHolder", nil); !holds {
		return
	}
	put.bool("OCU", true)
	name, _ := request.EvalString("OCUName", nil)
	put.text("OCUName", name)
}

// accountingGroup adds the domain of the user, as the accountant wants it.
func accountingGroup(c claim.Client) string {
	if c.AccountingGroup == "" {
		return ""
	}
	if i := strings.LastIndexByte(c.User, '@'); i >= 0 {
		return c.AccountingGroup + c.User[i:]
	}
	return c.AccountingGroup
}

// SetRank shows what the machine thinks of the present job.
func (a *Slot) SetRank(rank float64) {
	if rank == rank {
		a.ad.SetReal(attrCurrentRank, rank)
	}
}

// ClearClaim takes away everything about a claim and its job.
func (a *Slot) ClearClaim() {
	a.ClearWaiting()
	for _, name := range a.claimAttrs {
		a.drop(name)
	}
	a.claimAttrs, a.activation = a.claimAttrs[:0], ""
	a.forgetJob()
	for _, name := range [...]string{
		attrCurrentRank, attrRetirementRemaining,
		attrTotalJobRunTime, attrTotalJobSuspended, attrTotalClaimRunTime, attrTotalClaimSuspended,
	} {
		a.drop(name)
	}
	a.condorLoad = 0
	a.share()
}

// forgetJob takes away what was copied from a job.
func (a *Slot) forgetJob() {
	for _, name := range a.jobAttrs {
		a.drop(name)
	}
	a.jobAttrs = a.jobAttrs[:0]
}

// SetActivation shows the job of an activation and its run times. It is
// called at the start of the activation and whenever its phase changes.
func (a *Slot) SetActivation(c *claim.Claim, act *claim.Activation, now clock.Instant) {
	put := a.putter(&a.claimAttrs)
	if id, ok := jobID(act.Job); ok {
		put.text(attrJobID, id)
	}
	global, _ := act.Job.EvalString(attrGlobalJobID, nil)
	put.text(attrGlobalJobID, global)
	put.int(attrJobStart, act.Began.Wall.Unix())
	if a.activation != act.ID {
		a.activation = act.ID
		a.forgetJob() // what the last job used is not this one's
		a.copyJob(act.Job)
		if _, said := a.ad.Lookup(attrCpusUsage); !said {
			put.real(attrCpusUsage, 0)
		}
	}
	a.setTimes(c, act, now)
	a.share()
}

// jobID returns "cluster.proc".
func jobID(job *classad.Ad) (string, bool) {
	cluster, ok := job.EvalInt("ClusterId", nil)
	proc, ok2 := job.EvalInt("ProcId", nil)
	return fmt.Sprintf("%d.%d", cluster, proc), ok && ok2 && cluster > 0 && proc >= 0
}

// ClearActivation takes away what is about the job and leaves the claim, whose
// run times go on to count the activation that ended.
func (a *Slot) ClearActivation(c *claim.Claim, now clock.Instant) {
	for _, name := range [...]string{attrJobID, attrGlobalJobID, attrJobStart, attrStarterPid, attrJobPid, attrLastCheckpoint, attrCpusUsage, attrNumPids} {
		a.drop(name)
	}
	a.condorLoad = 0
	a.setTimes(c, nil, now)
	a.share()
}

// SetCheckpoint shows when the running job last was told to take a checkpoint.
func (a *Slot) SetCheckpoint(at time.Time) {
	a.putter(&a.claimAttrs).int(attrLastCheckpoint, at.Unix())
}

// SetStarter shows the process id of the starter.
func (a *Slot) SetStarter(pid int) { a.putter(&a.claimAttrs).int(attrStarterPid, int64(pid)) }

// SetJobPid shows the process id of the job, which is known once it runs.
func (a *Slot) SetJobPid(pid int) {
	if pid > 0 {
		a.putter(&a.claimAttrs).int(attrJobPid, int64(pid))
	}
}

// Usage is what a running job uses.
type Usage struct {
	Cpus         float64 // processors kept busy
	ImageSizeKiB int64   // address space
	ResidentKiB  int64   // memory, 0 if that is not known
	DiskKiB      int64   // what its scratch directory holds, 0 if that is not known
	Files        int     // in the scratch directory, 0 if that is not known
	Processes    int     // alive
}

// SetUsage shows what the running job uses. Memory, disk and files are the
// job's own attributes and shown as far as the owner wants (STARTD_JOB_ATTRS).
func (a *Slot) SetUsage(u Usage) {
	put := a.putter(&a.claimAttrs)
	put.real(attrCpusUsage, hundredths(u.Cpus))
	put.int(attrImageSize, u.ImageSizeKiB)
	put.int(attrNumPids, int64(u.Processes))
	job := classad.NewAd()
	if u.ResidentKiB > 0 {
		job.SetInt("ResidentSetSize", u.ResidentKiB)
		job.Set("MemoryUsage", memoryUsage)
	}
	if u.DiskKiB > 0 {
		job.SetInt("DiskUsage", u.DiskKiB)
	}
	if u.Files > 0 {
		job.SetInt("ScratchDirFileCount", int64(u.Files))
	}
	a.UpdateJob(job)
}

// memoryUsage is a job's memory in MiB, as starters tell it.
var memoryUsage = classad.MustParseExpr("((ResidentSetSize + 1023) / 1024)")

// UpdateJob copies what changed in the job's ad, as far as the owner wants it
// shown (STARTD_JOB_ATTRS).
func (a *Slot) UpdateJob(changed *classad.Ad) {
	a.copyJob(changed)
	a.share()
}

// copyJob copies expressions as they are.
func (a *Slot) copyJob(job *classad.Ad) {
	if job == nil {
		return
	}
	put := a.putter(&a.jobAttrs)
	for _, name := range a.m.set.jobAttrs {
		if e, ok := job.Lookup(name); ok {
			put.expr(name, e)
		}
	}
}

// SetWaiting shows who waits to take the slot over.
func (a *Slot) SetWaiting(c *claim.Claim) {
	a.ad.SetReal(attrPreemptingRank, c.Rank)
	a.ad.SetString(attrPreemptingUser, c.Client.User)
	a.ad.SetString(attrPreemptingOwner, c.Client.Owner)
	if c.Request != nil {
		if limits, _ := c.Request.EvalString("ConcurrencyLimits", &classad.Env{Target: a.Ad()}); limits != "" {
			a.ad.SetString(attrPreemptingLimits, limits)
		}
	}
	if g := accountingGroup(c.Client); g != "" {
		a.ad.SetString("PreemptingAccountingGroup", g)
	}
}

// ClearWaiting takes that away.
func (a *Slot) ClearWaiting() {
	for _, name := range [...]string{attrPreemptingRank, attrPreemptingUser, attrPreemptingOwner, attrPreemptingLimits, "PreemptingAccountingGroup"} {
		a.drop(name)
	}
}

// setTimes shows how long the claim's jobs have run. While a job runs or is
// suspended the attribute is an expression that goes on by itself, so that a
// policy sees the present value without any refresh.
func (a *Slot) setTimes(c *claim.Claim, act *claim.Activation, now clock.Instant) {
	var run, suspended time.Duration
	running, stopped := false, false
	if act != nil {
		run, suspended = act.RunTime(now), act.SuspendedTime(now)
		running = act.Phase == claim.Running || act.Phase == claim.Starting
		stopped = act.Phase == claim.Suspended
		a.count(attrTotalJobRunTime, run, running, now)
		a.count(attrTotalJobSuspended, suspended, stopped, now)
	} else {
		a.drop(attrTotalJobRunTime)
		a.drop(attrTotalJobSuspended)
	}
	a.count(attrTotalClaimRunTime, c.TotalRun+run, running, now)
	a.count(attrTotalClaimSuspended, c.TotalSuspended+suspended, stopped, now)
}

func (a *Slot) count(name string, so time.Duration, goesOn bool, now clock.Instant) {
	switch {
	case goesOn:
		// The text is made of two integers and always parses.
		_ = a.ad.SetText(name, fmt.Sprintf("%d + (time() - %d)", seconds(so), now.Wall.Unix()))
	case so >= time.Second:
		a.ad.SetInt(name, seconds(so))
	default:
		a.drop(name)
	}
}

// putter sets attributes and remembers their names, to take them away again.
type putter struct {
	ad   *classad.Ad
	list *[]string
}

func (a *Slot) putter(list *[]string) putter { return putter{a.ad, list} }

func (p putter) expr(name string, e *classad.Expr) {
	p.ad.Set(name, e)
	for _, n := range *p.list {
		if n == name {
			return
		}
	}
	*p.list = append(*p.list, name)
}

func (p putter) int(name string, v int64)    { p.expr(name, classad.Literal(classad.Int(v))) }
func (p putter) real(name string, v float64) { p.expr(name, classad.Literal(classad.Real(v))) }
func (p putter) bool(name string, v bool)    { p.expr(name, classad.Literal(classad.Bool(v))) }

// text sets a string, nothing if it is empty.
func (p putter) text(name, v string) {
	if v != "" {
		p.expr(name, classad.Literal(classad.String(v)))
	}
}
