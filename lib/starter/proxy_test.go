// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// inPlace are the attributes of a job with a proxy whose files are not moved.
const inPlace = "ShouldTransferFiles = \"NO\"\nCmd = \"/data/u/job\"\nx509userproxy = \"/home/alice/x509up\"\n"

// variable is the value of a variable of a process, "" for none.
func variable(p *hosttest.Process, name string) string {
	for _, entry := range p.Spec().Env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// readProxy is the number of the proxy that a job finds, "" for none that it can use.
func readProxy(path string) string {
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != 0o600 {
		return ""
	}
	pair, err := tls.LoadX509KeyPair(path, path)
	if err != nil {
		return ""
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return ""
	}
	names := cert.Subject.Names
	number, _ := names[len(names)-1].Value.(string)
	return number
}

// A job whose files are not moved has a proxy of its own in the scratch directory,
// for its own eyes, and gets another one while it runs. It is not told of the
// original, and nothing is left.
func TestDelegatedProxy(t *testing.T) {
	t.Parallel()
	began, renewed := make(chan string, 1), make(chan struct{})
	var after, ad string
	p := newPool(t, inPlace, func(p *hosttest.Process) host.ExitStatus {
		path := variable(p, "X509_USER_PROXY")
		scratch := variable(p, "_CONDOR_SCRATCH_DIR")
		if path != filepath.Join(scratch, "x509up") {
			began <- "at " + path
			return host.ExitStatus{Exited: true, Code: 1}
		}
		text, _ := os.ReadFile(filepath.Join(scratch, ".job.ad"))
		if job, err := classad.ParseAd(string(text), classad.Old); err == nil {
			ad, _ = job.EvalString("x509userproxy", nil)
		}
		began <- readProxy(path)
		<-renewed
		after = readProxy(path)
		if ad != path {
			after += " of " + ad
		}
		return host.ExitStatus{Exited: true}
	})
	contact := until[protocol.Contact](p)
	if got := <-began; got != "101" {
		t.Fatalf("the job has proxy %q", got)
	}
	startd, err := shadowtest.NewStartd("<127.0.0.1:9>", "<127.0.0.1:8>", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := p.shadow.SendProxy(t.Context(), startd, contact.Address); n != 1 || err != nil {
		t.Errorf("answered %d, %v", n, err)
	}
	close(renewed)
	p.last()
	if end := <-p.ended; end.Exit == nil || end.Exit.Ints[0] != 0 {
		t.Fatalf("%+v of %v", end.Exit, p.calls())
	}
	if after != "102" {
		t.Errorf("the job has proxy %q then", after)
	}
	if strings.Contains(p.stderr.String(), "PRIVATE KEY") {
		t.Error("a key is in the log")
	}
}

// How long a proxy may be good that is asked for is what the job says, else the owner
// of the machine; the shadow has the last word.
func TestProxyLifetime(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		job, knobs string
		want       time.Duration // 0 is as long as the job's own
	}{
		{"", "", 24 * time.Hour},
		{"", "DELEGATE_JOB_GSI_CREDENTIALS_LIFETIME = 3600\n", time.Hour},
		{"", "DELEGATE_JOB_GSI_CREDENTIALS_LIFETIME = 0\n", 0},
		{"DelegateJobGSICredentialsLifetime = 600\n", "DELEGATE_JOB_GSI_CREDENTIALS_LIFETIME = 3600\n", 10 * time.Minute},
		{"DelegateJobGSICredentialsLifetime = 0\n", "", 0},
		{"DelegateJobGSICredentialsLifetime = -5\n", "", 24 * time.Hour},
		{"DelegateJobGSICredentialsLifetime = 600\n", "DELEGATE_JOB_GSI_CREDENTIALS = false\n", 0},
	} {
		before := time.Now()
		p := newPoolPlan(t, inPlace+tt.job, func(*hosttest.Process) host.ExitStatus { return host.ExitStatus{Exited: true} },
			func(_ *pool, plan *protocol.Plan) { plan.Settings = configured(t, tt.knobs) })
		p.last()
		<-p.ended
		call, err := p.shadow.Wait(t.Context(), shadow.CallGetProxy, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := time.Unix(call.Request.Ints[0], 0)
		low, high := before.Add(tt.want-time.Second), time.Now().Add(tt.want)
		if tt.want == 0 && call.Request.Ints[0] != 0 || tt.want != 0 && (got.Before(low) || got.After(high)) {
			t.Errorf("%s%s: asked for one until %v, want %v from now", tt.job, tt.knobs, got, tt.want)
		}
		if call.Request.Texts[0] != "/home/alice/x509up" {
			t.Errorf("asked for %q", call.Request.Texts[0])
		}
	}
}

// A job whose proxy is not delegated is not run without: HTCondor's is.
func TestProxyNotDelegated(t *testing.T) {
	t.Parallel()
	p := newPool(t, inPlace, untilKilled)
	p.shadow.Misbehave(func(_ int, r *shadow.Request, reply *shadow.Reply) shadowtest.Action {
		if r.Call == shadow.CallGetProxy {
			reply.Data = nil
		}
		return shadowtest.Send
	})
	p.last()
	if slices.Contains(p.calls(), "begin_execution") {
		t.Errorf("%v", p.calls())
	}
}

// The proxy of a job whose files are moved comes with them, is found beside them, and
// does not come back.
func TestMovedProxy(t *testing.T) {
	t.Parallel()
	p := newPool(t, "x509userproxy = \"/home/alice/x509up\"\n", func(p *hosttest.Process) host.ExitStatus {
		path := variable(p, "X509_USER_PROXY")
		text, err := os.ReadFile(path)
		if err != nil || string(text) != "input" || path != filepath.Join(p.Spec().Dir, "x509up") || os.WriteFile(path, []byte("changed"), 0o600) != nil {
			return host.ExitStatus{Exited: true, Code: 1}
		}
		return host.ExitStatus{Exited: true}
	}, "x509up")
	p.last()
	if end := <-p.ended; end.Exit == nil || end.Exit.Ints[0] != 0 {
		t.Fatalf("%+v of %v", end.Exit, p.calls())
	}
	if text, err := os.ReadFile(filepath.Join(p.submit, "x509up")); err != nil || string(text) != "input" {
		t.Errorf("the proxy of the access point holds %q, %v", text, err)
	}
}

// A proxy whose name cannot be that of a file is no proxy, and its job does not run.
func TestProxyWithoutName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"/home/alice/", "..", "/home/alice/.."} {
		p := newPool(t, strings.Replace(inPlace, "/home/alice/x509up", name, 1), untilKilled)
		p.last()
		if end := <-p.ended; end.Held == nil {
			t.Errorf("%s: %+v", name, end)
		}
	}
}
