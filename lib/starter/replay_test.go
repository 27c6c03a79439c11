// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

const vectors = "../cedar/testdata/vectors/"

// spoken is what was recorded of one conversation of a starter with a shadow of
// 25.14.
type spoken struct {
	job   *classad.Ad // that the shadow gave
	calls []*shadow.Request
}

// conversations are those of a recording.
func conversations(t *testing.T, name string) (all []spoken) {
	t.Helper()
	for _, c := range cedartest.Load(t, vectors+name+".json").Connections {
		var s spoken
		under := false
		for _, m := range c.Messages {
			switch {
			case m.Event != "":
			case m.Note == "activation accepted" || m.Note == "CA reply, reconnect accepted":
				under = true
			case !under:
			case m.From == cedartest.Server:
				r, err := shadow.ReadRequest(cedartest.Reader(t, m.Plaintext, true))
				if err != nil {
					t.Fatalf("%s: %v", m.Note, err)
				}
				s.calls = append(s.calls, r)
			case s.job == nil && s.calls[0].Call == shadow.CallGetJobInfo:
				in := cedartest.Reader(t, m.Plaintext, true)
				if n, err := in.Int(); err != nil || n != 0 {
					t.Fatal(n, err)
				}
				_, o := m.Items[1].RawAd()
				ad, err := in.Ad(o)
				if err != nil {
					t.Fatal(err)
				}
				s.job = ad
			}
		}
		if len(s.calls) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// names are those of calls.
func names(calls []*shadow.Request) (all []string) {
	for _, r := range calls {
		all = append(all, r.Call.String())
	}
	return all
}

// attributes are the names in an ad, sorted.
func attributes(ad *classad.Ad) []string {
	all := slices.Clone(ad.Names())
	slices.Sort(all)
	return all
}

// The jobs that shadows of 25.14 gave, run by our starter: it calls what the
// recorded one called and tells what that told. Where it does not, that is
// asserted here with its reason.
func TestReplayShadow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		status host.ExitStatus
		fails  bool // the program cannot be executed
	}{
		{"ep-claim-job-complete", host.ExitStatus{Exited: true}, false},
		{"ep-claim-hold", host.ExitStatus{Exited: true}, true},
		{"ep-pslot-leftovers", host.ExitStatus{Exited: true}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, was := range conversations(t, c.name) {
				replayShadow(t, was, c.status, c.fails)
			}
		})
	}
}

func replayShadow(t *testing.T, was spoken, status host.ExitStatus, fails bool) {
	t.Helper()
	// The recorded starter had the first update of a running job told at once;
	// ours is told after STARTER_INITIAL_UPDATE_INTERVAL, as the original's.
	want := slices.DeleteFunc(slices.Clone(was.calls), func(r *shadow.Request) bool {
		if r.Ad == nil {
			return false
		}
		state, _ := r.Ad.EvalString("JobState", nil)
		return r.Call == shadow.CallRegisterJobInfo && state == "Running"
	})
	if fails {
		// The recorded starter held the job before it tried to execute it.
		want = slices.Insert(want, len(want)-1, &shadow.Request{Call: shadow.CallBeginExecution})
	}
	// Ours looks whether the shadow is done with the input before it sends output or
	// has the job held; the recorded one let a second pass.
	want = slices.Insert(want, len(want)-1, &shadow.Request{Call: shadow.CallGetJobInfo})
	ad := was.job.Clone()
	for _, name := range []string{"TransferKey", "TransferSocket", "ShadowIpAddr", "ShadowVersion"} {
		ad.Delete(name) // of this test's shadow
	}
	cmd := "job" // which is there
	if fails {
		cmd = "gone"
	}
	ad.SetString("Cmd", "/tmp/"+cmd)
	ad.SetBool("TransferExecutable", true)
	input := []string{"in.txt", "empty.txt", cmd}
	program := hosttest.Program(func(p *hosttest.Process) host.ExitStatus {
		for _, name := range input { // what the recorded job was given
			if _, err := os.Stat(filepath.Join(p.Spec().Dir, name)); err != nil {
				return host.ExitStatus{Exited: true, Code: 99}
			}
		}
		return writes("result", "42", status)(p)
	})
	p := newPool(t, ad.Text(classad.Old), program, input...)
	p.last()
	end := <-p.ended
	if diff := cmp.Diff(names(want), p.calls()); diff != "" {
		t.Fatalf("(-recorded +ours):\n%s", diff)
	}
	for i, c := range p.shadow.Calls() {
		ours, theirs := c.Request, want[i]
		if ours.Ints != theirs.Ints || theirs.Ad == nil {
			if ours.Ints != theirs.Ints {
				t.Errorf("%s: %v, recorded %v", ours.Call, ours.Ints, theirs.Ints)
			}
			continue
		}
		missing := slices.DeleteFunc(attributes(theirs.Ad), func(name string) bool {
			_, ok := ours.Ad.Lookup(name)
			return ok || tolerated[name]
		})
		if len(missing) > 0 {
			t.Errorf("%s: we do not say %q", ours.Call, missing)
		}
	}
	if fails {
		if end.Held == nil {
			t.Errorf("%+v", end)
		}
		return
	}
	moved, err := p.shadow.WaitTransfers(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if in, out := moved[0], moved[1]; in.Command != command.FiletransUpload || out.Command != command.FiletransDownload || in.Stats.Files != 3 || out.Stats.Files != 3 || !out.Stats.Final {
		t.Errorf("%+v", moved)
	}
}

// tolerated are attributes that the recorded starter, which was a tool, told and
// ours does not, for the original does not.
var tolerated = map[string]bool{
	"CriticalError": true, // of an event: it is critical unless it denies that
	"ExecuteHost":   true, // of an event: the shadow knows it
	"ExitReason":    true, // only of jobs that died on a signal
}

// A shadow that comes back while the job runs is told what the recorded ones
// were told, in their order.
func TestReplayReconnect(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ep-reconnect-same-shadow", "ep-reconnect-new-shadow"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both := conversations(t, name)
			if len(both) != 2 {
				t.Fatalf("%d conversations were recorded", len(both))
			}
			release := make(chan struct{})
			ad := both[0].job.Clone()
			for _, name := range []string{"TransferKey", "TransferSocket", "ShadowIpAddr", "ShadowVersion"} {
				ad.Delete(name)
			}
			ad.SetString("Cmd", "/tmp/job")
			ad.SetBool("TransferExecutable", true)
			p := newPool(t, ad.Text(classad.Old), func(h *hosttest.Process) host.ExitStatus {
				<-release
				return writes("result", "42", host.ExitStatus{Exited: true})(h)
			}, "job")
			address := until[protocol.Contact](p).Address
			until[protocol.Running](p)
			if _, err := p.shadow.Wait(t.Context(), shadow.CallBeginExecution, 0); err != nil {
				t.Fatal(err)
			}
			p.shadow.Vanish()
			<-p.ended
			before := len(p.calls())
			// The recorded starter had told an update of the running job.
			if diff := cmp.Diff(names(both[0].calls[:len(both[0].calls)-1]), p.calls()); diff != "" {
				t.Errorf("at first (-recorded +ours):\n%s", diff)
			}
			p.back(address)
			if _, err := p.shadow.Wait(t.Context(), shadow.CallRegisterJobInfo, 1); err != nil {
				t.Fatal(err)
			}
			close(release)
			p.last()
			<-p.ended
			want := names(both[1].calls)
			if name == "ep-reconnect-same-shadow" {
				// A 25.14 shadow forgets its TransferKey when its connection
				// breaks: there the recording ends, as the output cannot be
				// sent. The shadow of this test does not.
				want = append(want, "job_exit")
			}
			if diff := cmp.Diff(want, p.calls()[before:]); diff != "" {
				t.Errorf("later (-recorded +ours):\n%s", diff)
			}
		})
	}
}
