// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"path/filepath"
	"regexp"
	"slices"

	"github.com/execpoint/execpoint/lib/cedar"
)

// newer are the things in which ours does as the original has done since the
// version that is named, which was looked up in the source of the releases, or
// is lts24 where it was seen with 23.0.28 and no more with that. An older
// original may differ by them, and by nothing else.
var newer = []struct {
	since cedar.Version
	why   string
	// attributes of a final ad, as patterns, that differ or come and go.
	attributes []string
	// drop is a pattern of what one of both says and the other does not, or in
	// other words: with stands in its place for both.
	drop *regexp.Regexp
	with string
}{
	{lts24, "the shadow tells of transfers also when they failed or were very short", []string{"JobCurrent*TransferOutputDate", "TransferOutStarted", "TransferInFinished", "TransferInQueued", "ExecuteDirWasEncrypted", "BytesRecvd"},
		regexp.MustCompile(`(?m)^040 \(ID\.\d+\) TIME Finished transferring (?:in|out)put files\n\.\.\.\n`), ""},
	{lts24, "what waits a moment for its transfer is not told as waiting", nil, regexp.MustCompile(`(?m)^040 \(ID\.\d+\) TIME Entered queue to transfer (?:in|out)put files\n(?:\tTransferring to host: .*\n)?\.\.\.\n|^\tTransferring to host: .*\n|^\tSeconds spent in queue: \d+\n`), ""},
	{lts24, "the job is told of more caches and counts", nil, regexp.MustCompile(`(?m)^(?: {4})?(?:APPTAINER_CACHEDIR|SINGULARITY_CACHEDIR|PYTHON_CPU_COUNT)=\S*\n|\b(?:APPTAINER_CACHEDIR|SINGULARITY_CACHEDIR|PYTHON_CPU_COUNT)=\S+ ?`), ""},
	{lts24, "a failed input is told as that", nil, regexp.MustCompile(`(Error from slotN@EP@\S+: )Failed to transfer files: `), "$1"},
	{lts24, "in other words", nil, regexp.MustCompile(`\|\|FILETRANSFER:1:.*`), ""},
	{cedar.Version{Major: 25, Minor: 4}, "the slot has what was asked for of the disk, without a MiB more", nil, regexp.MustCompile(`(?m)^\tDisk = \d+$`), "\tDisk = SIZE"},
	{cedar.Version{Major: 24, Minor: 4}, "bytes that were transferred are counted by protocol", []string{"Transfer*Stats"}, nil, ""},
	{cedar.Version{Major: 24, Minor: 5}, "an update tells when the output was last written to", []string{"StdoutMtime", "StderrMtime"}, nil, ""},
	{cedar.Version{Major: 24, Minor: 5}, "the job is told the process of its starter", nil, regexp.MustCompile(`(?m)^ {4}CONDOR_STARTER_PID=.*\n| CONDOR_STARTER_PID=\S+`), ""},
	{cedar.Version{Major: 24, Minor: 7}, "a failed transfer tells how many files failed", nil, regexp.MustCompile(`\d+ total failures: first failure: `), ""},
	{cedar.Version{Major: 24, Minor: 8}, "the slot is told by its whole name", nil, regexp.MustCompile(`SlotName: slotN@(?:EP@)?`), "SlotName: slotN@"},
	{withHome, "the job gets a HOME", nil, regexp.MustCompile(`(?m)^ {4}HOME=.*\n| HOME=\S+`), ""},
	{cedar.Version{Major: 24, Minor: 8}, "no tag says who ended the job", []string{"ToE"}, regexp.MustCompile(`(?m)\n*^\tJob terminated (?:of its own accord|by) .*$`), ""},
	{cedar.Version{Major: 24, Minor: 8}, "a manifest lists what is below directories", []string{"Transfer*Stats"}, regexp.MustCompile(`(?m)^told/(?:in|out) .*(?:\n    .*)*`), "told/LIST"},
	{nested, "the scratch directory is below one that is the starter's, where the settings of Chirp are", nil, regexp.MustCompile(`(/dir_PID)/(?:scratch|user|htcondor)\b`), "$1"},
	{nested, "as above, and a job does not see them", nil, regexp.MustCompile(`(?m)^ *-rwx------ './\.chirp\.config'\n`), ""},
	{cedar.Version{Major: 24, Minor: 10}, "the job's claim may be gone just when it is used, which is told by other attributes", []string{"JobLastStartDate", "NumJobMatches", "LastVacateTime"}, nil, ""},
	{cedar.Version{Major: 25}, "one plugin more is there by default", nil, regexp.MustCompile(`FILETRANSFER:1:FILETRANSFER: Failed to execute \S+/stash_plugin -classad: [^|]*\|`), ""},
}

// nested is the first version whose scratch directory's path is of another
// length, by which the size of any output differs that has it.
var nested = cedar.Version{Major: 24, Minor: 12}

// Other first versions of what ours does.
var (
	// lts24 is the first of its series that was run here.
	lts24 = cedar.Version{Major: 24, Patch: 1}
	// remoteError: the shadow notes an error of the starter as that. Before, it
	// calls it an error of its own.
	remoteError = cedar.Version{Major: 23, Minor: 8}
	// failureFiles: the job's output and error are files for failures without being
	// named, and go to the shadow also when the input did not come, be they empty.
	failureFiles = cedar.Version{Major: 23, Minor: 10}
	// keyAlone: there is encryption without authentication.
	keyAlone = cedar.Version{Major: 23, Minor: 10}
	// expressions: WithinResourceLimits has room for catalogs. It and Requirements
	// were seen in other words before.
	expressions = cedar.Version{Major: 25, Minor: 12}
	// withHome: a job gets a HOME.
	withHome = cedar.Version{Major: 24, Minor: 8}
	// says: the shadow notes why a job had to leave. Before, it asks for a claim
	// to be released with patience, and a starter that has lost it waits for the
	// job's lease.
	says = cedar.Version{Major: 24, Minor: 10}
	// noPipes: pipes in a job's directory are no output. Before, the starter waits
	// for somebody to write into them.
	noPipes = cedar.Version{Major: 25, Minor: 11, Patch: 1}
)

// noPrePost is the first version that runs the programs before and after a job
// only where STARTER_ALLOW_JOB_PRE_AND_POST_CMD says so.
var noPrePost = cedar.Version{Major: 25, Minor: 11}

func (c *condor) atLeast(v cedar.Version) bool { return c.Version.AtLeast(v.Major, v.Minor, v.Patch) }

// older makes a text alike for what the original of the pool's version does
// not do yet.
func (c *condor) older(text string) string {
	for _, n := range newer {
		if n.drop != nil && !c.atLeast(n.since) {
			text = n.drop.ReplaceAllString(text, n.with)
		}
	}
	return text
}

// olderAttribute says whether an attribute differs, or is not there, because
// the original of the pool's version is too old.
func (c *condor) olderAttribute(name string) bool {
	for _, n := range newer {
		if !c.atLeast(n.since) && slices.ContainsFunc(n.attributes, func(pattern string) bool { ok, _ := filepath.Match(pattern, name); return ok }) {
			return true
		}
	}
	return false
}
