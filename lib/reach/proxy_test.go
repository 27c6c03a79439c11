// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/delegation"
	"github.com/execpoint/execpoint/lib/cedar/delegation/delegationtest"
)

// copies sends a proxy as it is, and returns what is answered.
func copies(conn *cedar.Conn, w *world, file string) (int64, error) {
	err := conn.PutFile(w.t.Context(), strings.NewReader(file), int64(len(file)))
	if err == nil {
		err = conn.EndMessage()
	}
	if err != nil {
		return -1, err
	}
	return answered(conn)
}

// answered reads what is answered to a proxy.
func answered(conn *cedar.Conn) (int64, error) {
	n, err := conn.Int()
	if err == nil {
		err = conn.EndOfMessage()
	}
	if err != nil {
		return -1, err
	}
	return n, nil
}

// sent are the proxies that the job was given.
func (w *world) sent() (all []string) {
	w.job.set(func(j *job) { all = j.proxies })
	return all
}

// The shadow of the job sends a proxy as it is, or delegates one.
func TestRenewProxy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conn, err := w.command(command.UpdateGSICred, claimSession())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := copies(conn, w, "a proxy"); n != 1 || err != nil {
		t.Errorf("answered %d, %v", n, err)
	}
	if conn, err = w.command(command.DelegateGSICredStarter, claimSession()); err != nil {
		t.Fatal(err)
	}
	if err := delegationtest.New(t, "alice").Send(conn); err != nil {
		t.Fatal(err)
	}
	if n, err := answered(conn); n != 1 || err != nil {
		t.Errorf("answered %d, %v", n, err)
	}
	got := w.sent()
	if len(got) != 2 || got[0] != "a proxy" {
		t.Fatalf("the job has %d proxies: %.20q", len(got), got)
	}
	if _, err := tls.X509KeyPair([]byte(got[1]), []byte(got[1])); err != nil {
		t.Error(err)
	}
	if strings.Contains(w.log.String(), "PRIVATE KEY") {
		t.Error("a key is in the log")
	}
}

// A job that has no proxy gets none, what is none is not taken, and the peer is told.
func TestRenewProxyRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	open := func(number int) *cedar.Conn {
		conn, err := w.command(number, claimSession())
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	if n, err := copies(open(command.UpdateGSICred), w, ""); n != 0 || err != nil {
		t.Errorf("an empty file: answered %d, %v", n, err)
	}
	if n, err := copies(open(command.UpdateGSICred), w, strings.Repeat("x", delegation.MostChain+1)); err == nil {
		t.Errorf("a long file: answered %d", n)
	}
	conn := open(command.DelegateGSICredStarter)
	if err := (*delegationtest.Credential)(nil).Send(conn); err != nil {
		t.Fatal(err)
	}
	if n, err := answered(conn); n != 0 || err != nil {
		t.Errorf("nothing delegated: answered %d, %v", n, err)
	}
	w.job.set(func(j *job) { j.noProxy = errors.New("the job has no proxy") })
	if n, err := copies(open(command.UpdateGSICred), w, "a proxy"); n != 0 || err != nil {
		t.Errorf("a job without: answered %d, %v", n, err)
	}
	if got := w.sent(); len(got) != 0 {
		t.Errorf("the job has %d proxies", len(got))
	}
}

// Nobody but the shadow sends proxies: not the job's owner, to whom the schedd gave a
// session, and nobody who only knows the name of the claim's.
func TestRenewProxyOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := w.ownerSession()
	for _, number := range []int{command.UpdateGSICred, command.DelegateGSICredStarter} {
		conn, err := w.command(number, session)
		if err != nil {
			continue // refused before
		}
		if number == command.UpdateGSICred {
			_, err = copies(conn, w, "a proxy")
		} else {
			err = delegationtest.New(t, "mallory").Send(conn)
		}
		if err == nil {
			t.Errorf("command %d: taken from the job's owner", number)
		}
	}
	if got := w.sent(); len(got) != 0 {
		t.Errorf("the job has %d proxies", len(got))
	}
}
