// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"fmt"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/errs"
)

func TestLiterals(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		line string
		want any
		ok   bool
	}{
		{`A = "x"`, "x", true},
		{`A="x"`, "x", true},
		{"A\t= \"x\" ", "x", true},
		{`A = "a\"b"`, `a"b`, true},
		{`A = "a\b"`, `a\b`, true},
		{`A = "C:\"`, `C:\`, true},
		{`A = "x=y;z"`, "x=y;z", true},
		{`A = 17`, int64(17), true},
		{`A = -3`, int64(-3), true},
		{`A = TRUE`, true, true},
		{`A = false`, false, true},
		{`A = undefined`, nil, true},
		{`A = 1.5`, nil, true},
		{`A = "x" + "y"`, nil, false},
		{`A = "x`, nil, false},
		{`A = "a"b"`, nil, false},
		{`A = B`, nil, false},
		{`A = 1 + 1`, nil, false},
		{`A = { 1 }`, nil, false},
		{`A =`, nil, false},
		{`= 1`, nil, false},
		{`1A = 1`, nil, false},
		{`A B = 1`, nil, false},
		{`A`, nil, false},
		{``, nil, false},
		{`A = "` + strings.Repeat("x", maxLiteralLine) + `"`, nil, false},
	} {
		a, err := parseLiteral(test.line)
		if (err == nil) != test.ok || a.value != test.want {
			t.Errorf("%.60q: %v, %v; want %v, %t", test.line, a.value, err, test.want, test.ok)
		}
		if err != nil && strings.Contains(err.Error(), "xxxx") {
			t.Errorf("the error holds what the peer sent: %v", err)
		}
	}
}

// What a handshake ad may hold is bounded, whatever a peer sends.
func TestHostileAds(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(c *cedar.Conn){
		"101 attributes": func(c *cedar.Conn) {
			c.PutInt(101)
			for i := range 101 {
				c.PutString(fmt.Sprintf("A%d = 1", i))
			}
			c.PutString("")
			c.PutString("")
		},
		"a number of attributes that is never met": func(c *cedar.Conn) { c.PutInt(100); c.PutString("A = 1") },
		"a negative number":                        func(c *cedar.Conn) { c.PutInt(-1); c.PutString("") },
		"a huge number":                            func(c *cedar.Conn) { c.PutInt(1 << 62); c.PutString("") },
		"an expression":                            func(c *cedar.Conn) { c.PutInt(1); c.PutString("A = random(10)"); c.PutString(""); c.PutString("") },
		"a secret line": func(c *cedar.Conn) {
			c.PutInt(1)
			c.PutString("ZKM")
			c.PutString("A = 1")
			c.PutString("")
			c.PutString("")
		},
		"no types": func(c *cedar.Conn) { c.PutInt(1); c.PutString("A = 1") },
		"more behind it": func(c *cedar.Conn) {
			c.PutInt(1)
			c.PutString("A = 1")
			c.PutString("")
			c.PutString("")
			c.PutInt(7)
		},
		"a long line": func(c *cedar.Conn) {
			c.PutInt(1)
			c.PutString(`A = "` + strings.Repeat("x", 200<<10) + `"`)
			c.PutString("")
			c.PutString("")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := cedartest.Reader(t, cedartest.Encode(t, false, put), false)
			defer guard(conn, 0)()
			ad, err := getMessage(conn)
			if err == nil {
				t.Fatalf("read %v", ad)
			}
			if k := errs.KindOf(err); k != errs.Invalid && k != errs.Exhausted {
				t.Errorf("err = %v (%v), want invalid or exhausted", err, k)
			}
		})
	}
}

func FuzzLiterals(f *testing.F) {
	for _, s := range []string{`A = "x"`, `A = "a\"b"`, `A = -3`, `A = undefined`, `A = "x" + "y"`, `Sid = "<1.2.3.4:5?a=b&c>#1#2"`, "A=", "=", `A = "\"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		a, err := parseLiteral(line)
		if err != nil || a.value == nil {
			return
		}
		if s, ok := a.value.(string); ok && strings.HasSuffix(s, `\`) {
			return // reads back only at the end of a line, as it was
		}
		b, err := parseLiteral(a.line())
		if err != nil || b != a {
			t.Fatalf("%q is %v, written %q it is %v (%v)", line, a, a.line(), b, err)
		}
	})
}

// Ads of any bytes are read without a panic and within their bounds.
func FuzzHandshakeAd(f *testing.F) {
	for _, v := range cedartest.LoadDir(f, vectors) {
		for _, m := range v.Connections[0].Messages[:2] {
			if m.Event == "" {
				f.Add([]byte(m.Plaintext))
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		conn := cedartest.Reader(t, b, false)
		defer guard(conn, 0)()
		if ad, err := getMessage(conn); err == nil && len(ad) > maxLiterals {
			t.Fatalf("%d attributes", len(ad))
		}
	})
}
