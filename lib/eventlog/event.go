// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eventlog owns the job event log, HTCondor's user log: which events
// there are, the exact text of each, and reading that text back. One record is
// a header line (event number, job id, local time), the event's own lines, and
// a line of three dots.
//
// It must never decide that something happened, look at a clock (times come in
// the Header), or let a text from outside forge a record: line ends inside a
// field are written as blanks.
//
//	dst = eventlog.Append(dst, eventlog.Header{Cluster: 1, Time: now}, eventlog.Held{Reason: "via condor_hold", ReasonCode: 1})
package eventlog

import (
	"fmt"
	"time"
)

// Code is the number of a kind of event. The numbers are HTCondor's.
type Code int

// The event numbers of HTCondor 25.14. Only some have an Event type here; the
// others are read and written as Other.
const (
	CodeSubmit Code = iota
	CodeExecute
	CodeExecutableError
	CodeCheckpointed
	CodeEvicted
	CodeTerminated
	CodeImageSize
	CodeShadowException
	CodeGeneric
	CodeAborted
	CodeSuspended
	CodeUnsuspended
	CodeHeld
	CodeReleased
	CodeRemoteError     Code = 21
	CodeDisconnected    Code = 22
	CodeReconnected     Code = 23
	CodeReconnectFailed Code = 24
	CodeAttributeUpdate Code = 33
	CodeClusterSubmit   Code = 35
	CodeFileTransfer    Code = 40
)

// codeNames are HTCondor's names without ULOG_, by number.
var codeNames = [...]string{
	"SUBMIT", "EXECUTE", "EXECUTABLE_ERROR", "CHECKPOINTED", "JOB_EVICTED", "JOB_TERMINATED", "IMAGE_SIZE",
	"SHADOW_EXCEPTION", "GENERIC", "JOB_ABORTED", "JOB_SUSPENDED", "JOB_UNSUSPENDED", "JOB_HELD", "JOB_RELEASED",
	"NODE_EXECUTE", "NODE_TERMINATED", "POST_SCRIPT_TERMINATED", "GLOBUS_SUBMIT", "GLOBUS_SUBMIT_FAILED",
	"GLOBUS_RESOURCE_UP", "GLOBUS_RESOURCE_DOWN", "REMOTE_ERROR", "JOB_DISCONNECTED", "JOB_RECONNECTED",
	"JOB_RECONNECT_FAILED", "GRID_RESOURCE_UP", "GRID_RESOURCE_DOWN", "GRID_SUBMIT", "JOB_AD_INFORMATION",
	"JOB_STATUS_UNKNOWN", "JOB_STATUS_KNOWN", "JOB_STAGE_IN", "JOB_STAGE_OUT", "ATTRIBUTE_UPDATE", "PRESKIP",
	"CLUSTER_SUBMIT", "CLUSTER_REMOVE", "FACTORY_PAUSED", "FACTORY_RESUMED", "NONE", "FILE_TRANSFER",
	"RESERVE_SPACE", "RELEASE_SPACE", "FILE_COMPLETE", "FILE_USED", "FILE_REMOVED", "DATAFLOW_JOB_SKIPPED",
	"COMMON_FILES",
}

// String returns HTCondor's name of c, such as "JOB_EVICTED"; a number it has
// no name for as "EVENT_99".
func (c Code) String() string {
	if c >= 0 && int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("EVENT_%d", int(c))
}

// Header says whose event it is and when it happened. Subproc is 0 for all
// jobs of the vanilla universe. Time is written in its own location, to the
// second.
type Header struct {
	Cluster, Proc, Subproc int
	Time                   time.Time
}

// Event is one of the event types of this package. The set is closed: an event
// of another kind is an Other.
type Event interface {
	Code() Code
	// appendBody writes everything after the header's blank, with line ends.
	appendBody(dst []byte) []byte
}

// Usage is processor time, written in whole seconds, cut off.
type Usage struct{ User, System time.Duration }

// Exit is how the job's first process ended.
type Exit struct {
	Signal   int    // 0: it ended by itself with Status
	Status   int    // return value
	CoreFile string // "" for none; only with a Signal
}

// Property is one line "Name = Value" of an Execute event. Value is a ClassAd
// expression as text; see Quote for strings.
type Property struct{ Name, Value string }

// Resource is one row of the table "Partitionable Resources". The cells are
// ClassAd expressions as text, "" for an empty cell; Number writes numbers the
// way HTCondor does. Name is the resource's attribute: Cpus, Memory (MiB),
// Disk (KiB), TimeExecute (s).
type Resource struct{ Name, Usage, Request, Allocated, Assigned string }

// The kinds of events. The doc of each gives the moment it is written.

// Submit (000): the job entered the queue.
type Submit struct {
	Host      string // address of the access point, in angle brackets
	LogNotes  string // optional second line
	UserNotes string // optional third line
	Warning   string // optional last line
}

// Execute (001): the job's program has been started.
type Execute struct {
	Host     string // address of the execution point
	SlotName string
	Props    []Property // written sorted by name, ignoring case
}

// ExecutableError (002): the program could not be started at all.
type ExecutableError struct{ Kind ExecutableErrorKind }

// ExecutableErrorKind says what is wrong with the program.
type ExecutableErrorKind int

// The kinds of an ExecutableError.
const (
	NotExecutable ExecutableErrorKind = 0
	BadLink       ExecutableErrorKind = 1
)

// Evicted (004): the job left its slot without having ended.
type Evicted struct {
	ReasonCode, ReasonSubcode int // vacate codes; both unwritten when ReasonCode is 0
	Checkpointed              bool
	Requeued                  *Exit // set when the job did end but goes back to the queue
	Remote, Local             Usage
	Sent, Received            int64 // bytes
	Reason                    string
	Resources                 []Resource
}

// Terminated (005): the job ended and its output is back.
type Terminated struct {
	Exit                     Exit
	Remote, Local            Usage // of this run
	TotalRemote, TotalLocal  Usage
	Sent, Received           int64 // bytes of this run
	TotalSent, TotalReceived int64
	Resources                []Resource
}

// ImageSize (006): how large the job has become.
type ImageSize struct {
	Size                int64 // KiB
	MemoryUsage         int64 // MiB, not written when negative
	ResidentSetSize     int64 // KiB, not written when negative
	ProportionalSetSize int64 // KiB, not written when 0 or negative
}

// ShadowException (007): whatever watched the job at the access point failed.
type ShadowException struct {
	Message        string
	Sent, Received int64
}

// Generic (008): a line of text, for instance from the job itself.
type Generic struct{ Info string }

// Aborted (009): the job was removed.
type Aborted struct{ Reason string }

// Suspended (010): the job's processes were stopped.
type Suspended struct{ Processes int }

// Unsuspended (011): they run again.
type Unsuspended struct{}

// Held (012): the job waits for its owner.
type Held struct {
	Reason                    string
	ReasonCode, ReasonSubcode int // hold codes
}

// Released (013): it is idle again.
type Released struct{ Reason string }

// RemoteError (021): the starter reports an error or a message. Text may have
// several lines.
type RemoteError struct {
	Daemon                    string // "starter"
	Host                      string // the slot name
	Message                   bool   // only a message, the job goes on
	Text                      string
	ReasonCode, ReasonSubcode int // hold codes; not written when ReasonCode is 0
}

// Disconnected (022): the connection to the starter is lost. All fields are
// needed.
type Disconnected struct{ Reason, StartdName, StartdAddr string }

// Reconnected (023): the starter was found again.
type Reconnected struct{ StartdName, StartdAddr, StarterAddr string }

// ReconnectFailed (024): it was not, the job is started anew.
type ReconnectFailed struct{ Reason, StartdName string }

// AttributeUpdate (033): an attribute of the job ad was set from outside.
// OldValue is "" when there was none.
type AttributeUpdate struct{ Name, OldValue, Value string }

// FileTransfer (040): a step of file transfer.
type FileTransfer struct {
	Step       TransferStep
	Queued     bool          // QueueDelay is known and written
	QueueDelay time.Duration // time waited for a place in the queue, whole seconds
	Host       string        // address of the starter, optional
}

// TransferStep is what a FileTransfer event is about.
type TransferStep int

// The steps of file transfer.
const (
	InputQueued TransferStep = iota + 1
	InputStarted
	InputFinished
	OutputQueued
	OutputStarted
	OutputFinished
)

// Other is an event this package has no type for. Head is the text behind the
// header, Lines are the lines that follow, without line ends.
type Other struct {
	Number Code
	Head   string
	Lines  []string
}

func (Submit) Code() Code          { return CodeSubmit }          // Code returns 0
func (Execute) Code() Code         { return CodeExecute }         // Code returns 1
func (ExecutableError) Code() Code { return CodeExecutableError } // Code returns 2
func (Evicted) Code() Code         { return CodeEvicted }         // Code returns 4
func (Terminated) Code() Code      { return CodeTerminated }      // Code returns 5
func (ImageSize) Code() Code       { return CodeImageSize }       // Code returns 6
func (ShadowException) Code() Code { return CodeShadowException } // Code returns 7
func (Generic) Code() Code         { return CodeGeneric }         // Code returns 8
func (Aborted) Code() Code         { return CodeAborted }         // Code returns 9
func (Suspended) Code() Code       { return CodeSuspended }       // Code returns 10
func (Unsuspended) Code() Code     { return CodeUnsuspended }     // Code returns 11
func (Held) Code() Code            { return CodeHeld }            // Code returns 12
func (Released) Code() Code        { return CodeReleased }        // Code returns 13
func (RemoteError) Code() Code     { return CodeRemoteError }     // Code returns 21
func (Disconnected) Code() Code    { return CodeDisconnected }    // Code returns 22
func (Reconnected) Code() Code     { return CodeReconnected }     // Code returns 23
func (ReconnectFailed) Code() Code { return CodeReconnectFailed } // Code returns 24
func (AttributeUpdate) Code() Code { return CodeAttributeUpdate } // Code returns 33
func (FileTransfer) Code() Code    { return CodeFileTransfer }    // Code returns 40
func (o Other) Code() Code         { return o.Number }            // Code returns the number read
