// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"strconv"
	"strings"
)

// Allow is a list of devices to show. The zero Allow shows all.
type Allow struct {
	numbers map[int]bool
	names   []string // beginnings of names with full UUIDs
	// Renumbered says that the libraries already left out what the numbers do
	// not name, and gave the rest new numbers.
	Renumbered bool
}

// Add adds the items of a comma-separated list: a number, with letters before
// it or not (0, CUDA0), or the beginning of a name (GPU-6a96, MIG-GPU-6a96).
func (a *Allow) Add(list string) {
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		digits := strings.TrimLeftFunc(item, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' })
		if n, err := strconv.ParseUint(digits, 10, 31); err == nil {
			if a.numbers == nil {
				a.numbers = make(map[int]bool)
			}
			a.numbers[int(n)] = true
			continue
		}
		a.names = append(a.names, item)
	}
}

// Numbered reports whether the list has a number.
func (a *Allow) Numbered() bool { return len(a.numbers) > 0 }

// device reports whether the device of this number is shown; id is its name
// with the full UUID, "" where it has none.
func (a *Allow) device(number int, id string) bool {
	if len(a.numbers) == 0 && len(a.names) == 0 {
		return true
	}
	if id != "" && a.named(id) {
		return true
	}
	if len(a.numbers) == 0 {
		return id == "" // no name to judge by
	}
	return a.Renumbered || a.numbers[number]
}

// managed reports whether a device that only NVML shows is shown.
func (a *Allow) managed(uuid string) bool {
	return len(a.numbers) == 0 && len(a.names) == 0 || a.named(uuid)
}

func (a *Allow) named(id string) bool {
	for _, name := range a.names {
		if strings.HasPrefix(id, name) {
			return true
		}
	}
	return false
}
