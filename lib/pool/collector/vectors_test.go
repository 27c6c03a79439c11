// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/pool/ads"
)

const recordings = "../../cedar/testdata/vectors/"

// recordedAd is the ad of a recorded item.
func recordedAd(t *testing.T, it cedartest.Item) *classad.Ad {
	t.Helper()
	if it.Ad == nil {
		t.Fatalf("the item is no ad: %+v", it)
	}
	ad, err := classad.ParseAd(strings.Join(*it.Ad, "\n"), classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

// payload leaves the messages that follow the handshake.
func payload(c *cedartest.Connection) func(*cedartest.Message) bool {
	return func(m *cedartest.Message) bool {
		return m.Event == "" && (!m.Encrypted || m.Note == "post-auth ad")
	}
}

// recordedUpdates are the messages of a connection as we queue them. opened is
// the command that the connection was made for.
func recordedUpdates(t *testing.T, c *cedartest.Connection) (all []*update, opened int) {
	t.Helper()
	hello := recordedAd(t, c.Messages[0].Items[1])
	n, ok := hello.EvalInt("Command", nil)
	if !ok {
		t.Fatal("the first message names no command")
	}
	opened = int(n)
	skip := payload(c)
	for _, m := range c.From(cedartest.Client) {
		if skip(m) {
			continue
		}
		items, u := m.Items, &update{command: opened}
		if len(all) > 0 {
			u.command, items = int(*items[0].Int), items[1:]
		}
		u.public = recordedAd(t, items[0])
		if len(items) > 1 {
			u.private = recordedAd(t, items[1])
		}
		all = append(all, u)
	}
	return all, opened
}

// same holds a message of ours against the recorded one. The order of an ad's
// lines, which means nothing, may be another; nothing else.
func same(m *cedartest.Message, got []byte) error {
	lines := func(b []byte) []string {
		all := strings.Split(string(b), "\x00")
		slices.Sort(all)
		return all
	}
	if len(got) != len(m.Plaintext) || !slices.Equal(lines(got), lines(m.Plaintext)) {
		return cedartest.Diff(m.Plaintext, got)
	}
	return nil
}

// The recorded collector is sent what the recorded EP sent, but for the order
// of lines, and our withdrawals are the recorded ones.
func TestRecordedUpdatesAsSender(t *testing.T) {
	t.Parallel()
	v := cedartest.Load(t, recordings+"ep-collector-updates.json")
	count := 0
	for _, c := range v.Connections {
		updates, opened := recordedUpdates(t, c)
		p := &cedartest.Player{Conn: c, Role: cedartest.Server, Skip: payload(c), Check: same}
		nc, wait := p.Start(t)
		conn := cedar.NewConn(nc, cedar.Limits{})
		conn.SetPeerVersion("25.14.0")
		if err := conn.EnableAES(c.Session.Key); err != nil {
			t.Fatal(err)
		}
		for i, u := range updates {
			if err := u.put(conn, i == 0 && u.command == opened, secrets{}); err != nil {
				t.Fatal(err)
			}
			count++
			if u.command != command.InvalidateStartdAds {
				continue
			}
			name, _ := u.public.EvalString(ads.AttrName, nil)
			address, _ := u.public.EvalString(ads.AttrMyAddress, nil)
			if made := withdrawal(ads.TypeSlot, name, address); !made.Equal(u.public) {
				t.Errorf("our withdrawal is\n%s\nthe recorded one\n%s", made.Text(classad.Old), u.public.Text(classad.Old))
			}
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		wait()
	}
	if count != 5 {
		t.Errorf("%d messages were replayed, want 5", count)
	}
}

// In the collector's place, the recorded EP's messages read as they were.
func TestRecordedUpdatesAsCollector(t *testing.T) {
	t.Parallel()
	v := cedartest.Load(t, recordings+"ep-collector-updates.json")
	for _, c := range v.Connections {
		updates, opened := recordedUpdates(t, c)
		p := &cedartest.Player{Conn: c, Role: cedartest.Client, Skip: payload(c)}
		nc, wait := p.Start(t)
		conn := cedar.NewConn(nc, cedar.Limits{})
		if err := conn.EnableAES(c.Session.Key); err != nil {
			t.Fatal(err)
		}
		for i, want := range updates {
			command := opened
			if i > 0 {
				n, err := conn.Int()
				if err != nil {
					t.Fatal(err)
				}
				command = int(n)
			}
			if command != want.command {
				t.Errorf("message %d is command %d, want %d", i, command, want.command)
			}
			for _, ad := range []*classad.Ad{want.public, want.private} {
				if ad == nil {
					continue
				}
				got, err := conn.Ad(cedar.AdOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if !got.Equal(ad) {
					t.Errorf("message %d:\n%s\nwant\n%s", i, got.Text(classad.Old), ad.Text(classad.Old))
				}
			}
			if err := conn.EndOfMessage(); err != nil {
				t.Error(err)
			}
		}
		wait()
	}
}

// The recorded queries of condor_status -direct ask for what the tool's user
// asked for, and the recorded answer is what we write for its ad.
func TestRecordedQueries(t *testing.T) {
	t.Parallel()
	v := cedartest.Load(t, recordings+"ep-server-new-session.json")
	queries := 0
	for _, c := range v.Connections {
		for _, m := range c.Messages {
			switch m.Note {
			case "query ad":
				queries++
				conn := cedartest.Reader(t, m.Plaintext, m.Encrypted)
				ad, err := conn.Ad(cedar.AdOptions{})
				if err != nil {
					t.Fatal(err)
				}
				q := queryFrom(ad, 53)
				if !q.daemon || q.slots || q.constrained || q.limit != -1 || strings.Join(q.projection.names, "|") != "Machine|Name|OCU|State" {
					t.Errorf("the query is read as %+v", q)
				}
			case "answer: one ad":
				ad := recordedAd(t, m.Items[1])
				got := cedartest.Encode(t, m.Encrypted, func(c *cedar.Conn) {
					c.PutInt(1)
					c.PutAd(projection{}.of(ad), cedar.AdOptions{NoPrivate: true})
					c.PutInt(0)
				})
				if err := same(m, got); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if queries != 2 {
		t.Errorf("%d queries were replayed, want 2", queries)
	}
}
