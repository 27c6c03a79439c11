// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// summary is one line for each finding: code, line and column, template, knob
// and message.
func summary(list []Finding) string {
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, "  %s %d:%d", f.Code, f.Line, f.Column)
		if f.Template != "" {
			b.WriteString(" [" + f.Template + "]")
		}
		fmt.Fprintf(&b, " %s %s\n", f.Knob, f.Message)
	}
	return b.String()
}

// goldenFindings compares what is found in each file of a folder of testdata
// with the file findings.txt there.
func goldenFindings(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.conf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	var got strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString(filepath.Base(file) + "\n" + summary(checked(t, string(text))))
	}
	golden := filepath.Join("testdata", folder, "findings.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Error(diff)
	}
}

// TestDocuments checks every example of a configuration that the five
// documents print. The files are named after the document, the section and
// the line where the example begins.
//
// row: S1-053, S1-063
func TestDocuments(t *testing.T) {
	t.Parallel()
	goldenFindings(t, "documents")
}
