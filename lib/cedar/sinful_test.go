// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"
)

// recordedSinful is what condor_sinful of 25.14.0 says about an address.
type recordedSinful struct {
	In     string
	Valid  bool
	Sinful string
	V1     string
}

func recordedSinfuls(t testing.TB) []recordedSinful {
	t.Helper()
	b, err := os.ReadFile("testdata/sinful.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []recordedSinful
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// Where this package differs from the recorded answers, why, and how: the
// answers it gives instead.
var sinfulDiffers = map[string]struct{ sinful, v1, why string }{
	"<1.2.3.4:5?PrivNet=lab&PrivAddr=x>": {
		"<1.2.3.4:5?PrivAddr=x&PrivNet=lab>",
		`{[ p="primary"; a="1.2.3.4"; port=5; n="Internet"; ]}`,
		"a private address that is none harms nobody but its network",
	},
	"<1.2.3.4:5?addrs=1.2.3.4-99999>": {"", "", "a port beyond 65535 is no port, not another one"},
	"<1.2.3.4:5?alias=a-b.c_d:e#f[g]h+i~j>": {
		"<1.2.3.4:5?alias=a-b.c_d:e#f[g]h+i%7ej>", "{}", "the original writes a text that it cannot read again",
	},
	`{[ p="IPv4"; a="1.2.3.4"; n="Internet"; port=5; ]}`: {
		"<?addrs=1.2.3.4-5>",
		`{[ p="primary"; a=""; port=-1; n="Internet"; ], [ p="IPv4"; a="1.2.3.4"; port=5; n="Internet"; ]}`,
		"fields are taken in any order",
	},
}

func TestRecordedSinfuls(t *testing.T) {
	t.Parallel()
	differed := 0
	for _, r := range recordedSinfuls(t) {
		d, differs := sinfulDiffers[r.In]
		want := recordedSinful{In: r.In, Valid: r.Valid, Sinful: r.Sinful, V1: r.V1}
		// The original prints a port that is not there as -1, and cannot read
		// that again.
		want.Sinful = strings.Replace(want.Sinful, ":-1", "", 1)
		if differs {
			differed++
			want.Valid, want.Sinful, want.V1 = d.sinful != "", d.sinful, d.v1
			if r == want {
				t.Errorf("%s does not differ any more", r.In)
			}
		}
		// A broker's id that is a chain reads from AddressV1 as well.
		if !r.Valid && strings.Contains(r.In, `ccbid="collector#77"`) {
			continue
		}
		s, err := cedar.ParseSinful(r.In)
		got := recordedSinful{In: r.In, Valid: err == nil}
		if err == nil {
			got.Sinful, got.V1 = s.String(), s.AddressV1()
		} else if !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", r.In, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %v\n%s", r.In, err, d)
		}
	}
	if differed != len(sinfulDiffers) {
		t.Errorf("%d of %d differences were met", differed, len(sinfulDiffers))
	}
}

func TestSinfulFields(t *testing.T) {
	t.Parallel()
	text := "<[2001:db8::1]:9618?CCBID=192.0.2.1:9618%3fsock%3dcollector#77&PrivAddr=%3c10.0.0.5:4000%3e&PrivNet=lab" +
		"&addrs=[2001-db8--1]-9618+192.0.2.7-9618&alias=ep.example.org&colour=blue&noUDP&sock=startd_1_ab12>"
	want := cedar.Sinful{
		Host: "2001:db8::1", Port: 9618, SockID: "startd_1_ab12", Alias: "ep.example.org", PrivNet: "lab", NoUDP: true,
		PrivAddr: &cedar.Sinful{Host: "10.0.0.5", Port: 4000},
		CCB:      []cedar.Broker{{Address: "192.0.2.1:9618?sock=collector", ID: "77"}},
		Addrs:    []netip.AddrPort{netip.MustParseAddrPort("[2001:db8::1]:9618"), netip.MustParseAddrPort("192.0.2.7:9618")},
		Extra:    map[string]string{"colour": "blue"},
	}
	got, err := cedar.ParseSinful(text)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); d != "" {
		t.Error(d)
	}
	if got.String() != text {
		t.Errorf("%s prints as %s", text, got)
	}
	if got.HostPort() != "[2001:db8::1]:9618" {
		t.Errorf("dial %s", got.HostPort())
	}
	broker, err := got.CCB[0].Sinful()
	if err != nil || broker.SockID != "collector" || broker.String() != "<192.0.2.1:9618?sock=collector>" {
		t.Errorf("broker %v, %v", broker, err)
	}
	if got.IsZero() || !(cedar.Sinful{}).IsZero() {
		t.Error("which address is none")
	}
}

func TestSinfulBounds(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"long":       "<1.2.3.4:5?a=" + strings.Repeat("x", 64<<10) + ">",
		"large port": "<1.2.3.4:65536>",
		"zone":       "<1.2.3.4:5?addrs=[fe80--1%25eth0]-5>",
		"routes":     "{" + strings.Repeat(`[ p="IPv4"; a="1.2.3.4"; port=5; n="Internet"; ], `, 300) + "}",
		"port in V1": `{[ p="IPv4"; a="1.2.3.4"; port=70000; n="Internet"; ]}`,
		"brokers":    `{[ p="IPv4"; a="1.2.3.4"; port=5; n="Internet"; ccbid="1"; brokerIndex=2; ]}`,
	} {
		if s, err := cedar.ParseSinful(text); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v, %v", name, s, err)
		} else if len(err.Error()) > 400 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}

func BenchmarkSinful(b *testing.B) {
	text := "<192.168.0.5:4000?CCBID=192.0.2.1:9618%3faddrs%3d192.0.2.1-9618#77&addrs=192.168.0.5-4000&alias=ep&noUDP&sock=startd_1_ab12>"
	b.ReportAllocs()
	for b.Loop() {
		s, err := cedar.ParseSinful(text)
		if err != nil || s.String() != text {
			b.Fatal(s, err)
		}
	}
}
