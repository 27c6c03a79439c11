// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/eventlog"
)

// job is a cluster submitted to one side of a rig, with a directory of its own
// in which job.log is its event log.
type job struct {
	t       *testing.T
	side    *side
	dir     string
	cluster int
	procs   int
	spooled bool
	varies  bool // its output's size is not the same at each run
	began   time.Time
}

// submit writes the submit description and submits it. The file has
// everything but the log, what the rig needs and the queue statement.
func (s *side) submit(t *testing.T, name, description, queue string, prepare func(dir string), args ...string) *job {
	t.Helper()
	r := s.rig
	j := &job{t: t, side: s, began: time.Now(), dir: filepath.Join(r.Dir, "jobs", name, s.name)}
	r.Mkdir(filepath.Join(r.Dir, "jobs"))
	r.Mkdir(filepath.Join(r.Dir, "jobs", name))
	r.Mkdir(j.dir)
	if prepare != nil {
		prepare(j.dir)
	}
	if queue == "" {
		queue = "queue"
	}
	text := strings.ReplaceAll(description, "@DIR@", j.dir) + "\nlog = " + j.dir + "/job.log\nMY.Rig = \"" + s.name + "\"\n"
	if !regexp.MustCompile(`(?m)^requirements\b`).MatchString(description) {
		// Nobody runs in what another, larger job has left.
		text += "requirements = TARGET.Rig == MY.Rig && (TARGET.PartitionableSlot =?= true || TARGET.Cpus == MY.RequestCpus)\n"
	}
	r.files(j.dir, map[string]string{"job.sub": text + queue + "\n"})
	for _, a := range args {
		j.spooled = j.spooled || a == "-spool"
	}
	out := r.Submit(j.dir, append(args, "job.sub")...)
	m := regexp.MustCompile(`(\d+) job\(s\) submitted to cluster (\d+)\.`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("condor_submit said %s", out)
	}
	j.procs, _ = strconv.Atoi(m[1])
	j.cluster, _ = strconv.Atoi(m[2])
	return j
}

// id names the only process of the cluster.
func (j *job) id() string { return strconv.Itoa(j.cluster) + ".0" }

// events reads the event log.
func (j *job) events() []realpool.Event {
	j.t.Helper()
	b, err := os.ReadFile(filepath.Join(j.dir, "job.log"))
	if err != nil {
		return nil
	}
	return slices.Collect(realpool.Events(string(b)))
}

// count is how often a code is in the event log.
func (j *job) count(code eventlog.Code) int {
	n := 0
	for _, e := range j.events() {
		if e.Code == code {
			n++
		}
	}
	return n
}

// codes are the codes of the event log in their order after that of the
// submission, without those of image sizes, which come by the clock, and those
// of transfers, which the shadow's children write when they get to it.
func (j *job) codes() string {
	var all []string
	for _, e := range j.events() {
		switch e.Code {
		case eventlog.CodeSubmit, eventlog.CodeImageSize, eventlog.CodeFileTransfer:
		default:
			all = append(all, fmt.Sprintf("%03d", int(e.Code)))
		}
	}
	return strings.Join(all, " ")
}

// wait waits until the event log has the code n times.
func (j *job) wait(code eventlog.Code, n int) {
	j.t.Helper()
	j.until(fmt.Sprintf("%d events %v", n, code), patience, func() bool { return j.count(code) >= n })
}

// until waits for something about the job, and says what became of the job if
// it does not come.
func (j *job) until(what string, limit time.Duration, ask func() bool) {
	j.t.Helper()
	end := time.Now().Add(limit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ask() {
		if time.Now().After(end) {
			log, _ := os.ReadFile(filepath.Join(j.dir, "job.log"))
			j.t.Fatalf("job %s on %s: no %s within %v; its log:\n%s\n%s", j.id(), j.side.name, what, limit, realpool.Last(string(log), 25), j.side.blame())
		}
		<-tick.C
	}
}

// over waits until each process has one of the ends: terminated, held or
// aborted.
func (j *job) over() {
	j.t.Helper()
	if j.spooled { // its log is in the spool
		j.until("end", patience, func() bool { s := j.queued("JobStatus"); return s == "4" || s == "5" })
		j.fetch()
		return
	}
	j.until("end", max(5*time.Second, patience-time.Since(j.began)), func() bool {
		ended := make(map[int]bool)
		for _, e := range j.events() {
			switch e.Code {
			case eventlog.CodeTerminated, eventlog.CodeAborted, eventlog.CodeHeld:
				ended[e.Proc] = true
			case eventlog.CodeReleased:
				delete(ended, e.Proc)
			}
		}
		return len(ended) == j.procs
	})
}

// has says whether the job has made a file in its directory.
func (j *job) has(name string) bool {
	_, err := os.Stat(filepath.Join(j.dir, name))
	return err == nil
}

// made waits for a file that the job makes in the directory of its submission.
func (j *job) made(name string) {
	j.t.Helper()
	j.until("file "+name, patience, func() bool { return j.has(name) })
}

// content of a file in the job's directory.
func (j *job) content(name string) string {
	j.t.Helper()
	b, err := os.ReadFile(filepath.Join(j.dir, name))
	if err != nil {
		j.t.Error(err)
	}
	return string(b)
}

// tool runs a tool for the job; it must succeed.
func (j *job) tool(name string, args ...string) string {
	j.t.Helper()
	out, err := j.side.rig.run(name, args...)
	if err != nil {
		j.t.Fatal(err)
	}
	return out
}

// queued is an attribute in the schedd's queue.
func (j *job) queued(attribute string) string {
	j.t.Helper()
	return strings.TrimSpace(j.tool("condor_q", j.id(), "-af", attribute))
}

// final are the ads of the cluster's jobs: those of the history, and of the
// queue for jobs that stay there.
func (j *job) final() []*classad.Ad {
	j.t.Helper()
	var ads []*classad.Ad
	stays := "JobStatus == 5"
	if j.spooled {
		stays += " || JobStatus == 4"
	}
	// A schedd that misses a job's last update finds the job completed when it
	// evaluates its periodic expressions, every 60 s; seen once with 23.9.6.
	j.until("final ad", 3*patience, func() bool {
		ads = nil
		text := j.tool("condor_history", "-long", strconv.Itoa(j.cluster)) + "\n" + j.tool("condor_q", "-long", strconv.Itoa(j.cluster), "-constraint", stays)
		for one := range strings.SplitSeq(text, "\n\n") {
			if strings.TrimSpace(one) == "" {
				continue
			}
			ad, err := classad.ParseAd(one, classad.Old)
			if err != nil {
				j.t.Fatalf("%v in\n%s", err, one)
			}
			ads = append(ads, ad)
		}
		return len(ads) >= j.procs
	})
	return ads
}

// remove takes what is left of the cluster out of the queue.
func (j *job) remove() {
	_, _ = j.side.rig.run("condor_rm", strconv.Itoa(j.cluster))
}
