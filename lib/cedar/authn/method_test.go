// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseMethods(t *testing.T) {
	t.Parallel()
	tests := []struct {
		list    string
		want    []Method
		unknown []string
		text    string
	}{
		{"FS,TOKEN", []Method{FS, Token}, nil, "FS,TOKEN"},
		{"idtokens  fs_remote,\tTOKENS, fs,IDTOKEN", []Method{Token, FSRemote, FS}, nil, "TOKEN,FS_REMOTE,FS"},
		{"SSL,KERBEROS,SCITOKEN,PASSWORD", []Method{SSL, Kerberos, SciTokens, Password}, nil, "SSL,KERBEROS,SCITOKENS,PASSWORD"},
		{"GSI,NTSSPI,MUNGE,CLAIMTOBE,ANONYMOUS", []Method{GSI, NTSSPI, Munge, ClaimToBe, Anonymous}, nil, "GSI,NTSSPI,MUNGE,CLAIMTOBE,ANONYMOUS"},
		{"FS,MAGIC,NONE", []Method{FS}, []string{"MAGIC", "NONE"}, "FS"},
		{"", nil, nil, ""},
	}
	for _, tt := range tests {
		got, unknown := ParseMethods(tt.list)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: %s", tt.list, diff)
		}
		if diff := cmp.Diff(tt.unknown, unknown); diff != "" {
			t.Errorf("%q: %s", tt.list, diff)
		}
		if text := FormatMethods(got); text != tt.text {
			t.Errorf("%q: %q, want %q", tt.list, text, tt.text)
		}
	}
	if Token.Recorded() != "IDTOKENS" || FS.Recorded() != "FS" || None.String() != "NONE" {
		t.Errorf("%s %s %s", Token.Recorded(), FS.Recorded(), None)
	}
	if m, ok := ParseMethod("NONE"); ok {
		t.Errorf("NONE is %v", m)
	}
}

func TestOffer(t *testing.T) {
	t.Parallel()
	all := []Method{FSRemote, SSL, FS, Kerberos, Token, Password, ClaimToBe, Anonymous, SciTokens, Munge, NTSSPI, GSI}
	c, s, _ := sslPair(t)
	if diff := cmp.Diff([]Method{SSL, FS, Token, Password, ClaimToBe, Anonymous}, c.Offer(all)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Method{SSL, FS, Token, Password, ClaimToBe, Anonymous}, s.Offer(all)); diff != "" {
		t.Error(diff)
	}
	bare := []Method{SSL, Password, ClaimToBe, Anonymous}
	if diff := cmp.Diff(bare, (&Client{}).Offer(all)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(bare[1:], (&Server{}).Offer(all)); diff != "" {
		t.Error(diff)
	}
	// A token that lies there is enough for a client.
	store(c, s, "key2", Order{Issuer: "pool.test", Subject: "bob@pool.test"})
	c.KeyDir, c.PoolKeyFile = "", ""
	if diff := cmp.Diff([]Method{Token}, c.Offer([]Method{Token})); diff != "" {
		t.Error(diff)
	}
	if names, err := s.IssuerKeys(); err != nil || !cmp.Equal(names, []string{PoolKey, "key2"}) {
		t.Errorf("%q, %v", names, err)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"$CondorVersion: 23.9.0 2024-08-08 BuildID: 746 $": true,
		"$CondorVersion: 23.10.1 x $":                      true,
		"$CondorVersion: 25.0.0 x $":                       true,
		"$CondorVersion: 23.8.9 x $":                       false,
		"$CondorVersion: 9.12.0 x $":                       false,
		"$CondorVersion: 23.9 x $":                         false,
		"$CondorVersion: x.y.z $":                          false,
		"25.14.0":                                          true,
		"10.0.9":                                           false,
		"$CondorVersion:":                                  false,
		"":                                                 false,
	} {
		if got := (Peer{Version: version}).since(23, 9, 0); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}
