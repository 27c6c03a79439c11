// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// A job finds the credentials it needs, for its own eyes, and none of them
// comes back as output.
func TestShadowCreds(t *testing.T) {
	t.Parallel()
	p := newPool(t, "OAuthServicesNeeded = \"scitokens box*private\"\n", func(h *hosttest.Process) host.ExitStatus {
		dir := ""
		for _, entry := range h.Spec().Env {
			if value, ok := strings.CutPrefix(entry, "_CONDOR_CREDS="); ok {
				dir = value
			}
		}
		for name, want := range map[string]string{"scitokens.use": "token", "box_private.use": "key"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			info, serr := os.Stat(filepath.Join(dir, name))
			if err != nil || serr != nil || string(text) != want || info.Mode() != 0o600 {
				return host.ExitStatus{Exited: true, Code: 1}
			}
		}
		return host.ExitStatus{Exited: true}
	})
	p.last()
	if end := <-p.ended; end.Exit == nil || end.Exit.Ints[0] != 0 {
		t.Fatalf("%+v of %v", end.Exit, p.calls())
	}
	if _, err := os.Stat(filepath.Join(p.submit, ".condor_creds")); err == nil {
		t.Error("the credentials came back")
	}
}

// Credentials are fetched again while the job runs.
func TestShadowCredsRenewed(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	p := newPoolPlan(t, "OAuthServicesNeeded = \"scitokens\"\n", func(*hosttest.Process) host.ExitStatus {
		<-release
		return host.ExitStatus{Exited: true}
	}, func(_ *pool, plan *protocol.Plan) { plan.Settings = configured(t, "SEC_CREDENTIAL_REFRESH = 1\n") })
	if _, err := p.shadow.Wait(t.Context(), shadow.CallGetcreds, 1); err != nil {
		t.Fatal(err)
	}
	close(release)
	p.last()
	if end := <-p.ended; end.Exit == nil {
		t.Fatalf("%+v", end)
	}
}

// A job whose credentials cannot be had is not started, and says why.
func TestShadowCredsRefused(t *testing.T) {
	t.Parallel()
	for ad, why := range map[string]string{
		"OAuthServicesNeeded = \"other\"\n": "the shadow has no credential for this service",
		"SendCredential = true\n":           "SEC_CREDENTIAL_DIRECTORY_KRB",
	} {
		p := newPool(t, ad, untilKilled)
		rec := p.last()
		end := <-p.ended
		if end.Held == nil || rec.Code != int(reason.StarterError) || !strings.Contains(rec.Reason, why) || rec.Fault != nil {
			t.Fatalf("%q: %+v, %+v", ad, end, rec)
		}
		if code, _ := end.Held.Ad.EvalInt("HoldReasonCode", nil); code != int64(reason.StarterError) {
			t.Errorf("%s", end.Held.Ad.Text(classad.Old))
		}
		// A job_exit of a job that has not begun counts as a beginning.
		if slices.Contains(p.calls(), "begin_execution") || slices.Contains(p.calls(), "job_exit") {
			t.Errorf("%v", p.calls())
		}
	}
}
