// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/pool/collector"
	"github.com/execpoint/execpoint/lib/pool/pooltest"
)

const byUDP = "UPDATE_COLLECTOR_WITH_TCP = false\n"

// postRig is a rig whose collector takes updates over UDP, too.
func postRig(t *testing.T, text string, cm *pooltest.Collector) *rig {
	t.Helper()
	return newRig(t, text, cm, func(c *pool.Config) { c.Post = cm.Post })
}

// Over UDP a collector is told the same as over TCP, and that it is over.
func TestDatagrams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream := pooltest.NewCollector("25.14.0")
		newRig(t, twoSlots, stream, nil)
		cm := pooltest.NewCollector("25.14.0")
		r := postRig(t, twoSlots+byUDP, cm)
		time.Sleep(60 * time.Second)
		synctest.Wait()
		if got := cm.Names(); len(got) != 3 || !slices.Equal(got, stream.Names()) {
			t.Errorf("it has %q, over TCP %q", got, stream.Names())
		}
		for i, m := range cm.Messages() {
			if m.Command == 0 && strings.HasPrefix(text(t, m.Public, "Name"), "slot") && (m.Private == nil || text(t, m.Private, "ClaimId") == "") {
				t.Errorf("message %d has no claim id", i)
			}
		}
		if begun, open := cm.Posts(); begun != 1 || open != 1 || len(cm.Opened()) != 0 {
			t.Errorf("%d ways over UDP, %d over TCP", begun, len(cm.Opened()))
		}
		if st := r.pool.Collectors()[0]; !st.Datagrams || !st.Connected || st.Updates < 3 || st.Version != cm.Version {
			t.Errorf("%+v", st)
		}
		if s := r.log.String(); strings.Contains(s, "WARN") {
			t.Error(s)
		}
		if err := r.pool.Withdraw(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := cm.Names(); len(got) != 0 {
			t.Errorf("afterwards it has %q", got)
		}
		r.cancel()
		<-r.ran
		if _, open := cm.Posts(); open != 0 {
			t.Errorf("%d ways are left open", open)
		}
	})
}

// A collector of unknown version does
// not get what old ones do not know.
func TestDatagramsInClear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cm := pooltest.NewCollector("25.14.0")
		cm.Version = ""
		r := postRig(t, twoSlots+byUDP, cm)
		time.Sleep(60 * time.Second)
		synctest.Wait()
		if got := cm.Names(); len(got) != 2 {
			t.Errorf("it has %q, want the slots alone", got)
		}
		if n := strings.Count(r.log.String(), "is told no claim ids"); n != 1 {
			t.Errorf("%d warnings:\n%s", n, r.log)
		}
	})
}

// Where UDP cannot be, TCP is used, with one warning, until the next
// reconfiguration.
func TestDatagramsThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cm := pooltest.NewCollector("25.14.0")
		can := false
		asked := 0
		r := newRig(t, twoSlots+byUDP, cm, func(c *pool.Config) {
			post := cm.Post
			c.Post = func(ctx context.Context, to cedar.Sinful, command int) (collector.Poster, error) {
				asked++
				if !can {
					return nil, errs.E("post", errs.Unsupported, "", errors.New("no cipher"))
				}
				return post(ctx, to, command)
			}
		})
		time.Sleep(60 * time.Second)
		synctest.Wait()
		if st := r.pool.Collectors()[0]; len(cm.Names()) != 3 || st.Datagrams || len(cm.Opened()) != 1 || asked != 1 {
			t.Errorf("%q, %+v after %d attempts", cm.Names(), st, asked)
		}
		if n := strings.Count(r.log.String(), "level=WARN"); n != 1 || !strings.Contains(r.log.String(), "no cipher") {
			t.Errorf("%d warnings:\n%s", n, r.log)
		}
		can = true
		r.pool.Reconfigure(r.Settings(t))
		time.Sleep(60 * time.Second)
		synctest.Wait()
		if st := r.pool.Collectors()[0]; len(cm.Names()) != 3 || !st.Datagrams || asked != 2 {
			t.Errorf("then %q, %+v after %d attempts", cm.Names(), st, asked)
		}
		// And back.
		s := r.Settings(t)
		s.Collector.Datagrams = false
		r.pool.Reconfigure(s)
		time.Sleep(60 * time.Second)
		synctest.Wait()
		if _, open := cm.Posts(); open != 0 || len(cm.Opened()) != 2 || len(cm.Names()) != 3 {
			t.Errorf("%d ways over UDP are left, %d over TCP", open, len(cm.Opened()))
		}
	})
}

// Which collectors are told over UDP.
func TestWhomDatagrams(t *testing.T) {
	for _, tt := range []struct {
		name, lines string
		want        bool
	}{
		{"wanted", byUDP, true},
		{"default", "", false},
		{"not wanted", "UPDATE_COLLECTOR_WITH_TCP = true\n", false},
		{"named", byUDP + "TCP_UPDATE_COLLECTORS = other, CM\n", false},
		{"named with its port", byUDP + "TCP_UPDATE_COLLECTORS = cm:9618\n", false},
		{"by a pattern", byUDP + "TCP_UPDATE_COLLECTORS = x*, c*:*8\n", false},
		{"by a pattern for others", byUDP + "TCP_UPDATE_COLLECTORS = c*:*9, m*, *x*, c\n", true},
		{"by every pattern", byUDP + "TCP_UPDATE_COLLECTORS = *\n", false},
		{"it says no", byUDP + "COLLECTOR_HOST = cm:9618?noUDP\n", false},
		{"a shared port", byUDP + "COLLECTOR_HOST = cm:9618?sock=collector\n", false},
		{"a broker", byUDP + "COLLECTOR_HOST = <192.0.2.1:9618?CCBID=192.0.2.2:9618#1>\n", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			cm := pooltest.NewCollector("25.14.0")
			r := postRig(t, twoSlots+tt.lines, cm)
			time.Sleep(60 * time.Second)
			synctest.Wait()
			if st := r.pool.Collectors()[0]; st.Datagrams != tt.want || len(cm.Names()) != 3 {
				t.Errorf("%s: over UDP %v, want %v; it has %q", tt.name, st.Datagrams, tt.want, cm.Names())
			}
		})
	}
}

// A collector that is gone, as far as anybody says, is told all again when it
// is back.
func TestDatagramsToOneThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cm := pooltest.NewCollector("25.14.0")
		r := postRig(t, twoSlots+byUDP, cm)
		time.Sleep(60 * time.Second)
		synctest.Wait()
		want := cm.Names()
		cm.Restart()
		cm.Lose(errs.E("post", errs.Transient, "cm", errors.New("connection refused")))
		time.Sleep(10 * time.Minute) // until the next update
		synctest.Wait()
		if st := r.pool.Collectors()[0]; st.Failures == 0 || len(cm.Names()) != 0 {
			t.Errorf("%+v", st)
		}
		cm.Lose(nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := cm.Names(); !slices.Equal(got, want) {
			t.Errorf("it has %q, want %q", got, want)
		}
	})
}

// An ad that does not fit into datagrams is no reason to begin anew.
func TestDatagramTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cm := pooltest.NewCollector("25.14.0")
		cm.Lose(errs.E("post", errs.Exhausted, "", errors.New("too large")))
		r := postRig(t, twoSlots+byUDP, cm)
		time.Sleep(60 * time.Second)
		synctest.Wait()
		if st := r.pool.Collectors()[0]; st.Refused != 3 || st.Failures != 0 || st.Pending != 0 || !st.Connected {
			t.Errorf("%+v", st)
		}
		if !strings.Contains(r.log.String(), "an ad cannot be sent") {
			t.Error(r.log)
		}
		cm.Lose(nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if begun, _ := cm.Posts(); begun != 1 || len(cm.Names()) != 3 {
			t.Errorf("%d ways, %q", begun, cm.Names())
		}
	})
}
