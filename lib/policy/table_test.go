// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"testing"

	"github.com/execpoint/execpoint/lib/errs"
)

func allPairs() []Pair {
	var all []Pair
	for _, s := range States {
		for _, a := range Activities {
			all = append(all, Pair{s, a})
		}
	}
	return all
}

// row: S0-101, S0-123
func TestLegalPairs(t *testing.T) {
	t.Parallel()
	want := map[string]bool{
		"Owner/Idle":     true,
		"Unclaimed/Idle": true, "Unclaimed/Benchmarking": true,
		"Matched/Idle": true,
		"Claimed/Idle": true, "Claimed/Busy": true, "Claimed/Suspended": true, "Claimed/Retiring": true, "Claimed/Cleaning": true,
		"Preempting/Vacating": true, "Preempting/Killing": true,
		"Backfill/Idle": true, "Backfill/Busy": true, "Backfill/Killing": true,
		"Drained/Idle": true, "Drained/Retiring": true,
	}
	pairs := allPairs()
	if len(pairs) != 7*8 {
		t.Fatalf("%d pairs, want 56", len(pairs))
	}
	for _, p := range pairs {
		if Legal(p) != want[p.String()] {
			t.Errorf("Legal(%v) = %v", p, Legal(p))
		}
	}
	for _, bad := range []Pair{{State: 7}, {Activity: 8}, {State: 200, Activity: 200}} {
		if Legal(bad) {
			t.Errorf("Legal(%v)", bad)
		}
	}
}

// TestEveryMove derives every move that the table does not have and demands
// the typed error for it.
func TestEveryMove(t *testing.T) {
	t.Parallel()
	type move struct {
		from, to Pair
		on       Class
	}
	rows := map[move]int{}
	for i, row := range Table() {
		m := move{row.From, row.To, row.On}
		if first, dup := rows[m]; dup {
			t.Errorf("row %d repeats row %d: %v when %v", i, first, &row, row.On)
		}
		rows[m] = i
		if !Legal(row.From) || !Legal(row.To) || row.From == row.To {
			t.Errorf("row %d: %v is no move between legal pairs", i, &row)
		}
		if row.Reason == "" {
			t.Errorf("row %d: %v has no reason", i, &row)
		}
	}
	found := 0
	for _, from := range allPairs() {
		for _, to := range allPairs() {
			for on := range numClasses {
				row, err := Move(from, to, on)
				if i, ok := rows[move{from, to, on}]; ok {
					found++
					if err != nil || row != &Table()[i] {
						t.Errorf("Move(%v, %v, %v) = %v, %v", from, to, on, row, err)
					}
					continue
				}
				var illegal *IllegalMove
				if !errors.As(err, &illegal) || !errs.Is(err, errs.Internal) {
					t.Fatalf("Move(%v, %v, %v): error %v, want an IllegalMove", from, to, on, err)
				}
				if *illegal != (IllegalMove{from, to, on}) {
					t.Errorf("error names %+v", *illegal)
				}
			}
		}
	}
	if found != len(Table()) {
		t.Errorf("%d of %d rows were found", found, len(Table()))
	}
}

// TestReachable starts every slot in Owner/Idle and follows the rows.
func TestReachable(t *testing.T) {
	t.Parallel()
	reached := map[Pair]bool{OwnerIdle: true}
	for again := true; again; {
		again = false
		for _, row := range Table() {
			if reached[row.From] && !reached[row.To] {
				reached[row.To] = true
				again = true
			}
		}
	}
	for _, p := range allPairs() {
		if reached[p] != Legal(p) {
			t.Errorf("%v reached: %v, legal: %v", p, reached[p], Legal(p))
		}
	}
	leaves := map[Pair]bool{}
	for _, row := range Table() {
		leaves[row.From] = true
	}
	for _, p := range allPairs() {
		if Legal(p) && !leaves[p] {
			t.Errorf("%v is never left", p)
		}
	}
}

// documented is what the documents say of each number: from which states and
// activities to which.
var documented = map[int]struct{ from, to []string }{
	1:  {[]string{"Owner/Idle"}, []string{"Unclaimed/Idle"}},
	2:  {[]string{"Unclaimed/Idle", "Unclaimed/Benchmarking"}, []string{"Owner/Idle"}},
	3:  {[]string{"Unclaimed/Idle"}, []string{"Unclaimed/Benchmarking"}},
	4:  {[]string{"Unclaimed/Benchmarking"}, []string{"Unclaimed/Idle"}},
	5:  {[]string{"Unclaimed/Idle", "Unclaimed/Benchmarking", "Owner/Idle"}, []string{"Claimed/Idle"}},
	6:  {[]string{"Unclaimed/Idle", "Unclaimed/Benchmarking"}, []string{"Matched/Idle"}},
	7:  {[]string{"Unclaimed/Idle", "Unclaimed/Benchmarking"}, []string{"Backfill/Idle"}},
	8:  {[]string{"Matched/Idle"}, []string{"Owner/Idle"}},
	9:  {[]string{"Matched/Idle"}, []string{"Claimed/Idle"}},
	10: {[]string{"Claimed/Idle"}, []string{"Preempting/Vacating", "Preempting/Killing", "Claimed/Retiring"}},
	11: {[]string{"Claimed/Idle"}, []string{"Claimed/Busy"}},
	12: {[]string{"Claimed/Busy", "Claimed/Suspended", "Claimed/Retiring", "Claimed/Cleaning"}, []string{"Claimed/Idle", "Claimed/Cleaning"}},
	13: {[]string{"Claimed/Busy"}, []string{"Claimed/Retiring"}},
	14: {[]string{"Claimed/Busy"}, []string{"Claimed/Suspended"}},
	15: {[]string{"Claimed/Suspended"}, []string{"Claimed/Busy"}},
	16: {[]string{"Claimed/Suspended"}, []string{"Claimed/Retiring"}},
	17: {[]string{"Claimed/Suspended"}, []string{"Preempting/Vacating", "Preempting/Killing"}},
	18: {[]string{"Claimed/Retiring", "Claimed/Busy"}, []string{"Preempting/Vacating", "Preempting/Killing"}},
	19: {[]string{"Claimed/Retiring"}, []string{"Claimed/Busy"}},
	20: {[]string{"Claimed/Retiring"}, []string{"Claimed/Suspended"}},
	21: {[]string{"Preempting/Vacating"}, []string{"Preempting/Killing"}},
	22: {[]string{"Preempting/Vacating"}, []string{"Owner/Idle"}},
	23: {[]string{"Preempting/Vacating"}, []string{"Claimed/Idle"}},
	24: {[]string{"Preempting/Killing"}, []string{"Claimed/Idle"}},
	25: {[]string{"Preempting/Killing"}, []string{"Owner/Idle"}},
	26: {[]string{"Backfill/Idle"}, []string{"Backfill/Busy"}},
	27: {[]string{"Backfill/Busy"}, []string{"Backfill/Idle"}},
	28: {[]string{"Backfill/Busy"}, []string{"Backfill/Killing"}},
	29: {[]string{"Backfill/Killing"}, []string{"Backfill/Idle"}},
	30: {[]string{"Backfill/Idle"}, []string{"Owner/Idle"}},
	31: {[]string{"Backfill/Idle"}, []string{"Claimed/Idle"}},
	32: {[]string{"Backfill/Idle"}, []string{"Matched/Idle"}},
	33: {[]string{"Drained/Retiring"}, []string{"Drained/Idle"}},
	34: {[]string{"Drained/Idle"}, []string{"Owner/Idle"}},
	35: {[]string{"Drained/Retiring"}, []string{"Owner/Idle"}},
	36: {[]string{"Owner/Idle"}, []string{"Drained/Retiring"}},
	37: {[]string{"Unclaimed/Idle", "Unclaimed/Benchmarking"}, []string{"Drained/Retiring"}},
}

// lettered is the documents' diagram of states.
var lettered = map[byte][2]State{
	'A': {Owner, Unclaimed}, 'B': {Unclaimed, Owner}, 'C': {Unclaimed, Matched}, 'E': {Unclaimed, Backfill},
	'F': {Matched, Owner}, 'G': {Matched, Claimed}, 'H': {Claimed, Preempting}, 'I': {Preempting, Claimed},
	'J': {Preempting, Owner}, 'K': {Backfill, Owner}, 'L': {Backfill, Matched}, 'M': {Backfill, Claimed},
	'N': {Owner, Drained}, 'O': {Drained, Owner}, 'P': {Unclaimed, Drained},
}

// row: S0-111
func TestTableAgainstDocuments(t *testing.T) {
	t.Parallel()
	from, to, letters := map[int]map[string]bool{}, map[int]map[string]bool{}, map[byte]bool{}
	for i, row := range Table() {
		if row.Number != 0 {
			if from[row.Number] == nil {
				from[row.Number], to[row.Number] = map[string]bool{}, map[string]bool{}
			}
			from[row.Number][row.From.String()] = true
			to[row.Number][row.To.String()] = true
		}
		if row.Letter == 0 {
			continue
		}
		letters[row.Letter] = true
		if row.Letter == 'D' { // from Owner too: documents, "Owner State", say that START decides there as well
			if (row.From.State != Unclaimed && row.From.State != Owner) || row.To.State != Claimed {
				t.Errorf("row %d: %v is not letter D", i, &row)
			}
			continue
		}
		if want := lettered[row.Letter]; want != [2]State{row.From.State, row.To.State} {
			t.Errorf("row %d: %v is not letter %c", i, &row, row.Letter)
		}
	}
	for n := 1; n <= 37; n++ {
		for _, side := range []struct {
			name string
			got  map[string]bool
			want []string
		}{{"from", from[n], documented[n].from}, {"to", to[n], documented[n].to}} {
			if len(side.got) != len(side.want) {
				t.Errorf("transition %d %s: %v, want %v", n, side.name, side.got, side.want)
			}
			for _, p := range side.want {
				if !side.got[p] {
					t.Errorf("transition %d lacks %s %s", n, side.name, p)
				}
			}
		}
	}
	for c := byte('A'); c <= 'P'; c++ {
		if !letters[c] {
			t.Errorf("letter %c is missing", c)
		}
	}
	// H is the only way out of Claimed. A slot whose claim went to a data slot, which the
	// documents do not know yet, is none that is Claimed any more.
	for i, row := range Table() {
		if row.From == ClaimedIdle && row.On == ClaimTaken {
			continue
		}
		if row.From.State == Claimed && row.To.State != Claimed && (row.Letter != 'H' || row.To.State != Preempting) {
			t.Errorf("row %d: %v leaves Claimed other than by H", i, &row)
		}
		if row.From.State != row.To.State && row.Letter == 0 && row.From != DrainedRetiring {
			t.Errorf("row %d: %v changes the state without a letter", i, &row)
		}
	}
}

func TestDutiesFitTheTarget(t *testing.T) {
	t.Parallel()
	for i, row := range Table() {
		must := func(ok bool, what string) {
			if !ok {
				t.Errorf("row %d: %v when %v: %s; has %v", i, &row, row.On, what, row.Duties)
			}
		}
		must((row.From == ClaimedSuspended && row.On != JobGone && row.On != StarterGone) == row.Duties.Has(ContinueJob), "a suspended job must go on, and no other")
		must((row.To == ClaimedSuspended) == row.Duties.Has(SuspendJob), "Suspended means to suspend")
		must((row.From.State == Preempting && row.To.State != Preempting) == row.Duties.Has(EndClaim), "a claim ends by leaving Preempting")
		must((row.To.State == Claimed && row.From.State != Claimed) == row.Duties.Has(BeginClaim), "a claim begins by entering Claimed")
		if row.To.State == Preempting && row.On != StarterGone {
			must((row.To.Activity == Vacating) == row.Duties.Has(SoftKillJob), "Vacating means a soft kill")
			must((row.To.Activity == Killing) == row.Duties.Has(HardKillJob), "Killing means a hard kill")
		}
		if row.From.State != row.To.State {
			unavailable := row.To.State == Matched || row.To.State == Preempting || row.To.State == Drained
			must(unavailable == row.Duties.Has(Withhold) && unavailable != row.Duties.Has(Offer), "Requirements are wrong in the new state")
		}
		if row.To == OwnerIdle || row.To == ClaimedIdle || row.To == ClaimedRetiring {
			must(row.Duties.Has(Reevaluate), "must be looked at again at once")
		}
	}
}
