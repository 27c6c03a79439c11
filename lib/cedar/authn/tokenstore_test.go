// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/execpoint/execpoint/lib/errs"
)

// A token that was issued to us is kept where it is the first to be shown, in
// place of an older one, readable for nobody else.
func TestTokensStore(t *testing.T) {
	t.Parallel()
	key, err := NewSigningKey("POOL", []byte("k"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "etc", "tokens.d")
	tokens := Tokens{Dirs: []string{dir, t.TempDir()}, Subsystem: "STARTD"}
	token := func(id string) string {
		return made(t, key, "HS256", poolHeader, `{"iss":"pool.test","sub":"condor@pool.test","iat":1,"jti":"`+id+`"}`)
	}
	for _, id := range []string{"one", "two"} {
		path, err := tokens.Store(token(id))
		if err != nil || path != filepath.Join(dir, "STARTD_auto_generated_token") {
			t.Fatalf("%s, %v", path, err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != token(id)+"\n" {
			t.Errorf("it holds %q, %v", text, err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has mode %v, %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
	for _, bad := range []string{"", "a.b", token("x") + "\n" + token("y")} {
		if path, err := tokens.Store(bad); !errs.Is(err, errs.Invalid) {
			t.Errorf("%.20q is kept in %s: %v", bad, path, err)
		}
	}
	if _, err := (Tokens{Subsystem: "STARTD"}).Store(token("x")); !errs.Is(err, errs.NotFound) {
		t.Errorf("without a directory: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Tokens{Subsystem: "STARTD", Dirs: []string{filepath.Join(dir, "file")}}).Store(token("x")); !errs.Is(err, errs.Broken) {
		t.Errorf("where no directory can be: %v", err)
	}
}
