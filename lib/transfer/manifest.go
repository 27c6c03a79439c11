// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// manifestPrefix begins the name of the file that lists a checkpoint; the number
// of the checkpoint follows.
const manifestPrefix = "_condor_checkpoint_MANIFEST."

// manifestName is the file that lists a checkpoint.
func manifestName(number int) string { return fmt.Sprintf("%s%.4d", manifestPrefix, number) }

// manifestLine is one file of a checkpoint.
type manifestLine struct {
	sum  string // SHA-256 in hexadecimal
	name string // in the scratch directory
}

// manifestText is the manifest called name: a line for each file, as sha256sum
// -b prints it, and a last one for the lines before.
func manifestText(name string, files []manifestLine) []byte {
	var text []byte
	for _, f := range files {
		text = fmt.Appendf(text, "%s *%s\n", f.sum, f.name)
	}
	own := sha256.Sum256(text)
	return fmt.Appendf(text, "%s *%s\n", hex.EncodeToString(own[:]), name)
}

// destination is where a file of a checkpoint is stored.
func (c Checkpoint) destination(name string) string {
	return fmt.Sprintf("%s/%s/%.4d/%s", strings.TrimSuffix(c.Destination, "/"), strings.ReplaceAll(c.GlobalJobID, "#", "_"), c.Number, name)
}

// checkpoint makes the manifest of a checkpoint that goes to a URL: the files
// go there, and the manifest to the other end, by which it can clean up. It
// returns the name of the manifest's file.
func (u *sending) checkpoint(entries *[]entry) (string, error) {
	var files []manifestLine
	kept := (*entries)[:0:0]
	for _, e := range *entries {
		if e.dir || e.remote {
			continue // there are no directories behind URLs
		}
		if e.link {
			return "", errIsDirectory
		}
		if e.err != nil {
			return "", e.err
		}
		sum, err := u.checksum(e.source)
		if err != nil {
			return "", err
		}
		files = append(files, manifestLine{sum: sum, name: e.source})
		e.dest = u.p.Checkpoint.destination(e.source)
		kept = append(kept, e)
	}
	name := manifestName(u.p.Checkpoint.Number)
	text := manifestText(name, files)
	if err := writeNew(u.from, name, text, 0o600); err != nil {
		return "", err
	}
	*entries = append(kept, entry{source: name, name: name, size: int64(len(text)), mode: 0o600})
	return name, nil
}

// checksum is the SHA-256 of a file, in hexadecimal.
func (u *sending) checksum(name string) (string, error) {
	f, err := u.o.open(filepath.FromSlash(name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	return checksumOf(u.ctx, f)
}

// checksumOf is the SHA-256 of what r holds, in hexadecimal.
func checksumOf(ctx context.Context, r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, ctxReader{ctx, r}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ctxReader ends with the context of a transfer.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (r ctxReader) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(b)
}

// theirsToJudge reports whether the other end judges a checkpoint whose plugin
// ended well and reported, in full, that it could not store a file. This end then
// says that all went well: a shadow that hears of a failure here forgets the
// manifest with the rest and has the job held. One that learns it from the report
// keeps the manifest, by which it clears away the part that was stored, and wants
// the next checkpoint.
func (u *sending) theirsToJudge(o outcome) bool {
	if u.p.Checkpoint == nil || o.result != pluginWell {
		return false
	}
	for _, ad := range o.ads {
		well, ok := ad.EvalBool("TransferSuccess", nil)
		if !ok || text(ad, "TransferUrl") == "" || text(ad, "TransferFileName") == "" {
			return false
		}
		if _, why := ad.EvalString("TransferError", nil); !well && !why {
			return false
		}
	}
	return true
}
