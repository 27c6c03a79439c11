// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"context"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/jobenv"
	"github.com/execpoint/execpoint/lib/machine/proctext"
)

// java asks the interpreter named JAVA, with JAVA_EXTRA_ARGUMENTS, for its
// properties. HTCondor runs a class of its own that prints them; every
// interpreter since version 7 prints them by itself.
func (p Prober) java(ctx context.Context, snap *config.Snapshot, found *classad.Ad) error {
	path := strings.TrimSpace(snap.String("JAVA"))
	if path == "" {
		return nil
	}
	extra, err := jobenv.ArgsFromSubmit(snap.String("JAVA_EXTRA_ARGUMENTS"))
	if err != nil {
		return errs.E("machine.java", errs.Invalid, "JAVA_EXTRA_ARGUMENTS", err)
	}
	argv := append([]string{path}, extra.List...)
	argv = append(argv, "-XshowSettings:properties", "-version")
	out, there, err := p.run(ctx, patience, argv)
	if err != nil || !there {
		return err
	}
	if out.Status != 0 {
		return failed(argv, out)
	}
	// They are printed where errors go.
	properties := JavaProperties(append(out.Stderr, out.Stdout...))
	any := false
	for _, a := range [...]struct{ attr, property string }{
		{"JavaVendor", "java.vendor"}, {"JavaVersion", "java.version"}, {"JavaSpecificationVersion", "java.specification.version"},
	} {
		if v := properties[a.property]; v != "" {
			found.SetString(a.attr, v)
			any = true
		}
	}
	if any {
		found.SetBool("HasJava", true)
	}
	return nil
}

// JavaProperties reads what a Java interpreter prints with
// -XshowSettings:properties: a line "    name = value" for each. Values that
// go on in further lines keep their first; of one that comes twice the first
// counts.
func JavaProperties(text []byte) map[string]string {
	found := make(map[string]string)
	for line := range bytes.Lines(text) {
		name, value, ok := strings.Cut(string(bytes.TrimRight(line, "\r\n")), " = ")
		name = strings.TrimSpace(name)
		if !ok || name == "" || strings.ContainsAny(name, " \t") || len(found) >= maxWords {
			continue
		}
		if _, twice := found[name]; !twice {
			value = strings.TrimSpace(value)
			found[name] = proctext.Printable(value[:min(len(value), maxWords)])
		}
	}
	return found
}
