// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"

	"github.com/execpoint/execpoint/lib/config"
)

// Starters let in whom the daemon would: what a configuration says about
// security means the same to them.
func TestSecurityText(t *testing.T) {
	t.Parallel()
	text := "ETC = /etc/pool\nALLOW_DAEMON = $(FRIENDS) *@family\nFRIENDS = a@x, b@y\nSTARTER.ALLOW_READ = c@z\nSTARTD.ALLOW_READ = nobody@x\n" +
		"SEC_DEFAULT_AUTHENTICATION = REQUIRED\nSEC_TOKEN_BLACKLIST_EXPR = regexp(\"^a$\", sub)\nUID_DOMAIN = here.test\nSTART = True\n"
	load := func(text string) *config.Snapshot {
		t.Helper()
		s, err := config.Load(config.Options{Root: "c", Subsystem: "STARTER", ReadFile: func(string) ([]byte, error) { return []byte(text), nil }})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	whole := load(text)
	part := load(securityText(whole))
	for _, name := range []string{
		"ALLOW_DAEMON", "ALLOW_READ", "SEC_DEFAULT_AUTHENTICATION", "SEC_TOKEN_BLACKLIST_EXPR", "UID_DOMAIN", "SEC_TOKEN_SYSTEM_DIRECTORY",
		"SEC_PASSWORD_DIRECTORY", "SEC_CLIENT_AUTHENTICATION", "SEC_READ_AUTHENTICATION",
	} {
		if got, want := part.String(name), whole.String(name); got != want {
			t.Errorf("%s is %q at the starter, %q at the daemon", name, got, want)
		}
	}
	for name, want := range map[string]string{"ALLOW_DAEMON": "a@x, b@y *@family", "ALLOW_READ": "c@z", "SEC_TOKEN_BLACKLIST_EXPR": `regexp("^a$", sub)`} {
		if got := part.String(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, ok := part.Lookup("FRIENDS"); ok {
		t.Error("starters are told what is no matter of theirs")
	}
}
