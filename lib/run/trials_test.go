// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/transfer"
)

// What is offered of the methods of two plugins, by what came of their trials.
func TestTrials(t *testing.T) {
	t.Parallel()
	s, err := config.Parse("x.conf", "HTTPS_TEST_URL = https://h/\ndav_test_url = dav://h/\nFTP_TEST_URL =\n_TEST_URL = x\n", config.Options{Subsystem: "STARTER"})
	if err != nil {
		t.Fatal(err)
	}
	urls := trialURLs(s)
	if len(urls) != 2 || urls["https"] != "https://h/" || urls["dav"] != "dav://h/" {
		t.Errorf("the URLs are %v", urls)
	}
	known := &transfer.Plugins{List: []transfer.Plugin{{Path: "/a", Methods: []string{"dav", "ftp"}}, {Path: "/b", Methods: []string{"dav", "https"}}}}
	a, b, secure := trial{"/a", "dav", "dav://h/"}, trial{"/b", "dav", "dav://h/"}, trial{"/b", "https", "https://h/"}
	for _, tt := range []struct {
		what             string
		made             trials
		methods, offline string
	}{
		{"not yet tried", nil, "data ftp http", ""},
		{"all work", trials{a: true, b: true, secure: true}, "data dav ftp http https", ""},
		{"one of two works", trials{a: false, b: true, secure: true}, "data dav ftp http https", "dav"},
		{"none works", trials{a: false, b: false, secure: false}, "data ftp http", "dav https"},
		{"tried with another URL", trials{{"/b", "https", "https://old/"}: true, a: true, b: true}, "data dav ftp http", ""},
	} {
		methods, offline := tt.made.offered(known, urls)
		if got := strings.Join(methods, " "); got != tt.methods {
			t.Errorf("%s: %q is offered, want %q", tt.what, got, tt.methods)
		}
		if got := strings.Join(offline, " "); got != tt.offline {
			t.Errorf("%s: %q is offline, want %q", tt.what, got, tt.offline)
		}
	}
}
