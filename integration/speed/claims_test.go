// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package speed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
	"github.com/execpoint/execpoint/lib/transfer"
)

// driver is a client of our own that speaks the side of schedd and shadows, so
// that neither is the limit.
type driver struct {
	site   *site
	ep     *realpool.EP
	startd *shadowtest.Startd
	files  *shadowtest.Server
	claims []claim.ID
	// address is the startd's.
	address cedar.Sinful
}

// drive claims slots of an EP for the rest of the benchmark.
func (s *site) drive(b *testing.B, e *realpool.EP, claims int) *driver {
	b.Helper()
	d := &driver{site: s, ep: e}
	id, known := s.rest[e.Name]
	if !known {
		text, err := os.ReadFile(filepath.Join(e.Dir, "log", ".startd_claim_id.slot1"))
		s.Must(err)
		id, err = claim.ParseID(strings.TrimSpace(string(text)))
		s.Must(err)
	}
	var err error
	address := strings.TrimSpace(s.Tool("condor_status", "-direct", e.Host(), "-constraint", "PartitionableSlot", "-af", "MyAddress"))
	d.address, err = cedar.ParseSinful(address)
	s.Must(err)
	d.files, err = shadowtest.Listen(b.Context(), nil)
	s.Must(err)
	d.startd, err = shadowtest.NewStartd(address, d.files.Address(), nil, nil)
	s.Must(err)
	job := s.ad(b, "executable = /bin/true\nshould_transfer_files = NO\nrequest_disk = 4G\n")
	for len(d.claims) < claims {
		g, err := d.startd.Request(b.Context(), id, job, true)
		if err != nil {
			b.Fatalf("claim %d on %s: %v", len(d.claims), e.Name, err)
		}
		d.claims = append(d.claims, g.Claims...)
		id = g.Rest
	}
	s.rest[e.Name] = id
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(b.Context()), realpool.Patience)
		defer cancel()
		for _, id := range d.claims {
			if err := d.startd.Release(ctx, id); err != nil {
				b.Error(err)
			}
		}
		s.Eventually("claims are given back", realpool.Patience, e.Idle)
	})
	return d
}

// ad is what condor_submit makes of a submit description.
func (s *site) ad(b *testing.B, lines string) *classad.Ad {
	b.Helper()
	path := filepath.Join(s.jobs, "dry")
	s.Write(path, lines+"transfer_executable = false\nqueue\n", 0o644)
	cmd := s.Command(b.Context(), "condor_submit", "-dry-run", "-", path)
	cmd.Dir = s.jobs
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("condor_submit -dry-run: %v\n%s", err, out)
	}
	var text strings.Builder
	for line := range strings.Lines(string(out)) {
		if name, _, ok := strings.Cut(line, "="); ok && !strings.ContainsAny(name, " \t") {
			text.WriteString(line)
		}
	}
	ad, err := classad.ParseAd(text.String(), classad.Old)
	s.Must(err)
	owner := "nobody"
	if name := os.Getenv("EXECPOINT_TEST_USER"); name != "" {
		owner = name
	}
	ad.SetString("Owner", owner)
	ad.SetString("User", owner+"@execpoint.test")
	ad.SetInt("JobStatus", 2)
	return ad
}

// run runs a job under a claim, from its activation to the answer of the
// startd that it is done with it, and returns when it was asked for.
func (d *driver) run(ctx context.Context, claim claim.ID, seq int, job *classad.Ad, in transfer.SendPlan) (begun time.Time, s *shadowtest.Shadow, err error) {
	ad := job.Clone()
	ad.SetInt("ClusterId", int64(seq))
	ad.SetString("GlobalJobId", fmt.Sprintf("bench#%d.0#1795188544", seq))
	root, err := os.OpenRoot(d.site.jobs)
	if err != nil {
		return begun, nil, err
	}
	defer func() { _ = root.Close() }()
	s = shadowtest.New(shadowtest.Job{Ad: ad, Claim: claim, Root: root})
	if err := d.files.Add(s, shadowtest.Files{In: in}); err != nil {
		return begun, nil, err
	}
	defer d.files.Remove(s)
	begun = time.Now()
	end, err := d.startd.RunJob(ctx, s)
	switch {
	case err != nil:
		return begun, s, fmt.Errorf("job %d on %s: %w", seq, d.ep.Name, err)
	case end.Held != nil:
		return begun, s, fmt.Errorf("job %d on %s was held: %v", seq, d.ep.Name, end.Held)
	case end.Exit == nil:
		return begun, s, fmt.Errorf("job %d on %s: the starter left without a word", seq, d.ep.Name)
	}
	return begun, s, nil
}
