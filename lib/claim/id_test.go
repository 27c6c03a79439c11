// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/errs"
)

func TestSecretNeverPrints(t *testing.T) {
	t.Parallel()
	const secret = "5e3c12deadbeef"
	id := NewID("<10.0.0.1:9618?addrs=x>", 1700000000, 7, Secret(secret))
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+"\n", id.Secret)
		fmt.Fprintf(&out, verb+"\n", id)
		fmt.Fprintf(&out, verb+"\n", &id)
		fmt.Fprintf(&out, verb+"\n", struct{ ID ID }{id})
	}
	js, err := json.Marshal(id)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(js)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("claim", "secret", id.Secret, "id", id, "string", id.String())
	out.Write(log.Bytes())
	hexed := fmt.Sprintf("%x", secret)
	if s := out.String(); strings.Contains(s, secret) || strings.Contains(s, hexed) {
		t.Errorf("a secret got out:\n%s", s)
	}
	if id.Secret.Reveal() != secret {
		t.Error("Reveal lost the secret")
	}
	if got, want := id.String(), "<10.0.0.1:9618?addrs=x>#1700000000#7#..."; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

var parseIDTests = []struct {
	text string
	want ID
	err  string
}{
	{"<1.2.3.4:9618>#1700000000#1#abc", ID{"<1.2.3.4:9618>#1700000000#1", "abc"}, ""},
	{"<1.2.3.4:9618?sock=a&x=#y>#17#22#[Encryption=\"NO\";]f#e", ID{"<1.2.3.4:9618?sock=a&x=#y>#17#22", "[Encryption=\"NO\";]f#e"}, ""},
	{"", ID{}, "does not start with '<'"},
	{"1.2.3.4#1#2#x", ID{}, "does not start with '<'"},
	{"<1.2.3.4", ID{}, "has no '>'"},
	{"<a>1#2#x", ID{}, "not followed by '#'"},
	{"<a>#x#2#s", ID{}, "start time"},
	{"<a>#1", ID{}, "start time"},
	{"<a>#1#2", ID{}, "sequence"},
	{"<a>#1##s", ID{}, "sequence"},
	{"<a>#1#2#", ID{}, "secret is empty"},
	{"<" + strings.Repeat("a", maxID) + ">#1#2#s", ID{}, "too long"},
}

func TestParseID(t *testing.T) {
	t.Parallel()
	for _, tt := range parseIDTests {
		got, err := ParseID(tt.text)
		if tt.err != "" {
			if err == nil || !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("ParseID(%.40q): error %v, want one about %q", tt.text, err, tt.err)
			}
			continue
		}
		if err != nil || got != tt.want {
			t.Errorf("ParseID(%q) = %q %q, %v", tt.text, got.Public, got.Secret.Reveal(), err)
			continue
		}
		if got.Wire() != tt.text {
			t.Errorf("Wire() = %q, want %q", got.Wire(), tt.text)
		}
	}
}

func FuzzParseID(f *testing.F) {
	for _, tt := range parseIDTests {
		f.Add(tt.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ParseID(text)
		if err == nil && id.Wire() != text {
			t.Errorf("ParseID(%q).Wire() = %q", text, id.Wire())
		}
	})
}
