// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool/directory"
	"github.com/execpoint/execpoint/lib/pool/pooltest"
)

// collectors answer lookups, each from its own ads, by its address.
type collectors struct {
	t     *testing.T
	ads   map[string][]*classad.Ad
	asked []string
}

func (s *collectors) Command(_ context.Context, to cedar.Sinful, command int, _ security.Options) (*cedar.Conn, *security.Session, error) {
	s.asked = append(s.asked, strconv.Itoa(command)+" "+to.String())
	ads, up := s.ads[to.String()]
	if !up {
		return nil, nil, errs.E("dial", errs.Transient, to.String(), errors.New("connection refused"))
	}
	client, server := cedartest.Pipe()
	kind := map[int]string{5: "Machine", 6: "Scheduler"}[command]
	go pooltest.AnswerLookup(s.t, cedar.NewConn(server, cedar.Limits{}), kind, ads...)
	return cedar.NewConn(client, cedar.Limits{}), &security.Session{ID: "s"}, nil
}

// Collectors are asked in turn where a daemon is, by the names that tools take
// for one.
func TestLookup(t *testing.T) {
	t.Parallel()
	ad := func(kind, name, rest string) *classad.Ad {
		return mustAd(t, "MyType = \""+kind+"\"\nName = \""+name+"\"\n"+rest)
	}
	ads := map[string][]*classad.Ad{
		"<cm:9618>": {
			ad("Machine", "slot1_1@a.example", "Machine = \"a.example\"\nMyAddress = \"<10.0.0.1:1>\""),
			ad("Machine", "slot1@second@a.example", "Machine = \"A.example\"\nMyAddress = \"<10.0.0.1:2>\""),
			ad("Scheduler", "ap@a.example", `MyAddress = "<10.0.0.1:3>"`),
			ad("Scheduler", "dumb", ""),
			ad("Scheduler", "odd", `MyAddress = "<nowhere"`),
		},
		"<other:9618>": {ad("Scheduler", "far", `MyAddress = "<10.0.0.2:1?alias=x>"`)},
		"<large:9618>": {ad("Scheduler", "big", `MyAddress = "<`+strings.Repeat("x", 1<<20)+`:1>"`)},
	}
	for _, tt := range []struct {
		kind  directory.Kind
		name  string
		ask   string
		want  string
		fails []string // in the error
		asked string
	}{
		{directory.ExecutionPoint, "slot1_1@a.example", "cm", "<10.0.0.1:1>", nil, "5 <cm:9618>"},
		{directory.ExecutionPoint, "SLOT1_1@A.EXAMPLE", "cm", "<10.0.0.1:1>", nil, "5 <cm:9618>"},
		{directory.ExecutionPoint, "a.example", "cm", "<10.0.0.1:1>", nil, "5 <cm:9618>"},
		{directory.ExecutionPoint, "second@a.example", "cm", "<10.0.0.1:2>", nil, "5 <cm:9618>"},
		{directory.ExecutionPoint, `x" || true || "`, "cm", "", []string{"the collector at <cm:9618> does not know it"}, "5 <cm:9618>"},
		{directory.AccessPoint, "AP@a.example", "cm", "<10.0.0.1:3>", nil, "6 <cm:9618>"},
		{directory.AccessPoint, "a.example", "cm", "", []string{"no collector knows it", "the collector at <cm:9618> does not know it"}, "6 <cm:9618>"},
		{directory.AccessPoint, "<10.0.0.9:7>", "cm", "<10.0.0.9:7>", nil, ""},
		{directory.AccessPoint, "<10.0.0.9", "cm", "", []string{"<10.0.0.9"}, ""},
		{directory.AccessPoint, "dumb", "cm", "", []string{"its ad has no MyAddress"}, "6 <cm:9618>"},
		{directory.AccessPoint, "odd", "cm", "", []string{"nowhere"}, "6 <cm:9618>"},
		{directory.AccessPoint, "far", "cm down other cm", "<10.0.0.2:1?alias=x>", nil, "6 <cm:9618>, 6 <down:9618>, 6 <other:9618>"},
		{directory.AccessPoint, "big", "large", "", []string{"1048576"}, "6 <large:9618>"},
		{directory.AccessPoint, "far", "cm down", "", []string{"at <cm:9618> does not", "connection refused"}, "6 <cm:9618>, 6 <down:9618>"},
		{directory.AccessPoint, "far", "", "", []string{"no collector knows it"}, ""},
	} {
		s := &collectors{t: t, ads: ads}
		var ask []cedar.Sinful
		for host := range strings.FieldsSeq(tt.ask) {
			ask = append(ask, cedar.Sinful{Host: host, Port: 9618})
		}
		at, err := directory.Lookup(t.Context(), s, ask, tt.kind, tt.name)
		if got := strings.Join(s.asked, ", "); got != tt.asked {
			t.Errorf("%q: asked %s, want %s", tt.name, got, tt.asked)
		}
		if tt.want != "" {
			if err != nil || at.String() != tt.want {
				t.Errorf("%q: %s, %v, want %s", tt.name, at.String(), err, tt.want)
			}
			continue
		}
		if err == nil {
			t.Errorf("%q: found at %s", tt.name, at.String())
			continue
		}
		for _, text := range tt.fails {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%q: %v; want %q", tt.name, err, text)
			}
		}
		if tt.asked != "" && !errs.Is(err, errs.NotFound) {
			t.Errorf("%q: %v is not of the kind NotFound", tt.name, err)
		}
	}
}

// A collector that does not answer is left when ctx ends.
func TestLookupIsGivenUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	client, server := cedartest.Pipe()
	defer server.Close()
	silent := opens(func() (*cedar.Conn, error) { return cedar.NewConn(client, cedar.Limits{}), nil })
	go func() {
		peer := cedar.NewConn(server, cedar.Limits{})
		if _, err := peer.Ad(cedar.AdOptions{}); err != nil {
			t.Error(err)
		}
		cancel()
	}()
	if at, err := directory.Lookup(ctx, silent, []cedar.Sinful{{Host: "cm", Port: 9618}}, directory.AccessPoint, "ap"); !errs.Is(err, errs.NotFound) {
		t.Errorf("%s, %v", at.String(), err)
	}
}

// opens answers every command with one connection.
type opens func() (*cedar.Conn, error)

func (f opens) Command(context.Context, cedar.Sinful, int, security.Options) (*cedar.Conn, *security.Session, error) {
	conn, err := f()
	return conn, &security.Session{ID: "s"}, err
}

func mustAd(t *testing.T, text string) *classad.Ad {
	t.Helper()
	ad, err := classad.ParseAd(text, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}
