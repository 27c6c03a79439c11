// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// TestTimeChange looks at the days on which clocks are set for the summer, and
// back: a policy of ClockMin and ClockDay goes by what the clock on the wall
// shows, moves once where that says so, and no age is an hour too long or short.
func TestTimeChange(t *testing.T) {
	t.Parallel()
	const (
		berlin = "Europe/Berlin"
		office = "ClockMin < 480 || ClockMin > 1080"
		night  = "ClockMin >= 120 && ClockMin < 180"
		late   = "ClockMin >= 150 && ClockMin < 600"
		sunday = "ClockDay == 0"
	)
	for _, tt := range []struct {
		name, zone, start string
		from              string // local, at which 50 hours begin
		want              []string
	}{
		{"an ordinary weekend", berlin, office, "2026-10-17 00:00", []string{
			"17 08:00 CEST Owner", "17 18:01 CEST Unclaimed", "18 08:00 CEST Owner", "18 18:01 CEST Unclaimed"}},
		{"office hours, clocks go forward", berlin, office, "2026-03-28 00:00", []string{
			"28 08:00 CET Owner", "28 18:01 CET Unclaimed", "29 08:00 CEST Owner", "29 18:01 CEST Unclaimed"}},
		{"office hours, clocks go back", berlin, office, "2026-10-24 00:00", []string{
			"24 08:00 CEST Owner", "24 18:01 CEST Unclaimed", "25 08:00 CET Owner", "25 18:01 CET Unclaimed"}},
		// The hour from two to three is left out in March, and comes twice in
		// October without a gap.
		{"an hour that there is not", berlin, night, "2026-03-28 12:00", []string{"30 02:00 CEST Unclaimed", "30 03:00 CEST Owner"}},
		{"an hour that comes twice", berlin, night, "2026-10-24 12:00", []string{
			"25 02:00 CEST Unclaimed", "25 03:00 CET Owner", "26 02:00 CET Unclaimed", "26 03:00 CET Owner"}},
		// What begins within the hour begins twice: the clock says so.
		{"from the middle of an hour that there is not", berlin, late, "2026-03-28 12:00", []string{
			"29 03:00 CEST Unclaimed", "29 10:00 CEST Owner", "30 02:30 CEST Unclaimed", "30 10:00 CEST Owner"}},
		{"from the middle of an hour that comes twice", berlin, late, "2026-10-24 12:00", []string{
			"25 02:30 CEST Unclaimed", "25 02:00 CET Owner", "25 02:30 CET Unclaimed", "25 10:00 CET Owner", "26 02:30 CET Unclaimed", "26 10:00 CET Owner"}},
		{"a day of 23 hours", berlin, sunday, "2026-03-28 12:00", []string{"29 00:00 CET Unclaimed", "30 00:00 CEST Owner"}},
		{"a day of 25 hours", berlin, sunday, "2026-10-24 12:00", []string{"25 00:00 CEST Unclaimed", "26 00:00 CET Owner"}},
		{"half an hour, in the southern autumn", "Australia/Lord_Howe", late, "2026-04-04 12:00", []string{
			"05 02:30 +1030 Unclaimed", "05 10:00 +1030 Owner", "06 02:30 +1030 Unclaimed", "06 10:00 +1030 Owner"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			place, err := time.LoadLocation(tt.zone)
			if err != nil {
				t.Fatal(err)
			}
			from, err := time.ParseInLocation("2006-01-02 15:04", tt.from, place)
			if err != nil {
				t.Fatal(err)
			}
			inv, snap := inventory(t, 1, static1+"START = "+tt.start+"\nIS_OWNER = START =?= false\n")
			layout, err := slot.LayoutFrom(snap, inv)
			if err != nil {
				t.Fatal(err)
			}
			ledger, _ := slot.Build(layout, inv)
			s := stageAt(t, inv, snap, ledger, from, place)
			s.run(10 * time.Second)
			first := len(s.moves)
			s.run(50 * time.Hour)
			var got []string
			for i := first; i < len(s.moves); i++ {
				m := s.moves[i]
				// The slot is looked at every five seconds, from wherever it was
				// touched last.
				at := from.Add(s.at[i]).Truncate(time.Minute)
				got = append(got, at.Format("02 15:04 MST ")+m.To.State.String())
				if late := from.Add(s.at[i]).Sub(at); late > 5*time.Second {
					t.Errorf("%v moves %v late", m.To, late)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			since, _ := s.eng.SlotAd(theSlot).Eval("EnteredCurrentState", nil).AsInt()
			if want := s.begun.Wall.Add(s.at[len(s.at)-1]).Unix(); since != want {
				t.Errorf("EnteredCurrentState is %d, want %d", since, want)
			}
		})
	}
}

// A job is evicted by ClockMin once, at the hour that the clock shows: after
// seven hours on the day of 23, after nine on that of 25.
func TestTimeChangeWithJob(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from string // local
		ran  time.Duration
	}{
		{"2026-03-29 00:00", 7 * time.Hour},
		{"2026-10-25 00:00", 9 * time.Hour},
	} {
		place, err := time.LoadLocation("Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		from, err := time.ParseInLocation("2006-01-02 15:04", tt.from, place)
		if err != nil {
			t.Fatal(err)
		}
		inv, snap := inventory(t, 1, static1+"START = ClockMin < 480 || ClockMin > 1080\nPREEMPT = ClockMin >= 480 && ClockMin <= 1080\nWANT_SUSPEND = false\nWANT_VACATE = false\n"+
			"MAXJOBRETIREMENTTIME = 0\n")
		layout, err := slot.LayoutFrom(snap, inv)
		if err != nil {
			t.Fatal(err)
		}
		ledger, _ := slot.Build(layout, inv)
		s := stageAt(t, inv, snap, ledger, from, place)
		s.run(5 * time.Second)
		ad := job(t, steady(48*time.Hour), "")
		g := s.claim(theSlot, ad)
		s.activate(g.Claim, ad)
		s.run(12 * time.Hour)
		evicted := 0
		for i, m := range s.moves {
			if m.From == policy.ClaimedBusy && m.To == policy.ClaimedRetiring {
				evicted++
				if got := (s.at[i] - 5*time.Second).Round(time.Minute); got != tt.ran {
					t.Errorf("from %s: evicted after %v, want %v", tt.from, got, tt.ran)
				}
			}
		}
		if evicted != 1 {
			t.Errorf("from %s: evicted %d times, want once: %s", tt.from, evicted, s.path("slot1", 0))
		}
	}
}
