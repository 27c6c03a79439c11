// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/execpoint/execpoint/lib/classad"
)

// PrintJSON prints the ads of all slots as one list. The error is the writer's.
func (d *Division) PrintJSON(w io.Writer) error {
	b := []byte("[")
	for _, shown := range d.Each {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, '\n')
		b = shown.AppendJSON(b)
	}
	_, err := w.Write(append(b, "\n]\n"...))
	return err
}

// PrintLong prints the ads of all slots in the old syntax, an empty line between them.
// The error is the writer's.
func (d *Division) PrintLong(w io.Writer) error {
	var b []byte
	for _, shown := range d.Each {
		if len(b) > 0 {
			b = append(b, '\n')
		}
		b = shown.AppendText(b, classad.Old)
	}
	_, err := w.Write(b)
	return err
}

// PrintTable prints a line for each slot, with what it has. The error is the writer's.
func (d *Division) PrintTable(w io.Writer) error {
	if d.Ledger.Len() == 0 {
		_, err := fmt.Fprintln(w, "There would be no slot.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := "NAME\tTYPE\tCPUS\tMEMORY\tDISK\tSWAP"
	for _, r := range d.Ledger.Resources() {
		head += "\t" + strings.ToUpper(r.Name)
	}
	fmt.Fprintln(t, head)
	for s := range d.Ledger.Slots() {
		kind := s.Kind.String()
		if s.Backfill {
			kind += " backfill"
		}
		row := fmt.Sprintf("%s\t%s\t%v\t%d MiB\t%d KiB\t%d KiB", s.Name(), kind, s.Free.Cpus, s.Free.MemoryMiB, s.Free.DiskKiB, s.Free.SwapKiB)
		for _, r := range d.Ledger.Resources() {
			c, _ := s.Free.Find(r.Name)
			row += fmt.Sprintf("\t%d", c.Count)
			if len(c.Assets) > 0 {
				row += " (" + strings.Join(c.Assets, " ") + ")"
			}
		}
		if s.Broken != nil {
			row += "\tbroken: " + s.Broken.Reason
		}
		fmt.Fprintln(t, row)
	}
	return t.Flush()
}
