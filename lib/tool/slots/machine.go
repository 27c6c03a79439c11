// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/slot"
)

// Machine is a machine as a file tells of it, for trying a configuration before it
// is deployed. It is a machine.Scanner.
type Machine struct {
	Host      string                     `json:"name"`      // host name, Elsewhere if empty
	Cpus      int                        `json:"cpus"`      // at least 1
	MemoryMiB int64                      `json:"memory_mb"` // at least 1
	DiskKiB   int64                      `json:"disk_kb"`   // free for EXECUTE
	SwapKiB   int64                      `json:"swap_kb"`
	Resources map[string]json.RawMessage `json:"resources"`

	Elsewhere string           `json:"-"` // the host name of who looks
	Source    string           `json:"-"` // the file, for messages
	Found     []slot.Inventory `json:"-"` // what inventory programs would say of the resources
}

// Limits of a description: more is a mistake.
const (
	MaxMachine = 1 << 20 // bytes of the text
	maxCpus    = 1 << 16
	maxAmount  = 1 << 50 // of memory, disk and swap
)

// ParseMachine reads a description, of at most MaxMachine bytes. A resource is a
// number, a list of the names of its instances, or an object with what an inventory
// program would print. Errors begin with source, the file that the text is from.
func ParseMachine(source string, text []byte) (*Machine, error) {
	if len(text) > MaxMachine {
		return nil, fmt.Errorf("%s: the description of a machine is longer than %d bytes", source, MaxMachine)
	}
	d := &Machine{Source: source}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(d); err != nil {
		line := 1 + bytes.Count(text[:min(in.InputOffset(), int64(len(text)))], []byte("\n"))
		return nil, fmt.Errorf("%s:%d: not the description of a machine: %w: want an object with cpus, memory_mb, disk_kb, swap_kb and resources", source, line, err)
	}
	if end := int(in.InputOffset()); len(bytes.TrimSpace(text[end:])) > 0 {
		rest := len(text) - len(bytes.TrimLeft(text[end:], " \t\r\n"))
		return nil, fmt.Errorf("%s:%d: there is more behind the description: want one object", source, 1+bytes.Count(text[:rest], []byte("\n")))
	}
	for _, v := range []struct {
		field            string
		have, least, max int64
	}{
		{"cpus", int64(d.Cpus), 1, maxCpus}, {"memory_mb", d.MemoryMiB, 1, maxAmount},
		{"disk_kb", d.DiskKiB, 0, maxAmount}, {"swap_kb", d.SwapKiB, 0, maxAmount},
	} {
		if v.have < v.least || v.have > v.max {
			return nil, fmt.Errorf("%s: %s is %d: want %d to %d", source, v.field, v.have, v.least, v.max)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Resources)) {
		if !isName(name) {
			return nil, fmt.Errorf("%s: resource %q: want a name of letters, digits and underscores", source, name)
		}
		ad, err := describedResource(name, d.Resources[name])
		if err != nil {
			return nil, fmt.Errorf("%s: resource %s: %w", source, name, err)
		}
		d.Found = append(d.Found, slot.Inventory{Resource: name, Ad: ad})
	}
	return d, nil
}

// isName reports whether a resource can be called so: ads have attributes of that name.
func isName(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// ReadMachine reads a description from a file. elsewhere is the host name of who looks.
func ReadMachine(path, elsewhere string) (*Machine, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxMachine+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	d, err := ParseMachine(path, text)
	if err != nil {
		return nil, err
	}
	d.Elsewhere = elsewhere
	return d, nil
}

func describedResource(name string, raw json.RawMessage) (*classad.Ad, error) {
	var (
		count float64
		ids   []string
	)
	ad := classad.NewAd()
	switch text := strings.TrimSpace(string(raw)); {
	case strings.HasPrefix(text, "{"):
		return classad.ParseJSON(text)
	case json.Unmarshal(raw, &ids) == nil && text != "null":
		for _, id := range ids {
			if id == "" || strings.ContainsAny(id, ", \t\r\n") {
				return nil, fmt.Errorf("%q is no name of one instance: want one without commas and blanks", id)
			}
		}
		ad.SetString("Detected"+name, strings.Join(ids, ", "))
	case json.Unmarshal(raw, &count) == nil && text != "null" && count >= 0 && count <= maxAmount:
		if count == float64(int64(count)) {
			ad.SetInt("Detected"+name, int64(count))
		} else {
			ad.SetReal("Detected"+name, count)
		}
	default:
		return nil, fmt.Errorf("%s is no amount: want a number, a list of names or an object such as {\"Detected%s\": \"a, b\"}", text, name)
	}
	return ad, nil
}

// Name is where the facts come from.
func (d *Machine) Name() string { return d.Source }

// Scan puts the description into an inventory.
func (d *Machine) Scan(_ context.Context, inv *machine.Inventory) error {
	name := d.Host
	if name == "" {
		name = d.Elsewhere
	}
	inv.FullHostname = name
	inv.Hostname, _, _ = strings.Cut(name, ".")
	inv.DetectedCores, inv.PhysicalCores, inv.UsableCores, inv.UsablePhysicalCores = d.Cpus, d.Cpus, d.Cpus, d.Cpus
	inv.PhysicalMemoryMiB, inv.DetectedMemoryMiB, inv.UsableMemoryMiB = d.MemoryMiB, d.MemoryMiB, d.MemoryMiB
	inv.SwapKiB = d.SwapKiB
	inv.Execute = machine.Disk{FreeKiB: d.DiskKiB, AvailableKiB: d.DiskKiB, TotalKiB: d.DiskKiB}
	inv.Learn(d.Source, "FullHostname", "Hostname", "DetectedCores", "PhysicalCores", "UsableCores", "UsablePhysicalCores",
		"PhysicalMemoryMiB", "DetectedMemoryMiB", "UsableMemoryMiB", "SwapKiB", "Execute")
	return nil
}
