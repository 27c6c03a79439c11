// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"crypto/subtle"
	"fmt"
	"log/slog"
)

// Secret is key material: the bytes of a key file, a signature, a derived key.
// It prints as "***" wherever a formatter, logger or encoder meets it.
type Secret []byte

const redacted = "***"

// String hides the secret.
func (Secret) String() string { return redacted }

// GoString hides the secret.
func (Secret) GoString() string { return redacted }

// Format hides the secret under every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText hides the secret from encoders.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON hides the secret from encoders that would take the bytes.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// LogValue hides the secret from slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// Reveal returns the secret itself. The caller must not change it.
func (s Secret) Reveal() []byte { return s }

// sealed keeps a secret in a field of a value that may be printed: of fields
// that are not exported package fmt sees the bytes and not the methods above,
// of a function in them only the address.
type sealed func() Secret

func seal(s Secret) sealed { return func() Secret { return s } }

func (s sealed) open() Secret {
	if s == nil {
		return nil
	}
	return s()
}

// Equal compares in a time that does not depend on the contents.
func (s Secret) Equal(other []byte) bool { return subtle.ConstantTimeCompare(s, other) == 1 }
