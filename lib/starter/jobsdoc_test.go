// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter/runner"
)

// jobsDoc reads docs/jobs.md: the attributes of each chapter's table, and their
// codes in that of what is refused.
func jobsDoc(t *testing.T) (chapters map[string][]string, codes map[string]reason.Code) {
	t.Helper()
	text, err := os.ReadFile("../../docs/jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	chapters, codes = map[string][]string{}, map[string]reason.Code{}
	quoted := regexp.MustCompile("`([A-Za-z0-9_]+)`")
	chapter := ""
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			chapter = strings.TrimSpace(name)
		}
		cells := strings.Split(line, "|")
		if !strings.HasPrefix(line, "| `") || len(cells) < 4 {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			chapters[chapter] = append(chapters[chapter], m[1])
			if chapter == "Refused" {
				n, err := strconv.Atoi(strings.TrimSpace(cells[2]))
				if err != nil {
					t.Errorf("%s has no code: %v", m[1], err)
				}
				codes[m[1]] = reason.Code(n)
			}
		}
	}
	return chapters, codes
}

// The document says of each attribute what the code does with it.
func TestJobsDocument(t *testing.T) {
	t.Parallel()
	chapters, codes := jobsDoc(t)
	seen := map[string]string{}
	for chapter, names := range chapters {
		for _, name := range names {
			if other, twice := seen[name]; twice {
				t.Errorf("%s stands in %q and in %q", name, chapter, other)
			}
			seen[name] = chapter
		}
	}

	for attr, code := range codes {
		if attr == "PrimaryUnixGroup" { // TestPrimaryGroup
			continue
		}
		got := reason.Code(0)
		for _, value := range []string{"true", `"x"`, "10"} {
			ad, err := classad.ParseAd(attr+" = "+value, classad.Old)
			if err != nil {
				t.Fatal(err)
			}
			var refusal *runner.Refusal
			if _, err := runner.Choose(runner.All(runner.Machine{}), runner.Request{Job: ad, Wanted: func(string) bool { return false }}); errors.As(err, &refusal) {
				got = refusal.Code
			}
		}
		if got != code {
			t.Errorf("a job with %s is held with %d, the document says %d", attr, got, code)
		}
	}

	read := attributesRead(t)
	for _, name := range chapters["In force"] {
		if !read[name] {
			t.Errorf("%s is not read by any package of a job, so it cannot be in force", name)
		}
	}
	for _, chapter := range []string{"Ignored", "Not yet"} {
		for _, name := range chapters[chapter] {
			if read[name] {
				t.Errorf("%s is read, so the document should not have it in %q", name, chapter)
			}
		}
	}
}

// attributesRead are the words in quotes of the packages that deal with a job. The
// programs before and after it, the ends that they promise and what a refusal reads
// have their attributes put together from parts.
func attributesRead(t *testing.T) map[string]bool {
	t.Helper()
	read := map[string]bool{}
	quoted := regexp.MustCompile(`"([A-Za-z0-9_]+)"`)
	for _, dir := range []string{"starter", "sandbox", "transfer", "shadow", "run", "chirp", "reach", "pool", "policy", "slot", "ep", "ad"} {
		err := filepath.WalkDir("../"+dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range quoted.FindAllSubmatch(text, -1) {
				read[string(m[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, script := range []string{"Pre", "Post"} {
		for _, part := range []string{"Cmd", "Args", "Arguments", "Env", "Environment"} {
			if read[part] {
				read[script+part] = true
			}
		}
		read["Success"+script+"ExitCode"] = read["ExitCode"]
	}
	return read
}

// Every attribute of a job that HTCondor's starter and startd look up stands in the
// document.
func TestJobsDocumentIsWhole(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/jobattributes.txt")
	if err != nil {
		t.Fatal(err)
	}
	chapters, _ := jobsDoc(t)
	var all []string
	for _, names := range chapters {
		all = append(all, names...)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		name := strings.TrimSpace(line)
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		n++
		if !slices.Contains(all, name) {
			t.Errorf("%s is not in docs/jobs.md", name)
		}
	}
	if n < 50 {
		t.Errorf("the list has %d attributes", n)
	}
}
