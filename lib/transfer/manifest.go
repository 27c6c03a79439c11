// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// manifestName is the file that lists a checkpoint.
func manifestName(number int) string {
	return fmt.Sprintf("_condor_checkpoint_MANIFEST.%.4d", number)
}

// destination is where a file of a checkpoint is stored.
func (c Checkpoint) destination(name string) string {
	return fmt.Sprintf("%s/%s/%.4d/%s", strings.TrimSuffix(c.Destination, "/"), strings.ReplaceAll(c.GlobalJobID, "#", "_"), c.Number, name)
}

// checkpoint makes the manifest of a checkpoint that goes to a URL: the files
// go there, and the manifest to the other end, by which it can clean up. It
// returns the name of the manifest's file.
func (u *sending) checkpoint(entries *[]entry) (string, error) {
	var text strings.Builder
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
		fmt.Fprintf(&text, "%s *%s\n", sum, e.source)
		e.dest = u.p.Checkpoint.destination(e.source)
		kept = append(kept, e)
	}
	name := manifestName(u.p.Checkpoint.Number)
	own := sha256.Sum256([]byte(text.String()))
	fmt.Fprintf(&text, "%s *%s\n", hex.EncodeToString(own[:]), name)
	if err := writeNew(u.from, name, []byte(text.String()), 0o600); err != nil {
		return "", err
	}
	*entries = append(kept, entry{source: name, name: name, size: int64(text.Len()), mode: 0o600})
	return name, nil
}

// checksum is the SHA-256 of a file, in hexadecimal.
func (u *sending) checksum(name string) (string, error) {
	f, err := u.o.open(filepath.FromSlash(name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, ctxReader{u, f}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ctxReader ends with the context of a transfer.
type ctxReader struct {
	u *sending
	r io.Reader
}

func (r ctxReader) Read(b []byte) (int, error) {
	if err := r.u.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}
