// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/delegation/delegationtest"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

const testVersion = "$CondorVersion: 25.14.0 2026-11-20 TEST $"

// pool is a starter with a shadow, on a machine in memory.
type pool struct {
	*talk
	shadow *shadowtest.Shadow
	claim  claim.ID
	files  *shadowtest.Server
	root   *os.Root
	user   *delegationtest.Credential // whose job it is
	submit string                     // directory at the submit machine
	ended  chan shadowtest.End
	conn   *cedar.Conn          // the shadow's end
	said   chan protocol.Report // by the starter, closed at its end
}

const poolMachine = `Name = "slot1@ep"
MachineResources = "Cpus Memory Disk"
Cpus = 2
Memory = 512
Disk = 10000
`

// newPool starts a job whose ad is the attributes of ad beside those that
// every job has.
func newPool(t *testing.T, ad string, program hosttest.Program, input ...string) *pool {
	t.Helper()
	return newPoolOn(t, ad, program, func(*Host) {}, input...)
}

// newPoolOn is newPool on a host that change makes another one.
func newPoolOn(t *testing.T, ad string, program hosttest.Program, change func(*Host), input ...string) *pool {
	t.Helper()
	return startPool(t, ad, program, change, func(*pool, *protocol.Plan) {}, input...)
}

// newPoolPlan is newPool with a plan, and a shadow, that change makes other ones.
func newPoolPlan(t *testing.T, ad string, program hosttest.Program, change func(*pool, *protocol.Plan), input ...string) *pool {
	t.Helper()
	return startPool(t, ad, program, func(*Host) {}, change, input...)
}

func startPool(t *testing.T, ad string, program hosttest.Program, change func(*Host), planned func(*pool, *protocol.Plan), input ...string) *pool {
	t.Helper()
	p := &pool{submit: t.TempDir(), ended: make(chan shadowtest.End, 4)}
	ours, theirs := cedartest.Pipe()
	t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
	// the state is that of a stream which the startd has used
	first := cedar.NewConn(ours, cedar.Limits{})
	p.conn = cedar.NewConn(theirs, cedar.Limits{Timeout: -1})
	for _, c := range []*cedar.Conn{first, p.conn} {
		if err := c.EnableAES(make([]byte, 32)); err != nil {
			t.Fatal(err)
		}
	}
	state, err := first.State()
	if err != nil {
		t.Fatal(err)
	}
	secret := claim.Secret(`[Encryption="YES";Integrity="YES";CryptoMethods="AES";ShortVersion="25.14.0";]` + strings.Repeat("ab", 32))
	p.claim = claim.NewID("<127.0.0.1:9>", 1, 2, secret)
	text := fmt.Sprintf("Cmd = \"/data/u/job\"\nIwd = %q\nShouldTransferFiles = \"YES\"\nWhenToTransferOutput = \"ON_EXIT\"\nTransferExecutable = false\nOut = \"out.txt\"\nErr = \"err.txt\"\nStreamOut = false\nStreamErr = false\nJobLeaseDuration = 60\nClusterId = 1\nProcId = 0\nGlobalJobId = \"ap#1.0\"\n%s", p.submit, ad)
	jobAd, err := classad.ParseAd(text, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(p.submit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	p.root = root
	if strings.Contains(ad, "x509userproxy") {
		p.user = delegationtest.New(t, "alice")
	}
	p.shadow = shadowtest.New(shadowtest.Job{
		Ad: jobAd, Claim: p.claim, Root: root, Proxy: p.user, Kerberos: map[string]string{"alice": "of alice"}, Creds: []shadow.Cred{{Service: "scitokens", Data: "token"}, {Service: "box*private", Data: "key"}},
	})
	if p.files, err = shadowtest.Listen(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	var in transfer.SendPlan
	for _, name := range input {
		if name != "missing" {
			if err := os.WriteFile(filepath.Join(p.submit, name), []byte("input"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		in.Items = append(in.Items, transfer.SendItem{Source: name})
	}
	p.take(shadowtest.Files{In: in})
	p.serve(p.conn)
	p.talk = newTalk(t, t.TempDir(), program, func(h *Host) {
		h.Socket = func() (net.Conn, error) { return ours, nil }
		change(h)
	})
	p.said = make(chan protocol.Report, 100)
	go func() {
		defer close(p.said)
		for r := p.report(); r != nil; r = p.report() {
			p.said <- r
		}
	}()
	p.machine.Install("/data/u/job", program)
	p.machine.Install(filepath.Join(p.execute, "dir_1000/scratch/job"), program)
	p.plan(func(plan *protocol.Plan) {
		plan.SlotFullName, plan.MachineAd, plan.JobAd = "slot1@ep", poolMachine, ""
		plan.Shadow = &protocol.ShadowSide{
			Stream: state, Claim: claim.Secret(p.claim.Wire()), Address: "<127.0.0.1:9>",
			Version: testVersion, Platform: "$CondorPlatform: TEST $",
		}
		planned(p, plan)
	})
	return p
}

// take has the shadow move files f: its output goes where the job's names say.
func (p *pool) take(f shadowtest.Files) {
	f.Rename = func(name string) string {
		switch name {
		case "_condor_stdout":
			return "out.txt"
		case "_condor_stderr":
			return "err.txt"
		}
		return name
	}
	if err := p.files.Add(p.shadow, f); err != nil {
		p.Fatal(err)
	}
}

func (p *pool) serve(conn *cedar.Conn) {
	go func() {
		end, _ := p.shadow.Serve(context.Background(), conn)
		p.ended <- end
		if end.Exit != nil || end.Held != nil {
			_ = conn.Close()
		}
	}()
}

// calls are the names of what the shadow was asked.
func (p *pool) calls() []string {
	var names []string
	for _, c := range p.shadow.Calls() {
		names = append(names, c.Request.Call.String())
	}
	return names
}

// until reads reports up to an R.
func until[R protocol.Report](p *pool) (r R) {
	p.Helper()
	for is := range p.said {
		if r, ok := is.(R); ok {
			return r
		}
		if e, ok := is.(protocol.Ended); ok {
			p.Fatalf("ended instead of %s: %+v", r.Kind(), e.Record)
		}
	}
	p.Fatalf("the starter never said %s", r.Kind())
	return r
}

// last reads the last word and waits for the starter.
func (p *pool) last() protocol.ExitRecord {
	p.Helper()
	r := until[protocol.Ended](p)
	if status := <-p.status; status != exitDone {
		p.Errorf("the starter exits %d: %s", status, p.stderr.String())
	}
	if entries, err := os.ReadDir(p.execute); err != nil || len(entries) != 0 {
		p.Errorf("EXECUTE holds %v (%v)", entries, err)
	}
	return r.Record
}

// outputs waits until the shadow is done with n transfers of output, which may be
// after the starter has ended, and returns all that there were.
func (p *pool) outputs(n int) []transfer.Stats {
	p.Helper()
	for seen := 0; ; {
		moved, err := p.shadow.WaitTransfers(p.Context(), seen)
		if err != nil {
			p.Fatal(err)
		}
		var outs []transfer.Stats
		for _, m := range moved {
			if m.Command == command.FiletransDownload {
				outs = append(outs, m.Stats)
			}
		}
		if len(outs) >= n {
			return outs
		}
		seen = len(moved) + 1
	}
}

func writes(name, text string, status host.ExitStatus) hosttest.Program {
	return func(p *hosttest.Process) host.ExitStatus {
		for name, text := range map[string]string{"_condor_stdout": "hello", name: text} {
			if err := os.WriteFile(filepath.Join(p.Spec().Dir, name), []byte(text), 0o644); err != nil {
				return host.ExitStatus{Exited: true, Code: 99}
			}
		}
		return status
	}
}

// A whole job: what is asked, in which order, and what comes back.
func TestShadowJob(t *testing.T) {
	t.Parallel()
	p := newPool(t, "", writes("result", "42", host.ExitStatus{Exited: true, Code: 3}))
	if r := until[protocol.Contact](p); !strings.HasPrefix(r.Address, "<127.0.0.1:") {
		t.Errorf("reached at %s", r.Address)
	}
	rec := p.last()
	end := <-p.ended
	want := []string{
		"get_job_info", "register_starter_info", "get_sec_session_info", "register_job_info", "begin_execution",
		"event_notification", "register_job_info", "get_job_info", "job_exit",
	}
	if diff := cmp.Diff(want, p.calls()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if end.Exit == nil {
		t.Fatalf("%+v", end)
	}
	if wait, why := end.Exit.Ints[0], end.Exit.Ints[1]; wait != 3<<8 || why != int64(shadow.Exited) {
		t.Errorf("job_exit(%d, %d)", wait, why)
	}
	for name, want := range map[string]string{"out.txt": "hello", "err.txt": "", "result": "42"} {
		if got, err := os.ReadFile(filepath.Join(p.submit, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q (%v)", name, got, err)
		}
	}
	if rec.Status.Code != 3 || rec.BytesOut != 7 || rec.Lost || len(rec.Problems) != 0 {
		t.Errorf("%+v", rec)
	}
	for name, want := range map[string]string{
		"JobState": `"Exited"`, "ExitBySignal": "false", "ExitCode": "3", "MemoryUsage": "((ResidentSetSize + 1023) / 1024)",
		"ExecuteDirWasEncrypted": "false", "SpooledOutputFiles": `"result"`, "RemoteUserCpu": "0.0",
	} {
		if e, ok := end.Exit.Ad.Lookup(name); !ok || e.String() != want {
			t.Errorf("%s is %v, want %s", name, e, want)
		}
	}
	info := p.shadow.Starter()
	for name, want := range map[string]string{"UidDomain": "u", "FileSystemDomain": "f", "Name": "slot1@ep", "CondorVersion": testVersion} {
		if got, _ := info.EvalString(name, nil); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if _, ok := info.Lookup("SlotAd"); !ok {
		t.Error("the starter said nothing of its slot")
	}
}

// Input is there when the job begins, its executable with the right to be one.
func TestShadowInput(t *testing.T) {
	t.Parallel()
	var mode os.FileMode
	p := newPool(t, "TransferExecutable = true\nIn = \"in\"\n", func(p *hosttest.Process) host.ExitStatus {
		text, err := os.ReadFile(filepath.Join(p.Spec().Dir, "in"))
		if info, serr := os.Stat(filepath.Join(p.Spec().Dir, "job")); serr == nil {
			mode = info.Mode()
		}
		if err != nil || string(text) != "input" {
			return host.ExitStatus{Exited: true, Code: 1}
		}
		return host.ExitStatus{Signal: 11, Core: true}
	}, "job", "in")
	p.last()
	end := <-p.ended
	if end.Exit == nil || end.Exit.Ints[0] != 11 || end.Exit.Ints[1] != int64(shadow.CoreDumped) || mode != 0o755 {
		t.Errorf("%+v, mode %v", end.Exit, mode)
	}
	for name, want := range map[string]string{"JobCoreDumped": "true", "ExitBySignal": "true", "ExitSignal": "11",
		"ExitReason": `"died on signal 11 (Segmentation fault)"`} {
		if e, ok := end.Exit.Ad.Lookup(name); !ok || e.String() != want {
			t.Errorf("%s is %v, want %s", name, e, want)
		}
	}
}

// back has the shadow come back, with another key for its files.
func (p *pool) back(address string) {
	p.Helper()
	p.take(shadowtest.Files{})
	startd, err := shadowtest.NewStartd("<127.0.0.1:9>", "<127.0.0.1:8>", nil, nil)
	if err != nil {
		p.Fatal(err)
	}
	conn, err := p.shadow.ReconnectAt(p.Context(), startd, address)
	if err != nil {
		p.Fatal(err)
	}
	p.serve(conn)
}

// closed waits until nothing of the job is left.
func (p *pool) closed() {
	p.Helper()
	f := p.machine.Families()[0]
	<-f.Done()
	for !f.Closed() && p.Context().Err() == nil {
		runtime.Gosched()
	}
}
