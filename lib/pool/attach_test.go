// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/pool/claims"
	"github.com/execpoint/execpoint/lib/pool/pooltest"
)

// submitter is a collector that knows one schedd, and that schedd.
type submitter struct {
	t       *testing.T
	name    string
	address string
	result  int64
	clear   bool // nothing is encrypted

	mu      sync.Mutex
	opened  []string // command at address
	offers  [][]claim.ID
	ads     []*classad.Ad
	heads   []*classad.Ad
	offered []time.Time
}

func (s *submitter) Command(_ context.Context, to cedar.Sinful, command int, o security.Options) (*cedar.Conn, *security.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = append(s.opened, itoa(command)+" "+to.String())
	client, server := cedartest.Pipe()
	conn, peer := cedar.NewConn(client, cedar.Limits{}), cedar.NewConn(server, cedar.Limits{})
	for _, c := range []*cedar.Conn{conn, peer} {
		if !s.clear {
			if err := c.EnableAES(bytes.Repeat([]byte{3}, 32)); err != nil {
				return nil, nil, err
			}
		}
		c.SetPeerVersion("25.14.0")
	}
	switch command {
	case 6:
		go pooltest.AnswerLookup(s.t, peer, "Scheduler", adOf(s.t, `MyType = "Scheduler"
Name = "`+s.name+`"
MyAddress = "`+s.address+`"`))
	case 531:
		go s.attach(peer)
	default:
		return nil, nil, errors.New("nobody asked for that")
	}
	return conn, &security.Session{ID: "s"}, nil
}

func (s *submitter) attach(c *cedar.Conn) {
	defer c.Close()
	head, err := c.Ad(cedar.AdOptions{})
	if err != nil {
		if !s.clear { // it was told nothing
			s.t.Error(err)
		}
		return
	}
	n, _ := head.EvalInt("NumAds", nil)
	var ids []claim.ID
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		text, err := c.Secret()
		if err != nil {
			s.t.Error(err)
			return
		}
		id, err := claim.ParseID(text.Reveal())
		if err != nil {
			s.t.Error(err)
		}
		ad, err := c.Ad(cedar.AdOptions{})
		if err != nil {
			s.t.Error(err)
			return
		}
		ids, s.ads = append(ids, id), append(s.ads, ad)
	}
	if err := c.EndOfMessage(); err != nil {
		s.t.Error(err)
	}
	s.heads, s.offers, s.offered = append(s.heads, head), append(s.offers, ids), append(s.offered, time.Now())
	reply := classad.NewAd()
	reply.SetInt("ActionResult", s.result)
	c.PutAd(reply, cedar.AdOptions{})
	if err := c.EndMessage(); err != nil {
		s.t.Error(err)
	}
}

// Slots are offered to an access point that is named, without a negotiator: all
// that are unclaimed, with ids that carry their sessions.
func TestOffersToAccessPoint(t *testing.T) {
	t.Parallel()
	const address = "<127.0.0.1:9700>"
	for _, tt := range []struct {
		name, text string
		result     int64
		opened     []string // of the first round
		submitter  string
		failure    string
	}{
		{"by name, our collector", "STARTD_DIRECT_ATTACH_SCHEDD_NAME = ap@example\nCOLLECTOR_HOST = cm\n", 1, []string{"6 <cm:9618>", "531 " + address}, "", ""},
		{"by name, another pool", "STARTD_DIRECT_ATTACH_SCHEDD_NAME = AP@example\nSTARTD_DIRECT_ATTACH_SCHEDD_POOL = other:1234\nCOLLECTOR_HOST = cm\n", 1, []string{"6 <other:1234>", "531 " + address}, "", ""},
		{"by address", "STARTD_DIRECT_ATTACH_SCHEDD_NAME = " + address + "\nSTARTD_DIRECT_ATTACH_SUBMITTER_NAME = alice@example\n", 1, []string{"531 " + address}, "alice@example", ""},
		{"the manual's spelling", "STARTD_DIRECT_ATTACH_SCHEDD_NAME = " + address + "\nSTARTD_DIRECT_ATTACH_SCHEDD_SUBMITTER = bob@example\n", 1, []string{"531 " + address}, "bob@example", ""},
		{"refused", "STARTD_DIRECT_ATTACH_SCHEDD_NAME = " + address + "\n", 0, []string{"531 " + address}, "", "does not take slots"},
		{"unknown", "STARTD_DIRECT_ATTACH_SCHEDD_NAME = nobody@example\nCOLLECTOR_HOST = cm\n", 1, []string{"6 <cm:9618>"}, "", "does not know it"},
		{"nobody", "", 1, nil, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ap := &submitter{t: t, name: "ap@example", address: address, result: tt.result}
				// The collector hears of the slots elsewhere: what goes there
				// besides is not of this test.
				s := newStation(t, stationOptions{text: twoStatic + tt.text + "STARTD_DIRECT_ATTACH_INTERVAL = 60\n", change: func(c *pool.Config) { c.Open = ap }})
				s.idle()
				time.Sleep(30 * time.Second)
				synctest.Wait()
				ap.mu.Lock()
				opened := slices.DeleteFunc(slices.Clone(ap.opened), func(o string) bool { return strings.HasPrefix(o, "0 ") })
				ap.mu.Unlock()
				if len(opened) < len(tt.opened) || !slices.Equal(opened[:len(tt.opened)], tt.opened) {
					t.Fatalf("opened %v, want %v", opened, tt.opened)
				}
				if tt.opened == nil && len(opened) > 0 {
					t.Errorf("opened %v", opened)
				}
				if tt.failure != "" && !strings.Contains(s.log.String(), tt.failure) {
					t.Errorf("the log does not say %q:\n%s", tt.failure, s.log.String())
				}
				ap.mu.Lock()
				defer ap.mu.Unlock()
				if !slices.Contains(tt.opened, "531 "+address) {
					return
				}
				want := []claim.ID{s.offered("slot1"), s.offered("slot2")}
				if !slices.Equal(ap.offers[0], want) {
					t.Errorf("offered %v", ap.offers[0])
				}
				if got, _ := ap.heads[0].EvalString("Submitter", nil); got != tt.submitter {
					t.Errorf("for the submitter %q", got)
				}
				for _, ad := range ap.ads {
					if at, _ := ad.EvalString("MyAddress", nil); at != ourAddress {
						t.Errorf("the ad says we are at %q", at)
					}
					if state, _ := ad.EvalString("State", nil); state != "Unclaimed" {
						t.Errorf("a slot is %s", state)
					}
					if _, ok := ad.Lookup("ClaimId"); ok {
						t.Error("the ad shows the claim id")
					}
				}
			})
		})
	}
}

// What is claimed is not offered; an offer is made again every interval; an
// access point that is named later is served from then on.
//
// row: S4-151
func TestOffersGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ap := &submitter{t: t, result: 1}
		s := newStation(t, stationOptions{text: twoStatic, change: func(c *pool.Config) { c.Open = ap }})
		s.idle()
		time.Sleep(time.Hour)
		if len(ap.offers) != 0 {
			t.Fatal("offered to nobody")
		}
		one := s.offered("slot1")
		if g := s.peer(one).claim(one, strings.ReplaceAll(smallJob, "\nUser", "\nJobLeaseDuration = 100000\nUser")); g.code != 1 {
			t.Fatal(g.code)
		}
		settings := s.Settings(t)
		settings.Claims.Attach = claims.Attach{Schedd: "<127.0.0.1:9700>", Interval: 20 * time.Second}
		s.pool.Reconfigure(settings)
		time.Sleep(41 * time.Second)
		ap.mu.Lock()
		defer ap.mu.Unlock()
		if len(ap.offers) != 3 || ap.offered[1].Sub(ap.offered[0]) != 20*time.Second {
			t.Fatalf("%d offers at %v", len(ap.offers), ap.offered)
		}
		for _, ids := range ap.offers {
			if len(ids) != 1 || ids[0] != s.offered("slot2") {
				t.Errorf("offered %v", ids)
			}
		}
		settings.Claims.Attach = claims.Attach{}
		s.pool.Reconfigure(settings)
	})
}
