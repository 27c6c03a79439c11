// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

// guide is a shadow's part of a conversation about JobSetup: its commands in their
// order, the last again and again, and what it was told of each.
type guide struct {
	mu       sync.Mutex
	commands []*classad.Ad
	heard    []*classad.Ad // ContextAd of each question
	asked    chan struct{} // has one for each question
}

func guided(p *pool, commands ...*classad.Ad) *guide {
	g := &guide{commands: commands, asked: make(chan struct{}, 100)}
	p.shadow.Misbehave(func(_ int, request *shadow.Request, reply *shadow.Reply) shadowtest.Action {
		if request.Call != shadow.CallGuidance {
			return shadowtest.Send
		}
		if about, _ := request.Ad.EvalString("RequestType", nil); about != "JobSetup" {
			return shadowtest.Send
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		said, _ := request.Ad.Eval("ContextAd", nil).AsAd()
		if n, _ := request.Ad.EvalInt("HasCommonFilesTransfer", nil); n != 2 {
			said = nil
		}
		reply.Ad = g.commands[min(len(g.heard), len(g.commands)-1)].Clone()
		g.heard = append(g.heard, said)
		g.asked <- struct{}{}
		return shadowtest.Send
	})
	return g
}

// says is a command of a shadow.
func (p *pool) says(text string) *classad.Ad {
	ad, err := classad.ParseAd(text, classad.New)
	if err != nil {
		p.Fatal(err)
	}
	return ad
}

// answers are what was said of each command.
func (g *guide) answers() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []string
	for _, ad := range g.heard {
		text := "nothing"
		if ad != nil {
			text = strings.TrimSpace(ad.Text(classad.Old))
		}
		all = append(all, text)
	}
	return all
}

const shares = "CommonInputCatalogs = \"A\"\n_x_catalog_A = \"common\"\n"

// provides has the shadow's side offer files for a catalog, and returns the command by
// which a starter stages them.
func (p *pool) provides(catalog string, names ...string) *classad.Ad {
	var in transfer.SendPlan
	for _, name := range names {
		if name != "missing" {
			if err := os.WriteFile(filepath.Join(p.submit, name), []byte("shared "+name), 0o644); err != nil {
				p.Fatal(err)
			}
		}
		in.Items = append(in.Items, transfer.SendItem{Source: name})
	}
	ad := classad.NewAd()
	if err := p.files.Add(shadowtest.New(shadowtest.Job{Ad: ad, Claim: p.claim, Root: p.root}), shadowtest.Files{In: in}); err != nil {
		p.Fatal(err)
	}
	ad.SetString("Command", "StageCommonFiles")
	ad.SetString("Name", catalog)
	ad.SetString("CommonInputFiles", strings.Join(names, ","))
	return ad
}

const colors = `[Command = "ColorSlot"; ColorAd = [CommonCatalogsAd = [CondorVersion = 2; CommonCatalogsList = {
	[Catalog = "A"; CatalogPath = "/p"; CatalogSize = 7; CatalogID = "ab"], [Catalog = "B"; CatalogPath = "/q"]}]]]`

// The starter of a data slot stages catalogs, has the slots show them and stays until
// its claim is over; then nothing of them is left.
func TestShadowStages(t *testing.T) {
	t.Parallel()
	var g *guide
	p := newPoolPlan(t, shares+"IsTransferShadow = true\n", writes("result", "42", host.ExitStatus{Exited: true}), func(p *pool, plan *protocol.Plan) {
		plan.Shadow.Split = "<127.0.0.1:9>#1#3#[x]secret"
		g = guided(p, p.provides("A@ap#1_0=1", "one", "two"), p.provides("B@ap#1_0=2", "three"), p.says(colors), p.says(`[Command = "RetryReqest"; RetryDelay = 300]`))
	}, "in")
	for _, want := range []string{"A", "B"} {
		ad, err := classad.ParseAd(until[protocol.Catalog](p).Ad, classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := ad.EvalString("Catalog", nil); got != want {
			t.Errorf("catalog %s is announced, want %s", got, want)
		}
		p.send(protocol.Cataloged{})
	}
	for range 4 {
		<-g.asked
	}
	staging := filepath.Join(p.execute, "dir_1000/scratch/staging")
	for name, want := range map[string]string{"A@ap#1_0=1/one": "shared one", "A@ap#1_0=1/two": "shared two", "B@ap#1_0=2/three": "shared three"} {
		if got, err := os.ReadFile(filepath.Join(staging, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	got := g.answers()
	want := []string{
		"",
		`Command = "StageCommonFiles"|Result = true|StagingDir = "` + staging + `/A@ap#1_0=1"`,
		`Command = "StageCommonFiles"|Result = true|StagingDir = "` + staging + `/B@ap#1_0=2"`,
		`Command = "ColorSlot"|Result = true|SplitClaimId = "<127.0.0.1:9>#1#3#[x]secret"|Cpus = 2`,
	}
	for i, w := range want {
		for part := range strings.SplitSeq(w, "|") {
			if i >= len(got) || !strings.Contains(got[i], part) {
				t.Errorf("answer %d is %q, want %q in it", i, got, part)
			}
		}
	}
	p.send(protocol.HardKill{Leave: protocol.Leave{Reason: "released"}})
	if rec := p.last(); !rec.Started.IsZero() || !rec.Evicted || len(rec.Problems) != 0 {
		t.Errorf("%+v", rec)
	}
}

// What cannot be staged or shown is said, and is not this machine's to decide.
func TestShadowStagesNot(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		command func(p *pool) *classad.Ad
		change  func(plan *protocol.PoolSettings)
		denied  bool
		want    string // of the answer
	}{
		"a file that is missing": {command: func(p *pool) *classad.Ad { return p.provides("A", "missing") }, want: "Result = false"},
		"a name that is a path":  {command: func(p *pool) *classad.Ad { return p.provides("../A", "one") }, want: "Result = false|RequestResultCode = 1|RequestResultSubcode"},
		"no way to map":          {command: func(p *pool) *classad.Ad { return p.provides("A", "one") }, change: func(s *protocol.PoolSettings) { s.Mapping = "" }, want: "RequestResultCode = 1"},
		"a startd that refuses":  {command: func(p *pool) *classad.Ad { return p.says(colors) }, denied: true, want: "Result = false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var g *guide
			p := newPoolPlan(t, shares, writes("result", "42", host.ExitStatus{Exited: true}), func(p *pool, plan *protocol.Plan) {
				plan.Complete()
				if tt.change != nil {
					set, of := *plan.Settings, *plan.Settings.Pool
					tt.change(&of)
					set.Pool = &of
					plan.Settings = &set
				}
				plan.Shadow.Split = "<127.0.0.1:9>#1#3#[x]secret"
				g = guided(p, tt.command(p), p.says(`[Command = "Abort"]`))
			})
			if tt.denied {
				until[protocol.Catalog](p)
				p.send(protocol.Cataloged{Why: "no"})
			}
			rec := p.last()
			got := g.answers()
			for part := range strings.SplitSeq(tt.want, "|") {
				if len(got) != 2 || !strings.Contains(got[1], part) {
					t.Errorf("%q, want %q in it", got, part)
				}
			}
			if !rec.Started.IsZero() || rec.Held != nil {
				t.Errorf("%+v", rec)
			}
		})
	}
}

// The files of catalogs are there when the job begins, and are no output of it.
func TestShadowMaps(t *testing.T) {
	t.Parallel()
	var g *guide
	p := newPoolPlan(t, shares, writes("result", "42", host.ExitStatus{Exited: true}), func(p *pool, _ *protocol.Plan) {
		data, err := sandbox.Create(sandbox.Spec{Execute: p.execute, Starter: host.ProcID{PID: 7}, Mode: 0o700})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = data.Remove() })
		root, path, err := data.Stage("A")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(root.WriteFile("common", []byte("shared"), 0o644), root.Close(), data.Seal("A")); err != nil {
			t.Fatal(err)
		}
		g = guided(p, p.says(`[Command = "MapCommonFiles"; Name = "A"; StagingDir = "`+path+`"]`), p.says(`[Command = "MapCommonFiles"; Name = "B"; StagingDir = ""]`), p.says(`[Command = "CarryOn"]`))
	}, "in")
	until[protocol.Running](p)
	for name, want := range map[string]string{"common": "shared", "in": "input"} {
		if got, err := os.ReadFile(filepath.Join(p.execute, "dir_1000/scratch", name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	until[protocol.Ended](p)
	<-p.ended
	if _, err := os.Stat(filepath.Join(p.submit, "common")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a common file was sent back: %v", err)
	}
	got := g.answers()
	if len(got) != 3 || !strings.Contains(got[1], "Result = true") || !strings.Contains(got[2], "Result = false") {
		t.Errorf("%q", got)
	}
}

// A job that names no common files costs its shadow no question.
func TestShadowSharesNothing(t *testing.T) {
	t.Parallel()
	p := newPool(t, "", writes("result", "42", host.ExitStatus{Exited: true}))
	p.last()
	<-p.ended
	for _, call := range p.calls() {
		if call == "request_guidance" {
			t.Error("the shadow was asked for guidance")
		}
	}
}

// The starter of a data slot whose shadow is gone stays for nobody, and nothing of the
// files stays.
func TestShadowStagesLost(t *testing.T) {
	t.Parallel()
	var g *guide
	p := newPoolPlan(t, shares, writes("result", "42", host.ExitStatus{Exited: true}), func(p *pool, _ *protocol.Plan) {
		g = guided(p, p.provides("A", "one"), p.says(`[Command = "RetryReqest"; RetryDelay = 300]`))
	})
	<-g.asked
	<-g.asked
	p.shadow.Vanish()
	if rec := p.last(); !rec.Lost || !rec.Started.IsZero() {
		t.Errorf("%+v", rec)
	}
}

// No job runs in a data slot: not after commands that are not understood, and not where
// the owner has no shadow asked.
func TestShadowDataSlotRunsNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		command string
		silent  bool
	}{
		"colors of an older shadow": {command: strings.Replace(colors, "CondorVersion = 2", "CondorVersion = 1", 1)},
		"a command without a name":  {command: `[Command = "StageCommonFiles"]`},
		"a word that is unknown":    {command: `[Command = "Dance"]`},
		"carry on":                  {command: `[Command = "CarryOn"]`},
		"not asked":                 {command: `[Command = "CarryOn"]`, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPoolPlan(t, shares+"IsTransferShadow = true\n", writes("result", "42", host.ExitStatus{Exited: true}), func(p *pool, plan *protocol.Plan) {
				plan.Complete()
				set, of := *plan.Settings, *plan.Settings.Pool
				of.Guidance.Silent = tt.silent
				set.Pool = &of
				plan.Settings = &set
				guided(p, p.says(tt.command))
			})
			if rec := p.last(); !rec.Started.IsZero() || rec.Held != nil {
				t.Errorf("%+v", rec)
			}
		})
	}
}
