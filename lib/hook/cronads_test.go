// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/slot"
)

// stage is a board over slots of their own, and what they show.
type stage struct {
	t     *testing.T
	board *CronAds
	slots []Slot
	shown map[slot.ID]*classad.Ad
	calls int // values that Publish handed out
}

func newStage(t *testing.T, slots int, c Cron) *stage {
	s := &stage{t: t, board: NewCronAds(c), shown: map[slot.ID]*classad.Ad{}}
	for n := 1; n <= slots; n++ {
		a := classad.NewAd()
		a.SetInt("SlotID", int64(n))
		name := "slot" + strconv.Itoa(n) + "@host"
		a.SetString("Name", name)
		a.SetString("AssignedGPUs", "g"+strconv.Itoa(n-1))
		s.slots = append(s.slots, Slot{ID: slot.ID{N: n}, Name: name, TypeID: 1, Ad: a})
	}
	return s
}

// put gives the board what a job printed and returns whether it asked for an
// update.
func (s *stage) put(job, text string, after time.Duration) (update bool) {
	s.t.Helper()
	p := &Parser{}
	for _, b := range append(p.Feed([]byte(text)), p.End()...) {
		u, err := s.board.Put(job, b, start.Wall.Add(after))
		if err != nil {
			s.t.Fatal(err)
		}
		update = update || u
	}
	return update
}

// see returns what each slot shows, without LastUpdate.
func (s *stage) see(after time.Duration) []string {
	for _, p := range s.board.Publish(s.slots) {
		s.calls++
		s.shown[p.Slot] = p.Attrs
	}
	var out []string
	for _, sl := range s.slots {
		a := classad.NewAd()
		for _, id := range [...]slot.ID{{}, sl.ID} {
			if from := s.shown[id]; from != nil {
				a.Update(from)
			}
		}
		a.Delete("LastUpdate")
		out = append(out, strings.TrimSpace(strings.ReplaceAll(a.Text(classad.Old), "\n", "; ")))
	}
	return out
}

func (s *stage) want(after time.Duration, want ...string) {
	s.t.Helper()
	if d := cmp.Diff(want, s.see(after)); d != "" {
		s.t.Error(d)
	}
}

// row: S0-226, S0-230, S0-234
func TestBoardExample(t *testing.T) {
	t.Parallel()
	s := newStage(t, 3, Cron{Family: "STARTD_CRON", Jobs: []Job{{Name: "j"}}})
	if !s.put("j", "Value=10\n-\nValue=1\nSlotMergeConstraint = TARGET.SlotID == 1\n-s1\nValue=2\nSlotMergeConstraint = TARGET.SlotID == 2\nSlotId=3\n-s2 update:true\n", 0) {
		t.Error("no update")
	}
	s.want(0, "Value = 1;", "Value = 2;", "Value = 10;")
}

// row: S0-228
func TestBoardRuns(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, Cron{Family: "STARTD_CRON", Jobs: []Job{{Name: "aa"}, {Name: "bb"}}})
	s.want(0, "")
	if s.calls != 0 {
		t.Error("something was published of nothing")
	}
	s.put("bb", "V=\"b\"\n", 0)
	s.put("aa", "V=\"a\"\nOnlyA=1\n- one\nX=1\n- two\n", time.Second)
	s.want(0, `OnlyA = 1; V = "b"; X = 1;`)
	calls := s.calls
	s.want(0, `OnlyA = 1; V = "b"; X = 1;`)
	if s.calls != calls {
		t.Error("what has not changed is published again")
	}
	s.put("aa", "Y=2\n- two\n", 2*time.Second)
	s.want(0, `OnlyA = 1; V = "b"; Y = 2;`)
	s.board.Reconfigure(Cron{Family: "STARTD_CRON", Jobs: []Job{{Name: "aa"}}})
	s.want(0, `OnlyA = 1; V = "a"; Y = 2;`)
	if _, err := s.board.Put("bb", Block{Ad: classad.NewAd()}, start.Wall); !errs.Is(err, errs.NotFound) {
		t.Errorf("a job that is gone: %v", err)
	}
}

// An ad with a merge key wins over one without, whatever the order.
func TestBoardKeysFirst(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, Cron{Family: "STARTD_CRON", Jobs: []Job{{Name: "a"}, {Name: "b"}}})
	s.put("a", "V=1\nSlotId=1\n- x\nV=2\n", 0)
	s.want(0, "V = 1;", "V = 2;")
	s.put("b", "V=3\n", 0)
	s.want(0, "V = 1;", "V = 3;")
	s.put("a", "V=4\nSlotId=2\n- x\n", 0)
	s.want(0, "V = 3;", "V = 4;")
}

// row: S0-229
func TestBoardUpdates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		auto             AutoPublish
		plain, yes, no   bool
		again, different bool
	}{
		{auto: Never, yes: true},
		{auto: Always, plain: true, yes: true, again: true, different: true},
		{auto: IfChanged, plain: true, yes: true, different: true},
	} {
		s := newStage(t, 1, Cron{Family: "STARTD_CRON", AutoPublish: c.auto, Jobs: []Job{{Name: "j"}}})
		got := []bool{
			s.put("j", "A=1\n- a\n", 0), s.put("j", "A=1\n- b update:true\n", 0), s.put("j", "A=1\n- c update:false\n", 0),
			s.put("j", "A=1\n- a\n", time.Minute), s.put("j", "A=2\n- a\n", time.Minute),
		}
		if d := cmp.Diff([]bool{c.plain, c.yes, c.no, c.again, c.different}, got); d != "" {
			t.Errorf("%v: %s", c.auto, d)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	s := newStage(t, 3, Cron{Family: "STARTD_CRON", Jobs: []Job{{Name: "j", Metrics: []Metric{{Resource: "GPUs"}, {Resource: "GPUsMemory", Peak: true}}}}})
	for second := range 4 {
		s.put("j", `SlotMergeConstraint = StringListMember("g0",AssignedGPUs)
UptimeGPUsSeconds=1.5
UptimeGPUsMemoryPeakUsage=`+strconv.Itoa(20-second)+`
- g0
SlotMergeConstraint = StringListMember("g1",AssignedGPUs)
UptimeGPUsSeconds=2.5
UptimeGPUsMemoryPeakUsage=30
- g1
`, time.Duration(second)*time.Second)
	}
	figures := func(peak, sum string) string {
		return "GPUsMemoryUsage = " + peak + "; LastUpdateUptimeGPUsMemoryPeakUsage = 1772600770; LastUpdateUptimeGPUsSeconds = 1772600770; " +
			"UptimeGPUsMemoryPeakUsage = " + peak + "; UptimeGPUsSeconds = " + sum + "; " + average
	}
	s.want(4*time.Second, figures("20.0", "6.0"), figures("30.0", "10.0"), "")

	// A slot with both has the sum and the larger.
	s.slots[0].Ad.SetString("AssignedGPUs", "g0,g1")
	if d := cmp.Diff(figures("30.0", "16.0"), s.see(4 * time.Second)[0]); d != "" {
		t.Error(d)
	}
}

// An ad of a monitor that says nothing of slots is for all of them, whether it
// measures something or not: HTCondor's own monitors end with one.
func TestMetricsOfAll(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, Cron{Family: "STARTD_CRON", Jobs: []Job{{Name: "j", Metrics: []Metric{{Resource: "GPUs"}}}}})
	if !s.put("j", "SlotMergeConstraint = StringListMember(\"g1\",AssignedGPUs)\nUptimeGPUsSeconds=1\n- g1\nMonitored = true\n-GLOBAL update:true\n", 0) {
		t.Error("no update")
	}
	s.want(0, "Monitored = true;", "LastUpdateUptimeGPUsSeconds = 1772600767; Monitored = true; UptimeGPUsSeconds = 1.0; "+average)
	s.put("j", "UptimeGPUsSeconds=4\n-\n", time.Second)
	for i, sum := range []string{"4.0", "5.0"} {
		if got := s.see(time.Second)[i]; !strings.Contains(got, "UptimeGPUsSeconds = "+sum+";") {
			t.Errorf("slot %d: %s, want %s", i+1, got, sum)
		}
	}
	s.board.Reconfigure(Cron{Family: "STARTD_CRON", Jobs: []Job{{Name: "j"}}})
	if got := s.see(time.Second)[1]; strings.Contains(got, "AverageUsage") {
		t.Errorf("measured no more: %s", got)
	}
}

const average = "UptimeGPUsSecondsAverageUsage = (UptimeGPUsSeconds - StartOfJobUptimeGPUsSeconds) / (LastUpdateUptimeGPUsSeconds - FirstUpdateUptimeGPUsSeconds);"

// What a job is charged with: whole intervals, the first being that in which it
// began, and the largest of what was measured since then.
func TestMetricsOfJobs(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, Cron{Family: "STARTD_CRON", Jobs: []Job{{Name: "j", Metrics: []Metric{{Resource: "GPUs"}, {Resource: "GPUsMemory", Peak: true}}}}})
	s.slots[0].Ad.SetString("AssignedGPUs", "g0,g1")
	second := 0
	sample := func(seconds, sum0, sum1, peak0, peak1 int) {
		second += seconds
		s.put("j", fmt.Sprintf("SlotMergeConstraint = StringListMember(\"g0\",AssignedGPUs)\nUptimeGPUsSeconds=%d\nUptimeGPUsMemoryPeakUsage=%d\n- g0\n"+
			"SlotMergeConstraint = StringListMember(\"g1\",AssignedGPUs)\nUptimeGPUsSeconds=%d\nUptimeGPUsMemoryPeakUsage=%d\n- g1\n", sum0, peak0, sum1, peak1),
			time.Duration(second)*time.Second)
	}
	want := func(when, usage, charge string) {
		t.Helper()
		s.see(0)
		ad := s.shown[s.slots[0].ID]
		show := func(name string) string { return classad.Literal(ad.Eval(name, nil)).Text(classad.Old) }
		if got := show("GPUsMemoryUsage"); got != usage {
			t.Errorf("%s: the peak is %s, want %s", when, got, usage)
		}
		if got := show("UptimeGPUsSecondsAverageUsage"); got != charge {
			t.Errorf("%s: the average is %s, want %s", when, got, charge)
		}
	}
	sample(0, 100, 100, 90, 50)
	want("without a job", "90.0", "undefined")
	s.board.JobBegins(&s.slots[0])
	want("before the job's first sample", "undefined", "undefined")
	sample(10, 10, 20, 5, 7)
	want("after the first sample", "7.0", "3.0")
	sample(10, 30, 0, 4, 3)
	want("after the second", "7.0", "3.0")
	sample(20, 0, 60, 4, 30)
	want("after the third", "30.0", "3.0")
	s.board.JobBegins(&s.slots[0]) // under the same claim
	want("with the second job", "undefined", "undefined")
	sample(10, 1, 1, 2, 1)
	want("after its sample", "2.0", "0.2")
	s.board.ClaimEnds(slot.ID{N: 7})
	want("after the end of another claim", "2.0", "0.2")
	s.board.ClaimEnds(s.slots[0].ID)
	s.see(0)
	for _, name := range []string{"GPUsMemoryUsage", "StartOfJobUptimeGPUsSeconds", "FirstUpdateUptimeGPUsSeconds"} {
		if _, there := s.shown[s.slots[0].ID].Lookup(name); there {
			t.Errorf("%s outlives the claim", name)
		}
	}
	sample(10, 1, 1, 2, 1)
	want("without a job again", "2.0", "undefined")
	if v, _ := s.shown[s.slots[0].ID].EvalReal("UptimeGPUsSeconds", nil); v != 324 {
		t.Errorf("in all %v", v)
	}
}

// A job is charged only with what is measured of its own slot.
func TestMetricsOfAnotherSlot(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, Cron{Family: "STARTD_CRON", Jobs: []Job{{Name: "j", Metrics: []Metric{{Resource: "GPUs"}}, Slots: []int{1}}}})
	s.put("j", "UptimeGPUsSeconds=5\n-\n", 0)
	s.board.JobBegins(&s.slots[1]) // which the program does not reach
	s.put("j", "UptimeGPUsSeconds=5\n-\n", time.Second)
	s.see(0)
	if _, charged := s.shown[s.slots[0].ID].Lookup("StartOfJobUptimeGPUsSeconds"); charged {
		t.Error("a slot without a job is charged")
	}
}

func TestBoardBounds(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, Cron{Family: "STARTD_CRON", Jobs: []Job{{Name: "j"}}})
	var text strings.Builder
	for n := range maxTags {
		text.WriteString("A=1\n- t" + strconv.Itoa(n) + "\n")
	}
	s.put("j", text.String(), 0)
	ad := classad.NewAd()
	ad.SetInt("A", 1)
	if _, err := s.board.Put("j", Block{Tag: "one more", Ad: ad}, start.Wall); !errs.Is(err, errs.Exhausted) {
		t.Errorf("too many tags: %v", err)
	}
	if _, err := s.board.Put("j", Block{Tag: "t5", Ad: ad}, start.Wall); err != nil {
		t.Error(err)
	}
}

func BenchmarkBoard(b *testing.B) {
	c := Cron{Family: "STARTD_CRON", Jobs: []Job{{Name: "j"}}}
	board := NewCronAds(c)
	var slots []Slot
	for n := range 1024 {
		a := classad.NewAd()
		a.SetInt("SlotID", int64(n+1))
		slots = append(slots, Slot{ID: slot.ID{N: n + 1}, Name: "slot" + strconv.Itoa(n+1) + "@h", Ad: a})
	}
	n := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		n++
		for _, key := range []string{"", "SlotId = 7\n", "SlotMergeConstraint = SlotID % 2 == 0\n"} {
			p := &Parser{}
			for _, block := range p.Feed([]byte(key + "V = " + strconv.FormatInt(n, 10) + "\n- t" + strconv.Itoa(len(key)) + "\n")) {
				if _, err := board.Put("j", block, start.Wall); err != nil {
					b.Fatal(err)
				}
			}
		}
		if got := len(board.Publish(slots)); got != 514 {
			b.Fatal(got)
		}
	}
}

// A dynamic slot is told of everything, also that there is nothing for it: else
// it would show what its parent gets.
func TestBoardDynamicSlots(t *testing.T) {
	t.Parallel()
	cron, _ := CronFrom(parseConfig(t, "STARTD_CRON_JOBLIST = j\nSTARTD_CRON_j_EXECUTABLE = /j\nSTARTD_CRON_j_PERIOD = 1\n"))
	b := NewCronAds(cron)
	var p Parser
	blocks := append(p.Feed([]byte("SlotMergeConstraint = PartitionableSlot\nOf = \"parent\"\n- a\nSlotId = 1\nBoth = 1\n- b\n")), p.End()...)
	for _, block := range blocks {
		if _, err := b.Put("j", block, start.Wall); err != nil {
			t.Fatal(err)
		}
	}
	parent, child, other := classad.NewAd(), classad.NewAd(), classad.NewAd()
	parent.SetBool("PartitionableSlot", true)
	slots := []Slot{
		{ID: slot.ID{N: 1}, Name: "slot1@h", Ad: parent}, {ID: slot.ID{N: 1, Sub: 1}, Name: "slot1_1@h", Ad: child},
		{ID: slot.ID{N: 2, Sub: 1}, Name: "slot2_1@h", Ad: other},
	}
	say := func() (out []string) {
		for _, p := range b.Publish(slots) {
			_, of := p.Attrs.Lookup("Of")
			_, both := p.Attrs.Lookup("Both")
			out = append(out, fmt.Sprint(p.Slot, of, both, p.Attrs.Len() == 0))
		}
		return out
	}
	want := []string{"slot1 true true false", "slot1_1 false true false", "slot2_1 false false true"}
	if d := cmp.Diff(want, say()); d != "" {
		t.Error(d)
	}
	if again := say(); again != nil {
		t.Errorf("told again: %v", again)
	}
	slots = slots[:2]
	say()
	slots = slots[:3]
	if d := cmp.Diff(want[2:], say()); d != "" {
		t.Errorf("the next slot of that number: %s", d)
	}
}
