// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/tool/settings"
)

// other is the other side of one command.
type other struct {
	t      *testing.T
	number int // the command that must come
	answer func(c *cedar.Conn) error
}

func (d other) Command(_ context.Context, _ cedar.Sinful, number int, _ security.Options) (*cedar.Conn, *security.Session, error) {
	if number != d.number {
		return nil, nil, errors.New("refused")
	}
	client, server := net.Pipe()
	conn, peer := cedar.NewConn(client, cedar.Limits{}), cedar.NewConn(server, cedar.Limits{})
	key := bytes.Repeat([]byte{7}, 32)
	if err := errors.Join(conn.EnableAES(key), peer.EnableAES(key)); err != nil {
		d.t.Fatal(err)
	}
	done := make(chan struct{})
	d.t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		defer peer.Close()
		if err := d.answer(peer); err != nil {
			d.t.Error(err)
		}
	}()
	return conn, &security.Session{ID: "s"}, nil
}

func parse(t *testing.T, text string) *classad.Ad {
	t.Helper()
	ad, err := classad.ParseAd(text, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

// TestExecutionPoint: an answer, a refusal with its sentence, and what is no answer.
func TestExecutionPoint(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ answer, want, err string }{
		{`{"drain_id":"7"}`, "7", ""},
		{`{"error":"is draining already","code":3}`, "", "is draining already"},
		{`{`, "", "condor_ep.ask node7: "},
	} {
		d := other{t, command.ExecpointChange, func(c *cedar.Conn) error {
			text, err := c.String()
			if err == nil {
				err = c.EndOfMessage()
			}
			if err != nil || !strings.Contains(text, `"quick"`) {
				t.Errorf("got %s, %v", text, err)
			}
			c.PutString(tt.answer)
			return c.EndMessage()
		}}
		resp, err := ExecutionPoint(t.Context(), d, cedar.Sinful{}, "node7", observe.Request{Op: observe.OpDrain, Drain: &observe.Drain{How: "quick"}})
		if resp.DrainID != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %+v, %v", tt.answer, resp, err)
		}
	}
	if _, err := ExecutionPoint(t.Context(), other{t: t}, cedar.Sinful{}, "node7", observe.Request{Op: observe.OpStatus}); err == nil || !strings.Contains(err.Error(), "node7 cannot be asked") {
		t.Errorf("of one that refuses: %v", err)
	}
}

// TestHistory: jobs until the ad that is none, which may say what was wrong.
func TestHistory(t *testing.T) {
	t.Parallel()
	for _, last := range []string{"Owner = 0\nMalformedAds = false", "Owner = 0\nErrorString = \"no history is kept\""} {
		d := other{t, command.GetHistory, func(c *cedar.Conn) error {
			query, err := c.Ad(cedar.AdOptions{})
			if err == nil {
				err = c.EndOfMessage()
			}
			if err != nil {
				return err
			}
			if n, _ := query.EvalInt("NumJobMatches", nil); n != 2 {
				t.Errorf("asked for %d jobs", n)
			}
			for _, text := range []string{"Owner = \"bob\"\nClusterId = 4", "Owner = \"eve\"\nClusterId = 3", last} {
				c.PutAd(parse(t, text), cedar.AdOptions{})
			}
			return c.EndMessage()
		}}
		var got []string
		err := History(t.Context(), d, cedar.Sinful{}, "", 2, func(ad *classad.Ad) error {
			owner, _ := ad.EvalString("Owner", nil)
			got = append(got, owner)
			return nil
		})
		if strings.Join(got, " ") != "bob eve" || (err == nil) == strings.Contains(last, "ErrorString") || err != nil && err.Error() != "no history is kept" {
			t.Errorf("%s: %q, %v", last, got, err)
		}
	}
}

// TestSetting: the answers of daemons of now and of long ago.
func TestSetting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer func(c *cedar.Conn)
		want   settings.Answer
	}{
		{"set", func(c *cedar.Conn) {
			for _, s := range []string{"5", "A = $(B)", "c, line 1", "4", "used 1"} {
				c.PutString(s)
			}
		}, settings.Answer{Name: "A", Value: "5", Raw: "$(B)", At: "c, line 1", Known: true, Default: "4", HasDefault: true}},
		{"not defined", func(c *cedar.Conn) { c.PutNull() }, settings.Answer{Name: "A"}},
		{"not defined, long ago", func(c *cedar.Conn) { c.PutString("Not defined") }, settings.Answer{Name: "A"}},
		{"set, long ago", func(c *cedar.Conn) { c.PutString("5") }, settings.Answer{Name: "A", Value: "5", Raw: "5", Known: true}},
	} {
		d := other{t, command.DCConfigVal, func(c *cedar.Conn) error {
			if _, err := c.String(); err != nil {
				return err
			}
			if err := c.EndOfMessage(); err != nil {
				return err
			}
			tt.answer(c)
			return c.EndMessage()
		}}
		got, err := Setting(t.Context(), d, cedar.Sinful{}, "a")
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: -want +got\n%s", tt.name, d)
		}
	}
}

// TestRehome: a cancellation asks the Execution Point alone, and its refusal is told.
func TestRehome(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]string{
		"Result = true": "",
		"Result = false\nErrorCode = 5\nErrorString = \"not moving\"": "received failure from <192.0.2.1:1> in response to REHOME request: error code 5: not moving",
	} {
		d := other{t, command.Rehome, func(c *cedar.Conn) error {
			ad, err := c.Ad(cedar.AdOptions{})
			if err == nil {
				err = c.EndOfMessage()
			}
			if err != nil {
				return err
			}
			if cancel, _ := ad.EvalBool("Cancel", nil); !cancel {
				t.Errorf("got %s", ad.Text(classad.Old))
			}
			c.PutAd(parse(t, reply), cedar.AdOptions{})
			return c.EndMessage()
		}}
		err := Rehome(t.Context(), Directory{Open: d}, nil, "<192.0.2.1:1>", "ap", Move{Cancel: true})
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v", reply, err)
		}
	}
	err := Rehome(t.Context(), Directory{Open: other{t: t}}, nil, "<192.0.2.1:1>", "<192.0.2.2:1>", Move{})
	if err == nil || err.Error() != "cannot reach schedd <192.0.2.2:1>: refused" {
		t.Errorf("of an access point that does not answer: %v", err)
	}
}
