// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
)

// jobCase is a job that needs nobody's help to come to its end.
type jobCase struct {
	name string
	// submit is the description: @DIR@ is the directory of the submission,
	// @HTTP@ a server's address. Without an executable, job.sh is it.
	submit string
	queue  string
	script string // what job.sh does
	files  map[string]string
	more   func(c *condor, dir string) // makes what files cannot
	after  func(j *job)                // done once it is submitted
	spool  bool
	// want are codes of the event log, and texts that are in it.
	want   string
	says   []string
	output map[string]string // what is in files afterwards
	differ []string          // attributes of the final ad that differ, and in a comment why
	// known says in what ours differs, and why.
	known string
	// knownBefore says that it differs so only from an original that is older.
	knownBefore *cedar.Version
	// since says that older originals never bring it to an end.
	since *cedar.Version
	// varies says that names of slots are in the output, which vary in length.
	varies bool
}

// TestJobs runs each job at both sides and compares all that they leave.
//
// row: S1-035
func TestJobs(t *testing.T) {
	t.Parallel()
	runJobs(t, newRig(t, ""), jobCases[:])
}

// runJobs runs each job at both sides of r and compares them.
func runJobs(t *testing.T, r *rig, cases []jobCase) {
	t.Helper()
	web := newWeb(t)
	// All are submitted before the first is looked at: they run side by side.
	jobs := make([][2]*job, len(cases))
	for i, tt := range cases {
		if tt.since != nil && !r.atLeast(*tt.since) {
			continue
		}
		for k, s := range r.sides {
			jobs[i][k] = cases[i].submit1(t, s, web)
		}
	}
	for i, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			if jobs[i][0] == nil {
				r.NeedVersion(t, *tt.since, "the original brings such a job to an end")
			}
			var bad []string
			for k, j := range jobs[i] {
				j.t = t
				j.over()
				wrong := tt.check(j)
				if k == 0 {
					judge(t, wrong, "") // what is expected is what the original does
				}
				bad = append(bad, wrong...)
			}
			known := tt.known
			if tt.knownBefore != nil && r.atLeast(*tt.knownBefore) {
				known = ""
			}
			judge(t, append(bad, tt.compare(jobs[i][0], jobs[i][1])...), known)
			for _, j := range jobs[i] {
				j.remove()
			}
		})
	}
	for i, s := range r.sides {
		if i == 0 && !r.atLeast(says) {
			continue // its starter may wait for the lease
		}
		eventually(t, "EXECUTE of "+s.name+" is empty", func() error {
			if left := s.scratch(); len(left) > 0 {
				return fmt.Errorf("there is %q", left)
			}
			return nil
		})
	}
}

// submit1 submits the job to one side.
func (tt *jobCase) submit1(t *testing.T, s *side, web string) *job {
	t.Helper()
	description := strings.ReplaceAll(tt.submit, "@HTTP@", web)
	if !strings.Contains(description, "executable") {
		description += "\nexecutable = job.sh"
	}
	for _, line := range []string{"output = out", "error = err", "should_transfer_files = YES"} {
		if word, _, _ := strings.Cut(line, " "); !strings.Contains("\n"+description, "\n"+word+" ") {
			description += "\n" + line
		}
	}
	var args []string
	if tt.spool {
		args = append(args, "-spool")
	}
	j := s.submit(t, strings.ReplaceAll(tt.name, " ", "-"), description, tt.queue, func(dir string) {
		all := map[string]string{}
		for name, content := range tt.files {
			all[name] = content
		}
		if tt.script != "" {
			all["job.sh"] = "#!/bin/sh\n" + strings.NewReplacer("@DIR@", dir, "@CHIRP@", s.rig.Program("condor_chirp")).Replace(tt.script) + "\n"
		}
		s.rig.files(dir, all)
		if tt.more != nil {
			tt.more(s.rig.condor, dir)
			s.rig.files(dir, nil)
		}
	}, args...)
	if tt.after != nil {
		tt.after(j)
	}
	return j
}

// check tells what is wrong with a job at one side, whatever the other did.
func (tt *jobCase) check(j *job) (bad []string) {
	want := tt.want
	if !j.side.rig.atLeast(remoteError) { // this shadow calls an error of the starter one of its own
		want = strings.ReplaceAll(want, "021 004", "007")
	}
	if got := j.codes(); want != "" && got != want {
		bad = append(bad, fmt.Sprintf("%s: events %s, want %s; the log:\n%s", j.side.name, got, want, j.log()))
	}
	log := j.log()
	for _, text := range tt.says {
		if !strings.Contains(log, text) {
			bad = append(bad, fmt.Sprintf("%s: the event log does not say %q:\n%s", j.side.name, text, log))
		}
	}
	for name, want := range tt.output {
		if got, err := os.ReadFile(filepath.Join(j.dir, name)); err != nil || string(got) != want {
			bad = append(bad, fmt.Sprintf("%s: %s has %q, %v, want %q", j.side.name, name, got, err, want))
		}
	}
	return bad
}

// compare tells in what the two jobs did not leave the same.
func (tt *jobCase) compare(original, ours *job) []string {
	differ := tt.differ
	if tt.varies {
		original.varies, ours.varies = true, true
		differ = append(differ, "BytesSent", "TransferOutputStats")
	}
	return compareJobs(original, ours, differ)
}

// fetch gets the output of a spooled job.
func (j *job) fetch() {
	j.t.Helper()
	cmd := j.side.rig.Command(j.t.Context(), "condor_transfer_data", j.id())
	cmd.Dir = j.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		j.t.Errorf("condor_transfer_data: %v\n%s", err, out)
	}
}

// newWeb serves files over HTTP: GET /file/x is x, GET /none is not there, and
// what is PUT can be had by GET.
func newWeb(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch name, ok := strings.CutPrefix(q.URL.Path, "/file/"); {
		case q.Method == http.MethodPut:
			_, _ = io.Copy(io.Discard, q.Body)
			w.WriteHeader(http.StatusCreated)
		case ok:
			http.ServeContent(w, q, name, time.Unix(1e9, 0), strings.NewReader("the content of "+name+"\n"))
		default:
			http.NotFound(w, q)
		}
	})}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Shutdown(context.WithoutCancel(t.Context())); <-served })
	return "http://" + l.Addr().String()
}

// sparse makes a file with nothing in its middle.
func sparse(c *condor, path string, size int64) {
	c.TB.Helper()
	f, err := os.Create(path)
	c.Must(err)
	_, err = f.WriteString("head")
	c.Must(err)
	c.Must(f.Truncate(size))
	_, err = f.WriteAt([]byte("tail"), size-4)
	c.Must(err)
	c.Must(f.Close())
}

// modes sets permissions of files.
func modes(all map[string]os.FileMode) func(*condor, string) {
	return func(c *condor, dir string) {
		c.TB.Helper()
		for name, mode := range all {
			c.Must(os.Chmod(filepath.Join(dir, name), mode))
		}
	}
}
