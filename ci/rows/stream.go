// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// event is one line of what go test -json writes (go doc test2json), less
// what is of no use here.
type event struct {
	Action  string
	Package string
	Test    string // empty: of the package
	Output  string
}

// maxLine bounds what is held of a stream at a time. test2json cuts what a test
// prints into pieces of a few KiB.
const maxLine = 1 << 20

// fromGo is what the go command, the compiler and the linker write to standard
// error beside the events; a run whose two outputs went into one file has it.
var fromGo = regexp.MustCompile(`^(go: |# |FAIL\b|ok  \t|\?   \t|vet: |warning: |too many errors|note: |\t|\S+\.(go|s|c|h):\d+(:\d+)?: )`)

// readStream hands the events of r to see, one at a time, and keeps none. The
// error begins with name:line.
func readStream(name string, r io.Reader, see func(event)) (err error) {
	n := 0
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}()
	in := bufio.NewReaderSize(r, maxLine)
	open := map[string]bool{} // packages that began and did not end
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			n++
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("a line of more than %d bytes is not from go test -json", maxLine)
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
		end := err != nil
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			e, ok, err := parseEvent(line)
			if err != nil {
				if end {
					err = fmt.Errorf("the last line is cut off: %w", err)
				}
				return err
			}
			if ok {
				if e.Package != "" {
					open[e.Package] = !e.ends()
				}
				see(e)
			}
		}
		if end {
			return unfinished(open)
		}
	}
}

// ends says whether the package of the event is through with it.
func (e event) ends() bool {
	return e.Test == "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip")
}

// parseEvent reads one line; ok is false for one that the go command wrote as
// plain text.
func parseEvent(line []byte) (e event, ok bool, err error) {
	if line[0] != '{' {
		if fromGo.Match(line) {
			return e, false, nil
		}
		return e, false, fmt.Errorf("neither an event of go test -json nor a word of the go command: %s", excerpt(line))
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return e, false, fmt.Errorf("%w: %s", err, excerpt(line))
	}
	switch {
	case e.Action == "":
		return e, false, fmt.Errorf("an event without an Action: %s", excerpt(line))
	case e.Test != "" && e.Package == "":
		return e, false, fmt.Errorf("an event of test %q without a Package", e.Test)
	}
	return e, true, nil
}

// unfinished is the error of a stream that ends in the middle of a package.
func unfinished(open map[string]bool) error {
	first, count := "", 0
	for p, is := range open {
		if is {
			if count++; first == "" || p < first {
				first = p
			}
		}
	}
	switch {
	case count == 0:
		return nil
	case count == 1:
		return fmt.Errorf("the stream ends before package %s does", first)
	}
	return fmt.Errorf("the stream ends before package %s and %d more do", first, count-1)
}

// excerpt quotes the beginning of a line for a message.
func excerpt(line []byte) string {
	const most = 60
	if len(line) > most {
		return fmt.Sprintf("%q…", line[:most])
	}
	return fmt.Sprintf("%q", line)
}
