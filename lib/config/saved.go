// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
)

// savedFormat is the first line of a saved Snapshot.
const savedFormat = "execpoint configuration 1"

// Saved is a Snapshot as written by Save: what a running Execution Point
// knows, for a tool that asks later.
type Saved struct {
	Format    string `json:"format"`
	Version   string `json:"version"`
	Subsystem string `json:"subsystem"`
	LocalName string `json:"local_name,omitempty"`

	// Settings are in order of names. They are not part of the first line.
	Settings []SavedSetting `json:"-"`
}

// SavedSetting is one name of a Saved.
type SavedSetting struct {
	Name    string  `json:"name"`
	Raw     string  `json:"raw"`
	Value   string  `json:"value"`
	At      string  `json:"at"` // Origin.Location
	Default *string `json:"default,omitempty"`
	Used    bool    `json:"used"`
}

// Save writes all names as lines of JSON: first who this is, then one object
// for each name, its value expanded. What was used since the reading is
// marked. A setting that only restates its default is written as the default.
func (s *Snapshot) Save(w io.Writer) error {
	buf := bufio.NewWriter(w)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(Saved{Format: savedFormat, Version: Version, Subsystem: s.m.subsys, LocalName: s.m.local}); err != nil {
		return err
	}
	rows := s.Rows()
	for i := 0; i < len(rows); i++ {
		row, used := rows[i], rows[i].Used
		for i+1 < len(rows) && equalFold(rows[i+1].Name, row.Name) {
			if row.Restated {
				row = rows[i+1]
			}
			i++
			used = used || rows[i].Used
		}
		one := SavedSetting{Name: row.Name, Raw: row.Raw, At: row.Origin.Location(), Used: used}
		x := s.expansion(row.Name)
		x.names = append(x.names, row.Name)
		one.Value = x.expand(row.Raw)
		if text, ok := s.DefaultText(row.Name); ok {
			one.Default = &text
		}
		if err := enc.Encode(one); err != nil {
			return err
		}
	}
	return buf.Flush()
}

const notSaved = "is not a saved configuration"

// ReadSaved reads what Save wrote.
func ReadSaved(r io.Reader) (*Saved, error) {
	dec := json.NewDecoder(io.LimitReader(r, maxTotalBytes))
	var out Saved
	if err := dec.Decode(&out); err != nil || out.Format != savedFormat {
		return nil, &Problem{Class: Syntax, Message: notSaved, Want: "a first line with format " + savedFormat}
	}
	for {
		var one SavedSetting
		switch err := dec.Decode(&one); {
		case errors.Is(err, io.EOF):
			return &out, nil
		case err != nil:
			return nil, &Problem{Class: Syntax, Message: notSaved + ": " + err.Error(), Want: "one JSON object for each name"}
		case one.Name == "":
			return nil, &Problem{Class: Syntax, Message: notSaved + ": a setting has no name"}
		}
		out.Settings = append(out.Settings, one)
	}
}
