// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package root

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/delegation/delegationtest"
)

// secretsScript tells whose the job's secrets are, puts links to what is root's in
// their places, and waits until its proxy is one again.
const secretsScript = `cd $_CONDOR_SCRATCH_DIR
stat -c '%n %a %u' x509up .condor_creds .condor_creds/*
[ $X509_USER_PROXY = $PWD/x509up ] && [ $_CONDOR_CREDS = $PWD/.condor_creds ] && echo where they belong
rm -r x509up .condor_creds; ln -s @SECRET x509up; ln -s @DIR .condor_creds; : > here-@NAME
n=0; while [ -h x509up -o ! -f .condor_creds/scitokens.use ] && [ $n -lt 300 ]; do n=$((n+1)); sleep 0.1; done
stat -c 'then %n %a %u' x509up .condor_creds; grep -c BEGIN x509up
`

// Under root a job's proxy and tokens are its user's, for that one alone. A job that
// puts links in their places has nothing written where they lead, and nothing is left.
func TestSecretsOfJobs(t *testing.T) {
	w := newWorldOf(t, func(w *world) {
		w.base += "SEC_CREDENTIAL_REFRESH = 1\n"
		config, err := os.OpenFile(w.pool.Config, os.O_APPEND|os.O_WRONLY, 0)
		w.must(err)
		_, err = fmt.Fprintf(config, "SHADOW_CHECKPROXY_INTERVAL = 2\nSEC_CREDENTIAL_DIRECTORY_OAUTH = %s/oauth\nTRUST_CREDENTIAL_DIRECTORY = True\n", w.pool.Dir)
		w.must(err)
		w.must(config.Close())
	})
	w.pool.Mkdir(filepath.Join(w.pool.Dir, "oauth"))
	w.pool.Mkdir(filepath.Join(w.pool.Dir, "oauth", w.owner.Username))
	w.pool.Write(filepath.Join(w.pool.Dir, "oauth", w.owner.Username, "scitokens.use"), "a token", 0o600)
	guarded := filepath.Join(w.pool.Dir, "guarded")
	w.must(os.Mkdir(guarded, 0o755))
	for _, tt := range []struct{ name, settings, user string }{
		{"asowner", "", w.owner.Username}, {"asslot", "UID_DOMAIN = elsewhere.test\nNOBODY_SLOT_USER = " + slotUser + "\n", slotUser},
	} {
		w.round(tt.settings)
		proxy := filepath.Join(w.pool.Dir, "x509up")
		w.pool.Write(proxy, string(delegationtest.New(t, "first").File(t)), 0o600)
		mark := fmt.Sprintf("%s%d", tt.name, w.rounds)
		script := strings.NewReplacer("@SECRET", w.secret, "@DIR", guarded, "@NAME", mark).Replace(secretsScript)
		j := w.submit(tt.name, script, "x509userproxy = "+proxy+"\nMY.OAuthServicesNeeded = \"scitokens\"")
		j.scratch()
		w.pool.Write(proxy, string(delegationtest.New(t, "second").File(t)), 0o600)
		later := time.Now().Add(10 * time.Second)
		w.must(os.Chtimes(proxy, later, later))
		out, uid := j.done(), w.uid(tt.user)
		want := fmt.Sprintf("x509up 600 %s\n.condor_creds 700 %s\n.condor_creds/scitokens.use 600 %s\nwhere they belong\nthen x509up 600 %s\nthen .condor_creds 700 %s\n3\n", uid, uid, uid, uid, uid)
		if out != want {
			t.Errorf("%s: the job says\n%s%swant\n%s", tt.name, out, j.file("err"), want)
		}
		if _, err := os.Stat(filepath.Join(j.dir, "x509up")); err == nil {
			t.Errorf("%s: the proxy came back", tt.name)
		}
	}
	if b, err := os.ReadFile(w.secret); err != nil || string(b) != secretText || of(w.secret) != "0 -rw-------" {
		t.Errorf("the secret is %q of %s, %v", b, of(w.secret), err)
	}
	if left, err := os.ReadDir(guarded); err != nil || len(left) > 0 {
		t.Errorf("%v was written where a link leads, %v", left, err)
	}
	w.idle()
}
