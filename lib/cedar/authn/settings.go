// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"crypto/rand"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/host"
)

// System is what the methods need of the machine and the process. The zero
// value of each field leaves out what needs it.
type System struct {
	Files  host.PrivateFiles // keys, passwords, tokens
	Owners host.Owners       // FS; nil where the system has no such thing
	// User is who runs this process, which CLAIMTOBE claims. Condor is the
	// user for whom FS takes root (FS_ROOT_TO_CONDOR).
	User, Condor string
	// Home is where that user's own tokens may lie, "" for a process that acts
	// for the whole machine, as one of root does.
	Home string
	// ReadFile reads certificates and their keys; nil is os.ReadFile.
	ReadFile func(path string) ([]byte, error)
	// Now tells the time for tokens and certificates; nil is time.Now.
	Now func() time.Time
	// Rand is where challenges come from; nil is crypto/rand.
	Rand io.Reader
}

func (s *System) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

func (s *System) random() io.Reader {
	if s.Rand == nil {
		return rand.Reader
	}
	return s.Rand
}

func (s *System) read(path string) ([]byte, error) {
	if s.ReadFile == nil {
		return os.ReadFile(path)
	}
	return s.ReadFile(path)
}

// Settings is what the configuration says of the methods. See SettingsFrom for
// the knob behind each field.
type Settings struct {
	UIDDomain, TrustDomain string
	Subsystem              string // whose automatic token is looked at first

	FSDir                               string
	FSBinding, FSUnsafe, FSRootToCondor bool

	PoolKeyFile, KeyDir string // signing keys
	PoolIsPassword      bool
	TokenDirs           []string
	HomeTokens          bool     // look into System.Home first
	Exclude             *Pattern // files of the two that do not count
	Rules               Rules    // for tokens of others
	PasswordFile        string

	ClaimToBeUser   string // "" is System.User
	ClaimToBeDomain bool

	ServerTLS, ClientTLS TLSFiles
	RequireClientCert    bool
	RequireClientMapping bool // see Server.Mapped
	SkipHostCheck        bool

	// KnownHosts and SystemKnownHosts are files of servers that were met (the
	// first counts alone if it is named); TrustFirst trusts one that stands in
	// none of them and has a certificate of no authority that we know.
	KnownHosts, SystemKnownHosts string
	TrustFirst                   bool
}

// keys is where the signing keys of this configuration lie.
func (s *Settings) keys(files host.PrivateFiles) SigningKeys {
	return SigningKeys{PoolFile: s.PoolKeyFile, Dir: s.KeyDir, Exclude: s.Exclude, PoolIsPassword: s.PoolIsPassword, Files: files}
}

// tokens is where the tokens lie that we may show.
func (c *Client) tokens() Tokens {
	dirs := c.TokenDirs
	if c.HomeTokens && c.Home != "" {
		dirs = append([]string{filepath.Join(c.Home, ".condor", "tokens.d")}, dirs...)
	}
	return Tokens{Dirs: dirs, Exclude: c.Exclude, Subsystem: c.Subsystem, Files: c.Files}
}

// StoreToken keeps a token that was issued to this process, where it is the
// first to be shown from now on, and returns the file.
func (c *Client) StoreToken(token string) (string, error) { return c.tokens().Store(token) }

// SigningKey returns the key of this machine that is called id, to sign tokens
// for others with.
func (c *Client) SigningKey(id string) (SigningKey, error) { return c.keys(c.Files).Key(id) }

// Client authenticates this process to servers. It may be used by many
// goroutines at once.
type Client struct {
	Settings
	System
}

// Server authenticates clients. It may be used by many goroutines at once.
type Server struct {
	Settings
	System
	// Self returns our command address, which a client behind address
	// translation or a shared port may name with FS. Nil is none.
	Self func() cedar.Sinful
	// Mapped says whether the map file knows a name; nil knows none. With
	// RequireClientMapping SSL clients that it does not know are refused, so
	// that another method can follow.
	Mapped func(method Method, name string) bool
}
