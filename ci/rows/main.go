// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Command rows keeps the account of what is proven. docs/coverage.tsv lists
// what the documents ask for, one row each; a test that proves a row says so in a
// comment directly above the test function, or above the entry of a table that
// stands in one or that one ranges over:
//
//	// row: S0-006, S0-007
//	func TestCarve(t *testing.T) {
//
// rows collects these comments, looks up in the results of go test -json which
// of the tests ran, and writes docs/coverage.md. It fails on ids that do not
// exist, on comments that belong to no test or to one that always skips, and on
// documents that call a row true which no test that ran carries. A row is true
// only because of a test that ran; there is no list of exceptions.
//
//	go run ./ci/rows                          write docs/coverage.md after the comments; what ran stays as it was
//	go run ./ci/rows -results FILE,...        write it after these results of all tests
//	go run ./ci/rows -results FILE,... -add   the same, but what did not run in them stays as it was
//	go run ./ci/rows -check                   fail if docs/coverage.md does not name the tests that the comments do
//	go run ./ci/rows -check -results FILE,... and if it says that a test ran which did not, or the other way round
//	go run ./ci/rows -skipped -results FILE   list by reason what no run did; with -required REGEXP fail where it matches
//
// FILE is what go test -json wrote, a folder of such *.json, or - for standard
// input. Results that lack tests altogether are those of a part of the tree:
// rows says what they prove and writes nothing.
//
//	go test -json ./lib/slot | go run ./ci/rows -results -
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/execpoint/execpoint/ci/source"
)

const (
	rowsFile   = "docs/coverage.tsv"
	reportFile = "docs/coverage.md"
)

func main() {
	if err := run(os.Stdin, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	check, add, skipped     bool
	results, required, root string
}

func parseOptions(args []string) (o options, err error) {
	flags := flag.NewFlagSet("rows", flag.ContinueOnError)
	flags.BoolVar(&o.check, "check", false, "write nothing; fail if "+reportFile+" is not up to date")
	flags.StringVar(&o.results, "results", "", "what go test -json wrote: `FILE,...`, a folder, or -")
	flags.BoolVar(&o.add, "add", false, "with -results: keep what "+reportFile+" says of tests that did not run in them")
	flags.BoolVar(&o.skipped, "skipped", false, "with -results: list what was skipped in every run")
	flags.StringVar(&o.required, "required", "", "with -skipped: fail if a name with its reason matches `REGEXP`")
	flags.StringVar(&o.root, "root", "", "the repository; found from the working directory if empty")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("rows: unexpected argument %q", flags.Arg(0))
	case o.results == "" && (o.add || o.skipped):
		return o, errors.New("rows: -add and -skipped want -results")
	case o.add && (o.check || o.skipped), o.check && o.skipped:
		return o, errors.New("rows: only one of -check, -add and -skipped")
	case o.required != "" && !o.skipped:
		return o, errors.New("rows: -required wants -skipped")
	}
	if o.root == "" {
		o.root, err = source.Root()
	}
	return o, err
}

func run(stdin io.Reader, stdout io.Writer, args []string) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	module, err := source.Module(o.root)
	if err != nil {
		return err
	}
	var r *results
	if o.results != "" {
		if r, err = readResults(module, o.results, stdin); err != nil {
			return err
		}
	}
	if o.skipped {
		var required *regexp.Regexp
		if o.required != "" {
			if required, err = regexp.Compile(o.required); err != nil {
				return fmt.Errorf("rows: -required: %w", err)
			}
		}
		return printSkips(stdout, r, required)
	}
	t, err := readTree(o.root, module)
	if err != nil {
		return err
	}
	if o.check {
		return t.check(stdout, r)
	}
	return t.write(stdout, r, o.add)
}

// tree is what the repository says of its rows.
type tree struct {
	root   string
	rows   table
	proofs map[string][]proof
	kinds  map[testKey]kind
	docs   []document
}

// readTree reads the rows, the tests and the documents below root, or every
// fault it found.
func readTree(root, module string) (*tree, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(rowsFile)))
	if err != nil {
		return nil, err
	}
	t := &tree{root: root}
	if t.rows, err = parseRows(rowsFile, string(text)); err != nil {
		return nil, err
	}
	files, err := source.Load(root)
	if err != nil {
		return nil, err
	}
	var faults []string
	if t.proofs, faults = findProofs(t.rows, files); len(faults) > 0 {
		return nil, errors.New(strings.Join(faults, "\n"))
	}
	t.kinds = kindsOf(module, files)
	t.docs, err = documents(root)
	return t, err
}

// said is what the report says now; nothing if there is none.
func (t *tree) said() (text []byte, said standings, err error) {
	text, err = os.ReadFile(filepath.Join(t.root, filepath.FromSlash(reportFile)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	said, err = parseReport(reportFile, string(text))
	return text, said, err
}

// claims are the faults of documents that call a row true.
func (t *tree) claims(s standings) error {
	var faults []string
	for _, d := range t.docs {
		faults = append(faults, findClaims(t.rows, s, d.name, d.text)...)
	}
	if len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n"))
	}
	return nil
}

// check holds the report to the comments, and to results if there are some.
func (t *tree) check(stdout io.Writer, r *results) error {
	text, said, err := t.said()
	if err != nil {
		return err
	}
	faults := compare(t.rows, t.proofs, said)
	if r != nil {
		faults = append(faults, hold(t.rows, t.proofs, said, r)...)
	}
	if len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n"))
	}
	report, summary := render(t.rows, said, t.kinds)
	if !bytes.Equal(text, report) {
		return fmt.Errorf("%s is not up to date; run: go run ./ci/rows", reportFile)
	}
	if err := t.claims(said); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, summary)
	return err
}

// write writes the report. Without results what ran stays as it was said;
// results of a part of the tree are shown and not written.
func (t *tree) write(stdout io.Writer, r *results, adding bool) error {
	var now standings
	if r != nil && !adding {
		var missing []string
		if now, missing = stand(t.proofs, r); len(missing) > 0 {
			return t.showPart(stdout, now, missing)
		}
	} else {
		_, said, err := t.said()
		if err != nil {
			return err
		}
		if now = keep(t.proofs, said); adding {
			now = add(t.proofs, said, r)
		}
	}
	if err := t.claims(now); err != nil {
		return err
	}
	report, summary := render(t.rows, now, t.kinds)
	if err := os.WriteFile(filepath.Join(t.root, filepath.FromSlash(reportFile)), report, 0o644); err != nil {
		return err
	}
	_, err := fmt.Fprintln(stdout, summary)
	return err
}

// showPart prints the rows that results of a part of the tree prove.
func (t *tree) showPart(stdout io.Writer, now standings, missing []string) error {
	var b strings.Builder
	for _, r := range t.rows.list {
		for k := range kinds {
			if names := listed(now[r.id], func(key testKey, as standing) bool { return as.ran && t.kinds[key] == k }); names != "" {
				fmt.Fprintf(&b, "%s %s: %s\n", r.id, kindNames[k], strings.ReplaceAll(names, "<br>", "; "))
			}
		}
	}
	fmt.Fprintf(&b, "%s is not written: the results lack %d tests that carry rows, such as %s; -add adds what ran\n", reportFile, len(missing), missing[0])
	_, err := io.WriteString(stdout, b.String())
	return err
}

type document struct{ name, text string }

// documents are the texts for people that may speak of rows.
func documents(root string) ([]document, error) {
	var docs []document
	err := source.Walk(root, func(name string) error {
		if !strings.HasSuffix(name, ".md") || name == reportFile {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		docs = append(docs, document{name, string(text)})
		return err
	})
	return docs, err
}
