// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A log that cannot be put aside once goes on, says why, and is put aside later:
// its limit is not lost.
func TestRotationFailsOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		limit LogLimit
		wait  time.Duration // between two records
	}{
		{"size", LogLimit{Bytes: 100}, time.Second},
		{"age", LogLimit{Age: time.Hour}, 10 * time.Minute},
	} {
		path := filepath.Join(t.TempDir(), "StartLog")
		now := time.Now()
		l, err := OpenLog(path, tt.limit, 1, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		record := strings.Repeat("r", 60) + "\n"
		write := func(times int) {
			t.Helper()
			for range times {
				now = now.Add(tt.wait)
				if n, err := l.Write([]byte(record)); n != len(record) || err != nil {
					t.Fatalf("%s: %d, %v", tt.name, n, err)
				}
			}
		}
		// What is in its place keeps the log from being put aside.
		if err := os.MkdirAll(filepath.Join(path+".old", "x"), 0o755); err != nil {
			t.Fatal(err)
		}
		write(20)
		text, err := os.ReadFile(path)
		if err != nil || strings.Count(string(text), record) != 20 {
			t.Errorf("%s: the log holds %d of 20 records, %v", tt.name, strings.Count(string(text), record), err)
		}
		if !strings.Contains(string(text), path+".old") || !strings.Contains(string(text), "cannot be put aside") {
			t.Errorf("%s: it does not say why it grows:\n%s", tt.name, text)
		}
		if n := strings.Count(string(text), "cannot be put aside"); n > 1+int(20*tt.wait/rotateAgain) {
			t.Errorf("%s: it says so %d times", tt.name, n)
		}
		if err := os.RemoveAll(path + ".old"); err != nil {
			t.Fatal(err)
		}
		now = now.Add(rotateAgain)
		write(1)
		old, err := os.ReadFile(path + ".old")
		if err != nil || strings.Count(string(old), record) != 20 {
			t.Errorf("%s: nothing was put aside once it could be: %v", tt.name, err)
		}
		if text, err = os.ReadFile(path); err != nil || string(text) != record {
			t.Errorf("%s: the log goes on with %q, %v", tt.name, text, err)
		}
	}
}
