// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// coloredStage has a job running in each of two dynamic slots.
func coloredStage(t *testing.T) (s *stage, claims [2]claim.ID, acts [2]claim.ActivationID) {
	t.Helper()
	s = newStage(t, 4, "")
	for i := range claims {
		claims[i] = s.claim(slot1, job(t, steady(time.Hour), "")).Claim
		acts[i] = s.activate(claims[i], job(t, steady(time.Hour), ""))
	}
	s.run(time.Second)
	return s, claims, acts
}

func adText(t *testing.T, text string) *classad.Ad {
	t.Helper()
	ad, err := classad.ParseAd(text, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

// everywhere evaluates an expression in the ads of all slots, which agree.
func (s *stage) everywhere(expr string) string {
	s.t.Helper()
	said := ""
	for v := range s.eng.Views() {
		got := classad.MustParseExpr(expr).Eval(&classad.Env{My: s.eng.PublicAd(v.ID)}).String()
		if said != "" && got != said {
			s.t.Errorf("%s: %s is %s, elsewhere %s", v.Name, expr, got, said)
		}
		said = got
	}
	return said
}

// extras are the names of what is published besides.
func (s *stage) extras() []string {
	var names []string
	for _, ad := range s.eng.Extras() {
		name, _ := ad.EvalString("Name", nil)
		names = append(names, name)
	}
	return names
}

// All slots show the colors of each, until its claim ends.
func TestColors(t *testing.T) {
	t.Parallel()
	s, claims, acts := coloredStage(t)
	s.step(SlotColored{Activation: acts[0], Ad: adText(t, "Color = 7\nName = \"x\"\n")})
	s.step(SlotColored{Activation: acts[1], Ad: adText(t, "Color = 8\n")})
	s.step(SlotColored{Activation: acts[0], Ad: adText(t, "Shade = 9\n")})
	for expr, want := range map[string]string{
		"colors_of_slot1_1.Shade": "9", "colors_of_slot1_1.Color": "undefined", "colors_of_slot1_2.Color": "8", "SlotMergeConstraint": "undefined",
	} {
		if got := s.everywhere(expr); got != want {
			t.Errorf("%s is %s, want %s", expr, got, want)
		}
	}
	names := s.extras()
	for _, id := range claims {
		if want := "#coloring." + strings.ReplaceAll(id.String(), ".", "_"); !slices.Contains(names, want) {
			t.Errorf("no %s in %q", want, names)
		}
		if strings.Contains(strings.Join(names, " "), id.Secret.Reveal()) {
			t.Error("a secret is published")
		}
	}
	s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: claims[0]} })
	s.run(time.Minute)
	if gone, stays := s.everywhere("colors_of_slot1_1"), s.everywhere("colors_of_slot1_2.Color"); gone != "undefined" || stays != "8" {
		t.Errorf("after the end of a claim: %s, %s", gone, stays)
	}
	s.step(SlotColored{Activation: acts[0], Ad: adText(t, "Color = 7\n")}) // which is over
	if got := s.everywhere("colors_of_slot1_1"); got != "undefined" {
		t.Errorf("an activation that is over colors %s", got)
	}
	s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: claims[1]} })
	s.run(time.Minute)
	if got := s.extras(); len(got) > 0 {
		t.Errorf("%q stay", got)
	}
	if s.eng.slots.shown.size != 0 {
		t.Errorf("%d bytes are counted", s.eng.slots.shown.size)
	}
}

// announce returns what a starter is told of its catalog.
func (s *stage) announce(act claim.ActivationID, ad *classad.Ad) error {
	s.t.Helper()
	var answers []error
	s.onOther = func(eff Effect) {
		if a, ok := eff.(CatalogAnswered); ok && a.Activation == act {
			answers = append(answers, a.Err)
		}
	}
	s.step(CatalogAnnounced{Activation: act, Ad: ad})
	s.onOther = nil
	if len(answers) != 1 {
		s.t.Fatalf("%d answers", len(answers))
	}
	return answers[0]
}

// All slots list the catalogs of all claims, at once.
func TestCatalogs(t *testing.T) {
	t.Parallel()
	s, claims, acts := coloredStage(t)
	for i, act := range []claim.ActivationID{acts[0], acts[1], acts[0]} {
		if err := s.announce(act, adText(t, "Catalog = \""+string(rune('a'+i))+"\"\nid = \"forged\"\n")); err != nil {
			t.Fatal(err)
		}
	}
	const names = "join(\",\", evalInEachContext(Catalog, catalogs))"
	if got := s.everywhere(names); got != `"a,b,c"` {
		t.Errorf("the catalogs are %s", got)
	}
	if got := s.everywhere("catalog_2.id"); got != `"catalog_2"` {
		t.Errorf("the id is %s", got)
	}
	s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: claims[0]} })
	s.run(time.Minute)
	if got := s.everywhere(names); got != `"b"` {
		t.Errorf("after the end of a claim the catalogs are %s", got)
	}
	if err := s.announce(acts[0], adText(t, "A = 1\n")); !errs.Is(err, errs.NotFound) {
		t.Errorf("after the end of its claim a catalog is answered %v", err)
	}
	if p := s.pair(slot.ID{N: 1, Sub: 2}); p != policy.ClaimedBusy {
		t.Errorf("the other slot is %v", p)
	}
	if err := s.announce(acts[1], adText(t, "Catalog = \"d\"\n")); err != nil {
		t.Fatal(err)
	}
	if got := s.everywhere("catalog_4.Catalog"); got != `"d"` {
		t.Errorf("a name is used again: %s", got)
	}
	s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: claims[1]} })
	s.run(time.Minute)
	if got := s.everywhere("size(catalogs)"); got != "0" {
		t.Errorf("%s catalogs stay", got)
	}
}

// What starters show has a bound, and what is refused changes nothing.
func TestColorsAreBounded(t *testing.T) {
	t.Parallel()
	s, claims, acts := coloredStage(t)
	large := adText(t, "Text = \""+strings.Repeat("x", mostShown/2)+"\"\n")
	if err := s.announce(acts[0], large); err != nil {
		t.Fatal(err)
	}
	if err := s.announce(acts[1], large); !errs.Is(err, errs.Exhausted) {
		t.Errorf("too much is answered %v", err)
	}
	refused := 0
	s.onOther = func(eff Effect) {
		if r, ok := eff.(ColorRefused); ok && r.Name == "slot1_2" {
			refused++
		}
	}
	s.step(SlotColored{Activation: acts[1], Ad: large})
	if refused != 1 || s.everywhere("colors_of_slot1_2") != "undefined" || s.everywhere("size(catalogs)") != "1" {
		t.Errorf("refused %d times, shown %s", refused, s.everywhere("{ colors_of_slot1_2, catalogs }"))
	}
	s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: claims[0]} })
	s.run(time.Minute)
	if err := s.announce(acts[1], large); err != nil {
		t.Errorf("with room again: %v", err)
	}
}
