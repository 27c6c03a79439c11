// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The table of docs/architecture.md names every message of each side, and no other.
func TestDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string][]string{}
	row := regexp.MustCompile(`(?m)^\| (both|startd|starter) \| ([^|]+) \|`)
	kind := regexp.MustCompile("`([^`]+)`")
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		for _, k := range kind.FindAllStringSubmatch(m[2], -1) {
			for _, who := range strings.Fields(strings.Replace(m[1], "both", "startd starter", 1)) {
				said[who] = append(said[who], k[1])
			}
		}
	}
	for who, from := range map[string]Speaker{"startd": Startd, "starter": Starter} {
		want := slices.Sorted(maps.Keys(from.kinds))
		if got := slices.Sorted(slices.Values(said[who])); !slices.Equal(got, want) {
			t.Errorf("the document has the %s say\n%q, the table\n%q", who, got, want)
		}
	}
}
