// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/config"
)

// Directories are named by absolute paths, and not below a LOCAL_DIR that nobody
// has set.
func TestCheckPlaces(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		home string   // of the user condor
		want []string // knobs
	}{
		{"LOCAL_DIR = /var\n", "", nil},
		{"LOG = /var/log\nEXECUTE = /var/execute\n", "", nil},
		{"local_dir = var\n", "", []string{"LOCAL_DIR"}},
		{"", "", []string{"LOG", "EXECUTE"}},
		{"", "/home/condor", nil},
		{"LOCAL_DIR =\n", "/home/condor", []string{"LOG", "EXECUTE", "LOCK", "RUN"}},
		{"LOG = /var/log\n", "", []string{"EXECUTE"}},
		{"LOCAL_DIR = $(NOTHING)\nLOG = /var/log\n", "", []string{"EXECUTE"}},
		{"LOCAL_DIR = /var\nlog = log\nEXECUTE = ./x\n", "", []string{"LOG", "EXECUTE", "LOCK", "RUN"}},
	} {
		facts := map[string]string{}
		if tt.home != "" {
			facts["TILDE"] = tt.home
		}
		s, err := config.Parse("c", tt.text, config.Options{Facts: facts, Subsystem: "STARTD"})
		if err != nil {
			t.Fatal(err)
		}
		var problems config.Problems
		var got []string
		if err := CheckPlaces(s, tt.home != ""); err != nil && !errors.As(err, &problems) {
			t.Fatal(err)
		}
		for _, p := range problems {
			got = append(got, p.Knob)
		}
		if strings.ToUpper(strings.Join(got, " ")) != strings.Join(tt.want, " ") {
			t.Errorf("%q (%s): %v, want %v", tt.text, tt.home, problems, tt.want)
		}
	}
}
