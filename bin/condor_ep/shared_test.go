// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// A job whose nine processes share 32 MiB has used them once where a control group counts
// them. Without one they count for each process, for the sizes of processes are all there
// is.
//
// row: S0-071
func TestSharedMemoryCountsOnce(t *testing.T) {
	t.Parallel()
	const (
		whole  = 32 << 10 // KiB
		copies = 9
	)
	for _, tt := range []struct {
		name, conf  string
		least, most int64
	}{
		{"group", "", whole, 4 * whole}, // a shell builds a text in more than one place
		{"no group", "BASE_CGROUP =\n", 6 * whole, 2 * copies * whole},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.write(t, "job.sh", "#!/bin/sh\nx=$(head -c 33554432 /dev/zero | tr '\\0' x)\nfor i in 1 2 3 4 5 6 7 8; do (sleep 3; :) & done\nwait\n")
			p.write(t, "job.sub", "request_cpus = 1\nrequest_memory = 900\nrequest_disk = 1024\nexecutable = job.sh\nqueue\n")
			p.write(t, "ep.conf", "NUM_CPUS = 1\nMEMORY = 1000\nCGROUP_POLLING_INTERVAL = 1\nSTARTD_HISTORY = "+filepath.Join(p.dir, "h")+"\n"+tt.conf)
			if status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub"); status != exitOK {
				t.Fatalf("status %d\n%s%s", status, stdout, stderr)
			}
			status, stdout, stderr := p.ep(t, "history", "-file", "h", "-json", "1.0")
			var ads []struct {
				RSS    int64 `json:"ResidentSetSize"`
				Record struct {
					Usage struct {
						Peak int64 `json:"peak_rss_kib"`
					}
					Ran struct{ Limits struct{ Grouped bool } }
				} `json:"ExecpointExitRecord"`
			}
			text := strings.TrimSpace(stdout)
			if !strings.HasPrefix(text, "[") {
				text = "[" + text + "]"
			}
			if err := json.Unmarshal([]byte(text), &ads); err != nil || len(ads) != 1 {
				t.Fatalf("status %d, %v\n%s%s", status, err, stdout, stderr)
			}
			ad := ads[0]
			if tt.conf == "" && !ad.Record.Ran.Limits.Grouped {
				t.Skip("needs a control group for the job")
			}
			if ad.Record.Usage.Peak < tt.least || ad.Record.Usage.Peak > tt.most || ad.RSS != ad.Record.Usage.Peak {
				t.Errorf("it had at most %d KiB, ResidentSetSize is %d; want %d to %d", ad.Record.Usage.Peak, ad.RSS, tt.least, tt.most)
			}
		})
	}
}
