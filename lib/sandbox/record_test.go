// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/execpoint/execpoint/lib/host"
)

// A record that is written again and again, with many processes in it, stays one
// that a sweep reads.
func TestRecordStaysReadable(t *testing.T) {
	t.Parallel()
	execute := t.TempDir()
	starter := host.ProcID{PID: 4712, Start: 9}
	s := create(t, execute, starter)
	var strays []host.ProcID
	for i := range mostStrays + 10 {
		strays = append(strays, host.ProcID{PID: 1<<22 - i, Start: 1 << 60})
	}
	for i := range 20 {
		if err := s.Record(Record{Boot: "now", Starter: starter, Strays: strays[:len(strays)-i]}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(s.Dir(), ownDir, recordFile))
		if err != nil || info.Size() > maxRecord {
			t.Fatalf("the record has %d bytes (%v)", info.Size(), err)
		}
	}
	c := &census{boot: "now"}
	if swept, err := Sweep(execute, c, nil); err != nil || len(swept.Removed) != 1 || len(c.killed) != 1 || len(c.killed[0].Strays) != mostStrays-9 {
		t.Errorf("%+v, %v; %d families killed", swept, err, len(c.killed))
	}
}
