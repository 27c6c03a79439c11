// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// kept is what is looked at of a job's ad in the history.
type kept struct {
	Cluster  int `json:"ClusterId"`
	Proc     int `json:"ProcId"`
	Args     string
	HoldCode int `json:"HoldReasonCode"`
	Record   *struct {
		Status struct {
			Exited bool
			Code   int
			Signal int
		}
		Usage struct {
			Kills int64 `json:"oom_kills"`
		}
		Leftovers int
		Ran       struct {
			Limits *struct {
				Grouped bool
				Memory  *int64 `json:"memory_kib"`
			}
		}
		Left struct{ Undying []any }
	} `json:"ExecpointExitRecord"`
}

// ep runs condor_ep where the jobs were submitted.
func (s *stage) ep(args ...string) []byte {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(s.dir, "condor_ep"), args...)
	cmd.Dir = filepath.Join(s.dir, "submit")
	cmd.Env = append(os.Environ(), "EXECPOINT_RUNTIME_DIR="+filepath.Join(s.dir, "tmp", "runs"), "HOME="+cmd.Dir)
	out, err := cmd.Output()
	if err != nil {
		s.t.Errorf("condor_ep %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// records are the records of all jobs by the program that each was.
func (s *stage) records() map[string]kept {
	s.t.Helper()
	var ads []kept
	if err := json.Unmarshal(s.ep("history", "-config", "ep.conf", "-json"), &ads); err != nil {
		s.t.Error(err)
	}
	all := map[string]kept{}
	for _, ad := range ads {
		name, _, _ := strings.Cut(ad.Args, " ")
		all[name] = ad
	}
	return all
}

// record holds what is kept of a job against what it did.
func (s *stage) record(t *testing.T, name string, p program, k kept) {
	t.Helper()
	r := k.Record
	if r == nil {
		t.Errorf("%s has no exit record", name)
		return
	}
	ran := p.over == 0 && (!p.refused || k.HoldCode == 0)
	if ran && (r.Status.Exited != (p.signal == 0) || r.Status.Code != p.exit || r.Status.Signal != int(p.signal)) {
		t.Errorf("the record of %s says that it ended with %+v", name, r.Status)
	}
	if p.over != k.HoldCode && ran {
		t.Errorf("the record of %s says that it was held with code %d, want %d", name, k.HoldCode, p.over)
	}
	if r.Leftovers < p.leaves && (s.root || !p.multiplies) {
		t.Errorf("the record of %s says that it left %d processes, want %d at least", name, r.Leftovers, p.leaves)
	}
	if len(r.Left.Undying) > 0 {
		t.Errorf("the record of %s says that %v could not be killed", name, r.Left.Undying)
	}
	if l := r.Ran.Limits; s.root && len(s.guard) > 0 && ran && (l == nil || !l.Grouped || l.Memory == nil || *l.Memory != 128<<10) {
		t.Errorf("the record of %s has the limits %+v", name, l)
	}
	if (r.Usage.Kills > 0) != (p.killed != "") {
		t.Errorf("the record of %s says that %d processes of it were killed for memory", name, r.Usage.Kills)
	}
	if p.killed != "" || p.leaves > 0 {
		said := string(s.ep("explain", "-config", "ep.conf", strconv.Itoa(k.Cluster)+"."+strconv.Itoa(k.Proc)))
		if p.killed != "" && !strings.Contains(said, "for memory: "+p.killed) || r.Leftovers > 0 && !strings.Contains(said, "killed then.") {
			t.Errorf("condor_ep explain says of %s:\n%s", name, said)
		}
	}
}
