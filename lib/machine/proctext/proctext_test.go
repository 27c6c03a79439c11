// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package proctext

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func loadAvgTexts() []string {
	return []string{"0.03 0.09 0.08 3/93 14908\n", "12.50 1.00 0.00 1/1 1\n", "7\n", "", " \n", "-1.00 0 0", "nan 0 0",
		"1e3 0 0", "1.2.3 0 0", "99999999999999999999.00 0 0", "0x1p4 0 0", "..", "\x00\x01"}
}

func TestLoadAvg(t *testing.T) {
	t.Parallel()
	want := []float64{0.03, 12.5, 7}
	for i, text := range loadAvgTexts() {
		got, err := LoadAvg([]byte(text))
		if i < len(want) {
			if err != nil || got != want[i] {
				t.Errorf("LoadAvg(%q) = %v, %v, want %v", text, got, err, want[i])
			}
		} else if !errors.Is(err, ErrMalformed) {
			t.Errorf("LoadAvg(%q) = %v, %v, want an error", text, got, err)
		}
	}
}

func FuzzLoadAvg(f *testing.F) {
	for _, s := range loadAvgTexts() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if v, err := LoadAvg(text); err == nil && (v < 0 || v != v) {
			t.Errorf("LoadAvg(%q) = %v", text, v)
		}
	})
}

const meminfo = "MemTotal:       24684092 kB\nMemFree:        24282248 kB\nSwapCached:            0 kB\nSwapTotal:       2097148 kB\nSwapFree:        2000000 kB\nHugePages_Total:       0\n"

func TestMemKiB(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, field string
		want        int64
		ok          bool
	}{
		{meminfo, "MemTotal", 24684092, true},
		{meminfo, "SwapFree", 2000000, true},
		{meminfo, "Swap", 0, false},
		{meminfo, "HugePages_Total", 0, false}, // a count, not an amount
		{"MemTotal: -5 kB\n", "MemTotal", 0, false},
		{"MemTotal: 99999999999999999999999 kB\n", "MemTotal", 0, false},
		{"MemTotal:", "MemTotal", 0, false},
		{"", "MemTotal", 0, false},
	} {
		if got, ok := MemKiB([]byte(tt.text), tt.field); got != tt.want || ok != tt.ok {
			t.Errorf("MemKiB(%q, %s) = %d, %v, want %d, %v", tt.text, tt.field, got, ok, tt.want, tt.ok)
		}
	}
}

func FuzzMemKiB(f *testing.F) {
	f.Add([]byte(meminfo), "SwapFree")
	f.Add([]byte("MemTotal: 99999999999999999999999 kB\n"), "MemTotal")
	f.Fuzz(func(t *testing.T, text []byte, field string) {
		if n, ok := MemKiB(text, field); n < 0 || n != 0 && !ok {
			t.Errorf("MemKiB(%q, %q) = %d, %v", text, field, n, ok)
		}
	})
}

func limitTexts() []string {
	return []string{"max\n", "536870912\n", "0\n", "-1\n", "9223372036854771712\n", "18446744073709551615\n", "", "12 34\n", "lots\n"}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	type answer struct {
		n       int64
		limited bool
		bad     bool
	}
	want := []answer{{}, {n: 536870912, limited: true}, {limited: true}, {}, {}, {}, {bad: true}, {bad: true}, {bad: true}}
	for i, text := range limitTexts() {
		n, limited, err := Limit([]byte(text))
		if got := (answer{n, limited, errors.Is(err, ErrMalformed)}); got != want[i] {
			t.Errorf("Limit(%q) = %+v, want %+v", text, got, want[i])
		}
	}
}

func FuzzLimit(f *testing.F) {
	for _, s := range limitTexts() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if n, limited, err := Limit(text); n < 0 || n > 1<<60 || limited && err != nil {
			t.Errorf("Limit(%q) = %d, %v, %v", text, n, limited, err)
		}
	})
}

func cpuMaxTexts() []string {
	return []string{"max 100000\n", "150000 100000\n", "50000 100000", "100000\n", "0 100000\n", "100000 0\n", "-1 100000\n", "a b\n", ""}
}

func TestCPUMax(t *testing.T) {
	t.Parallel()
	type answer struct {
		cores   float64
		limited bool
		bad     bool
	}
	want := []answer{{}, {cores: 1.5, limited: true}, {cores: 0.5, limited: true},
		{bad: true}, {bad: true}, {bad: true}, {bad: true}, {bad: true}, {bad: true}}
	for i, text := range cpuMaxTexts() {
		cores, limited, err := CPUMax([]byte(text))
		if got := (answer{cores, limited, errors.Is(err, ErrMalformed)}); got != want[i] {
			t.Errorf("CPUMax(%q) = %+v, want %+v", text, got, want[i])
		}
	}
}

func FuzzCPUMax(f *testing.F) {
	for _, s := range cpuMaxTexts() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if cores, limited, _ := CPUMax(text); limited && !(cores > 0) {
			t.Errorf("CPUMax(%q) = %v", text, cores)
		}
	})
}

func uptimeTexts() []string {
	return []string{"350735.47 234388.90\n", "0.05 0.00\n", "12\n", "", "-3.00 1\n", "1.x 2\n", "9999999999999999 1\n", "99999999999 1\n"}
}

func TestUptime(t *testing.T) {
	t.Parallel()
	want := []time.Duration{350735*time.Second + 470*time.Millisecond, 50 * time.Millisecond, 12 * time.Second}
	for i, text := range uptimeTexts() {
		got, err := Uptime([]byte(text))
		if i < len(want) {
			if err != nil || got != want[i] {
				t.Errorf("Uptime(%q) = %v, %v, want %v", text, got, err, want[i])
			}
		} else if !errors.Is(err, ErrMalformed) {
			t.Errorf("Uptime(%q) = %v, %v, want an error", text, got, err)
		}
	}
}

func FuzzUptime(f *testing.F) {
	for _, s := range uptimeTexts() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if up, err := Uptime(text); up < 0 || up != 0 && err != nil {
			t.Errorf("Uptime(%q) = %v, %v", text, up, err)
		}
	})
}

// An error must stay readable whatever the file held.
func TestErrorsAreShort(t *testing.T) {
	t.Parallel()
	_, err := LoadAvg([]byte(strings.Repeat("\xff", 1<<16)))
	if err == nil || len(err.Error()) > 400 {
		t.Errorf("error of %d bytes", len(err.Error()))
	}
}

func BenchmarkLoadAvg(b *testing.B) {
	text := []byte(loadAvgTexts()[0])
	b.ReportAllocs()
	for b.Loop() {
		if _, err := LoadAvg(text); err != nil {
			b.Fatal(err)
		}
	}
}
