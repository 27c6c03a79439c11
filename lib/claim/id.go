// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// Secret is the part of a claim id whose knowledge is the right to use the
// claim. It prints as "***" wherever a formatter, logger or encoder meets it.
type Secret string

const redacted = "***"

// String hides the secret.
func (Secret) String() string { return redacted }

// GoString hides the secret.
func (Secret) GoString() string { return redacted }

// Format hides the secret under every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText hides the secret from encoders. What must keep it (a journal,
// the wire) says so with Reveal.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue hides the secret from slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

// ID names a claim. Its public part is "<address>#start#sequence", to which
// the secret is joined by another '#' on the wire. IDs are comparable; the
// zero ID names nothing.
type ID struct {
	Public string
	Secret Secret
}

// NewID builds the id of the seq-th claim of a daemon that answers at address
// (a sinful string with its angle brackets) and started at start, in Unix
// seconds.
func NewID(address string, start, seq int64, secret Secret) ID {
	return ID{Public: fmt.Sprintf("%s#%d#%d", address, start, seq), Secret: secret}
}

// String returns the public part followed by "#...", as the field's logs do.
func (id ID) String() string {
	if id == (ID{}) {
		return ""
	}
	return id.Public + "#..."
}

// Wire returns the whole id, secret included: "<address>#start#seq#secret".
func (id ID) Wire() string { return id.Public + "#" + id.Secret.Reveal() }

// IsZero reports whether id names nothing.
func (id ID) IsZero() bool { return id == ID{} }

// maxID bounds what ParseID looks at.
const maxID = 64 << 10

// ParseID reads a whole claim id as Wire writes it.
func ParseID(text string) (ID, error) {
	bad := func(why string) (ID, error) {
		return ID{}, errs.E("claim.ParseID", errs.Invalid, "", fmt.Errorf("%s: want <address>#start#sequence#secret", why))
	}
	if len(text) > maxID {
		return bad("claim id is too long")
	}
	if !strings.HasPrefix(text, "<") {
		return bad("claim id does not start with '<'")
	}
	end := strings.IndexByte(text, '>')
	if end < 0 {
		return bad("claim id has no '>'")
	}
	rest, ok := strings.CutPrefix(text[end+1:], "#")
	if !ok {
		return bad("address is not followed by '#'")
	}
	start, rest, ok := strings.Cut(rest, "#")
	if !ok || !digits(start) {
		return bad("start time is not a number")
	}
	seq, secret, ok := strings.Cut(rest, "#")
	if !ok || !digits(seq) {
		return bad("sequence is not a number")
	}
	if secret == "" {
		return bad("secret is empty")
	}
	return ID{Public: text[:len(text)-len(secret)-1], Secret: Secret(secret)}, nil
}

func digits(s string) bool {
	if s == "" || len(s) > 19 {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
