// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/execpoint/execpoint/platform/linux/bound"
)

// stranger is a pool whose collector takes ads of condor@execpoint.test alone,
// who has to show a token, and an Execution Point without one. It meets the
// collector by SSL, whose certificate it has never seen.
const stranger = `COLLECTOR_HOST = localhost:@PORT@
SEC_DEFAULT_AUTHENTICATION_METHODS = FS, IDTOKENS, SSL
SEC_DEFAULT_ENCRYPTION = REQUIRED
SEC_DEFAULT_INTEGRITY = REQUIRED
ALLOW_ADVERTISE_STARTD = condor@execpoint.test
ALLOW_DAEMON = condor@execpoint.test
COLLECTOR_BOOTSTRAP_SSL_CERTIFICATE = True
TRUST_DOMAIN_CAFILE = $(LOCAL_DIR)/ca.crt
TRUST_DOMAIN_CAKEY = $(LOCAL_DIR)/ca.key
AUTH_SSL_SERVER_CERTFILE = $(LOCAL_DIR)/hostcert.pem
AUTH_SSL_SERVER_KEYFILE = $(LOCAL_DIR)/hostkey.pem
SSL_SKIP_HOST_CHECK = True
STARTD.SEC_CLIENT_AUTHENTICATION = REQUIRED
STARTD.SEC_CLIENT_AUTHENTICATION_METHODS = IDTOKENS, SSL
STARTD.SEC_TOKEN_DIRECTORY = $(LOCAL_DIR)/ep-tokens.d
STARTD.SEC_PASSWORD_DIRECTORY = $(LOCAL_DIR)/ep-passwords.d
STARTD.SEC_TOKEN_POOL_SIGNING_KEY_FILE = $(LOCAL_DIR)/ep-passwords.d/POOL
STARTD.SEC_KNOWN_HOSTS = $(LOCAL_DIR)/met/known_hosts
STARTD_DEBUG = D_FULLDEBUG
STARTD_NAME = here
STARTD_ADDRESS_FILE = $(LOG)/.startd_address
`

// begun starts the pool and our condor_startd, which no condor_master knows.
func begun(t *testing.T, lines string, before func(c *condor)) *condor {
	t.Helper()
	c := newCondor(t, slots+stranger+lines)
	c.Install(c.Dir)
	c.begin()
	if before != nil {
		before(c)
	}
	c.start(filepath.Join(c.Dir, "condor_startd"))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("StartLog:\n%s\nCollectorLog:\n%s", c.Log("StartLog"), c.Log("CollectorLog"))
		}
	})
	return c
}

// kept checks the file of the token that came.
func kept(c *condor) {
	c.TB.Helper()
	path := filepath.Join(c.Dir, "ep-tokens.d", "STARTD_auto_generated_token")
	info, err := os.Stat(path)
	c.Must(err)
	text, err := os.ReadFile(path)
	c.Must(err)
	if info.Mode() != 0o600 || strings.Count(string(text), ".") != 2 || strings.Count(string(text), "\n") != 1 {
		c.TB.Errorf("the token's file has mode %v and %d bytes", info.Mode(), len(text))
	}
	if log := c.Log("StartLog"); strings.Contains(log, strings.TrimSpace(string(text))) {
		c.TB.Error("the log shows the token")
	}
}

// An Execution Point that the collector refuses asks it for a token, says which
// request the administrator has to approve, and is in the pool as soon as that is
// done. The collector's certificate is trusted because it is the first.
func TestTokenRequest(t *testing.T) {
	t.Parallel()
	c := begun(t, "STARTD.BOOTSTRAP_SSL_SERVER_TRUST = True\n", nil)
	ask := regexp.MustCompile(`condor_token_request_approve -reqid (\d+)`)
	c.says("StartLog", ask.String())
	id := ask.FindStringSubmatch(c.Log("StartLog"))[1]
	list := c.Tool("condor_token_request_list")
	for _, want := range []string{id, "condor@execpoint.test", "ADVERTISE_STARTD"} {
		if !strings.Contains(list, want) {
			t.Errorf("condor_token_request_list lacks %s:\n%s", want, list)
		}
	}
	if out, err := c.run("condor_status", "-af", "Name"); err != nil || strings.TrimSpace(out) != "" {
		t.Fatalf("before the approval the collector shows %q (%v)", out, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	approve := c.Command(ctx, "condor_token_request_approve", "-reqid", id)
	approve.Stdin = strings.NewReader("yes\n")
	if out, err := approve.CombinedOutput(); err != nil {
		t.Fatalf("condor_token_request_approve: %v\n%s", err, out)
	}
	c.shown()
	kept(c)
	known, err := os.ReadFile(filepath.Join(c.Dir, "met", "known_hosts"))
	if err != nil || !regexp.MustCompile(`^localhost SSL [A-Za-z0-9+/=]+\n$`).Match(known) {
		t.Errorf("known_hosts holds %q (%v)", known, err)
	}
	// The token is there after a restart; nobody is asked again.
	c.stop(filepath.Join(c.Dir, "condor_startd"), syscall.SIGTERM)
	eventually(t, "the slots are gone", func() error {
		out, err := c.run("condor_status", "-af", "Name")
		if err == nil && strings.TrimSpace(out) != "" {
			err = fmt.Errorf("%q", out)
		}
		return err
	})
	c.start(filepath.Join(c.Dir, "condor_startd"))
	c.shown()
	if n := len(ask.FindAllString(c.Log("StartLog"), -1)); n != 1 {
		t.Errorf("%d requests were made, want 1", n)
	}
}

// A rule of auto-approval gives the token at once.
func TestTokenAutoApproval(t *testing.T) {
	t.Parallel()
	c := begun(t, "STARTD.BOOTSTRAP_SSL_SERVER_TRUST = True\n", func(c *condor) {
		c.Tool("condor_token_request_auto_approve", "-netblock", "127.0.0.0/8", "-lifetime", "3600")
	})
	c.says("StartLog", "the token request was approved by a rule")
	c.shown()
	kept(c)
}

// Without BOOTSTRAP_SSL_SERVER_TRUST a certificate that nobody vouches for is
// noted and refused: no token is asked for through it.
func TestStrangeCertificateIsRefused(t *testing.T) {
	t.Parallel()
	c := begun(t, "", nil)
	eventually(t, "the collector is noted", func() error {
		known, err := os.ReadFile(filepath.Join(c.Dir, "met", "known_hosts"))
		if err == nil && !strings.HasPrefix(string(known), "!localhost SSL ") {
			err = fmt.Errorf("%q", known)
		}
		return err
	})
	c.says("StartLog", "BOOTSTRAP_SSL_SERVER_TRUST is off")
	if out, err := c.run("condor_token_request_list"); err != nil || strings.Contains(out, "RequestId") {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "ep-tokens.d", "STARTD_auto_generated_token")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a token: %v", err)
	}
}

// The stock tools request tokens of our daemon, list them and approve them, as
// those of any other daemon.
func TestTokensOfOurs(t *testing.T) {
	t.Parallel()
	c := newMaster(t, "SEC_DEFAULT_ENCRYPTION = REQUIRED\nSEC_DEFAULT_INTEGRITY = REQUIRED\n")
	at := []string{"-type", "STARTD", "-name", c.slot()}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request := c.Command(ctx, "condor_token_request", append(at, "-identity", "bob@execpoint.test", "-authz", "READ", "-lifetime", "600")...)
	var out, bad bytes.Buffer
	request.Stdout, request.Stderr = &out, &bad
	c.Must(bound.Start(request))
	defer func() { _ = request.Wait() }()
	number := regexp.MustCompile(`RequestId = "(\d{7})"`)
	var id string
	eventually(t, "the request is listed", func() error {
		list, err := c.run("condor_token_request_list", at...)
		if m := number.FindStringSubmatch(list); m != nil && strings.Contains(list, "bob@execpoint.test") && strings.Contains(list, "READ") {
			id = m[1]
			return nil
		}
		return errors.Join(err, fmt.Errorf("%q", list))
	})
	approve := c.Command(ctx, "condor_token_request_approve", append(at, "-reqid", id)...)
	approve.Stdin = strings.NewReader("yes\n")
	if said, err := approve.CombinedOutput(); err != nil {
		t.Fatalf("condor_token_request_approve: %v\n%s", err, said)
	}
	if err := request.Wait(); err != nil {
		t.Fatalf("condor_token_request: %v\n%s%s", err, &out, &bad)
	}
	if !regexp.MustCompile(`(?m)^eyJ[\w-]+\.[\w-]+\.[\w-]+$`).MatchString(out.String()) {
		t.Errorf("condor_token_request says %q", &out)
	}
	c.Tool("condor_token_request_auto_approve", append(at, "-netblock", "127.0.0.0/8", "-lifetime", "60")...)
	c.says("StartLog", `tokens are given by a rule .*network=127\.0\.0\.0/8`)
}
