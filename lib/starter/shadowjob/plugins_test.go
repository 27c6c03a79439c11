// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

// A subcode that has a job started elsewhere stays, any other becomes one.
func TestRequeue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ code, subcode, wantCode, wantSubcode int }{
		{13, -1001, 13, -1001},
		{12, -1004, 12, -1004},
		{13, 2, 13, -1000},
		{13, -999, 13, -1000},
		{0, 0, 12, -1000},
		{1005, 3, 1005, 3},
	} {
		got := requeue(&transfer.WireFailure{HoldCode: tt.code, HoldSubcode: tt.subcode, Reason: "why"})
		if diff := cmp.Diff(&protocol.Hold{Code: tt.wantCode, Subcode: tt.wantSubcode, Reason: "why"}, got); diff != "" {
			t.Errorf("%d.%d: %s", tt.code, tt.subcode, diff)
		}
	}
}

// ownerOf makes the transfers of a job whose owner of the machine set some knobs.
func ownerOf(t *testing.T, text string, m Machine, log io.Writer) *mover {
	t.Helper()
	ad, err := classad.ParseAd("ClusterId = 7\nProcId = 0\nOwner = \"ann\"", classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Plan: &protocol.Plan{Settings: configured(t, text)}, Machine: m}
	return &mover{cfg: &c, conv: &conversation{log: slog.New(slog.NewTextHandler(log, nil))}, place: &job.Place{Job: &job.Job{Ad: ad}, User: &host.Identity{Name: "ann", UID: 1000}}}
}

// configured are the settings of a configuration.
func configured(t testing.TB, text string) *protocol.Settings {
	t.Helper()
	startd, err := config.Parse("text", "UID_DOMAIN = u\nFILESYSTEM_DOMAIN = f\nBASE_CGROUP =\nFILE_TRANSFER_STATS_LOG =\nFILETRANSFER_PLUGINS =\nBIN =\n"+text, config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := protocol.Configuration(startd, 0)
	if err != nil {
		t.Fatal(err)
	}
	set, err := protocol.SettingsFrom(c, startd, nil)
	if err != nil {
		t.Fatal(err)
	}
	if set.Pool, err = protocol.PoolSettingsFrom(c); err != nil {
		t.Fatal(err)
	}
	return set
}

// What a job names outside is opened as its user, unless the owner forbids it.
func TestOutsideIsTheOwnersToForbid(t *testing.T) {
	t.Parallel()
	var as *host.Identity
	m := Machine{Outside: func(u *host.Identity, path string) (*os.File, error) { as = u; return nil, os.ErrNotExist }}
	for value, want := range map[string]bool{"": true, "True": true, "false": false, "(1 > 2)": false, "2 > 1": true} {
		open := ownerOf(t, "ALLOW_OUTPUT_OUTSIDE_SCRATCH = "+value+"\n", m, io.Discard).outside()
		if (open != nil) != want {
			t.Errorf("%q: %v", value, open != nil)
			continue
		}
		if as = nil; open == nil {
			continue
		}
		if _, err := open("/x"); !errors.Is(err, os.ErrNotExist) || as == nil || as.Name != "ann" {
			t.Errorf("%q: %v as %+v", value, err, as)
		}
	}
	if ownerOf(t, "", Machine{}, io.Discard).outside() != nil {
		t.Error("a machine that cannot open anything safely opens something")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestTransferRecords(t *testing.T) {
	t.Parallel()
	var to, log bytes.Buffer
	opened := ""
	const config = "FILE_TRANSFER_STATS_LOG = /log/transfer_history\n"
	s := ownerOf(t, config, Machine{OpenRecords: func(path string) (io.Writer, error) { opened += path; return &to, nil }}, &log)
	record := s.recorder()
	for _, name := range []string{"a", "b"} {
		ad := classad.NewAd()
		ad.SetString("TransferFileName", name)
		record(ad)
	}
	want := "***\nJobClusterId = 7\nJobOwner = \"ann\"\nJobProcId = 0\nTransferFileName = \"a\"\n"
	if got := to.String(); opened != "/log/transfer_history" || got != want+strings.ReplaceAll(want, `"a"`, `"b"`) || log.Len() > 0 {
		t.Errorf("in %q is\n%s\n%s", opened, got, log.String())
	}
	s = ownerOf(t, config, Machine{OpenRecords: func(string) (io.Writer, error) { return brokenWriter{}, nil }}, &log)
	record = s.recorder()
	record(classad.NewAd())
	record(classad.NewAd())
	if got := log.String(); strings.Count(got, "FILE_TRANSFER_STATS_LOG cannot be written") != 1 || !strings.Contains(got, "no space left") {
		t.Errorf("the log is\n%s", got)
	}
	for _, none := range []*mover{ownerOf(t, config, Machine{}, io.Discard), ownerOf(t, "", Machine{OpenRecords: func(string) (io.Writer, error) { return nil, nil }}, io.Discard)} {
		if none.recorder() != nil {
			t.Error("records are kept where none are wanted")
		}
	}
}
