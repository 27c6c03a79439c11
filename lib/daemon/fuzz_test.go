// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
)

// An address that is read from a file is read again from the file that is
// written of it.
func FuzzReadAddress(f *testing.F) {
	for _, text := range []string{
		"<192.0.2.1:9618?noUDP>\n$CondorVersion: 25.14.0 2026-11-20 $\n$CondorPlatform: X86_64-Linux $\n", "MyAddress = \"<192.0.2.1:9618>\"\nX = 1\n",
		"", "192.0.2.1:9618", "MyAddress = 5", "<192.0.2.1:9618", "MyAddress<", "<[::1]:9618?addrs=127.0.0.1-9618+[--1]-9618&alias=ep&sock=startd_1>\r\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ReadAddress(text)
		if err != nil {
			if len(err.Error()) > 1024+4*len(firstLine(text)) {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			return
		}
		for _, file := range []string{s.String() + "\nversion\n", "MyAddress = \"" + s.String() + "\"\n"} {
			if again, err := ReadAddress(file); err != nil || again.String() != s.String() {
				t.Errorf("%q is %s, which reads as %s, %v", text, s, again, err)
			}
		}
	})
}

// Whatever condor_config_val asks, the answer is in the known form and tells no
// secret.
func FuzzQuestion(f *testing.F) {
	const secret = "hunter2"
	for _, name := range []string{"START", "start", "MY_PASSWORD", "STARTD.MY_PASSWORD", "NOBODY", "", "?", "?names", "?names:^s", "?names:(", "?names:.*|.summary", "?stats", "?st", "?x", "$(MY_PASSWORD)", "A:B"} {
		f.Add([]byte(name + "\x00"))
	}
	f.Add([]byte(strings.Repeat("x", maxQuestion+1) + "\x00"))
	f.Add([]byte("START\x00more"))
	f.Add([]byte("START"))
	d := newDesk(f, "START = true\nMY_PASSWORD = "+secret+"\nSTARTD.OTHER_SECRET = "+secret+"\nSEC_PASSWORD_FILE = /etc/condor/password\n")
	f.Fuzz(func(t *testing.T, payload []byte) {
		if len(payload) == 0 || bytes.Contains(payload, []byte(secret)) {
			return
		}
		for _, handle := range []listen.Handler{d.answers.configVal, d.answers.oldConfigVal} {
			a, b := cedartest.Pipe()
			peer := cedar.NewConn(a, cedar.Limits{})
			peer.PutBytes(payload)
			if err := peer.EndMessage(); err != nil {
				t.Fatal(err)
			}
			call := &listen.Call{Conn: cedar.NewConn(b, cedar.Limits{}), Request: &security.Request{}, Log: slog.New(slog.DiscardHandler)}
			refused := handle(t.Context(), call)
			_ = b.Close()
			if refused == nil {
				answer, err := peer.Rest()
				if err != nil || bytes.Contains(answer, []byte(secret)) {
					t.Errorf("%q is answered %q, %v", payload, answer, err)
				}
				peer.DiscardMessage()
			}
			if _, err := peer.Int(); !errors.Is(err, io.EOF) {
				t.Errorf("behind the answer to %q (%v): %v, want the end", payload, refused, err)
			}
		}
	})
}
