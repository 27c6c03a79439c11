// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// readLocals reads what LOCAL_CONFIG_DIR and LOCAL_CONFIG_FILE name. The
// directories are read again at the end if a file changed their list.
func (l *loader) readLocals() {
	required := l.localRequired()
	dirs := l.value("LOCAL_CONFIG_DIR")
	l.readDirs(dirs, required)
	l.readLocalFiles(required)
	if again := l.value("LOCAL_CONFIG_DIR"); again != dirs {
		l.readDirs(again, required)
	}
	if file := l.value("USER_CONFIG_FILE"); file != "" && l.o.Home != "" && !l.stop {
		if !strings.HasPrefix(file, "/") && !strings.HasPrefix(file, `\`) {
			file = l.o.Home + "/.condor/" + file
		}
		if text, p := l.open(file, false, LocalMissing); p == nil {
			l.readText(&source{name: file}, text)
		}
	}
}

func (l *loader) localRequired() bool {
	value := l.value("REQUIRE_LOCAL_CONFIG_FILE")
	if value == "" {
		return true
	}
	switch lower(value[0]) {
	case 't':
		return true
	case 'f':
		return false
	}
	required, ok := evalBool(value)
	if !ok {
		l.report(l.about("REQUIRE_LOCAL_CONFIG_FILE", &Problem{Class: BadValue, Value: value, Message: "is not a boolean", Want: "true or false"}))
		return true
	}
	return required
}

// readLocalFiles reads the files of LOCAL_CONFIG_FILE. A file may change the
// list; then the new list counts, less what was read already.
func (l *loader) readLocalFiles(required bool) {
	const most = 1000
	var done []string
	list := l.value("LOCAL_CONFIG_FILE")
	queue := sourceList(list)
	for len(queue) > 0 && !l.stop {
		name := queue[0]
		queue = queue[1:]
		text, p := l.open(name, isPiped(name), LocalMissing)
		switch {
		case p == nil:
			l.readText(&source{name: name}, text)
		case p.Class == LocalMissing && !required:
		default:
			l.report(l.localProblem("LOCAL_CONFIG_FILE", name, p))
		}
		if done = append(done, name); len(done) >= most {
			l.report(l.about("LOCAL_CONFIG_FILE", &Problem{Class: TooMuch, Message: "names too many files"}))
			return
		}
		if now := l.value("LOCAL_CONFIG_FILE"); now != list {
			list = now
			queue = slices.DeleteFunc(sourceList(list), func(s string) bool { return slices.Contains(done, s) })
		}
	}
}

// localProblem makes a problem of opening a local source one of the knob that
// names the source.
func (l *loader) localProblem(knob, name string, p *Problem) *Problem {
	p = l.about(knob, p)
	p.Value = name
	return p
}

func (l *loader) readDirs(list string, required bool) {
	if list == "" || l.o.ReadDir == nil {
		return
	}
	var exclude *regexp.Regexp
	if pattern := l.value("LOCAL_CONFIG_DIR_EXCLUDE_REGEXP"); pattern != "" {
		re, err := regexp.Compile(pattern)
		if err != nil {
			l.report(l.about("LOCAL_CONFIG_DIR_EXCLUDE_REGEXP", &Problem{Class: BadValue, Value: pattern, Message: "is not a regular expression: " + err.Error(), Want: "a regular expression"}))
			return
		}
		exclude = re
	}
	for _, dir := range splitList(list) {
		names, err := l.o.ReadDir(dir)
		if err != nil {
			continue // a directory that does not exist holds no files
		}
		names = slices.Sorted(slices.Values(names))
		for _, name := range names {
			if l.stop {
				return
			}
			if exclude != nil && exclude.MatchString(name) {
				continue
			}
			path := strings.TrimSuffix(dir, "/") + "/" + name
			text, p := l.open(path, false, LocalMissing)
			switch {
			case p == nil:
				l.readText(&source{name: path}, text)
			case required:
				l.report(l.localProblem("LOCAL_CONFIG_DIR", path, p))
			}
		}
	}
}

// open returns the text of a file or what a command writes. missing is the
// class of the Problem when there is no such thing.
func (l *loader) open(name string, command bool, missing Class) (string, *Problem) {
	var data []byte
	var err error
	problem := func(class Class, message, want string) *Problem {
		return &Problem{File: name, Class: class, Message: message, Want: want}
	}
	if command {
		if l.o.RunCommand == nil {
			return "", problem(BadCommand, "commands are not allowed as a configuration source here", "a file")
		}
		cmd := strings.TrimRight(name, "| ")
		data, err = l.o.RunCommand(cmd)
		var exit *ExitError
		if errors.As(err, &exit) {
			l.sources = append(l.sources, name)
			return string(data), problem(BadCommand, "command ended with "+exit.Error(), "exit status 0")
		}
	} else {
		if l.o.ReadFile == nil {
			return "", problem(missing, "there is no way to read files here", "")
		}
		data, err = l.o.ReadFile(name)
	}
	if err != nil {
		return "", problem(missing, err.Error(), "a readable source")
	}
	l.bytes += len(data)
	if len(data) > maxSourceBytes || l.bytes > maxTotalBytes {
		l.stop = true
		return "", problem(TooMuch, "the configuration is too large", "")
	}
	l.sources = append(l.sources, name)
	return string(data), nil
}

// sourceList splits a list of files. A command is one item whatever it holds.
func sourceList(list string) []string {
	if isPiped(list) {
		return []string{list}
	}
	return splitList(list)
}

// splitList splits at commas and blanks.
func splitList(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r < 0x80 && isSpace(byte(r)) })
}

func isPiped(name string) bool { return strings.Contains(name, "|") }

func directoryOf(path string) string {
	i := strings.LastIndexAny(path, `/\`)
	switch {
	case i < 0:
		return "."
	case i == 0:
		return path[:1]
	}
	return path[:i]
}
