// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestReader(t *testing.T) {
	t.Parallel()
	s, err := Parse("text", "ENABLE_CHIRP = (1 == 1)\nCHIRP_DELAYED_UPDATE_MAX_ATTRS = 2 * 3\nSTARTER_UPDATE_INTERVAL = 2 * $(MINUTE)\nBASE_CGROUP =\nENABLE_SSH_TO_JOB = TARGET.X\n"+
		"FILETRANSFER_PLUGINS = a, b c\nENABLE_CHIRP_IO = maybe\nSTARTER_UPLOAD_TIMEOUT = soon\nLOCK = $INT(x)\n", Options{Subsystem: "STARTER"})
	if err != nil {
		t.Fatal(err)
	}
	r := &Reader{Snapshot: s}
	got := fmt.Sprint(r.Bool("ENABLE_CHIRP"), r.Int("CHIRP_DELAYED_UPDATE_MAX_ATTRS"), r.Duration("STARTER_UPDATE_INTERVAL"), r.Text("BASE_CGROUP"), "|", r.String("BASE_CGROUP"), "|",
		r.Expr("ENABLE_SSH_TO_JOB"), r.List("FILETRANSFER_PLUGINS"))
	if want := "true 6 2m0shtcondor||TARGET.X [a b c]"; got != want || r.Err() != nil {
		t.Errorf("read %s, %v; want %s", got, r.Err(), want)
	}
	if r.Bool("ENABLE_CHIRP_IO") || r.Duration("STARTER_UPLOAD_TIMEOUT") != 0 || r.Text("LOCK") != "" {
		t.Error("what is wrong has a value")
	}
	r.Wrong("BASE_CGROUP", "is empty", "a name")
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), `text:4:1: knob BASE_CGROUP: is empty (want a name)`) {
		t.Errorf("%v", err)
	}
	for _, where := range []string{"text:7", "text:8", "LOCK"} {
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), where) {
			t.Errorf("the error %v does not name %s", err, where)
		}
	}
}
