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

// Write replaces the file at once: a reader sees the old or the new one.
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

// ReadAddress reads the address of another daemon from its file. Blank lines and
// those that begin with '#' do not count. The first line is the address, or the
// first of lines with attributes, of which MyAddress is the address.
func ReadAddress(text string) (cedar.Sinful, error) {
	if len(text) > MostAddressFile {
		return cedar.Sinful{}, errs.E("daemon.ReadAddress", errs.Invalid, "", fmt.Errorf("it has %d bytes; at most %d are read", len(text), MostAddressFile))
	}
	first := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if first == "" {
			if strings.HasPrefix(line, "<") {
				return cedar.ParseSinful(line)
			}
			first = line
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			break // no line of a file with attributes
		}
		value = strings.TrimSpace(value)
		if !strings.EqualFold(strings.TrimSpace(name), "MyAddress") || len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
			continue
		}
		if line = value[1 : len(value)-1]; !strings.HasPrefix(line, "<") {
			first = line
			break
		}
		return cedar.ParseSinful(line)
	}
	return cedar.Sinful{}, errs.E("daemon.ReadAddress", errs.Invalid, "", fmt.Errorf("it begins with %.80q; want an address <host:port…>, or MyAddress = \"…\"", first))
}

// MostAddressFile bounds an address file, in bytes.
const MostAddressFile = 64 << 10
