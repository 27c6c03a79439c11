// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
)

const kinKey = "a0b0c0d0e0f0a0b0c0d0e0f0a0b0c0d0e0f0a0b0c0d0e0f0a0b0c0d0e0f0a0b0"

// familyID is the session of a condor_master's family, with a key.
func familyID(key string) security.CapabilityID {
	return security.NewCapabilityID("family:4711", security.DefaultInfo("25.14.0"), key)
}

// A daemon of this machine's condor_master comes with the session of the family:
// a schedd gets a session for the job's owner so, if it shows the claim. The
// session is of no use without its key, where the configuration refuses it, or
// where the starter was not given it, and opens nothing that is the claim's or
// the owner's.
func TestFamily(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		given, shown string // the keys here and there
		accepted     bool   // SEC_USE_FAMILY_SESSION
		secured      bool   // there is a configuration
		in           bool
	}{
		{"a relative", kinKey, kinKey, true, true, true},
		{"another key", kinKey, keyText, true, true, false},
		{"refused by the configuration", kinKey, kinKey, false, true, false},
		{"no configuration", kinKey, kinKey, true, false, false},
		{"not given to the starter", "", kinKey, true, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *Config) {
				if tt.given != "" {
					c.Family = claim.Secret(familyID(tt.given).Reveal())
				}
				if tt.secured {
					c.Secure = func(context.Context) (*security.Settings, security.Authenticator, error) {
						return &security.Settings{
							Authorizer: &security.Authorizer{}, StepTimeout: 10 * time.Second, Deadline: 10 * time.Second,
							MatchSessions: true, ResumeResponse: true, FamilySession: tt.accepted,
						}, nil, nil
					}
				}
			})
			if _, err := w.peers.AddFamily(familyID(tt.shown)); err != nil {
				t.Fatal(err)
			}
			conn, err := w.command(command.CreateJobOwnerSecSession, "family:4711")
			var reply *classad.Ad
			if err == nil {
				reply, err = ask(conn, mustAd(t, "ClaimId = "+string(classad.Literal(classad.String(testClaim().Reveal())).AppendText(nil, classad.Old))+
					"\nSessionInfo = \"[Encryption=\\\"YES\\\";Integrity=\\\"YES\\\";CryptoMethods=\\\"AES\\\";]\""))
			}
			if !tt.in {
				if err == nil {
					t.Fatalf("it got %s", reply.Text(classad.Old))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if ok, _ := reply.EvalBool("Result", nil); !ok {
				t.Fatalf("no session: %s", reply.Text(classad.Old))
			}
			if conn, err = w.command(command.CreateJobOwnerSecSession, "family:4711"); err != nil {
				t.Fatal(err)
			}
			if reply, err = ask(conn, mustAd(t, `ClaimId = "`+claimSession()+`#[]guessed"`+"\nSessionInfo = \"[]\"")); err == nil {
				if ok, _ := reply.EvalBool("Result", nil); !ok {
					err = errors.New("refused")
				}
			}
			if err == nil {
				t.Error("a session of the owner for the family's, without the claim")
			}
			for number, request := range map[int]string{command.StartSSHD: "", command.StarterPeek: "", command.CACmd: `Command = "CA_RECONNECT_JOB"`} {
				conn, err := w.command(number, "family:4711")
				if err != nil {
					t.Fatal(err)
				}
				reply, err := ask(conn, mustAd(t, request))
				if err != nil {
					continue // closed without an answer
				}
				if result, _ := reply.EvalString("Result", nil); result == "Success" {
					t.Errorf("%d: %s", number, reply.Text(classad.Old))
				}
				if ok, _ := reply.EvalBool("Result", nil); ok {
					t.Errorf("%d: %s", number, reply.Text(classad.Old))
				}
			}
			if strings.Contains(w.log.String(), kinKey) {
				t.Error("the key of the family is in the log")
			}
		})
	}
}

// A session of the family that cannot be read keeps nobody else out.
func TestBadFamily(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.Family = "family:4711 " + kinKey })
	if w.ownerSession() == "" {
		t.Error("the holder of the claim gets no session for the owner")
	}
	if s := w.log.String(); !strings.Contains(s, "are not known by the session") || strings.Contains(s, kinKey) {
		t.Errorf("the log:\n%s", s)
	}
}
