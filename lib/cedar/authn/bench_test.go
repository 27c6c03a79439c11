// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
)

func BenchmarkVerify(b *testing.B) {
	_, s := pair(b)
	keys := s.keys(s.Files)
	key, err := keys.Key(PoolKey)
	if err != nil {
		b.Fatal(err)
	}
	token, err := key.Issue(Order{Issuer: "pool.test", Subject: "bob@pool.test", Levels: []string{"READ", "ADVERTISE_STARTD"}}, noon())
	if err != nil {
		b.Fatal(err)
	}
	text := string(token.Text())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := keys.Verify(text, Rules{}, noon()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseToken(b *testing.B) {
	key, err := NewSigningKey("k", []byte("key"))
	if err != nil {
		b.Fatal(err)
	}
	token, err := key.Issue(Order{Issuer: "pool.test", Subject: "bob@pool.test", Levels: []string{"READ"}}, noon())
	if err != nil {
		b.Fatal(err)
	}
	text := string(token.Text())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseToken(text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHandshake is both sides of an authentication, without a network.
func BenchmarkHandshake(b *testing.B) {
	for _, m := range []Method{Token, Password, FS, SSL} {
		b.Run(m.String(), func(b *testing.B) {
			c, s, _ := sslPair(b)
			store(c, s, PoolKey, Order{Issuer: "pool.test", Subject: "bob@pool.test"})
			cp, sp := ends()
			methods := []Method{m}
			b.ReportAllocs()
			for b.Loop() {
				x, y := cedartest.Pipe()
				left, right := cedar.NewConn(x, cedar.Limits{}), cedar.NewConn(y, cedar.Limits{})
				done := make(chan error, 1)
				go func() { _, err := s.Authenticate(context.Background(), right, sp, methods); done <- err }()
				if _, err := c.Authenticate(context.Background(), left, cp, methods); err != nil {
					b.Fatal(err)
				}
				if err := <-done; err != nil {
					b.Fatal(err)
				}
				left.Close()
				right.Close()
			}
		})
	}
}
