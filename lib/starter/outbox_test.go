// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/rapidtest"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// fatal is a test, or one try of a property.
type fatal interface {
	Helper()
	Fatal(...any)
}

// listener is a startd that hears until it is deaf.
type listener struct {
	text bytes.Buffer
	deaf bool
}

func (l *listener) Write(b []byte) (int, error) {
	if l.deaf {
		return 0, errors.New("gone")
	}
	return l.text.Write(b)
}

// heard are the reports that it heard, by number and kind.
func (l *listener) heard(t fatal) (all []string) {
	t.Helper()
	for text := range bytes.Lines(l.text.Bytes()) {
		line, err := protocol.Starter.Reader().Read(text)
		if err != nil {
			t.Fatal(err)
		}
		if line.ID > 0 {
			all = append(all, fmt.Sprint(line.ID, " ", line.Message.Kind()))
		}
	}
	return all
}

// stayingBox is the outbox of a starter whose plan says that it stays.
func stayingBox(t fatal, to *listener) *outbox {
	t.Helper()
	o := &outbox{to: to, there: true}
	if err := o.take(1, &protocol.Plan{Activation: "a", Orphan: protocol.OrphanStay}); err != nil {
		t.Fatal(err)
	}
	return o
}

// What was not heard is told again, of figures and addresses the latest.
func TestOutboxKeeps(t *testing.T) {
	t.Parallel()
	var first, second, third listener
	o := stayingBox(t, &first)
	say := func(reports ...protocol.Report) {
		for _, r := range reports {
			o.report(r)
		}
	}
	say(protocol.Sandbox{}, protocol.Running{}, protocol.Usage{DiskKiB: 1}, protocol.Contact{Address: "1"})
	o.noteHeard(1)
	first.deaf = true
	say(protocol.Suspended{}, protocol.Usage{DiskKiB: 2}, protocol.OutputMoved{}, protocol.Contact{Address: "2"}, protocol.OutputMoved{}, protocol.Usage{DiskKiB: 3})
	if got, want := first.heard(t), []string{"1 sandbox", "2 running", "3 usage", "4 contact"}; !slices.Equal(got, want) {
		t.Errorf("the first heard %q", got)
	}
	o.leave()
	if b := o.enter(7); b != nil {
		t.Errorf("%+v", b)
	}
	if b := o.enter(8); b == nil || b.PID != 7 {
		t.Errorf("while 7 is there: %+v", b)
	}
	o.attach(&second, 1)
	want := []string{"2 running", "5 suspended", "8 contact", "9 output-moved", "10 usage"}
	if got := second.heard(t); !slices.Equal(got, want) {
		t.Errorf("the second heard %q, want %q", got, want)
	}
	say(protocol.Ended{})
	o.attach(&third, 99) // which is more than there was
	o.report(protocol.Event{})
	if got, want := third.heard(t), []string{"12 event"}; !slices.Equal(got, want) {
		t.Errorf("the third heard %q", got)
	}
	if h := o.hello; h.State != protocol.Over || h.Lost != 0 || h.Activation != "a" {
		t.Errorf("%+v", h)
	}
}

// A job may set as many attributes as it likes: what is kept of them has a limit, and how
// many were dropped is told. Nothing else is.
func TestOutboxIsBounded(t *testing.T) {
	t.Parallel()
	var to, later listener
	o := stayingBox(t, &to)
	to.deaf = true
	o.report(protocol.Running{Proc: host.ProcID{PID: 7}})
	const most = 2000
	for range most {
		o.report(protocol.Attributes{Ad: strings.Repeat("x", 1000)})
	}
	o.report(protocol.Ended{})
	if o.size > mostKept || o.hello.Lost+len(o.kept) != most+2 || o.hello.Lost == 0 {
		t.Errorf("%d bytes are kept in %d reports, %d are lost", o.size, len(o.kept), o.hello.Lost)
	}
	o.attach(&later, 0)
	heard := later.heard(t)
	if heard[0] != "1 running" || heard[len(heard)-1] != fmt.Sprint(most+2, " ended") || heard[1] != fmt.Sprint(o.hello.Lost+2, " attributes") {
		t.Errorf("%d: %q … %q", len(heard), heard[:2], heard[len(heard)-1])
	}
	o.noteHeard(most + 2)
	if o.size != 0 || len(o.kept) != 0 {
		t.Errorf("%d bytes in %d reports", o.size, len(o.kept))
	}
}

// A starter that nobody can come back to keeps nothing.
func TestOutboxThatDies(t *testing.T) {
	t.Parallel()
	var to listener
	o := &outbox{to: &to, there: true}
	if err := o.take(1, &protocol.Plan{Orphan: protocol.OrphanDie}); err != nil {
		t.Fatal(err)
	}
	o.report(protocol.Running{})
	if o.report(protocol.Ended{}); len(o.kept) != 0 || len(o.unheard(time.Hour)) != 0 {
		t.Errorf("%+v", o.kept)
	}
}

// A startd that is there is given time to say that it has heard the last word; one that is
// gone is not waited for.
func TestUnheard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		then func(o *outbox)
		want time.Duration
		left bool
	}{
		{"it is heard", func(o *outbox) { o.noteHeard(2) }, time.Second, false},
		{"half of it is", func(o *outbox) { o.noteHeard(1) }, time.Minute, true},
		{"the startd goes", func(o *outbox) { o.leave() }, time.Second, true},
		{"nothing happens", func(*outbox) {}, time.Minute, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := stayingBox(t, new(listener))
			o.report(protocol.Running{})
			o.report(protocol.Ended{})
			time.AfterFunc(time.Second, func() { c.then(o) })
			began := time.Now()
			if left := o.unheard(time.Minute); time.Since(began) != c.want || (len(left) > 0) != c.left {
				t.Errorf("%s: %q after %v", c.name, left, time.Since(began))
			}
			time.Sleep(time.Second)
		})
	}
	o := stayingBox(t, new(listener))
	o.report(protocol.Running{})
	o.leave()
	if left := o.unheard(time.Hour); len(left) == 0 {
		t.Error("nothing is left of what nobody heard")
	}
}

// Whatever startds come and go, each report that may not be replaced or dropped is heard,
// in order, and none twice by those who say what they have heard.
func TestOutboxProperty(t *testing.T) {
	t.Parallel()
	rapidtest.Check(t, func(t *rapid.T) {
		to := new(listener)
		o := stayingBox(t, to)
		var all []string   // that have to be heard
		var heard []string // by the startds that wrote down what they heard
		known := uint64(0)
		note := func() {
			for _, h := range to.heard(t) {
				var id uint64
				if _, err := fmt.Sscan(h, &id); err != nil {
					t.Fatal(err)
				}
				if id > known {
					heard, known = append(heard, h), id
				}
			}
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				o.report(protocol.Continued{})
				all = append(all, fmt.Sprint(o.last, " continued"))
			case 1:
				o.report(protocol.Usage{})
			case 2:
				note()
				o.noteHeard(known)
			case 3:
				to.deaf = true
			case 4:
				note()
				to = new(listener)
				o.attach(to, known)
			}
		}
		note()
		to = new(listener)
		o.attach(to, known)
		note()
		must := slices.DeleteFunc(slices.Clone(heard), func(h string) bool { return strings.HasSuffix(h, "usage") })
		if !slices.Equal(must, all) {
			t.Fatalf("%q were heard of %q", must, all)
		}
	})
}
