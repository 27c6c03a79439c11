// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// A job that is held when it has run for some time does not begin in the second
// in which its shadow did; what is known of the shadow for longer than that is
// not waited for.
func TestUntilOld(t *testing.T) {
	t.Parallel()
	const limited = "AllowedExecuteDuration = 60"
	for _, tt := range []struct {
		name, ad    string
		known, want time.Duration
	}{
		{"at once", limited, 0, time.Second},
		{"after some input", limited, 400 * time.Millisecond, 600 * time.Millisecond},
		{"after a second", limited, time.Second, 0},
		{"after much input", limited, time.Minute, 0},
		{"the clock was set back", limited, -time.Hour, time.Second},
		{"an expression", "AllowedExecuteDuration = RequestCpus * 60", 0, time.Second},
		{"without a limit", "AllowedJobDuration = 60", 0, 0},
	} {
		ad, err := classad.ParseAd(tt.ad, classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		if got := untilOld(ad, tt.known); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
