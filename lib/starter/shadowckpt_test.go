// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

// notified are the events that the shadow was told of beside the job's log, with
// the checkpoint that they are about, if any.
func (p *pool) notified() []string {
	var all []string
	for _, c := range p.shadow.Calls() {
		if c.Request.Call != shadow.CallNotify {
			continue
		}
		text, _ := c.Request.Ad.EvalString("EventType", nil)
		if n, ok := c.Request.Ad.EvalInt("CheckpointNumber", nil); ok {
			text += fmt.Sprint(" ", n)
		}
		all = append(all, text)
	}
	return all
}

// Without transfer_checkpoint_files a checkpoint is what is new or changed.
func TestCheckpointOfChanges(t *testing.T) {
	t.Parallel()
	runs, saved := 0, ""
	var p *pool
	began := make(chan struct{})
	p = newPool(t, "WantFTOnCheckpoint = true\nSuccessCheckpointExitCode = 85\n", func(h *hosttest.Process) host.ExitStatus {
		<-began
		if runs++; runs == 1 {
			return writes("state", "half", host.ExitStatus{Exited: true, Code: 85})(h)
		}
		all := []string{}
		for _, name := range []string{"state", "out.txt", "in"} {
			text, err := os.ReadFile(filepath.Join(p.submit, name))
			if err == nil {
				all = append(all, name+"="+string(text))
			}
		}
		saved = strings.Join(all, " ")
		return host.ExitStatus{Exited: true}
	}, "in")
	close(began)
	p.last()
	if end := <-p.ended; end.Exit == nil || runs != 2 {
		t.Fatalf("%d runs, %+v", runs, end)
	}
	if saved != "state=half out.txt=hello in=input" {
		t.Errorf("there was %q after the checkpoint", saved)
	}
	if out := p.outputs(2)[0]; out.Final || out.Files != 3 { // state, _condor_stdout, _condor_stderr
		t.Errorf("the checkpoint was %+v", out)
	}
}

// A run adds to what came back with the checkpoint of an earlier activation,
// unless the job takes none and does not ask for it.
func TestStdComesBack(t *testing.T) {
	t.Parallel()
	says := func(h *hosttest.Process) host.ExitStatus {
		fmt.Fprint(h.Spec().Stdout, " and more")
		return host.ExitStatus{Exited: true}
	}
	for ad, want := range map[string]string{
		"": " and more",
		"WantFTOnCheckpoint = true\nSuccessCheckpointExitCode = 85\n": "input and more",
		"WantCheckpointSignal = true\n":                               "input and more",
		"EraseOutputAndErrorOnRestart = false\n":                      "input and more",
		"EraseOutputAndErrorOnRestart = true\n":                       " and more",
		"WantFTOnCheckpoint = false\n":                                " and more",
	} {
		for _, streams := range []bool{false, true} {
			used := make(chan struct{}, 1)
			file, add := "_condor_stdout", ad
			if streams {
				file, add = "out.txt", ad+"StreamOut = true\n"
			}
			p := newPoolOn(t, add, func(h *hosttest.Process) host.ExitStatus {
				defer func() { used <- struct{}{} }()
				return says(h)
			}, func(h *Host) { h.Spawner = slowSpawner{h.Spawner, used} }, file)
			p.last()
			<-p.ended
			if text, err := os.ReadFile(filepath.Join(p.submit, "out.txt")); err != nil || string(text) != want {
				t.Errorf("%q, streams %v: %q, %v, want %q", ad, streams, text, err, want)
			}
		}
	}
}

// A checkpoint that could not be stored for now stops nothing, and the next one
// has the next number; one that never can be has the job held, and its number is
// that of the next.
func TestCheckpointNotSaved(t *testing.T) {
	t.Parallel()
	for exit, want := range map[int][]string{
		0: {"ActivationExecutionExit", "FailedCheckpoint 5", "ActivationExecutionExit", "SuccessfulCheckpoint 6", "ActivationExecutionExit"},
		1: {"ActivationExecutionExit"},
	} {
		runs := 0
		used := make(chan struct{}, 1)
		then := func(program hosttest.Program) hosttest.Program {
			return func(h *hosttest.Process) host.ExitStatus {
				defer func() { used <- struct{}{} }()
				return program(h)
			}
		}
		const ad = "WantFTOnCheckpoint = true\nSuccessCheckpointExitCode = 85\nTransferCheckpoint = \"state\"\nCheckpointNumber = 4\nCheckpointDestination = \"fake://h\"\n"
		p := startPool(t, ad, then(func(h *hosttest.Process) host.ExitStatus {
			if runs++; runs == 3 {
				return host.ExitStatus{Exited: true}
			}
			return writes("state", "x", host.ExitStatus{Exited: true, Code: 85})(h)
		}), func(h *Host) { h.Spawner = slowSpawner{h.Spawner, used} }, func(p *pool, plan *protocol.Plan) {
			plan.Settings = configured(t, "FILETRANSFER_PLUGINS = /libexec/fake\n")
			p.machine.Install("/libexec/fake", then(fakePlugin(func(url string) bool { return !strings.Contains(url, "/0005/") }, exit)))
		})
		p.last()
		end := <-p.ended
		if !slices.Equal(p.notified(), want) {
			t.Errorf("exit %d: %q, want %q", exit, p.notified(), want)
		}
		results := 0
		for _, c := range p.shadow.Calls() {
			if c.Request.Call == shadow.CallRegisterJobInfo {
				if _, ok := c.Request.Ad.Lookup("CheckpointPluginResultList"); ok {
					results++
				}
			}
		}
		if exit == 0 {
			if end.Exit == nil || runs != 3 || results != 2 {
				t.Errorf("%d runs, %d times results, %+v", runs, results, end)
			}
			continue
		}
		if end.Held == nil || results != 1 {
			t.Fatalf("%d times results, %+v", results, end)
		}
		held := end.Held.Ad
		code, _ := held.EvalInt("HoldReasonCode", nil)
		sub, _ := held.EvalInt("HoldReasonSubCode", nil)
		if text, _ := held.EvalString("ErrorMsg", nil); code != 36 || sub != -1 || text != "Starter failed to upload checkpoint" {
			t.Errorf("%d.%d %s", code, sub, text)
		}
	}
}

// fakePlugin is a plugin for fake:// that stores the URLs which are well, and
// exits otherwise.
func fakePlugin(well func(url string) bool, exit int) hosttest.Program {
	return func(h *hosttest.Process) host.ExitStatus {
		spec := h.Spec()
		if slices.Contains(spec.Args, "-classad") {
			fmt.Fprint(spec.Stdout, "MultipleFileSupport = true\nPluginType = \"FileTransfer\"\nSupportedMethods = \"fake\"\n")
			return host.ExitStatus{Exited: true}
		}
		list, err := os.ReadFile(spec.Args[2])
		if err != nil {
			return host.ExitStatus{Exited: true, Code: 99}
		}
		code, out := 0, ""
		for line := range strings.Lines(string(list)) {
			ad, err := classad.ParseAd(line, classad.New)
			if err != nil {
				return host.ExitStatus{Exited: true, Code: 98}
			}
			url, _ := ad.EvalString("Url", nil)
			name, _ := ad.EvalString("LocalFileName", nil)
			if !well(url) {
				code = exit
			}
			out += fmt.Sprintf("[ TransferUrl = %q; TransferFileName = %q; TransferSuccess = %v; TransferError = \"no room\" ]\n", url, name, well(url))
		}
		if err := os.WriteFile(spec.Args[4], []byte(out), 0o644); err != nil {
			return host.ExitStatus{Exited: true, Code: 97}
		}
		return host.ExitStatus{Exited: true, Code: code}
	}
}

// manifestOf is the manifest of one file, as it is stored.
func manifestOf(number int, file, text string) string {
	line := fmt.Sprintf("%x *%s\n", sha256.Sum256([]byte(text)), file)
	return line + fmt.Sprintf("%x *_condor_checkpoint_MANIFEST.%.4d\n", sha256.Sum256([]byte(line)), number)
}

// A checkpoint that comes back from a URL is verified, and its manifest is gone
// when the job begins. The shadow hears of one that is not what was stored, and
// has the job started again.
//
// row: S3-051
func TestCheckpointComesBack(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ad       string
		manifest string
		want     string // why the job did not begin
	}{
		"whole":        {"CheckpointDestination = \"fake://h\"\n", manifestOf(2, "state", "input"), ""},
		"to the spool": {"", manifestOf(2, "state", "other"), ""},
		"changed": {"CheckpointDestination = \"fake://h\"\n", manifestOf(2, "state", "other"), fmt.Sprintf(
			"Checkpoint file 'state' did not have expected checksum (%x vs %x)., aborting.", sha256.Sum256([]byte("input")), sha256.Sum256([]byte("other")))},
		"missing": {"CheckpointDestination = \"fake://h\"\n", manifestOf(2, "gone", ""), "Failed to open checkpoint file ('gone') to compute checksum., aborting."},
		"broken":  {"CheckpointDestination = \"fake://h\"\n", "x", "Invalid MANIFEST file, aborting."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := "nothing"
			p := newPoolPlan(t, tt.ad, func(h *hosttest.Process) host.ExitStatus {
				left = ""
				if _, err := os.Stat(filepath.Join(h.Spec().Dir, "_condor_checkpoint_MANIFEST.0002")); err == nil {
					left = "the manifest"
				}
				return host.ExitStatus{Exited: true}
			}, func(p *pool, _ *protocol.Plan) {
				const file = "_condor_checkpoint_MANIFEST.0002"
				if err := os.WriteFile(filepath.Join(p.submit, file), []byte(tt.manifest), 0o600); err != nil {
					t.Fatal(err)
				}
				p.take(shadowtest.Files{In: transfer.SendPlan{Items: []transfer.SendItem{{Source: "state"}, {Source: file}}}})
			}, "state")
			rec := p.last()
			end := <-p.ended
			if tt.want == "" {
				if spool := tt.ad == ""; end.Exit == nil || (left == "the manifest") != spool {
					t.Errorf("%+v, left is %q", end, left)
				}
				return
			}
			if end.Held == nil || left != "nothing" {
				t.Fatalf("%+v, left is %q", end, left)
			}
			text, _ := end.Held.Ad.EvalString("ErrorMsg", nil)
			code, said := end.Held.Ad.EvalInt("HoldReasonCode", nil)
			if text != tt.want || said || rec.Held != nil || rec.Fault != nil {
				t.Errorf("%d %s, %+v", code, text, rec)
			}
			if want := []string{"InvalidCheckpointDownload 2"}; !slices.Equal(p.notified(), want) {
				t.Errorf("%q", p.notified())
			}
		})
	}
}

// A plugin that says it brought a file of the checkpoint and did not is found out
// by the manifest.
func TestCheckpointAbsent(t *testing.T) {
	t.Parallel()
	used := make(chan struct{}, 1)
	p := startPool(t, "CheckpointDestination = \"fake://h\"\n", untilKilled, func(h *Host) { h.Spawner = slowSpawner{h.Spawner, used} }, func(p *pool, plan *protocol.Plan) {
		plan.Settings = configured(t, "FILETRANSFER_PLUGINS = /libexec/fake\n")
		fake := fakePlugin(func(string) bool { return true }, 0)
		p.machine.Install("/libexec/fake", func(h *hosttest.Process) host.ExitStatus {
			defer func() { used <- struct{}{} }()
			return fake(h)
		})
		const manifest = "_condor_checkpoint_MANIFEST.0000"
		if err := os.WriteFile(filepath.Join(p.submit, manifest), []byte(manifestOf(0, "state", "")), 0o600); err != nil {
			t.Fatal(err)
		}
		p.take(shadowtest.Files{In: transfer.SendPlan{Items: []transfer.SendItem{{Source: "fake://h/state"}, {Source: manifest}}}})
	})
	p.last()
	end := <-p.ended
	if end.Held == nil {
		t.Fatalf("%+v", end)
	}
	const want = "Failed to open checkpoint file ('state') to compute checksum., aborting."
	if text, _ := end.Held.Ad.EvalString("ErrorMsg", nil); text != want {
		t.Errorf("%s, want %s", text, want)
	}
}

// The startd is asked whether the job may go on unless
// CHECK_REACTIVATE_AFTER_CHECKPOINT says no.
func TestCheckReactivate(t *testing.T) {
	t.Parallel()
	for knob, want := range map[string]bool{"": true, "TRUE": true, "False": false} {
		startd, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = startd.Close() })
		var asked atomic.Bool
		go func() {
			for {
				conn, err := startd.Accept()
				if err != nil {
					return
				}
				asked.Store(true)
				_ = conn.Close()
			}
		}()
		runs := 0
		p := newPoolPlan(t, "WantFTOnCheckpoint = true\nSuccessCheckpointExitCode = 85\n", func(h *hosttest.Process) host.ExitStatus {
			runs++
			return host.ExitStatus{Exited: true, Code: 85 * (2 - runs)}
		}, func(p *pool, plan *protocol.Plan) {
			plan.Shadow.Address = "<" + startd.Addr().String() + ">"
			plan.Settings = configured(t, "CHECK_REACTIVATE_AFTER_CHECKPOINT = "+knob+"\n")
		})
		p.last()
		<-p.ended
		if runs != 2 || asked.Load() != want {
			t.Errorf("%q: %d runs, the startd was asked: %v", knob, runs, asked.Load())
		}
	}
}
