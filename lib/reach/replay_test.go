// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
)

// What a recorded shadow does to get its job back, and what it was told then,
// it does with us and is told by us.
func TestReconnectReplays(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"ep-reconnect-new-shadow", "ep-reconnect-same-shadow"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			v := cedartest.Load(t, "../cedar/testdata/vectors/"+file+".json")
			i := slices.IndexFunc(v.Connections, func(c *cedartest.Connection) bool {
				return slices.ContainsFunc(c.Messages, func(m *cedartest.Message) bool { return m.Note == "CA reply, reconnect accepted" })
			})
			if i < 0 {
				t.Fatal("nothing of a reconnect is recorded")
			}
			playReconnect(t, v, v.Connections[i])
		})
	}
}

func playReconnect(t *testing.T, v *cedartest.Vector, c *cedartest.Connection) {
	var answer *classad.Ad
	var later []*cedartest.Message // what the starter said after it
	for _, m := range c.From(cedartest.Server) {
		switch {
		case m.Note == "CA reply, reconnect accepted":
			raw, _ := m.Items[0].RawAd()
			text := ""
			for _, l := range raw.Lines {
				text += l + "\n"
			}
			answer = mustAd(t, text)
		case answer != nil && m.Encrypted:
			later = append(later, m)
		}
	}
	info := classad.NewAd()
	info.Update(answer)
	for _, name := range []string{"Result", "MyType", "TargetType"} {
		info.Delete(name)
	}
	done := make(chan error, 1)
	j := &job{running: true}
	j.reconnect = func(_ context.Context, conn *cedar.Conn, ad *classad.Ad) error {
		if key, ok := ad.EvalString("TransferKey", nil); !ok || key == "" {
			return fmt.Errorf("no TransferKey in %s", ad.Text(classad.Old))
		}
		if err := ReplyReconnect(conn, info); err != nil {
			return err
		}
		go func() { done <- converse(conn, c, later) }()
		return nil
	}
	socket, err := Open(t.Context(), Config{Claim: claim.Secret(v.Secrets.Claims[0].ClaimID), Address: v.Secrets.EPSinful, Job: j, Endpoint: endpoint.New(endpoint.Config{Version: testVersion}), Platform: testPlatform})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	client, server := cedartest.Pipe()
	socket.server.ServeConn(t.Context(), server)
	p := &cedartest.Player{Conn: c, Role: cedartest.Client, Check: func(m *cedartest.Message, got []byte) error {
		switch m.Note {
		case "resume reply":
			if !bytes.Contains(got, []byte("AUTHORIZED")) {
				return fmt.Errorf("the session is not resumed: %q", got)
			}
			return nil
		case "CA reply, reconnect accepted":
			ad, err := cedartest.Reader(t, got, true).Ad(cedar.AdOptions{})
			if err != nil {
				return err
			}
			if !ad.Equal(answer) {
				return fmt.Errorf("answer\n%s\nrecorded\n%s", ad.Text(classad.Old), answer.Text(classad.Old))
			}
			return nil
		}
		return cedartest.Diff(m.Plaintext, got)
	}}
	if err := p.Play(client); err != nil {
		t.Error(err)
	}
	_ = client.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// converse says what the recorded starter said from there on, and reads the
// answers.
func converse(conn *cedar.Conn, c *cedartest.Connection, later []*cedartest.Message) error {
	defer conn.Close()
	at := slices.Index(c.Messages, later[0])
	for _, m := range c.Messages[at:] {
		switch {
		case m.Event != "":
		case m.From == cedartest.Server:
			cedartest.PutItems(conn, m.Items)
			if err := conn.EndMessage(); err != nil {
				return err
			}
		default:
			if err := cedartest.CheckItems(conn, m.Items); err != nil {
				return fmt.Errorf("%s: %w", m.Note, err)
			}
		}
	}
	return nil
}
