// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// PoolKey is the id of the pool's signing key.
const PoolKey = "POOL"

// Bounds of what is read from disk.
const (
	maxKeyFile   = 64 << 10
	maxTokenFile = 1 << 20
	maxDirEntry  = 4096 // entries of a directory of keys or tokens
)

// Scramble returns b the way key files hold it; doing it twice gives b back.
// It hides a key from a glance and from nothing else.
func Scramble(b []byte) Secret {
	pattern := [...]byte{0xDE, 0xAD, 0xBE, 0xEF}
	out := make(Secret, len(b))
	for i, c := range b {
		out[i] = c ^ pattern[i%len(pattern)]
	}
	return out
}

// PoolPassword reads the contents of SEC_PASSWORD_FILE: cut at the first NUL
// as it lies there, unscrambled, cut at the first NUL again. It is not doubled
// yet.
func PoolPassword(file []byte) (Secret, error) {
	cut, _, _ := bytes.Cut(file, []byte{0})
	password, _, _ := bytes.Cut(Scramble(cut), []byte{0})
	if len(password) == 0 {
		return nil, errs.E("authn.PoolPassword", errs.Invalid, "", errors.New("the file holds no password"))
	}
	return Secret(password), nil
}

// SigningKey is a key that tokens are signed with.
type SigningKey struct {
	ID  string
	key sealed // derived, 32 bytes
}

// NewSigningKey makes the key called id of the contents of its file. The
// pool's key is doubled before use, others are not.
func NewSigningKey(id string, file []byte) (SigningKey, error) {
	ikm := Scramble(file)
	if id == PoolKey {
		ikm = slices.Concat(ikm, ikm)
	}
	return deriveSigningKey(id, ikm)
}

func deriveSigningKey(id string, ikm Secret) (SigningKey, error) {
	const op = "authn.NewSigningKey"
	if len(ikm) == 0 {
		return SigningKey{}, errs.E(op, errs.Invalid, id, errors.New("the key file is empty"))
	}
	key, err := derive(ikm, []byte("htcondor"), "master jwt")
	if err != nil {
		return SigningKey{}, errs.E(op, errs.Internal, id, err)
	}
	return SigningKey{ID: id, key: seal(key)}, nil
}

// derive is HKDF with SHA-256 to 32 bytes.
func derive(secret Secret, salt []byte, info string) (Secret, error) {
	return hkdf.Key(sha256.New, secret, salt, info, 32)
}

// SigningKeys is where the signing keys of this machine lie. It reads the
// files each time it is asked, so that a key which is put there or taken away
// counts from the next connection on.
type SigningKeys struct {
	// PoolFile is the file of the pool's key, Dir the directory of the others,
	// each in a file of its id. Either may be "".
	PoolFile, Dir string
	// Exclude, if set, matches the names in Dir that are no keys.
	Exclude *Pattern
	// PoolIsPassword cuts the pool's key at NUL as PoolPassword does
	// (SEC_TOKEN_POOL_SIGNING_KEY_IS_PASSWORD).
	PoolIsPassword bool
	// Files reads them. Nil reads nothing: there are then no keys.
	Files host.PrivateFiles
}

// ErrNoKey is the cause when a signing key is not there.
var ErrNoKey = errors.New("there is no such signing key here")

// Key returns the key called id. The id may come from a peer: it is the name
// of a file in Dir and nothing else. A key that is not there is NotFound.
func (k SigningKeys) Key(id string) (SigningKey, error) {
	const op = "authn.SigningKeys.Key"
	path, err := k.path(id)
	if err != nil {
		return SigningKey{}, errs.E(op, errs.Other, quoteID(id), err)
	}
	file, err := k.Files.ReadPrivate(path, maxKeyFile)
	if err != nil {
		return SigningKey{}, errs.E(op, errs.Other, quoteID(id), err)
	}
	if id == PoolKey && k.PoolIsPassword {
		password, err := PoolPassword(file)
		if err != nil {
			return SigningKey{}, errs.E(op, errs.Other, quoteID(id), err)
		}
		return deriveSigningKey(id, slices.Concat(password, password))
	}
	return NewSigningKey(id, file)
}

func (k SigningKeys) path(id string) (string, error) {
	missing := errs.E("", errs.NotFound, "", ErrNoKey)
	if k.Files == nil {
		return "", missing
	}
	if id == PoolKey {
		if k.PoolFile == "" {
			return "", missing
		}
		return k.PoolFile, nil
	}
	if k.Dir == "" || !plainName(id) || k.excluded(id) {
		return "", missing
	}
	return filepath.Join(k.Dir, id), nil
}

func (k SigningKeys) excluded(name string) bool {
	return k.Exclude != nil && k.Exclude.MatchString(name)
}

// Names lists the keys that can be read, in order, as they are sent to peers.
// A directory that is not there has none.
func (k SigningKeys) Names() ([]string, error) {
	if k.Files == nil {
		return nil, nil
	}
	var names []string
	if k.PoolFile != "" && k.readable(k.PoolFile) {
		names = append(names, PoolKey)
	}
	entries, err := list(k.Dir)
	if err != nil {
		return nil, errs.E("authn.SigningKeys.Names", errs.Broken, k.Dir, err)
	}
	for _, name := range entries {
		// A file POOL in the directory is the pool's key only if it is PoolFile.
		if name != PoolKey && plainName(name) && !k.excluded(name) && k.readable(filepath.Join(k.Dir, name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (k SigningKeys) readable(path string) bool {
	_, err := k.Files.ReadPrivate(path, maxKeyFile)
	return err == nil
}

// list returns the names of what is in dir and is no directory, links
// included.
func list(dir string) ([]string, error) {
	if dir == "" {
		return nil, nil
	}
	d, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(maxDirEntry + 1)
	if len(entries) > maxDirEntry {
		return nil, fmt.Errorf("there are more than %d files", maxDirEntry)
	}
	if len(entries) == 0 && err != nil && !isEOF(err) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// plainName reports whether name can be that of one file in a directory, on
// every system. The peer may be unknown.
func plainName(name string) bool {
	if name == "" || len(name) > 255 || name == "." || name == ".." {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune(`/\:,"*?<>|`, r)
	})
}

// quoteID makes an id that may come from a peer fit for a message.
func quoteID(id string) string {
	if plainName(id) && len(id) <= 64 {
		return id
	}
	return fmt.Sprintf("%.64q", id)
}
