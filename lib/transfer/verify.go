// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// A checkpoint that was stored at a URL comes back by plugins, which promise
// nothing about what they bring. Its manifest comes back from the shadow's spool,
// and tells whether every file is as it was stored. Manifest and files are the
// word of the job's user: a plugin of the job may have written both.

// maxManifest bounds the bytes of a manifest: it is read as a whole.
const maxManifest = 32 << 20

// CheckpointError is a checkpoint that did not come back as it was stored. The
// job must not start from it.
type CheckpointError struct {
	Number int    // of the checkpoint; -1 if more than one came
	Reason string // in HTCondor's words, by which scripts find it in the job's log
}

func (e *CheckpointError) Error() string { return e.Reason }

// VerifyCheckpoint compares the files in scratch with the manifest that came with
// them, and removes the manifest. Without a manifest there is nothing to compare:
// the job has no checkpoint yet, or none at a URL. The error is a
// *CheckpointError, that of ctx, or one of the scratch directory itself.
func VerifyCheckpoint(ctx context.Context, scratch *os.Root) error {
	name, number, err := findManifest(scratch)
	if err != nil || name == "" {
		return err
	}
	bad := func(format string, args ...any) error {
		return &CheckpointError{Number: number, Reason: fmt.Sprintf(format, args...) + ", aborting."}
	}
	text, err := readMost(scratch, name, maxManifest)
	if err != nil {
		return bad("Invalid MANIFEST file")
	}
	files, ok := parseManifest(name, text)
	if !ok {
		return bad("Invalid MANIFEST file")
	}
	if len(files) == 0 { // HTCondor refuses it as well, without words
		return bad("The MANIFEST lists no file")
	}
	// Each file is read once, however often it is listed.
	sums := map[string]string{}
	for _, f := range files {
		key := path.Clean(f.name)
		sum, seen := sums[key]
		if !seen {
			sum, err = checksumAt(ctx, scratch, f.name)
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			if err != nil {
				return bad("Failed to open checkpoint file ('%s') to compute checksum.", f.name)
			}
			sums[key] = sum
		}
		if sum != f.sum {
			return bad("Checkpoint file '%s' did not have expected checksum (%s vs %s).", f.name, sum, f.sum)
		}
	}
	return scratch.Remove(name)
}

// findManifest finds the manifest at the top of scratch; name is "" if there is
// none.
func findManifest(scratch *os.Root) (name string, number int, err error) {
	entries, err := top(scratch)
	if err != nil {
		return "", 0, err
	}
	for _, e := range entries {
		n, ok := manifestNumber(e.Name())
		if !ok {
			continue
		}
		if name != "" {
			return "", 0, &CheckpointError{Number: -1, Reason: "Found more than one MANIFEST file, aborting."}
		}
		name, number = e.Name(), n
	}
	return name, number, nil
}

// manifestNumber is the number of the checkpoint whose manifest has this name.
func manifestNumber(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, manifestPrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	return int(n), err == nil
}

// parseManifest reads a manifest called name. It is false if the last line does
// not hold the checksum of those before it.
func parseManifest(name string, text []byte) (files []manifestLine, ok bool) {
	last := bytes.LastIndexByte(bytes.TrimSuffix(text, []byte("\n")), '\n') + 1
	own := sha256.Sum256(text[:last])
	if end := lineOf(text[last:]); end.name != name || end.sum != hex.EncodeToString(own[:]) {
		return nil, false
	}
	for line := range bytes.Lines(text[:last]) {
		files = append(files, lineOf(line))
	}
	return files, true
}

// lineOf reads one line: the checksum, a blank, perhaps a * for files that are
// no text, and the name.
func lineOf(line []byte) manifestLine {
	sum, name, _ := strings.Cut(string(bytes.Trim(line, " \t\r\n\v\f")), " ")
	return manifestLine{sum: sum, name: strings.TrimPrefix(name, "*")}
}

// checksumAt is the checksum of a plain file in root. A name that leads out of it
// is that of no file.
func checksumAt(ctx context.Context, root *os.Root, name string) (string, error) {
	f, err := openPlain(root, filepath.FromSlash(name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	return checksumOf(ctx, f)
}

// openPlain opens a plain file. It does not open a pipe, which would wait for a
// writer.
func openPlain(root *os.Root, name string) (*os.File, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fs.ErrInvalid
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fs.ErrInvalid, err, f.Close())
	}
	return f, nil
}
