// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// condor_ep sees the condor_startd that condor_master started: by the
// configuration of the machine at its control socket, and by its name in the
// collector over the wire, with a job of a real schedd in it.
func TestToolSeesDaemon(t *testing.T) {
	t.Parallel()
	c := newMaster(t, "START = TARGET.ClusterId > 0\n")
	tool := filepath.Join(c.Dir, "condor_ep")
	if out, err := exec.Command("go", "build", "-o", tool, "github.com/execpoint/execpoint/bin/condor_ep").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	long := fmt.Sprintf("61.%d", os.Getpid())
	c.Must(os.WriteFile(filepath.Join(c.Dir, "job.sub"), []byte("executable = /bin/sleep\narguments = "+long+"\nrequest_memory = 100\nrequest_disk = 1\nlog = job.log\nqueue\n"), 0o644))
	c.Tool("condor_submit", filepath.Join(c.Dir, "job.sub"))
	eventually(t, "the job runs", func() error {
		out, err := c.run("condor_status", "-af", "JobId", "-constraint", "JobId isnt undefined")
		if err == nil && strings.TrimSpace(out) == "" {
			err = fmt.Errorf("%q", out)
		}
		return err
	})
	name := strings.TrimSpace(c.Tool("condor_status", "-startd", "-af", "Machine", "-limit", "1"))
	slot := c.firstSlot()
	ways := [][]string{nil, {"-name", slot}, {"-name", name, "-pool", strings.TrimSpace(c.Tool("condor_config_val", "COLLECTOR_HOST"))}}
	says := func(want, command string, rest ...string) {
		for _, with := range ways {
			args := append(append([]string{command}, with...), rest...)
			out, err := c.run(tool, args...)
			if err != nil || !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
				t.Errorf("condor_ep %v: %v, want %q\n%s", args, err, want, out)
			}
		}
	}
	says("Claimed Busy", "status")
	says("1.0", "explain")
	says("Claimed/Busy", "explain", "1.0")
	// A first drain has the job leave, and is taken back before the next.
	for _, with := range ways {
		for _, tt := range [][]string{{"draining, request id", "drain", "-graceful", "-reason", "try"}, {"cancelled the draining", "drain", "-cancel"}} {
			args := append(append([]string{tt[1]}, with...), tt[2:]...)
			if out, err := c.run(tool, args...); err != nil || !strings.Contains(out, tt[0]) {
				t.Errorf("condor_ep %v: %v, want %q\n%s", args, err, tt[0], out)
			}
		}
	}
}
