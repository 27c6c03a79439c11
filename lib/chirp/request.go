// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chirp

import (
	"strconv"
	"strings"
)

// MaxLine bounds a line of a request in bytes, its end included.
const MaxLine = 5120

// group is what a job must be allowed for a request.
type group uint8

const (
	groupFiles group = iota
	groupUpdates
	groupDelayed
)

// verb is a request there is: its name and the form of its arguments, s for a
// word and d for a number.
type verb struct {
	name  string
	args  string
	group group
}

// verbs are all requests.
var verbs = [...]verb{
	{"open", "ssd", groupFiles}, {"close", "d", groupFiles}, {"read", "dd", groupFiles}, {"write", "dd", groupFiles},
	{"pread", "ddd", groupFiles}, {"pwrite", "ddd", groupFiles}, {"sread", "ddddd", groupFiles}, {"swrite", "ddddd", groupFiles},
	{"lseek", "ddd", groupFiles}, {"fsync", "d", groupFiles}, {"unlink", "s", groupFiles}, {"rename", "ss", groupFiles},
	{"mkdir", "sd", groupFiles}, {"rmdir", "s", groupFiles}, {"rmall", "s", groupFiles}, {"link", "ss", groupFiles},
	{"symlink", "ss", groupFiles}, {"readlink", "sd", groupFiles}, {"stat", "s", groupFiles}, {"lstat", "s", groupFiles},
	{"fstat", "d", groupFiles}, {"statfs", "s", groupFiles}, {"fstatfs", "d", groupFiles}, {"access", "sd", groupFiles},
	{"chmod", "sd", groupFiles}, {"fchmod", "dd", groupFiles}, {"chown", "sdd", groupFiles}, {"lchown", "sdd", groupFiles},
	{"fchown", "ddd", groupFiles}, {"truncate", "sd", groupFiles}, {"ftruncate", "dd", groupFiles}, {"utime", "sdd", groupFiles},
	{"getfile", "s", groupFiles}, {"putfile", "sdd", groupFiles}, {"getdir", "s", groupFiles}, {"getlongdir", "s", groupFiles},
	{"lookup", "s", groupFiles}, {"whoami", "d", groupFiles}, {"whoareyou", "sd", groupFiles},
	{"get_job_attr", "s", groupUpdates}, {"set_job_attr", "ss", groupUpdates}, {"constrain", "s", groupUpdates},
	{"ulog", "s", groupUpdates}, {"version", "", groupUpdates},
	{"set_job_attr_delayed", "ss", groupDelayed}, {"get_job_attr_delayed", "s", groupDelayed},
}

func (a Allow) has(g group) bool {
	switch g {
	case groupFiles:
		return a.IO
	case groupUpdates:
		return a.Updates
	default:
		return a.Delayed
	}
}

// request is one line of a client, taken apart.
type request struct {
	verb  verb
	words [2]string
	ints  [5]int64
}

// parseRequest reads a line without its end. What stands behind the arguments
// is not looked at. ok is false if there is no such request.
func parseRequest(line string) (r request, ok bool) {
	name, rest := nextWord(line)
	for _, v := range verbs {
		if v.name == name {
			r.verb, ok = v, true
			break
		}
	}
	if !ok {
		return r, false
	}
	words, ints := 0, 0
	for _, kind := range r.verb.args {
		if strings.Trim(rest, blanks) == "" {
			return r, false
		}
		var word string
		word, rest = nextWord(rest)
		if kind == 's' {
			r.words[words] = word
			words++
			continue
		}
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return r, false
		}
		r.ints[ints] = n
		ints++
	}
	return r, true
}

const blanks = " \t\r\v\f"

// nextWord cuts the first word off a line. A backslash takes the meaning from
// the character behind it.
func nextWord(line string) (word, rest string) {
	line = strings.TrimLeft(line, blanks)
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case strings.IndexByte(blanks, c) >= 0:
			return b.String(), line[i:]
		case c == '\\':
			if i++; i < len(line) {
				b.WriteByte(line[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}
