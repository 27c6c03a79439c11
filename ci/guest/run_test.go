// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/ci/qemu"
)

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := parse(io.Discard, "exec", strings.Fields("-cgroups hybrid -memory 2048 -cpus 2 -disks 10,20 -user tester -delegated -modules xfs,nbd -programs condor_ep -file /a=b -file /c=d -env X=1 -limit 1m -- x.test -test.v -disks"))
	want := qemu.Machine{Memory: 2048, CPUs: 2, Disks: []int{10, 20}, Cgroups: qemu.Hybrid, User: "tester", Delegated: true, Modules: []string{"xfs", "nbd"},
		Programs: []string{"condor_ep"}, Files: map[string]string{"/a": "b", "/c": "d"}, Limit: time.Minute}
	if diff := cmp.Diff(want, got.machine); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"x.test", "-test.v", "-disks"}, got.args); diff != "" {
		t.Error(diff)
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, want string }{
		{"", "usage: guest"},
		{"fly", `no command "fly"`},
		{"make now", `unexpected argument "now"`},
		{"exec", "no program"},
		{"sh", "want one argument"},
		{"sh a b", "want one argument"},
		{"sh -cgroups v3 x", `"v3": want v2, v1 or hybrid`},
		{"sh -disks 1,x x", `"x": want a number of MiB`},
		{"sh -disks -1 x", `"-1": want a number of MiB`},
		{"sh -file a=b x", `"a=b": want TARGET=SOURCE`},
		{"sh -file /a x", `"/a": want TARGET=SOURCE`},
		{"sh -nonsense x", "-nonsense"},
	} {
		var stderr bytes.Buffer
		if code := run(io.Discard, &stderr, strings.Fields(tt.args)); code != 2 || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%q: %d, %s", tt.args, code, &stderr)
		}
	}
}
