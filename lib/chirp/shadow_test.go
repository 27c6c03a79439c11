// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chirp

import (
	"os"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
)

// Requests become remote calls, and when the shadow is gone the job is told so.
func TestThroughAShadow(t *testing.T) {
	t.Parallel()
	submit := t.TempDir()
	root, err := os.OpenRoot(submit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	ad := classad.NewAd()
	ad.SetString("Iwd", submit)
	ad.SetString("Owner", "alice")
	ad.SetBool("WantIOProxy", true)
	near, far := cedartest.Pipe()
	s := shadowtest.New(shadowtest.Job{Ad: ad, Root: root})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.Serve(t.Context(), cedar.NewConn(far, cedar.Limits{}))
	}()
	caller := shadow.New(cedar.NewConn(near, cedar.Limits{}), shadow.Options{})
	w := newWorld(t, allowed(all), func(c *Config) { c.Remote = caller })
	if err := os.WriteFile(submit+"/in", []byte("0123456789"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := w.dial(true)
	for _, c := range []struct{ send, want string }{
		{"getfile in\n", "10\n0123456789"},
		{"putfile out 420 5\n", ""},
	} {
		l.say(c.send, c.want)
	}
	if fd, err := l.r.ReadString('\n'); err != nil || strings.HasPrefix(fd, "-") {
		t.Fatalf("putfile was answered %q, %v", fd, err)
	}
	for _, c := range []struct{ send, want string }{
		{"hello", "5\n"},
		{"getfile out\n", "5\nhello"},
		{"getfile none\n", "-3\n"},
		{"close 99\n", "-12\n"},
		{"mkdir d 493\n", "0\n"},
		{"rename out d/o\n", "0\n"},
		{"getdir d\n", "3\no\n\n"},
		{"get_job_attr Owner\n", "7\n\"alice\""},
		{"set_job_attr Answer 42\n", "0\n"},
		{"ulog here\n", "0\n"},
	} {
		l.say(c.send, c.want)
	}
	if b, err := os.ReadFile(submit + "/d/o"); string(b) != "hello" {
		t.Errorf("the file is %q, %v", b, err)
	}
	caller.End()
	<-ended
	l.say("getfile in\n", "-17\n")
	l.say("set_job_attr_delayed ChirpA 1\n", "0\n") // needs nobody
}
