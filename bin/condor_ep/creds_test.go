// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
)

// tokens makes the directory of this machine's tokens, with those of the job's user.
func (p place) tokens(t *testing.T, files map[string]string) string {
	t.Helper()
	name := ""
	if p.owner != nil {
		name = p.owner.Username
	} else if me, err := user.Current(); err != nil {
		t.Skip(err)
	} else {
		name = me.Username
	}
	dir := openDir(t, "tokens")
	if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range files {
		mode := os.FileMode(0o600)
		if text == "open to all" {
			mode = 0o644
		}
		if err := os.WriteFile(filepath.Join(dir, name, file), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const tokenJob = `executable = job.sh
output = out
log = log
+OAuthServicesNeeded = "scitokens box*private scitokens"
queue
`

// A job that asks for tokens finds those of its user on this machine, for its own eyes,
// and they are gone with it.
func TestTokens(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	dir := p.tokens(t, map[string]string{"scitokens.use": "one", "box_private.use": "two"})
	p.write(t, "ep.conf", "SEC_CREDENTIAL_DIRECTORY_OAUTH = "+dir+"\n")
	p.write(t, "job.sh", "#!/bin/sh\ncd $_CONDOR_CREDS && for f in *; do echo $f $(stat -c %a:%u $f) $(cat $f); done; id -u\n")
	p.write(t, "job.sub", tokenJob)
	status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub")
	if status != exitOK {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	lines := strings.Split(strings.TrimSpace(p.read(t, "out")), "\n")
	uid := lines[len(lines)-1]
	if got := strings.Join(lines[:len(lines)-1], "\n"); got != "box_private.use 600:"+uid+" two\nscitokens.use 600:"+uid+" one" {
		t.Errorf("the job of user %s has\n%s", uid, got)
	}
	p.nothingLeft(t)
}

// A token that is not there, or that others could read, holds the job; the owner may
// trust the directory as it is.
func TestTokensRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, conf string
		files      map[string]string
		why        string // "" if the job runs
	}{
		{"no directory", "", nil, "SEC_CREDENTIAL_DIRECTORY_OAUTH"},
		{"no token", "SEC_CREDENTIAL_DIRECTORY_OAUTH = @\n", map[string]string{"scitokens.use": "one"}, "box_private.use"},
		{"a token for all", "SEC_CREDENTIAL_DIRECTORY_OAUTH = @\n", map[string]string{"scitokens.use": "one", "box_private.use": "open to all"}, "others may reach it"},
		{"a trusted one", "SEC_CREDENTIAL_DIRECTORY_OAUTH = @\nTRUST_CREDENTIAL_DIRECTORY = true\n", map[string]string{"scitokens.use": "one", "box_private.use": "open to all"}, ""},
		{"no token to trust", "SEC_CREDENTIAL_DIRECTORY_OAUTH = @\nTRUST_CREDENTIAL_DIRECTORY = true\n", map[string]string{"scitokens.use": "one"}, "no token of this service"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.write(t, "ep.conf", strings.ReplaceAll(tt.conf, "@", p.tokens(t, tt.files)))
			p.write(t, "job.sh", "#!/bin/sh\nls $_CONDOR_CREDS\n")
			p.write(t, "job.sub", tokenJob)
			_, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub")
			log := p.read(t, "log")
			if tt.why == "" {
				if !strings.Contains(log, "(return value 0)") || p.read(t, "out") != "box_private.use\nscitokens.use\n" {
					t.Errorf("%s\n%s%s", log, stdout, stderr)
				}
				return
			}
			if !strings.Contains(log, "Job was held") || !strings.Contains(log, tt.why) {
				t.Errorf("want %q in\n%s\n%s%s", tt.why, log, stdout, stderr)
			}
			p.nothingLeft(t)
		})
	}
}
