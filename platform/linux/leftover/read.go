// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package leftover

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Object is one of System V.
type Object struct {
	ID         int
	Owner, Was uint32 // the user whose it is, and the one who made it
	Creator    int    // the process that made it; of shared memory alone
	Bytes      int64
	Changed    time.Time // when it was made, or given to somebody
}

// Objects reads a table of /proc/sysvipc, whose first line names the columns: shm, sem
// and msg have different ones.
func Objects(text []byte) ([]Object, error) {
	var all []Object
	var columns []string
	for line := range bytes.Lines(text) {
		words := strings.Fields(string(line))
		if columns == nil {
			columns = words
			continue
		}
		if len(words) == 0 {
			continue
		}
		if len(words) != len(columns) {
			return all, fmt.Errorf("a line of %d columns, want %d", len(words), len(columns))
		}
		var o Object
		for i, name := range columns {
			if name == "perms" { // octal, and of no use
				continue
			}
			n, err := strconv.ParseInt(words[i], 10, 64)
			if err != nil {
				return all, fmt.Errorf("%s: %q is no number", name, words[i])
			}
			switch name {
			case "shmid", "semid", "msqid":
				o.ID = int(n)
			case "uid":
				o.Owner = uint32(n)
			case "cuid":
				o.Was = uint32(n)
			case "cpid":
				o.Creator = int(n)
			case "size", "cbytes":
				o.Bytes = n
			case "ctime":
				o.Changed = time.Unix(n, 0)
			}
		}
		all = append(all, o)
	}
	return all, nil
}

// Mounts lists the mount points of a mountinfo that lie below dir, the deepest first:
// one that is mounted on another comes later there, and is to be undone earlier.
func Mounts(text []byte, dir string) []string {
	var below []string
	for line := range bytes.Lines(text) {
		words := strings.Fields(string(line))
		if len(words) < 5 {
			continue
		}
		if at := unescaped(words[4]); strings.HasPrefix(at, dir+"/") {
			below = append([]string{at}, below...)
		}
	}
	return below
}

// unescaped undoes the octal numbers that stand for blanks, tabs, line ends and
// backslashes.
func unescaped(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
