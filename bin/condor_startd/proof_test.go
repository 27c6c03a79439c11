// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/platform/linux/bound"
)

// The id of an administrator's session, sent by another host that is in no list
// of users and has no key, neither ends the daemon nor empties a slot.
func TestSessionIDGivesNoOrder(t *testing.T) {
	t.Parallel()
	const required = "UID_DOMAIN = execpoint.test\nSEC_DEFAULT_AUTHENTICATION_METHODS = CLAIMTOBE\nALLOW_ADMINISTRATOR = *\n" +
		"SEC_ADMINISTRATOR_AUTHENTICATION = REQUIRED\nSEC_ADMINISTRATOR_ENCRYPTION = REQUIRED\nSEC_ADMINISTRATOR_INTEGRITY = REQUIRED\n"
	s := newSite(t, required)
	cmd := s.command("-f")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	s.must(bound.Start(cmd))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	c := s.client()
	var at cedar.Sinful
	alive := func() error {
		var err error
		if at, err = s.address(); err == nil {
			_, err = slots(c, at)
		}
		return err
	}
	eventually(t, "the daemon answers", alive)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	conn, session, err := c.Command(ctx, at, command.DCNopAdministrator, security.Options{})
	s.must(err)
	s.must(conn.Close())
	if !session.Encrypts() {
		t.Fatal("the session has no key")
	}
	stranger := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for _, order := range []int{command.DCOffFast, command.DCOffGraceful, command.DCReconfig, 447 /* VACATE_ALL_CLAIMS */, 512 /* DRAIN_JOBS */} {
		for _, answer := range []bool{true, false} {
			nc, err := stranger.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(at.Port)))
			s.must(err)
			forged := cedar.NewConn(nc, cedar.Limits{})
			s.must(resume(forged, session.ID, order, "of a stranger", answer))
			s.must(nc.(*net.TCPConn).CloseWrite())
			_, _ = io.Copy(io.Discard, io.LimitReader(nc, 1<<16)) // until it is closed
			_ = nc.Close()
		}
	}
	s.must(alive())
	select {
	case err := <-ended:
		t.Fatalf("the daemon ended: %v\n%s", err, &said)
	default:
	}
	text, err := os.ReadFile(s.path("log/StartLog"))
	s.must(err)
	log := string(text)
	for _, word := range []string{"shutting down", "configuration taken over", "vacating", "Draining", session.ID} {
		if strings.Contains(log, word) {
			t.Errorf("the log has %q:\n%s", word, log)
		}
	}
	// The administrator, at the address where the session was made, is heeded.
	conn, again, err := c.Command(ctx, at, command.DCOffFast, security.Options{})
	s.must(err)
	s.must(conn.Close())
	if again != session {
		t.Error("the order went under another session")
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		_ = cmd.Process.Signal(syscall.SIGKILL)
		t.Error("the administrator's order is not heeded")
	}
}

// resume sends the first message of a command under a session.
func resume(conn *cedar.Conn, session string, number int, nonce string, answer bool) error {
	conn.PutInt(command.DCAuthenticate)
	ad := classad.NewAd()
	ad.SetString("UseSession", "YES")
	ad.SetString("Sid", session)
	ad.SetInt("Command", int64(number))
	ad.SetString("CryptoMethods", "AES")
	ad.SetString("Nonce", nonce)
	ad.SetBool("ResumeResponse", answer)
	conn.PutAd(ad, cedar.AdOptions{})
	return conn.EndMessage()
}

// A session that was made at READ without authentication, by the address that
// now gives the order and with the key of the session, is none at a level that
// demands authentication.
func TestSessionOfAnotherLevelGivesNoOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t, "UID_DOMAIN = execpoint.test\nSEC_DEFAULT_AUTHENTICATION_METHODS = CLAIMTOBE\nALLOW_ADMINISTRATOR = *\n"+
		"SEC_ADMINISTRATOR_AUTHENTICATION = REQUIRED\nSEC_READ_AUTHENTICATION = NEVER\n")
	cmd := s.running()
	c := s.client()
	at, err := s.address()
	s.must(err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	conn, session, err := c.Command(ctx, at, command.DCNopRead, security.Options{})
	s.must(err)
	s.must(conn.Close())
	if !session.Encrypts() || session.Self != security.Unauthenticated {
		t.Fatalf("the session is one of %q, and has a key: %t", session.Self, session.Encrypts())
	}
	for _, order := range []int{command.DCOffFast, command.DCReconfig, 447 /* VACATE_ALL_CLAIMS */, 512 /* DRAIN_JOBS */, command.DCFetchLog} {
		nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(at.Port)))
		s.must(err)
		conn := cedar.NewConn(nc, cedar.Limits{})
		s.must(resume(conn, session.ID, order, "of the holder", true))
		reply, err := conn.Ad(cedar.AdOptions{})
		s.must(err)
		if code, _ := reply.EvalString("ReturnCode", nil); code != "SID_NOT_FOUND" {
			t.Errorf("command %d under the session of READ is answered %q", order, code)
		}
		s.must(conn.Close())
	}
	if _, err := slots(c, at); err != nil {
		t.Errorf("the daemon does not answer any more: %v", err)
	}
	s.must(cmd.Process.Signal(syscall.SIGTERM))
	s.must(cmd.Wait())
}
