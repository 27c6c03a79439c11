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
// rows collects these comments and writes docs/coverage.md. It fails on ids
// that do not exist, on comments that belong to no test or to one that always
// skips, and on documents that call a row true which no test carries. A row is
// true only because of a test; there is no list of exceptions.
//
//	go run ./ci/rows           write docs/coverage.md
//	go run ./ci/rows -check    fail if docs/coverage.md is not what would be written
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/execpoint/execpoint/ci/source"
)

const (
	rowsFile   = "docs/coverage.tsv"
	reportFile = "docs/coverage.md"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(stdout io.Writer, args []string) error {
	flags := flag.NewFlagSet("rows", flag.ContinueOnError)
	check := flags.Bool("check", false, "write nothing; fail if "+reportFile+" is not up to date")
	root := flags.String("root", "", "the repository; found from the working directory if empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("rows: unexpected argument %q", flags.Arg(0))
	}
	if *root == "" {
		var err error
		if *root, err = source.Root(); err != nil {
			return err
		}
	}
	report, summary, err := account(*root)
	if err != nil {
		return err
	}
	name := filepath.Join(*root, filepath.FromSlash(reportFile))
	if *check {
		old, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if !bytes.Equal(bytes.ReplaceAll(old, []byte("\r\n"), []byte("\n")), report) {
			return fmt.Errorf("%s is not up to date; run: go run ./ci/rows", reportFile)
		}
	} else if err := os.WriteFile(name, report, 0o644); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, summary)
	return err
}

// account reads the rows, the tests and the documents below root and returns
// the report with its last word for the terminal, or every fault it found.
func account(root string) (report []byte, summary string, err error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(rowsFile)))
	if err != nil {
		return nil, "", err
	}
	rows, err := parseRows(rowsFile, string(text))
	if err != nil {
		return nil, "", err
	}
	files, err := source.Load(root)
	if err != nil {
		return nil, "", err
	}
	proofs, faults := findProofs(rows, files)
	docs, err := documents(root)
	if err != nil {
		return nil, "", err
	}
	for _, d := range docs {
		faults = append(faults, findClaims(rows, proofs, d.name, d.text)...)
	}
	if len(faults) > 0 {
		return nil, "", errors.New(strings.Join(faults, "\n"))
	}
	report, summary = render(rows, proofs)
	return report, summary, nil
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
