// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package localjob

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

func parse(t *testing.T, text string) *classad.Ad {
	t.Helper()
	ad, err := classad.ParseAd(text, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

// Files are moved where the job says so, and where its user's are not those of
// the submit side also if that is left to the starter.
func TestRead(t *testing.T) {
	t.Parallel()
	other := transfer.SubmitSide(func(_ string, f func() error) error { return f() })
	for _, c := range []struct {
		should string
		submit transfer.SubmitSide
		moves  bool
	}{{"YES", nil, true}, {"NO", nil, false}, {"IF_NEEDED", nil, false}, {"IF_NEEDED", other, true}, {"NO", other, false}} {
		j := New(Config{Plan: &protocol.Plan{Submit: protocol.SubmitSide{Iwd: "/sub"}}, Submit: c.submit})
		got, err := j.Read(parse(t, "Cmd = \"p\"\nShouldTransferFiles = \""+c.should+"\"\n"), "/s", "")
		if err != nil || got.Moves != c.moves || got.Iwd != "/sub" {
			t.Errorf("%s, files of another user %v: %+v, %v", c.should, c.submit != nil, got, err)
		}
	}
}

// Input is copied in and output out, and the startd hears of both. What is not
// wanted is not sent, and an input that is not there holds the job.
func TestMoved(t *testing.T) {
	t.Parallel()
	submit, execute := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(submit, "in"), []byte("data"), 0o644); err != nil {
		t.Fatal(err)
	}
	box, err := sandbox.Create(sandbox.Spec{Execute: execute, Starter: host.ProcID{PID: 1000, Start: 1}, As: func(f func() error) error { return f() }, Mode: 0o700})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	var said []string
	j := New(Config{
		Plan: &protocol.Plan{
			JobAd:        "Cmd = \"/bin/p\"\nTransferExecutable = false\nTransferInput = \"in\"\nShouldTransferFiles = \"YES\"\nWhenToTransferOutput = \"ON_EXIT\"\n",
			SlotFullName: "slot1@h", Submit: protocol.SubmitSide{Iwd: submit}, Settings: &protocol.Settings{},
		},
		AsUser: func(f func() error) error { return f() }, Errno: hosttest.Errno, Progress: func(int64) {},
		Report: func(r protocol.Report) { said = append(said, r.Kind()) },
	})
	got, err := j.Learn(t.Context())
	if err != nil || got.Lost != nil || got.User != nil {
		t.Fatalf("%+v, %v", got, err)
	}
	of, err := j.Read(got.Ad, box.Scratch(), "")
	if err != nil {
		t.Fatal(err)
	}
	place := &job.Place{Job: of, Box: box, AsUser: j.AsUser}
	if in, err := j.Bring(t.Context(), place); err != nil || in.Files != 1 || in.Bytes != 4 {
		t.Fatalf("%+v, %v", in, err)
	}
	before, err := transfer.List(box.Root())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(box.Scratch(), "result"), []byte("42"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []job.Wanted{job.Nothing, job.All} {
		sent, err := j.Send(t.Context(), job.Ending{Wanted: wanted, Before: before})
		text, _ := os.ReadFile(filepath.Join(submit, "result"))
		if err != nil || (string(text) == "42") != (wanted == job.All) || (sent.Bytes == 2) != (wanted == job.All) {
			t.Errorf("wanted %v: %+v, %v, %q", wanted, sent, err, text)
		}
	}
	want := []string{protocol.TransferInStart{}.Kind(), protocol.TransferInDone{}.Kind(), protocol.TransferOutStart{}.Kind(), protocol.TransferOutDone{}.Kind()}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.Remove(filepath.Join(submit, "in")); err != nil {
		t.Fatal(err)
	}
	held, ok := func() (*job.Held, bool) {
		_, err := j.Bring(t.Context(), place)
		h, ok := err.(*job.Held)
		return h, ok
	}()
	if !ok || held.Hold.Code != 13 || held.Hold.Subcode != 2 {
		t.Errorf("an input that is gone: %+v", held)
	}
}
