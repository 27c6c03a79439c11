// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/classad"
)

// fetchingSlot is a slot with one processor that fetches its work. @DIR@ is the
// directory of its hooks.
const fetchingSlot = `
SLOT_TYPE_1_PARTITIONABLE = false
STARTD_JOB_HOOK_KEYWORD = FOO
FOO_HOOK_FETCH_WORK = @DIR@/fetch
FOO_HOOK_REPLY_FETCH = @DIR@/reply
FetchWorkDelay = 2
POLLING_INTERVAL = 2
RANK = TARGET.Prio
`

// fetchHook offers one job, which would run for ten minutes.
const fetchHook = `#!/bin/sh
cat > /dev/null
mkdir @DIR@/offered 2> /dev/null || exit 0
cat <<E
Cmd = "/bin/sleep"
Args = "600"
Owner = "$(id -un)"
User = "$(id -un)@fetched"
StarterUserLog = "@DIR@/fetched.log"
StarterUserLogUseXML = @XML@
Prio = 2
E
`

// varies is what two logs of the same events may have each for itself: when, where, and
// how much processor time was used.
var varies = regexp.MustCompile(`\d\d\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d\d\d)?|<[^>]*>|\d+ \d\d:\d\d:\d\d`)

const replyHook = `#!/bin/sh
cat > @DIR@/replied
echo $1 >> @DIR@/reply.log
`

// TestFetchedWorkYieldsToASchedd has a slot of each side run what it has fetched, until
// a schedd has a job that the machine likes better. The event log of the fetched job,
// which its starter writes, is the same.
//
// row: S0-308, S0-311, S0-320, S0-321
func TestFetchedWorkYieldsToASchedd(t *testing.T) {
	t.Parallel()
	for _, xml := range []bool{false, true} {
		t.Run(fmt.Sprintf("xml %v", xml), func(t *testing.T) {
			t.Parallel()
			fetchedWorkYields(t, xml)
		})
	}
}

func fetchedWorkYields(t *testing.T, xml bool) {
	c := newCondor(t, roomy)
	c.begin("condor_negotiator", "condor_schedd")
	sides := []string{realpool.Original, realpool.Ours}
	eps, hooks := make(map[string]*realpool.EP), make(map[string]string)
	for _, kind := range sides {
		dir := filepath.Join(c.Dir, "hooks-"+kind)
		c.Mkdir(dir)
		hooks[kind] = dir
		c.files(dir, map[string]string{"fetch": strings.NewReplacer("@DIR@", dir, "@XML@", fmt.Sprint(xml)).Replace(fetchHook), "reply": strings.ReplaceAll(replyHook, "@DIR@", dir)})
		eps[kind] = c.NewEP(kind, 1, strings.ReplaceAll(fetchingSlot, "@DIR@", dir))
		eps[kind].Start() // Begin waits for a partitionable slot
		t.Cleanup(func() { eps[kind].Stop(syscall.SIGQUIT, 20*time.Second) })
	}
	c.ScheddAnswers()
	// log is the event log of a side's fetched job, one record after the other, without
	// what varies.
	log := func(kind string) (records []string) {
		b, _ := os.ReadFile(filepath.Join(hooks[kind], "fetched.log"))
		end := "...\n"
		if xml {
			end = "</c>\n"
		}
		for record := range strings.SplitAfterSeq(string(b), end) {
			if xml && record != "" {
				ad, err := classad.ParseXML(record)
				if err != nil {
					t.Errorf("%s: %v in %s", kind, err, record)
					continue
				}
				record = ad.Text(classad.Old)
			}
			if record != "" {
				records = append(records, varies.ReplaceAllString(record, "VARIES"))
			}
		}
		return records
	}
	for _, kind := range sides {
		c.Eventually("the fetched job runs at "+kind, patience, func(context.Context) error {
			if len(log(kind)) == 0 {
				return errors.New(realpool.Last(eps[kind].Log("StartLog"), 30))
			}
			return nil
		})
	}
	submit := func(kind string, prio int) string {
		dir := filepath.Join(c.Dir, fmt.Sprintf("jobs-%s-%d", kind, prio))
		c.Mkdir(dir)
		c.files(dir, map[string]string{"job.sub": fmt.Sprintf("executable = /bin/sleep\narguments = 1\nlog = job.log\nshould_transfer_files = no\ntransfer_executable = false\n"+
			"request_cpus = 1\nrequest_memory = 64\nrequest_disk = 1024\nrequirements = TARGET.Rig == %q\n+Prio = %d\nqueue\n", kind, prio)})
		c.Submit(dir, filepath.Join(dir, "job.sub"))
		return filepath.Join(dir, "job.log")
	}
	saw := make(map[string][]string)
	for _, kind := range sides {
		better := submit(kind, 3)
		c.Eventually("the better job of "+kind+" is done", patience, func(context.Context) error {
			if b, _ := os.ReadFile(better); !strings.Contains(string(b), "Job terminated.") {
				return fmt.Errorf("%s\n%s", b, realpool.Last(eps[kind].Log("StartLog"), 30))
			}
			return nil
		})
		replies, err := os.ReadFile(filepath.Join(hooks[kind], "reply.log"))
		c.Must(err)
		saw[kind] = append([]string{"replies: " + string(replies)}, log(kind)...)
		if said := eps[kind].Log("StartLog"); !strings.Contains(said, "preempting claim based on machine rank") {
			t.Errorf("%s: %s", kind, realpool.Last(said, 30))
		}
	}
	if d := gocmp.Diff(saw[realpool.Original], saw[realpool.Ours]); d != "" {
		t.Errorf("original (-) and ours (+):\n%s\n%s", d, realpool.Last(eps[realpool.Ours].Log("StartLog"), 30))
	}
	first, last := "Job executing on host", "Job was evicted"
	if xml {
		first, last = `"ExecuteEvent"`, `"JobEvictedEvent"`
	}
	if got := saw[realpool.Original]; len(got) != 3 || got[0] != "replies: accept\n" || !strings.Contains(got[1], first) || !strings.Contains(got[2], last) {
		t.Errorf("what the original does is %q", got)
	}
}
