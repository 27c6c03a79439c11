// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"slices"
)

// recording is what one reading was made from: the options and whatever came in
// through their functions. It is what As reads again. A recording does not change
// once the reading is over.
type recording struct {
	o Options

	// name and text are the root of Parse; parsed tells them from those of Load.
	name, text string
	parsed     bool

	files, commands map[string]recorded
	dirs            map[string]listed
}

type recorded struct {
	text string
	err  error
}

type listed struct {
	names []string
	err   error
}

// record returns a recording of a reading by o, and the options to read with.
// Everything is asked for as o has it, each time: a reading may look for a file
// that it has written itself since.
func record(o Options) (*recording, Options) {
	o.Overrides, o.Later, o.Env, o.Facts = slices.Clone(o.Overrides), slices.Clone(o.Later), slices.Clone(o.Env), maps.Clone(o.Facts)
	r := &recording{o: o, files: map[string]recorded{}, commands: map[string]recorded{}, dirs: map[string]listed{}}
	read, list, run, write := o.ReadFile, o.ReadDir, o.RunCommand, o.WriteFile
	if read != nil {
		o.ReadFile = func(path string) ([]byte, error) {
			data, err := read(path)
			r.files[path] = recorded{string(data), err}
			return data, err
		}
	}
	if list != nil {
		o.ReadDir = func(path string) ([]string, error) {
			names, err := list(path)
			r.dirs[path] = listed{slices.Clone(names), err}
			return names, err
		}
	}
	if run != nil {
		o.RunCommand = func(command string) ([]byte, error) {
			data, err := run(command)
			r.commands[command] = recorded{string(data), err}
			return data, err
		}
	}
	if write != nil {
		o.WriteFile = func(path string, data []byte) error {
			err := write(path, data)
			if err == nil {
				r.files[path] = recorded{string(data), nil}
			}
			return err
		}
	}
	return r, o
}

// again returns options that give what was recorded, and what was not asked for
// then as the recorded options do.
func (r *recording) again() Options {
	o := r.o
	o.Trace = nil
	if read := r.o.ReadFile; read != nil {
		o.ReadFile = func(path string) ([]byte, error) {
			if was, ok := r.files[path]; ok {
				return []byte(was.text), was.err
			}
			return read(path)
		}
	}
	if list := r.o.ReadDir; list != nil {
		o.ReadDir = func(path string) ([]string, error) {
			if was, ok := r.dirs[path]; ok {
				return slices.Clone(was.names), was.err
			}
			return list(path)
		}
	}
	if run := r.o.RunCommand; run != nil {
		o.RunCommand = func(command string) ([]byte, error) {
			if was, ok := r.commands[command]; ok {
				return []byte(was.text), was.err
			}
			return run(command)
		}
	}
	return o
}

// As returns the configuration as a daemon of another subsystem reads it, or of
// another local name: by STARTER.X for a starter, and with what "if $(IsStarter)"
// or a file named after $(SUBSYSTEM) says. It is made from what this Snapshot was
// read from, so that both are of the same moment whatever became of the files
// since; only what this reading did not ask for is read or run now. Facts, the
// environment and what was set from afar are the same for both. The error is a
// Problems.
func (s *Snapshot) As(subsystem, localName string) (*Snapshot, error) {
	if equalFold(subsystem, s.m.subsys) && equalFold(localName, s.m.local) {
		return s, nil
	}
	o := s.from.again()
	o.Subsystem, o.LocalName = subsystem, localName
	if s.from.parsed {
		return Parse(s.from.name, s.from.text, o)
	}
	return Load(o)
}

// NoteUse marks as used what another Snapshot, which As has made of this one, was
// asked for until now. It changes no answer, only what Rows and Save say of use.
func (s *Snapshot) NoteUse(of *Snapshot) {
	for i := range of.m.table.entries {
		if of.memory.places[i].used.Load() {
			if e := s.m.table.find("", of.m.table.entries[i].name); e != nil {
				s.memory.places[e.at].used.Store(true)
			}
		}
	}
	for at := range knobTable {
		if of.memory.places[of.memory.entries+at].used.Load() {
			s.memory.places[s.memory.entries+at].used.Store(true)
		}
	}
}
