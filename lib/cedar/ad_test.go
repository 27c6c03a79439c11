// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

const secretText = "hunter2-hunter2"

func secretAd(t *testing.T) *classad.Ad {
	t.Helper()
	ad, err := classad.ParseAd(`MyType = "Machine"
Cpus = 8
ClaimId = "`+secretText+`"
_condor_PrivRemoteAdminCapability = "`+secretText+`"
Requirements = TARGET.RequestCpus <= Cpus
`, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

func lines(t *testing.T, encrypted bool, o cedar.AdOptions, ad *classad.Ad) []string {
	t.Helper()
	b := cedartest.Encode(t, encrypted, func(c *cedar.Conn) { c.PutAd(ad, o) })
	raw, err := cedartest.Reader(t, b, encrypted).RawAd(cedar.AdOptions{NoTypes: o.NoTypes})
	if err != nil {
		t.Fatal(err)
	}
	return raw.Lines
}

// Whose private attributes go where depends on what is known of the peer.
func TestPrivateAttributes(t *testing.T) {
	t.Parallel()
	v1, v2 := `ClaimId = "`+secretText+`"`, `_condor_PrivRemoteAdminCapability = "`+secretText+`"`
	public := []string{"Cpus = 8", `MyType = "Machine"`, "Requirements = TARGET.RequestCpus <= Cpus"}
	for _, tt := range []struct {
		o    cedar.AdOptions
		want []string
	}{
		{cedar.AdOptions{}, []string{"ZKM", v1}},
		{cedar.AdOptions{PeerVersion: "9.8.1"}, []string{"ZKM", v1}},
		{cedar.AdOptions{PeerVersion: "9.9.0"}, []string{v1, v2}},
		{cedar.AdOptions{PeerVersion: "$CondorVersion: 25.14.0 2026-11-20 $"}, []string{v1, v2}},
		{cedar.AdOptions{PeerVersion: "25.14.0", NoPrivate: true}, nil},
		{cedar.AdOptions{NoPrivate: true}, nil},
	} {
		both(t, func(t *testing.T, encrypted bool) {
			got := lines(t, encrypted, tt.o, secretAd(t))
			want := slices.Sorted(slices.Values(append(slices.Clone(public), tt.want...)))
			slices.Sort(got)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%+v: %s", tt.o, d)
			}
		})
	}
}

// An ad arrives as it was, however its lines were sent.
func TestAdArrives(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, encrypted bool) {
		for _, version := range []string{"", "25.14.0"} {
			for _, packet := range []int{30, 1 << 20} {
				a, b := pair(t, encrypted)
				a.SetPeerVersion(version)
				a.SetPacketSize(packet)
				ad := secretAd(t)
				a.PutAd(ad, cedar.AdOptions{ServerTime: 1795188226})
				a.PutInt(7)
				if err := a.EndMessage(); err != nil {
					t.Fatal(err)
				}
				got, err := b.Ad(cedar.AdOptions{})
				if err != nil {
					t.Fatal(err)
				}
				want := ad.Clone()
				want.SetInt("ServerTime", 1795188226)
				if version == "" {
					want.Delete("_condor_PrivRemoteAdminCapability")
				}
				if !got.Equal(want) {
					t.Errorf("got %s, want %s", got.TextAll(classad.Old), want.TextAll(classad.Old))
				}
				i, err := b.Int()
				check(t, i, 7, err)
			}
		}
	})
}

func TestAdLayers(t *testing.T) {
	t.Parallel()
	machine, slot := classad.NewAd(), classad.NewAd()
	machine.SetInt("Cpus", 8)
	machine.SetString("Arch", "X86_64")
	slot.SetParent(machine)
	slot.SetInt("Cpus", 1)
	got := lines(t, false, cedar.AdOptions{NoTypes: true}, slot)
	if d := cmp.Diff([]string{`Arch = "X86_64"`, "Cpus = 1"}, slices.Sorted(slices.Values(got))); d != "" {
		t.Error(d)
	}
}

func TestAdLineBreaks(t *testing.T) {
	t.Parallel()
	ad := classad.NewAd()
	ad.SetString("Reason", "one\ntwo")
	if d := cmp.Diff([]string{`Reason = "one two"`}, lines(t, true, cedar.AdOptions{}, ad)); d != "" {
		t.Error(d)
	}
	b := cedartest.Encode(t, false, func(c *cedar.Conn) {
		c.PutInt(1)
		c.PutString("A = 1\nClaimId = 2\rB = 3")
		c.PutString("")
		c.PutString("")
	})
	got, err := cedartest.Reader(t, b, false).Ad(cedar.AdOptions{})
	if err == nil && got.Len() != 1 {
		t.Errorf("one line is %d attributes", got.Len())
	}
	nul := classad.NewAd()
	nul.SetString("A", "x\x00y")
	a, _ := pair(t, false)
	a.PutAd(nul, cedar.AdOptions{})
	if err := a.EndMessage(); !errs.Is(err, errs.Invalid) {
		t.Errorf("a NUL in an ad: %v", err)
	}
}

func putLines(t *testing.T, lines ...string) []byte {
	return cedartest.Encode(t, false, func(c *cedar.Conn) { c.PutRawAd(cedar.RawAd{Lines: lines}, cedar.AdOptions{}) })
}

// Before a peer is known, an ad is constants and few of them.
func TestRestrictedAd(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 101 {
		many = append(many, fmt.Sprintf("A%d = 1", i))
	}
	for _, tt := range []struct {
		lines []string
		kind  errs.Kind
	}{
		{[]string{`AuthMethods = "FS"`, "Command = 60040", "NegotiatedSession = true", "A = 1.5", "B = undefined"}, errs.Other},
		{many[:100], errs.Other},
		{many, errs.Exhausted},
		{[]string{"A = 1 + 1"}, errs.Invalid},
		{[]string{"A = B"}, errs.Invalid},
		{[]string{"A = {1,2}"}, errs.Invalid},
		{[]string{"A = [b = 1]"}, errs.Invalid},
		{[]string{`A = strcat("a")`}, errs.Invalid},
		{[]string{"ZKM", `A = "x"`}, errs.Invalid},
	} {
		_, err := cedartest.Reader(t, putLines(t, tt.lines...), false).Ad(cedar.AdOptions{Restricted: true})
		if errs.KindOf(err) != tt.kind || err == nil != (tt.kind == errs.Other) {
			t.Errorf("%.60q: %v, want kind %v", tt.lines, err, tt.kind)
		}
	}
}

func TestBadAds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ line, want string }{
		{`ClaimId = "` + secretText, `line 2 of an ad, attribute "ClaimId", does not read`},
		{"ClaimId " + secretText, "line 2 of an ad is not Name = expression"},
		{"A = (" + secretText + " 5 +", `attribute "A", does not read`},
		{strings.Repeat("a", 200) + " = (", "aaaa..."},
	} {
		_, err := cedartest.Reader(t, putLines(t, "X = 1", tt.line), false).Ad(cedar.AdOptions{})
		if !errs.Is(err, errs.Invalid) || !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%q: %v, want %s", tt.line, err, tt.want)
		}
		if strings.Contains(fmt.Sprint(err), secretText) {
			t.Errorf("a secret is in %v", err)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"$CondorVersion: 25.14.0 2026-11-20 PRE-RELEASE-UWCS $": "25.14.0",
		"$CondorVersion: 9.9.0 x $":                             "9.9.0",
		"23.0.6":                                                "23.0.6",
		"$CondorVersion: 9.9.0 $":                               "",
		"$CondorVersion: 9.9.0 x":                               "",
		"$CondorVersion: 5.9.0 x $":                             "",
		"$CondorVersion: 9.100.0 x $":                           "",
		"9.9":                                                   "",
		"9.9.-1":                                                "",
		"":                                                      "",
	} {
		v, ok := cedar.ParseVersion(text)
		if ok != (want != "") || ok && v.String() != want {
			t.Errorf("%q is %v, %v, want %q", text, v, ok, want)
		}
	}
	v := cedar.Version{Major: 9, Minor: 9}
	for _, tt := range []struct {
		major, minor, patch int
		want                bool
	}{{9, 9, 0, true}, {9, 8, 5, true}, {8, 10, 0, true}, {9, 9, 1, false}, {9, 10, 0, false}, {10, 0, 0, false}} {
		if v.AtLeast(tt.major, tt.minor, tt.patch) != tt.want {
			t.Errorf("9.9.0 at least %d.%d.%d: want %v", tt.major, tt.minor, tt.patch, tt.want)
		}
	}
}
