// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"bufio"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/google/go-cmp/cmp"
)

// lines calls each with every line of a file of testdata.
func lines(t testing.TB, file string, each func([]byte)) {
	t.Helper()
	f, err := os.Open("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		each(sc.Bytes())
	}
	if sc.Err() != nil {
		t.Fatal(sc.Err())
	}
}

// Real condor_submit and schedd made these ads of these descriptions; what
// running changes is left out. Attributes we set beyond those are checked by
// name.
func TestGoldenJobs(t *testing.T) {
	t.Parallel()
	now := time.Unix(1795183256, 0)
	lines(t, "jobs.jsonl", func(line []byte) {
		var e struct {
			ID, User, Job string
			Ad            map[string]string
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		cluster, err := strconv.Atoi(e.Ad["ClusterId"])
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(e.Job, "${TOOLS}", "/opt/tools")
		text = strings.ReplaceAll(text, "${TRACES}", "/opt/traces")
		text = strings.ReplaceAll(text, "${DIR}", "/var/lib/condor")
		d, err := Parse("job.sub", text, Options{Cluster: cluster, Now: now, Owner: e.User, Domain: "node1.example.org",
			Host: "node1.example.org", Cwd: strings.Trim(strings.ReplaceAll(e.Ad["Iwd"], "${DIR}", "/var/lib/condor"), `"`)})
		if err != nil {
			t.Errorf("%s: %v", e.ID, err)
			return
		}
		for _, w := range d.Warnings() {
			t.Errorf("%s: %v", e.ID, w)
		}
		jobs, err := d.Jobs()
		if err != nil || len(jobs) != 1 {
			t.Errorf("%s: %d jobs, %v", e.ID, len(jobs), err)
			return
		}
		got := map[string]string{}
		for name, want := range e.Ad {
			got[name] = "missing"
			if x, ok := jobs[0].Lookup(name); ok {
				got[name] = x.Text(classad.Old)
			}
			want = strings.ReplaceAll(want, "${TOOLS}", "/opt/tools")
			want = strings.ReplaceAll(want, "${TRACES}", "/opt/traces")
			want = strings.ReplaceAll(want, "${DIR}", "/var/lib/condor")
			want = strings.ReplaceAll(want, "${T}", strconv.FormatInt(now.Unix(), 10))
			e.Ad[name] = want
		}
		if d := cmp.Diff(e.Ad, got); d != "" {
			t.Errorf("%s: %s\n%s", e.ID, d, e.Job)
		}
		for _, name := range jobs[0].Names() {
			if _, known := e.Ad[name]; !known && !setBeyond[name] {
				t.Errorf("%s: %s is not in the real ad", e.ID, name)
			}
		}
	})
}

// setBeyond are the attributes of a new job that running changes, so that the
// golden ads have another value.
var setBeyond = map[string]bool{
	"RemoteWallClockTime": true, "RemoteUserCpu": true, "RemoteSysCpu": true, "CumulativeRemoteUserCpu": true, "CumulativeRemoteSysCpu": true,
	"NumJobStarts": true, "NumJobCompletions": true, "CommittedTime": true, "CommittedSlotTime": true, "CumulativeSlotTime": true,
	"TotalSuspensions": true, "LastSuspensionTime": true, "CumulativeSuspensionTime": true, "CommittedSuspensionTime": true,
	"CompletionDate": true, "ExitBySignal": true, "JobStatus": true, "EnteredCurrentStatus": true, "ExecutableSize": true, "ImageSize": true,
	"DiskUsage": true, "TransferInputSizeMB": true, "CurrentHosts": true,
}

// The examples of this repository are descriptions without a warning.
func TestExamples(t *testing.T) {
	t.Parallel()
	for file, jobs := range map[string]int{"hello.sub": 1, "sum/sum.sub": 40, "sum/combine.sub": 1} {
		name := "../../examples/" + file
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		cwd, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		d, err := Parse(name, string(text), Options{Cluster: 1, Owner: "ann", Cwd: cwd, DirFS: os.DirFS})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if w := d.Warnings(); len(w) > 0 {
			t.Errorf("%s: %v", file, w)
		}
		ads, err := d.Jobs()
		if err != nil || len(ads) != jobs {
			t.Errorf("%s: %d jobs, %v", file, len(ads), err)
			continue
		}
		if n, ok := ads[0].EvalInt("ExecutableSize", nil); !ok || n < 1 {
			t.Errorf("%s: its program is not there", file)
		}
	}
}
