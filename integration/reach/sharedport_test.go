// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package reach

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/reach"
	"github.com/execpoint/execpoint/platform/linux/sharedport"
)

// passed is a connection that a shared port has handed to the endpoint id.
func passed(t *testing.T, dir, id string) (net.Conn, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = near.Close() })
	far, err := l.Accept()
	if err != nil {
		return nil, err
	}
	defer far.Close()
	c, err := sharedport.Dial(sharedport.Place{Dir: dir, ID: id})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := listen.WritePassRequest(c); err != nil {
		return nil, err
	}
	return near, sharedport.Pass(c, far)
}

// Behind a shared port the starter is an endpoint, and what is passed to it is
// served as what comes to a port of its own.
func TestBehindASharedPort(t *testing.T) {
	dir, sockets := t.TempDir(), t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ad := classad.NewAd()
	ad.SetString("User", jobOwner)
	door, err := reach.Open(t.Context(), reach.Config{
		Claim: testClaim(), Endpoint: endpoint.New(endpoint.Config{Version: version}), Address: "<127.0.0.1:9618?addrs=127.0.0.1-9618&noUDP&sock=startd_1_abcd>",
		Job:      job{reach.Target{Job: ad, Root: root, Scratch: dir}},
		Settings: settings(t, map[string]string{"USE_SHARED_PORT": "true", "DAEMON_SOCKET_DIR": sockets}),
		SharedPort: func(dir, id string) (listen.NamedSocket, error) {
			return sharedport.Listen(sharedport.Place{Dir: dir, ID: id})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	to, err := cedar.ParseSinful(door.Address())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(to.SockID, "starter_") || to.Port != 9618 {
		t.Fatalf("the address is %s", to)
	}
	served := make(chan error, 1)
	go func() { served <- door.Serve(context.WithoutCancel(t.Context())) }()

	sessions := security.NewSessions(clock.System(), 10)
	id, err := claim.ParseID(testClaim().Reveal())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sessions.AddExecuteSide(id, ""); err != nil {
		t.Fatal(err)
	}
	client := &security.Client{
		Sessions: sessions, Clock: clock.System(), Version: version, Subsystem: "SCHEDD", Address: func() string { return "" },
		Dial: func(_ context.Context, to cedar.Sinful) (net.Conn, error) { return passed(t, sockets, to.SockID) },
	}
	client.Configure(&security.Settings{Authorizer: &security.Authorizer{}, StepTimeout: time.Minute, Deadline: time.Minute}, nil)
	conn, _, err := client.Command(t.Context(), to, command.CreateJobOwnerSecSession, security.Options{Session: id.Public})
	if err != nil {
		t.Fatal(err)
	}
	request := classad.NewAd()
	request.SetString("ClaimId", testClaim().Reveal())
	conn.PutAd(request, cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		t.Fatal(err)
	}
	reply, err := conn.Ad(cedar.AdOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if at, _ := reply.EvalString("StarterIpAddr", nil); at != door.Address() {
		t.Errorf("answer\n%s", reply.Text(classad.Old))
	}
	door.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(sockets, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
