// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/platform/linux/bound"
)

// What HTCondor's startd begins with, ours does: a policy that does not parse,
// as WANT_HOLD_IF makes one of a reason in quotes, and an instance that is
// listed twice. The log says what does not count, and so does the daemon's ad.
func TestAcceptedConfiguration(t *testing.T) {
	t.Parallel()
	s := newSite(t, `TooBig = (MemoryUsage > 100)
use POLICY : WANT_HOLD_IF( TooBig, 102, "too much memory" )
PREEMPT = foo bar
MACHINE_RESOURCE_Bolts = b1 b2 b2
MODIFY_REQUEST_EXPR_REQUESTCPUS = ((
USER_JOB_WRAPPER = /usr/bin/env
SCHEDD_INTERVAL = often
`)
	cmd := s.command("-f")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	s.must(bound.Start(cmd))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	c := s.client()
	var ads, own []*classad.Ad
	eventually(t, "the slot is there", func() (err error) {
		var at cedar.Sinful
		if at, err = s.address(); err == nil {
			ads, err = slots(c, at)
		}
		if err == nil && len(ads) != 1 {
			err = errors.New("no slot yet")
		}
		if err == nil {
			own, err = daemonAds(c, at)
		}
		return err
	})
	if got, _ := ads[0].EvalString("AssignedBolts", nil); got != "b1,b2,b2" {
		t.Errorf("AssignedBolts = %q", got)
	}
	if len(own) != 1 {
		t.Fatalf("%d ads of the daemon", len(own))
	}
	invalid, _ := own[0].Lookup("InvalidExpressions")
	log, err := os.ReadFile(s.path("log/StartLog"))
	s.must(err)
	for _, knob := range []string{"WANT_HOLD_REASON", "PREEMPT", "MODIFY_REQUEST_EXPR_REQUESTCPUS"} {
		if invalid == nil || !strings.Contains(invalid.String(), "knob "+knob+": ") {
			t.Errorf("the daemon's ad does not name %s: %v", knob, invalid)
		}
		if !bytes.Contains(log, []byte("knob "+knob+": is not an expression")) {
			t.Errorf("the log does not name %s", knob)
		}
	}
	if !bytes.Contains(log, []byte("nothing here reads them yet: USER_JOB_WRAPPER (")) {
		t.Error("the log does not say that USER_JOB_WRAPPER has no effect")
	}
	s.must(cmd.Process.Signal(syscall.SIGTERM))
	if err := <-ended; err != nil {
		t.Errorf("%v\n%s", err, &said)
	}
	if t.Failed() {
		t.Logf("%s", log)
	}
}
