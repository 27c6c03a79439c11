// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
)

// A job whose scratch directory was removed under it ends with its exit code. What
// was to come from there is told to be missing, as any file that is: the job is held
// by the code of a failed transfer and ENOENT, after the shadow has heard how it ended.
func TestShadowScratchGone(t *testing.T) {
	t.Parallel()
	const silent = "Out = \"/dev/null\"\nErr = \"/dev/null\"\n"
	for _, c := range []struct {
		name, ad string
		whole    bool   // what is above the scratch directory goes too
		missing  string // what the hold names first, "" for none
	}{
		{"listed files", "TransferOutput = \"result,other\"\n", false, "4 total failures: first failure: reading from file %s/result: (errno 2) No such file or directory"},
		{"the standard files", "", false, "2 total failures: first failure: reading from file %s/_condor_stdout: (errno 2) No such file or directory"},
		{"the whole sandbox", "", true, "2 total failures: first failure: reading from file %s/_condor_stdout: (errno 2) No such file or directory"},
		{"nothing is known of", silent, false, ""},
		{"nothing is wanted", silent + "TransferOutput = \"\"\n", false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPool(t, c.ad, func(h *hosttest.Process) host.ExitStatus {
				dir := h.Spec().Dir
				if c.whole {
					dir = filepath.Dir(dir)
				}
				if os.RemoveAll(dir) != nil {
					return host.ExitStatus{Exited: true, Code: 99}
				}
				return host.ExitStatus{Exited: true, Code: 7}
			})
			rec := p.last()
			end := <-p.ended
			if rec.Status.Code != 7 || rec.Evicted {
				t.Errorf("%+v", rec)
			}
			if c.missing == "" {
				if end.Exit == nil || end.Exit.Ints[0] != 7<<8 || end.Exit.Ints[1] != int64(shadow.Exited) || rec.Held != nil {
					t.Errorf("the shadow heard %+v, held %+v", end, rec.Held)
				}
				return
			}
			if end.Held == nil || rec.Held == nil {
				t.Fatalf("the shadow heard %+v", end)
			}
			code, _ := end.Held.Ad.EvalInt("HoldReasonCode", nil)
			sub, _ := end.Held.Ad.EvalInt("HoldReasonSubCode", nil)
			text, _ := end.Held.Ad.EvalString("ErrorMsg", nil)
			want := strings.Replace(c.missing, "%s", filepath.Join(p.execute, "dir_1000/scratch"), 1)
			// The starter's code for output that it cannot read is 13, as HTCondor's
			// is; the shadow makes 12 of it.
			if code != 13 || sub != 2 || !strings.Contains(text, want) {
				t.Errorf("held %d/%d %s\nwant %s", code, sub, text, want)
			}
			i := slices.IndexFunc(p.shadow.Calls(), func(r shadowtest.Record) bool { return r.Request.Call == shadow.CallJobTermination })
			if i < 0 {
				t.Fatalf("the shadow was not told how the job ended: %v", p.calls())
			}
			if n, _ := p.shadow.Calls()[i].Request.Ad.EvalInt("ExitCode", nil); n != 7 {
				t.Errorf("the shadow heard of exit code %d", n)
			}
		})
	}
}
