// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
)

// leaks reports whether text shows the secret in any usual form.
func leaks(text string) bool {
	digits := make([]string, len(secretText))
	for i := range secretText {
		digits[i] = fmt.Sprint(secretText[i])
	}
	return strings.Contains(text, secretText) || strings.Contains(strings.ToLower(text), hex.EncodeToString([]byte(secretText))) ||
		strings.Contains(text, strings.Join(digits, " "))
}

// No error and no print of anything shows what a message holds, wherever it
// is cut off or spoilt.
func TestNoSecretShows(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, encrypted bool) {
		whole := cedartest.Encode(t, encrypted, func(c *cedar.Conn) {
			c.PutString("")
			c.PutAd(secretAd(t), cedar.AdOptions{})
			c.PutSecret(secretText)
		})
		for i := 1; i < len(whole); i++ {
			for _, b := range [][]byte{whole[:i], append(append(bytes.Clone(whole[:i]), whole[i]^0x41), whole[i+1:]...)} {
				c := cedartest.Reader(t, b, encrypted)
				if _, err := c.String(); err != nil { // begins the message, before the timeout is taken away
					show(t, err)
					continue
				}
				c.SetTimeout(1)
				ad, err := c.Ad(cedar.AdOptions{Restricted: i%2 == 0})
				show(t, err)
				if ad != nil {
					secret, err := c.Secret()
					show(t, secret, err)
				}
				show(t, c, c.EndOfMessage())
				_, err = c.SharedPortRequest()
				show(t, err)
			}
		}
		a, _ := pair(t, encrypted)
		a.PutSecret(secretText)
		a.PutString(secretText + "\x00")
		show(t, a)
		show(t, a.EndMessage())
	})
}

func show(t *testing.T, values ...any) {
	t.Helper()
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			if s := fmt.Sprintf(verb, v); leaks(s) {
				t.Fatalf("%s shows the secret: %.200s", verb, s)
			}
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).LogAttrs(context.Background(), slog.LevelInfo, "x", slog.Any("v", v))
		if leaks(log.String()) {
			t.Fatalf("a log shows the secret: %.200s", log.String())
		}
	}
}

// The test above would notice.
func TestLeaks(t *testing.T) {
	t.Parallel()
	for _, s := range []string{fmt.Sprint(secretText), fmt.Sprintf("%x", secretText), fmt.Sprint([]byte(secretText))} {
		if !leaks("x " + s + " y") {
			t.Errorf("%q is not noticed", s)
		}
	}
}

// One goroutine reads and one writes, at both ends at once.
func TestFullDuplex(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, encrypted bool) {
		a, b := pair(t, encrypted)
		var wg sync.WaitGroup
		for _, c := range []*cedar.Conn{a, b} {
			wg.Go(func() {
				for i := range 500 {
					c.PutInt(int64(i))
					c.PutString(strings.Repeat("x", i*7))
					if err := c.EndMessage(); err != nil {
						t.Error(err)
						return
					}
				}
			})
			wg.Go(func() {
				for i := range 500 {
					got, err := c.Int()
					s, err2 := c.String()
					if err != nil || err2 != nil || got != int64(i) || len(s) != i*7 {
						t.Errorf("got %d, %d bytes, %v, %v, want %d", got, len(s), err, err2, i)
						return
					}
					if err := c.EndOfMessage(); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}
