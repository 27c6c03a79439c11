// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"fmt"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// SettingsFrom reads the knobs of all methods. subsystem is the daemon's name,
// as STARTD. What a knob names need not exist: a method without its files is
// one that fails.
func SettingsFrom(s *config.Snapshot, subsystem string) (Settings, error) {
	k := knobs{s: s}
	set := Settings{
		UIDDomain:   k.text("UID_DOMAIN"),
		TrustDomain: k.text("TRUST_DOMAIN"),
		Subsystem:   subsystem,

		FSDir:          k.text("FS_LOCAL_DIR"),
		FSBinding:      k.truth("SEC_FS_ENFORCE_CHANNEL_BINDING", true),
		FSUnsafe:       k.truth("FS_ALLOW_UNSAFE", false),
		FSRootToCondor: k.truth("FS_ROOT_TO_CONDOR", true),

		PoolKeyFile:    k.text("SEC_TOKEN_POOL_SIGNING_KEY_FILE"),
		KeyDir:         k.text("SEC_PASSWORD_DIRECTORY"),
		PoolIsPassword: k.truth("SEC_TOKEN_POOL_SIGNING_KEY_IS_PASSWORD", false),
		PasswordFile:   k.text("SEC_PASSWORD_FILE"),

		ClaimToBeUser:   k.text("SEC_CLAIMTOBE_USER"),
		ClaimToBeDomain: k.truth("SEC_CLAIMTOBE_INCLUDE_DOMAIN", true),

		ServerTLS:            k.tls("SERVER"),
		RequireClientMapping: k.truth("AUTH_SSL_REQUIRE_CLIENT_MAPPING", false),
		ClientTLS:            k.tls("CLIENT"),
		RequireClientCert:    k.truth("AUTH_SSL_REQUIRE_CLIENT_CERTIFICATE", false),
		SkipHostCheck:        k.truth("SSL_SKIP_HOST_CHECK", false),

		KnownHosts:       k.text("SEC_KNOWN_HOSTS"),
		SystemKnownHosts: k.text("SEC_SYSTEM_KNOWN_HOSTS"),
		TrustFirst:       k.truth("BOOTSTRAP_SSL_SERVER_TRUST", false),
	}
	if set.FSDir == "" {
		set.FSDir = "/tmp"
	}
	// A directory that is named counts alone.
	if dir := k.text("SEC_TOKEN_DIRECTORY"); dir != "" {
		set.TokenDirs = []string{dir}
	} else {
		set.HomeTokens = true
		if dir := k.text("SEC_TOKEN_SYSTEM_DIRECTORY"); dir != "" {
			set.TokenDirs = []string{dir}
		}
	}
	if text := k.text("LOCAL_CONFIG_DIR_EXCLUDE_REGEXP"); text != "" {
		var err error
		if set.Exclude, err = NewPattern(text); err != nil {
			k.wrong("LOCAL_CONFIG_DIR_EXCLUDE_REGEXP", fmt.Errorf("%q: %w: want a regular expression", text, err))
		}
	}
	if age := k.number("SEC_TOKEN_MAX_AGE"); age > 0 {
		set.Rules.MaxAge = time.Duration(min(age, 1<<32)) * time.Second
	}
	for _, knob := range []string{"SEC_TOKEN_REVOCATION_EXPR", "SEC_TOKEN_BLACKLIST_EXPR"} {
		if set.Rules.Revoked == nil && k.text(knob) != "" {
			if _, err := s.Expr(knob); err != nil {
				k.wrong(knob, err)
			}
			set.Rules.Revoked = config.NewExpr(k.text(knob))
		}
	}
	return set, k.err
}

// knobs keeps the first error.
type knobs struct {
	s   *config.Snapshot
	err error
}

func (k *knobs) wrong(knob string, err error) {
	if k.err == nil {
		k.err = errs.E("authn.SettingsFrom", errs.Invalid, knob, err)
	}
}

func (k *knobs) text(name string) string {
	setting, ok := k.s.Lookup(name)
	if !ok {
		return ""
	}
	if setting.Err != nil {
		k.wrong(name, setting.Err)
	}
	return strings.TrimSpace(setting.Value)
}

// truth reads a boolean; unset is for knobs that the table does not have.
func (k *knobs) truth(name string, unset bool) bool {
	if k.text(name) == "" {
		return unset
	}
	b, err := k.s.Bool(name)
	if err != nil {
		k.wrong(name, err)
	}
	return b
}

func (k *knobs) number(name string) int64 {
	if k.text(name) == "" {
		return 0
	}
	i, err := k.s.Int(name)
	if err != nil {
		k.wrong(name, err)
	}
	return i
}

func (k *knobs) tls(role string) TLSFiles {
	prefix := "AUTH_SSL_" + role + "_"
	return TLSFiles{
		CAFiles:   k.s.List(prefix + "CAFILE"),
		CADir:     k.text(prefix + "CADIR"),
		SystemCAs: k.truth(prefix+"USE_DEFAULT_CAS", true),
		CertFiles: k.s.List(prefix + "CERTFILE"),
		KeyFiles:  k.s.List(prefix + "KEYFILE"),
	}
}
