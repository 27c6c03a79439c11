// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// planted reads which findings a configuration is made for: those after
// "# want:" are about the line below.
func planted(text string) []string {
	var out []string
	for i, line := range strings.Split(text, "\n") {
		if codes, ok := strings.CutPrefix(line, "# want:"); ok {
			for code := range strings.FieldsSeq(codes) {
				out = append(out, fmt.Sprintf("line %d: %s", i+2, code))
			}
		}
	}
	return out
}

// TestBroken finds what was planted in each configuration and nothing else.
// One line may have the same finding more than once.
//
// row: S0-221
func TestBroken(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "check", "*.conf"))
	if err != nil || len(files) != 10 {
		t.Fatalf("%d configurations, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		list := checked(t, string(text))
		var got []string
		for _, f := range list {
			line := f.Line
			if f.Code == ConfigUnsafe { // about the file, not about who includes it
				line = slices.Index(strings.Split(string(text), "\n"), "include : "+f.File) + 1
			}
			got = append(got, fmt.Sprintf("line %d: %s", line, f.Code))
		}
		want := planted(string(text))
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
			t.Errorf("%s: -planted +found\n%s\n%s", filepath.Base(file), diff, summary(list))
		}
	}
}
