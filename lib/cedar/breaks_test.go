// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
)

// A string of an ad may hold line breaks. They are read as they are; written
// they become blanks unless the reader is known to want them.
func TestLineBreaks(t *testing.T) {
	t.Parallel()
	ad := classad.NewAd()
	ad.SetInt("First", 1)
	ad.SetString("Lines", "one\ntwo\n")
	ad.SetInt("Last", 2)
	for breaks, want := range map[bool]string{true: "one\ntwo\n", false: "one two "} {
		message, err := WriteMessage(func(c *Conn) { c.PutAd(ad, AdOptions{Breaks: breaks}) })
		if err != nil {
			t.Fatal(err)
		}
		got, err := MessageReader(message, Limits{}).Ad(AdOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := got.EvalString("Lines", nil); text != want || len(got.Names()) != 3 {
			t.Errorf("with breaks %v: %q of %q", breaks, text, got.Names())
		}
	}
	message, err := WriteMessage(func(c *Conn) {
		c.PutInt(1)
		c.PutString("Lines = \"one\ntwo")
		c.PutString("")
		c.PutString("")
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := MessageReader(message, Limits{}).Ad(AdOptions{}); err == nil {
		t.Error("a string that does not end is read")
	}
}
