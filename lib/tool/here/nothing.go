// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package here

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/execpoint/execpoint/lib/tool/words"
)

// Nothing says that nothing runs, and what the last ones said before they ended.
func (f Found) Nothing(w io.Writer) {
	fmt.Fprintln(w, ErrNone)
	for _, d := range f.ended {
		if line := lastLine(d.Log); line != "" {
			fmt.Fprintf(w, "the log of one that ended, %s, ends with:\n  %s\n", words.Printable(d.Log), line)
		}
	}
}

// mostLastLine bounds the last line of a log, in bytes.
const mostLastLine = 4096

// lastLine is the last line of a file that is not blank, "" if there is none, without
// what a terminal would obey: jobs and peers have a say in what a log holds.
func lastLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	} else if _, err := f.Seek(-min(info.Size(), mostLastLine), io.SeekEnd); err != nil {
		return ""
	}
	last := ""
	for s := bufio.NewScanner(io.LimitReader(f, mostLastLine)); s.Scan(); {
		if text := strings.TrimSpace(s.Text()); text != "" {
			last = text
		}
	}
	return words.Printable(last)
}
