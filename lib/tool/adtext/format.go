// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package adtext

import (
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// Value is a value in one of the Formats. JSON and XML have a notation only for what
// stands in an ad.
func Value(v classad.Value, format string) string {
	const name = "v"
	switch format {
	case Old:
		return v.Text(classad.Old)
	case JSON:
		ad := classad.NewAd()
		ad.SetValue(name, v)
		return strings.TrimSuffix(strings.TrimPrefix(ad.JSON(), `{"`+name+`": `), "}")
	case XML:
		ad := classad.NewAd()
		ad.SetValue(name, v)
		return strings.TrimSuffix(strings.TrimPrefix(ad.XML(), `<c><a n="`+name+`">`), "</a></c>")
	}
	return v.Text(classad.New)
}

// Format is a whole ad in one of the Formats, private attributes included: it is
// for the one whose file it is. The old syntax has its attributes by name.
func Format(ad *classad.Ad, format string) string {
	switch format {
	case New:
		return ad.TextAll(classad.New) + "\n"
	case JSON:
		return ad.JSONAll() + "\n"
	case XML:
		return ad.XMLAll() + "\n"
	}
	names := ad.Names()
	slices.Sort(names)
	var b []byte
	for _, name := range names {
		if e, ok := ad.Lookup(name); ok {
			b = append(b, name...)
			b = append(b, " = "...)
			b = append(e.AppendText(b, classad.Old), '\n')
		}
	}
	return string(b)
}
