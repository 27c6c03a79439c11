// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/pool/pooltest"
)

// aToken has the form of one.
func aToken() string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return part(`{"alg":"HS256","kid":"POOL"}`) + "." + part(`{"iss":"pool.test","sub":"condor@pool.test","iat":1,"jti":"x"}`) + "." + part("12345678901234567890123456789012")
}

// doorkeeper is a collector that lets nobody in without a token, and answers
// requests for tokens.
type doorkeeper struct {
	*pooltest.Collector
	answers []string // to requests and polls, one after the other; the last again and again
	clear   bool     // nothing is encrypted

	mu     sync.Mutex
	token  bool
	asked  []int
	at     []time.Time
	ads    []*classad.Ad
	denied int
}

func (d *doorkeeper) Command(ctx context.Context, to cedar.Sinful, command int, o security.Options) (*cedar.Conn, *security.Session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if command != 60047 && command != 60048 {
		if !d.token {
			d.denied++
			return nil, nil, errs.E("security.Command", errs.Denied, "", errors.New("DENIED"))
		}
		return d.Collector.Command(ctx, to, command, o)
	}
	client, server := net.Pipe()
	conn, peer := cedar.NewConn(client, cedar.Limits{}), cedar.NewConn(server, cedar.Limits{})
	if !d.clear {
		for _, x := range []*cedar.Conn{conn, peer} {
			if err := x.EnableAES(bytes.Repeat([]byte{7}, 32)); err != nil {
				return nil, nil, err
			}
		}
	}
	d.asked, d.at = append(d.asked, command), append(d.at, time.Now())
	text := d.answers[min(len(d.asked), len(d.answers))-1]
	go func() {
		defer peer.Close()
		ad, err := peer.Ad(cedar.AdOptions{})
		if err != nil || peer.EndOfMessage() != nil {
			return
		}
		d.mu.Lock()
		d.ads = append(d.ads, ad)
		d.mu.Unlock()
		if answer, err := classad.ParseAd(text, classad.Old); err == nil {
			peer.PutAd(answer, cedar.AdOptions{})
			_ = peer.EndMessage()
		}
	}()
	return conn, &security.Session{ID: "s"}, nil
}

// keep stores tokens as a daemon does.
func (d *doorkeeper) keep(cfg *pool.Config) {
	cfg.StoreToken = func(token string) (string, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.token = token == aToken()
		return "/tokens.d/STARTD_auto_generated_token", nil
	}
}

const inDomain = onePart + "UID_DOMAIN = pool.test\n"

// A collector that refuses us is asked for a token, and polled until its
// administrator has approved; with the token it is told the ads.
func TestTokenIsRequested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doorkeeper{Collector: pooltest.NewCollector("25.14.0"), answers: []string{
			"RequestId = \"0012345\"\n", "Token = \"\"\n", "Token = \"\"\n", "Token = \"" + aToken() + "\"\n",
		}}
		r := newRig(t, inDomain, d, d.keep)
		time.Sleep(time.Minute)
		synctest.Wait()
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(d.asked) != 4 || d.asked[0] != 60047 || d.asked[3] != 60048 || d.denied != 1 {
			t.Fatalf("asked %v, refused %d times\n%s", d.asked, d.denied, r.log)
		}
		for i, want := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second} { // the pauses grow
			if got := d.at[i+1].Sub(d.at[i]); got != want {
				t.Errorf("poll %d came after %v, want %v", i+1, got, want)
			}
		}
		first, last := d.ads[0], d.ads[3]
		client := text(t, first, "ClientId")
		if text(t, first, "User") != "condor@pool.test" || text(t, first, "LimitAuthorization") != "ADVERTISE_STARTD" ||
			!strings.HasPrefix(client, "STARTD-host.example-") || text(t, last, "ClientId") != client || text(t, last, "RequestId") != "0012345" {
			t.Errorf("asked\n%s\nand then\n%s", first.Text(classad.Old), last.Text(classad.Old))
		}
		if len(d.Messages()) == 0 {
			t.Error("with the token the collector is told nothing")
		}
		log := r.log.String()
		if !strings.Contains(log, "condor_token_request_approve -reqid 0012345") || strings.Count(log, "administrator has to approve") != 1 {
			t.Errorf("the log does not say what to do:\n%s", log)
		}
		if strings.Contains(log, aToken()) || strings.Contains(log, client) {
			t.Errorf("the log has a secret:\n%s", log)
		}
	})
}

// A rule of the collector's gives the token at once.
func TestTokenByRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doorkeeper{Collector: pooltest.NewCollector("25.14.0"), answers: []string{"RequestId = \"1\"\nToken = \"" + aToken() + "\"\n"}}
		r := newRig(t, inDomain, d, d.keep)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(d.asked) != 1 || len(d.Messages()) == 0 {
			t.Errorf("asked %v\n%s", d.asked, r.log)
		}
	})
}

// A request that is refused or forgotten is made anew, not too often, and no
// token is asked for in clear, without a domain or where none can be kept. The
// end does not wait for an administrator.
func TestTokenIsNotGiven(t *testing.T) {
	for name, tt := range map[string]struct {
		config, log string
		answers     []string
		clear       bool
		store       bool
		asked       [2]int // requests in ten minutes, at least and at most
	}{
		"off":       {inDomain, "Token request disabled", []string{"ErrorString = \"Token request disabled.\"\nErrorCode = 44\n"}, false, true, [2]int{3, 20}},
		"forgotten": {inDomain, "does not come", []string{"RequestId = \"1\"\n", "ErrorString = \"Request ID is not known.\"\nErrorCode = 3\n", "RequestId = \"2\"\n", "Token = \"\"\n"}, false, true, [2]int{8, 40}},
		"nonsense":  {inDomain, "has not three parts", []string{"Token = \"a\\nb\"\n"}, false, true, [2]int{3, 20}},
		"in clear":  {inDomain, "is not encrypted", []string{"RequestId = \"1\"\n"}, true, true, [2]int{3, 20}},
		"no domain": {onePart + "UID_DOMAIN =\n", "", []string{"RequestId = \"1\"\n"}, false, true, [2]int{0, 0}},
		"no place":  {inDomain, "", []string{"RequestId = \"1\"\n"}, false, false, [2]int{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &doorkeeper{Collector: pooltest.NewCollector("25.14.0"), answers: tt.answers, clear: tt.clear}
				change := d.keep
				if !tt.store {
					change = nil
				}
				r := newRig(t, tt.config, d, change)
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				d.mu.Lock()
				n, denied := len(d.asked), d.denied
				d.mu.Unlock()
				if n < tt.asked[0] || n > tt.asked[1] || d.token || denied < 2 || denied > 30 {
					t.Errorf("asked %d times, refused %d times", n, denied)
				}
				if log := r.log.String(); !strings.Contains(log, tt.log) {
					t.Errorf("the log lacks %q:\n%s", tt.log, log)
				}
				began := time.Now()
				if err := r.pool.Withdraw(t.Context()); err != nil || time.Since(began) > time.Second {
					t.Errorf("the end took %v: %v", time.Since(began), err)
				}
			})
		})
	}
}

// A collector whose rule gives every machine a token, and which refuses us with it all
// the same since nothing allows its user, is asked for tokens and connected to as
// seldom as one that is away. It must not be a loop without a pause.
func TestTokenThatIsWorthNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doorkeeper{Collector: pooltest.NewCollector("25.14.0"), answers: []string{"Token = \"" + aToken() + "\"\n"}}
		stored := 0
		newRig(t, inDomain, d, func(cfg *pool.Config) {
			cfg.StoreToken = func(string) (string, error) {
				d.mu.Lock()
				defer d.mu.Unlock()
				if stored++; stored > 1000 { // enough is seen
					d.token = true
				}
				return "/tokens.d/STARTD_auto_generated_token", nil
			}
		})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		d.mu.Lock()
		defer d.mu.Unlock()
		if n := len(d.asked); n < 3 || n > 20 || d.denied > 21 {
			t.Errorf("asked %d times, refused %d times in ten minutes", n, d.denied)
		}
	})
}
