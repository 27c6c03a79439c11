// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar/delegation/delegationtest"
)

// credsScript tells what the job has: its credentials at first, and again when those
// of its proxy or of a service are others. It takes the directory it tells in.
const credsScript = `#!/bin/sh
state() {
	if [ -n "$X509_USER_PROXY" ]; then
		echo "proxy ${X509_USER_PROXY#$_CONDOR_SCRATCH_DIR/} $(stat -c '%a %U' "$X509_USER_PROXY")"
		cat "$X509_USER_PROXY"
	fi
	if [ -n "$_CONDOR_CREDS" ]; then
		echo "creds ${_CONDOR_CREDS#$_CONDOR_SCRATCH_DIR/} $(stat -c '%U' "$_CONDOR_CREDS")"
		for f in "$_CONDOR_CREDS"/*; do echo "$(basename $f) $(stat -c '%a %U' $f) $(cat $f)"; done
	fi
}
state > $1/first.tmp; mv $1/first.tmp $1/first
n=0
while state > again.tmp; cmp -s again.tmp $1/first; do
	n=$((n+1)); [ $n -lt 200 ] || exit 3
	sleep 0.3
done
mv again.tmp $1/second
`

// shape tells what a delegated proxy is, without what is another each time: its number
// and its key. user is the file that it was made of.
func shape(file, user []byte) (string, error) {
	var b strings.Builder
	var certs []*x509.Certificate
	for block, rest := pem.Decode(file); block != nil; block, rest = pem.Decode(rest) {
		fmt.Fprintf(&b, "%s ", block.Type)
		if block.Type != "CERTIFICATE" {
			key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "(%T of %d bits) ", key, key.(*rsa.PrivateKey).N.BitLen())
			if ours := certs[0].PublicKey.(*rsa.PublicKey); !ours.Equal(key.(*rsa.PrivateKey).Public()) {
				return "", fmt.Errorf("the key is not that of the first certificate")
			}
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "", err
		}
		certs = append(certs, c)
	}
	if len(certs) != 2 {
		return "", fmt.Errorf("%d certificates", len(certs))
	}
	parent, _ := pem.Decode(user)
	if !bytes.Equal(certs[1].Raw, parent.Bytes) {
		return "", fmt.Errorf("the second certificate is not the user's")
	}
	if err := certs[1].CheckSignature(certs[0].SignatureAlgorithm, certs[0].RawTBSCertificate, certs[0].Signature); err != nil {
		return "", err
	}
	var names string
	for _, n := range certs[0].Subject.Names {
		names += fmt.Sprintf("/%v", n.Value)
	}
	names = regexp.MustCompile(`\d{3,}`).ReplaceAllString(names, "N")
	limited, err := asn1.Marshal(delegationtest.Limited)
	if err != nil {
		return "", err
	}
	for _, e := range certs[0].Extensions {
		fmt.Fprintf(&b, "%v critical %v limited %v; ", e.Id, e.Critical, bytes.Contains(e.Value, limited))
	}
	fmt.Fprintf(&b, "%s, good for %v", names, time.Until(certs[0].NotAfter).Round(time.Hour))
	return b.String(), nil
}

// told is what a job told of itself at first or later, with its proxy taken out.
func (r *rig) told(dir, name string) (text string, proxy []byte) {
	r.TB.Helper()
	r.Eventually("the job has told "+name, realpool.Patience, func(context.Context) error {
		all, err := os.ReadFile(filepath.Join(dir, name))
		before, rest, _ := strings.Cut(string(all), "-----BEGIN")
		if i := strings.LastIndex(rest, "-----\n"); i >= 0 {
			text, proxy = before+rest[i+6:], []byte("-----BEGIN"+rest[:i+6])
		} else {
			text, proxy = string(all), nil
		}
		return err
	})
	return text, proxy
}

// credsRig is newRig that shows the logs of a test that failed.
func credsRig(t *testing.T, lines string) *rig {
	t.Helper()
	r := newRig(t, lines)
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		t.Logf("ShadowLog:\n%s", realpool.Last(r.Log("ShadowLog"), 40))
		for _, s := range r.sides {
			t.Logf("StarterLog of %s:\n%s", s.name, realpool.Last(s.log("StarterLog.slot1_1"), 40))
		}
	})
	return r
}

// renew puts another proxy in place of a job's. The shadow sees that by a time in whole
// seconds.
func (r *rig) renew(dir string, file []byte) {
	r.TB.Helper()
	next := filepath.Join(dir, "next")
	r.Write(next, string(file), 0o600)
	later := time.Now().Add(10 * time.Second)
	r.Must(os.Chtimes(next, later, later))
	r.Must(os.Rename(next, filepath.Join(dir, "x509up")))
}

// endsWell waits until a job of the log has ended with 0.
func (r *rig) endsWell(log string) {
	r.TB.Helper()
	r.Eventually("the job is done", realpool.Patience, func(context.Context) error {
		text, err := os.ReadFile(log)
		if err == nil && !strings.Contains(string(text), "(return value 0)") {
			err = fmt.Errorf("so far:\n%s", text)
		}
		return err
	})
}

// Both Execution Points have a proxy delegated to jobs, as a limited one for a day
// and for the job's user alone, and renew it when the one of the access point is
// another: for jobs whose files are moved, and, ours alone, for others. Nothing of it is
// left, and no key is in a log.
func TestProxies(t *testing.T) {
	t.Parallel()
	r := credsRig(t, "SHADOW_CHECKPROXY_INTERVAL = 2\n")
	sides := r.sides[:]
	if !r.Version.AtLeast(25, 0, 0) {
		sides = sides[1:] // the OpenSSL of today makes no request for starters of 23.9
	}
	for _, c := range []struct{ name, submit string }{
		{"moved", "should_transfer_files = YES"}, {"in place", "should_transfer_files = NO"}, {"short", "should_transfer_files = YES\ndelegate_job_GSI_credentials_lifetime = 7200"},
	} {
		saw := map[string]string{}
		for _, s := range sides {
			dir := filepath.Join(r.Dir, "proxies", s.name, strings.ReplaceAll(c.name, " ", "-"))
			r.Mkdir(filepath.Dir(filepath.Dir(dir)))
			r.Mkdir(filepath.Dir(dir))
			r.Mkdir(dir)
			user := delegationtest.New(t, "Test Credential").File(t)
			r.Write(filepath.Join(dir, "x509up"), string(user), 0o600)
			r.Write(filepath.Join(dir, "tell.sh"), credsScript, 0o755)
			r.Write(filepath.Join(dir, "job.sub"), fmt.Sprintf("executable = tell.sh\narguments = %s\nlog = log\noutput = out\nerror = err\nx509userproxy = x509up\nrequirements = TARGET.Rig == %q\n%s\nqueue\n", dir, s.name, c.submit), 0o644)
			r.Submit(dir, "job.sub")
			text, proxy := r.told(dir, "first")
			is, err := shape(proxy, user)
			if err != nil {
				t.Errorf("%s, %s: the proxy: %v\n%s", s.name, c.name, err, text)
			}
			if scratch := s.scratch(); len(scratch) != 1 {
				t.Errorf("%s, %s: scratch directories %v", s.name, c.name, scratch)
			}
			saw[s.name] = text + is
			if c.name == "in place" && s.name == "orig" { // it takes no other proxy then
				r.Tool("condor_rm", "-all")
				s.idle()
				continue
			}
			next := delegationtest.New(t, "Another Credential").File(t)
			r.renew(dir, next)
			later, proxy := r.told(dir, "second")
			if is, err = shape(proxy, next); err != nil || !strings.Contains(is, "Another Credential") {
				t.Errorf("%s, %s: the second proxy is %s, %v", s.name, c.name, is, err)
			}
			if later != text {
				t.Errorf("%s, %s: then it has %q, before %q", s.name, c.name, later, text)
			}
			r.endsWell(filepath.Join(dir, "log"))
			if left, err := os.ReadFile(filepath.Join(dir, "x509up")); err != nil || !bytes.Equal(left, next) {
				t.Errorf("%s, %s: the proxy of the access point was changed, %v", s.name, c.name, err)
			}
			s.idle()
			if strings.Contains(s.log("StarterLog.slot1_1"), "PRIVATE KEY") {
				t.Errorf("%s: a key is in the log", s.name)
			}
		}
		if len(sides) == 2 && saw["orig"] != saw["ours"] {
			t.Errorf("%s: original\n%s\nours\n%s", c.name, saw["orig"], saw["ours"])
		}
		t.Logf("%s: %s", c.name, saw["ours"])
	}
}

// Where the access point does not delegate, the proxy is copied, and so are later
// ones.
func TestCopiedProxies(t *testing.T) {
	t.Parallel()
	r := credsRig(t, "SHADOW_CHECKPROXY_INTERVAL = 2\nDELEGATE_JOB_GSI_CREDENTIALS = False\n")
	for _, s := range r.sides {
		dir := filepath.Join(r.Dir, "copied-"+s.name)
		r.Mkdir(dir)
		first, second := delegationtest.New(t, "First").File(t), delegationtest.New(t, "Second").File(t)
		r.Write(filepath.Join(dir, "x509up"), string(first), 0o600)
		r.Write(filepath.Join(dir, "tell.sh"), credsScript, 0o755)
		r.Write(filepath.Join(dir, "job.sub"), fmt.Sprintf("executable = tell.sh\narguments = %s\nlog = log\nx509userproxy = x509up\nshould_transfer_files = YES\nrequirements = TARGET.Rig == %q\nqueue\n", dir, s.name), 0o644)
		r.Submit(dir, "job.sub")
		text, proxy := r.told(dir, "first")
		if !bytes.Equal(proxy, first) || !strings.HasPrefix(text, "proxy x509up 600 ") {
			t.Errorf("%s: %s and %d bytes", s.name, text, len(proxy))
		}
		r.renew(dir, second)
		if later, proxy := r.told(dir, "second"); !bytes.Equal(proxy, second) || later != text {
			t.Errorf("%s: then %s and %d bytes", s.name, later, len(proxy))
		}
		r.endsWell(filepath.Join(dir, "log"))
	}
}

// Both give jobs the tokens of the services that they need, and newer ones while they
// run. A token is for the eyes of its job alone and is gone with it.
func TestTokensOfJobs(t *testing.T) {
	t.Parallel()
	r := credsRig(t, "SEC_DEFAULT_ENCRYPTION = REQUIRED\nSEC_CREDENTIAL_DIRECTORY_OAUTH = $(SPOOL)/../../oauth\nTRUST_CREDENTIAL_DIRECTORY = True\nSEC_CREDENTIAL_REFRESH = 1\n")
	owner := strings.TrimSpace(r.Tool("id", "-un"))
	tokens := filepath.Join(r.Dir, "..", "oauth", owner)
	saw := map[string]string{}
	for _, s := range r.sides {
		dir := filepath.Join(r.Dir, "tokens-"+s.name)
		r.Mkdir(dir)
		r.Mkdir(tokens)
		give := func(token string) {
			for _, service := range []string{"scitokens", "box_private"} {
				r.Write(filepath.Join(tokens, service+".use.new"), token+" of "+service, 0o600)
				r.Must(os.Rename(filepath.Join(tokens, service+".use.new"), filepath.Join(tokens, service+".use")))
			}
		}
		give("first")
		r.Write(filepath.Join(dir, "tell.sh"), credsScript, 0o755)
		r.Write(filepath.Join(dir, "job.sub"), fmt.Sprintf("executable = tell.sh\narguments = %s\nlog = log\nMY.OAuthServicesNeeded = \"scitokens box*private\"\nrequirements = TARGET.Rig == %q\nqueue\n", dir, s.name), 0o644)
		r.Submit(dir, "job.sub")
		first, _ := r.told(dir, "first")
		give("second")
		second, _ := r.told(dir, "second")
		r.endsWell(filepath.Join(dir, "log"))
		s.idle()
		if left := s.scratch(); len(left) != 0 {
			t.Errorf("%s leaves %v", s.name, left)
		}
		// One of the two files may be told before the other is new.
		saw[s.name] = first + strings.ReplaceAll(second, "first", "second")
		if strings.Contains(s.log("StarterLog.slot1_1"), "of scitokens") {
			t.Errorf("%s: a token is in the log", s.name)
		}
	}
	if saw["orig"] != saw["ours"] || !strings.Contains(saw["ours"], "scitokens.use 600 "+owner+" first of scitokens") {
		t.Errorf("original\n%s\nours\n%s", saw["orig"], saw["ours"])
	}
}

// monitor is a credential monitor: when it is woken it makes a ticket cache of what
// was stored of each user.
const monitor = `#!/bin/sh
cd $1 || exit 1
look() {
	for f in *.cred; do
		[ -f "$f" ] || continue
		(umask 077; echo "tickets $2 $(cat $f)" > ${f%.cred}.tmp) && mv ${f%.cred}.tmp ${f%.cred}.cc
	done
}
trap look HUP
echo $$ > pid
while :; do sleep 0.2; done
`

// Ours gives jobs tickets of Kerberos, which the credential monitor of the machine
// makes of what a real access point has of the user, and newer ones when it makes them.
// The original's starter of 25.14 ends on such a job where it has neither root nor a
// terminal: it knows no login name then.
func TestTicketsOfJobs(t *testing.T) {
	t.Parallel()
	r := credsRig(t, "SHADOW.SEC_CREDENTIAL_DIRECTORY_KRB = $(LOCAL_DIR)/krb\nSTARTER.SEC_CREDENTIAL_DIRECTORY_KRB = $(LOCAL_DIR)/tickets\nSEC_CREDENTIAL_REFRESH = 1\n")
	owner := strings.TrimSpace(r.Tool("id", "-un"))
	r.Mkdir(filepath.Join(r.Dir, "krb"))
	r.Must(os.Chmod(filepath.Join(r.Dir, "krb"), 0o700))
	r.Write(filepath.Join(r.Dir, "krb", owner+".cred"), "of the access point", 0o600)
	r.Write(filepath.Join(r.Dir, "monitor"), monitor, 0o755)
	for _, s := range r.sides[1:] {
		tickets := filepath.Join(s.dir, "tickets")
		r.Mkdir(tickets)
		r.Must(os.Chmod(tickets, 0o700))
		m := r.Command(context.Background(), filepath.Join(r.Dir, "monitor"), tickets)
		r.Must(m.Start())
		t.Cleanup(func() { _ = m.Process.Kill(); _ = m.Wait() })
		r.Eventually("the monitor runs", realpool.Patience, func(context.Context) error {
			_, err := os.Stat(filepath.Join(tickets, "pid"))
			return err
		})
		dir := filepath.Join(r.Dir, "tickets-"+s.name)
		r.Mkdir(dir)
		r.Write(filepath.Join(dir, "tell.sh"), strings.NewReplacer("_CONDOR_CREDS", "TICKETS", "state() {", `state() { echo "${KRB5CCNAME%%:*} $(stat -c '%n %a %U' *.cc) $(cat ${KRB5CCNAME#FILE:})"`).Replace(credsScript), 0o755)
		r.Write(filepath.Join(dir, "job.sub"), fmt.Sprintf("executable = tell.sh\narguments = %s\nlog = log\nshould_transfer_files = YES\nMY.SendCredential = true\nrequirements = TARGET.Rig == %q\nqueue\n", dir, s.name), 0o644)
		r.Submit(dir, "job.sub")
		first, _ := r.told(dir, "first")
		next := filepath.Join(tickets, "next")
		r.Write(next, "newer tickets", 0o600)
		r.Must(os.Rename(next, filepath.Join(tickets, owner+".cc")))
		second, _ := r.told(dir, "second")
		r.endsWell(filepath.Join(dir, "log"))
		if stored, err := os.ReadFile(filepath.Join(tickets, owner+".cred")); err != nil || string(stored) != "of the access point" {
			t.Errorf("%s gave the monitor %q, %v", s.name, stored, err)
		}
		if _, err := os.Stat(filepath.Join(dir, owner+".cc")); err == nil {
			t.Error("the tickets came back")
		}
		if want := "FILE " + owner + ".cc 600 " + owner + " "; first != want+"tickets  of the access point\n" || second != want+"newer tickets\n" {
			t.Errorf("the job has %q, then %q", first, second)
		}
		s.idle()
		if strings.Contains(s.log("StarterLog.slot1_1"), "of the access point") {
			t.Error("the tickets are in the log")
		}
	}
}
