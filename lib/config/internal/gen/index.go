// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
)

// writeIndex writes the hash table by which a name finds its row without a
// search, and which families have a default at all.
func writeIndex(b *bytes.Buffer, single, family []row) {
	var names []string
	for _, r := range single {
		names = append(names, r.Name)
	}
	for _, r := range single {
		for _, alias := range r.Aliases {
			if !strings.EqualFold(alias, r.Name) {
				names = append(names, alias)
			}
		}
	}
	size := 1
	for size < 3*len(names) {
		size *= 2
	}
	index := make([]int, size)
	for at, name := range names {
		i := hashFold(name) & uint32(size-1)
		for index[i] != 0 {
			i = (i + 1) & uint32(size-1)
		}
		index[i] = at + 1
	}
	b.WriteString("\n// knobIndex holds, by hash of a name, its place in knobTable or behind that in aliasTable, from 1.\n")
	fmt.Fprintf(b, "var knobIndex = [%d]uint16{", size)
	for i, at := range index {
		if i%32 == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "%d,", at)
	}
	b.WriteString("\n}\n\n// impliedFamilies are the families that have a default, by their places in familyTable.\n")
	b.WriteString("var impliedFamilies = [...]uint8{")
	for i, r := range family {
		if r.implied {
			fmt.Fprintf(b, "%d,", i)
		}
	}
	b.WriteString("}\n")
}

// hashFold is the hash of table.go: FNV-1a over the name in lower case.
func hashFold(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}
