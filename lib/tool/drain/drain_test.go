// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"testing"

	"github.com/execpoint/execpoint/lib/observe"
)

// TestRefused: words that exclude one another make no request.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{Graceful: true, Fast: true}, "-fast and -graceful exclude one another"},
		{Options{Resume: true, Exit: true}, "-exit-on-completion and -resume-on-completion exclude one another"},
		{Options{Cancel: true, Reason: "x"}, "-cancel takes no other option than -request-id"},
		{Options{Cancel: true, Quick: true}, "-cancel takes no other option than -request-id"},
		{Options{RequestID: "7"}, "-request-id is for -cancel"},
	} {
		if _, err := tt.o.Request(); err == nil || err.Error() != tt.want {
			t.Errorf("%+v: %v, want %s", tt.o, err, tt.want)
		}
	}
}

// TestThreeAreRefusedAlike: of more than two that exclude one another the same two are
// named each time.
func TestThreeAreRefusedAlike(t *testing.T) {
	t.Parallel()
	for range 100 {
		if _, err := (Options{Graceful: true, Quick: true, Fast: true}).Request(); err == nil || err.Error() != "-fast and -graceful exclude one another" {
			t.Fatal(err)
		}
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	req, err := Options{Cancel: true, RequestID: "7"}.Request()
	if err != nil || req.Op != observe.OpResume || req.Subject != "7" {
		t.Errorf("got %+v, %v", req, err)
	}
	for id, want := range map[string]string{"": "nothing was draining", "7": "cancelled the draining with request id 7"} {
		if got := Said(req, observe.Response{DrainID: id}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
