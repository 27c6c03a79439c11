// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "testing"

func TestCredFile(t *testing.T) {
	t.Parallel()
	for service, want := range map[string]string{
		"scitokens": "scitokens.use", "box*private": "box_private.use", "a.b": "a.b.use",
		"": "", "../x": "", "/etc/x": "", "a/b": "", ".ssh": "", "a\x00": "", "..": "",
	} {
		if got, err := credFile(service); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", service, got, err)
		}
	}
}
