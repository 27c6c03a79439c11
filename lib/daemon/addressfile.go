// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// AddressFile tells tools on this machine where a daemon is.
type AddressFile struct {
	Path     string // <SUBSYSTEM>_ADDRESS_FILE; "" writes none
	Version  string // the whole $CondorVersion: …$
	Platform string // the whole $CondorPlatform: …$
	// Extra are further attributes; nil for none.
	Extra *classad.Ad
}

// Text returns what the file holds for an address.
func (f AddressFile) Text(address cedar.Sinful) string {
	text := address.String() + "\n" + f.Version + "\n" + f.Platform + "\n"
	if f.Extra != nil && f.Extra.Len() > 0 {
		text += strings.TrimRight(f.Extra.Text(classad.Old), "\n") + "\n"
	}
	return text
}

// Write replaces the file at once: whoever reads it sees the old or the new.
func (f AddressFile) Write(address cedar.Sinful) error {
	if f.Path == "" {
		return nil
	}
	wrong := func(err error) error { return errs.E("daemon.AddressFile", errs.Broken, f.Path, err) }
	fresh := f.Path + ".new"
	if err := os.WriteFile(fresh, []byte(f.Text(address)), 0o644); err != nil {
		return wrong(err)
	}
	if err := os.Rename(fresh, f.Path); err != nil {
		return wrong(errors.Join(err, os.Remove(fresh)))
	}
	return nil
}

// Remove takes the file away, if it is still ours: one that another daemon
// wrote meanwhile stays.
func (f AddressFile) Remove(address cedar.Sinful) error {
	if f.Path == "" {
		return nil
	}
	text, err := os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && firstLine(string(text)) == address.String() {
		err = os.Remove(f.Path)
	}
	if err != nil {
		return errs.E("daemon.AddressFile", errs.Broken, f.Path, err)
	}
	return nil
}

// ReadAddress reads the address of another daemon from its file: on the first
// line, or behind MyAddress.
func ReadAddress(text string) (cedar.Sinful, error) {
	line := strings.TrimSpace(firstLine(text))
	if value, ok := strings.CutPrefix(line, "MyAddress"); ok {
		value = strings.TrimSpace(value)
		if value, ok = strings.CutPrefix(value, "="); ok {
			line = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	if !strings.HasPrefix(line, "<") {
		return cedar.Sinful{}, errs.E("daemon.ReadAddress", errs.Invalid, "", fmt.Errorf("the first line is %.80q; want an address <host:port…> or MyAddress = \"…\"", line))
	}
	return cedar.ParseSinful(line)
}
