// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/errs"
)

// AddressFiles are the files in which daemons of this machine show where they
// are. A collector is configured with port 0 where its port is chosen when it
// starts: then its file tells the port. What a file tells is believed, so only
// files may be read that the daemons of this machine have written.
type AddressFiles struct {
	Collector string // COLLECTOR_ADDRESS_FILE
	Schedd    string // SCHEDD_ADDRESS_FILE
	// ScheddName is the name of the schedd that writes Schedd.
	ScheddName string
}

// AddressFilesFrom reads where the files are.
func AddressFilesFrom(c *config.Snapshot) AddressFiles {
	return AddressFiles{
		Collector:  addressFile(c, "COLLECTOR_ADDRESS_FILE", "LOG", ".collector_address"),
		Schedd:     addressFile(c, "SCHEDD_ADDRESS_FILE", "SPOOL", ".schedd_address"),
		ScheddName: scheddName(c.String("SCHEDD_NAME"), c.String("HOSTNAME"), c.String("FULL_HOSTNAME")),
	}
}

// addressFile is a file that a knob names, or else one in a directory of the
// configuration.
func addressFile(c *config.Snapshot, knob, dir, otherwise string) string {
	if path := c.String(knob); path != "" {
		return path
	}
	if d := c.String(dir); d != "" {
		return filepath.Join(d, otherwise)
	}
	return ""
}

// scheddName is the name of this machine's schedd: the machine's, or SCHEDD_NAME
// with the machine's behind it unless it has an '@' or is the machine's already.
func scheddName(configured, host, full string) string {
	if strings.EqualFold(configured, host) || strings.EqualFold(configured, full) {
		return full
	}
	return ad.DaemonName(configured, full)
}

// FindCollector returns where a collector is. For port 0, with or without the id
// of a shared port, it reads the collector's file, and it does so at each call: a
// collector that starts again has another port. As long as the file is not there
// or has no port, because the shared port has none yet, the error is
// errs.Transient.
func (f AddressFiles) FindCollector(at cedar.Sinful, read func(path string) ([]byte, error)) (cedar.Sinful, error) {
	if at.Port != 0 {
		return at, nil
	}
	const op = "directory.FindCollector"
	if f.Collector == "" {
		return cedar.Sinful{}, errs.E(op, errs.Invalid, at.String(), errors.New("port 0 needs COLLECTOR_ADDRESS_FILE, or LOG with .collector_address in it"))
	}
	found, err := readAddress(f.Collector, read)
	if err != nil {
		return cedar.Sinful{}, errs.E(op, errs.Transient, at.String(), err)
	}
	return found, nil
}

// FindSchedd returns where the access point of a name is, if it is the schedd of
// this machine. It fails with errs.NotFound if the name is another's.
func (f AddressFiles) FindSchedd(name string, read func(path string) ([]byte, error)) (cedar.Sinful, error) {
	const op = "directory.FindSchedd"
	if f.Schedd == "" || name == "" || !strings.EqualFold(name, f.ScheddName) {
		return cedar.Sinful{}, errs.E(op, errs.NotFound, name, errors.New("it is not the schedd of this machine"))
	}
	found, err := readAddress(f.Schedd, read)
	if err != nil {
		return cedar.Sinful{}, errs.E(op, errs.Transient, name, err)
	}
	return found, nil
}

// readAddress reads an address that can be connected to.
func readAddress(path string, read func(path string) ([]byte, error)) (cedar.Sinful, error) {
	text, err := read(path)
	if err != nil {
		return cedar.Sinful{}, err
	}
	at, err := daemon.ReadAddress(string(text))
	if err != nil {
		return cedar.Sinful{}, fmt.Errorf("%s: %w", path, err)
	}
	if at.Port <= 0 {
		return cedar.Sinful{}, fmt.Errorf("%s: %s has no port; it is written anew once the shared port is there", path, at)
	}
	return at, nil
}
