// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// Tokens is where the tokens lie that this process may show.
type Tokens struct {
	// Dirs are looked at in order.
	Dirs []string
	// Exclude, if set, matches the names of files that are left out.
	Exclude *Pattern
	// Subsystem is whose "<subsystem>_auto_generated_token" is looked at first
	// in each directory.
	Subsystem string
	// Files reads them. Nil reads nothing: there are then no tokens.
	Files host.PrivateFiles
}

// Find returns the first token that a server of this trust domain, holding
// these signing keys, can verify, and that is not over at now. An empty trust
// domain or no keys leave that condition out. Where none is found the error is
// NotFound and says how many there were and what was wrong with the first.
func (t Tokens) Find(trustDomain string, issuerKeys []string, now time.Time) (SignedToken, error) {
	const op = "authn.Tokens.Find"
	if t.Files == nil {
		return SignedToken{}, errs.E(op, errs.NotFound, "", errors.New("there is no directory of tokens"))
	}
	var seen int
	var why error
	for _, dir := range t.Dirs {
		names, err := list(dir)
		if err != nil {
			why = firstOf(why, errs.E(op, errs.Broken, dir, err))
			continue
		}
		for _, name := range t.order(names) {
			path := filepath.Join(dir, name)
			file, err := t.Files.ReadPrivate(path, maxTokenFile)
			if err != nil {
				why = firstOf(why, err)
				continue
			}
			for number, line := range tokenLines(string(file)) {
				seen++
				token, err := ParseToken(line)
				if err == nil {
					err = fits(token.Claims, trustDomain, issuerKeys, now)
				}
				if err == nil {
					return token, nil
				}
				why = firstOf(why, fmt.Errorf("%s:%d: %w", path, number, err))
			}
		}
	}
	if why == nil {
		why = errors.New("there are no token files")
	}
	return SignedToken{}, errs.E(op, errs.NotFound, strings.Join(t.Dirs, ","), fmt.Errorf("none of %d tokens is for this server: %w", seen, why))
}

// Store keeps a token that was issued to us, in place of the one that was so
// before, where Find looks at first: "<subsystem>_auto_generated_token" in the
// first of the directories, which is made if it is not there. Nobody but the
// process's user may read it. It returns the path.
func (t Tokens) Store(token string) (string, error) {
	const op = "authn.Tokens.Store"
	if len(t.Dirs) == 0 || t.Subsystem == "" {
		return "", errs.E(op, errs.NotFound, "", errors.New("there is no directory of tokens (SEC_TOKEN_SYSTEM_DIRECTORY)"))
	}
	if _, err := ParseToken(token); err != nil || len(token) > maxTokenFile/2 {
		return "", errs.E(op, errs.Invalid, "", errors.Join(err, errors.New("the token is none")))
	}
	dir := t.Dirs[0]
	path := filepath.Join(dir, t.Subsystem+"_auto_generated_token")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", errs.E(op, errs.Broken, dir, err)
	}
	f, err := os.CreateTemp(dir, ".token-*~") // 0600, and of no pattern of tokens
	if err != nil {
		return "", errs.E(op, errs.Broken, dir, err)
	}
	_, err = f.WriteString(token + "\n")
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return "", errs.E(op, errs.Broken, path, errors.Join(err, os.Remove(f.Name())))
	}
	return path, nil
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// order puts the subsystem's own token first and leaves out what is excluded.
func (t Tokens) order(names []string) []string {
	own := t.Subsystem + "_auto_generated_token"
	var first, rest []string
	for _, name := range names {
		switch {
		case t.Exclude != nil && t.Exclude.MatchString(name):
		case t.Subsystem != "" && strings.EqualFold(name, own):
			first = append(first, name)
		default:
			rest = append(rest, name)
		}
	}
	return append(first, rest...)
}

// tokenLines yields the tokens of a file with the numbers of their lines.
func tokenLines(file string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		number := 0
		for line := range strings.Lines(file) {
			number++
			line = strings.TrimSpace(line)
			if line != "" && line[0] != '#' && !yield(number, line) {
				return
			}
		}
	}
}

// fits says why a token is none for this server.
func fits(c TokenClaims, trustDomain string, issuerKeys []string, now time.Time) error {
	switch {
	case c.KeyID == "":
		return errors.New("the token does not name its key (kid)")
	case len(issuerKeys) > 0 && !slices.Contains(issuerKeys, c.KeyID):
		return fmt.Errorf("the server does not have the key %s", quoteID(c.KeyID))
	case trustDomain != "" && c.Issuer != trustDomain:
		return fmt.Errorf("the token is of the trust domain %.64q, the server of %.64q", c.Issuer, trustDomain)
	case c.Subject == "" && c.ID == "":
		return errors.New("the token has no subject")
	case !c.Expires.IsZero() && now.Unix() > c.Expires.Unix():
		return errs.E("", errs.Expired, "", errors.New("the token is over since "+c.Expires.UTC().Format(time.RFC3339)))
	}
	return nil
}
