// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// bare takes a number from everyone.
type bare struct{}

func (bare) Narrow(*cedar.Conn) (restore func()) { return func() {} }

func (bare) Handshake(_ context.Context, conn *cedar.Conn, from netip.AddrPort) (*security.Request, error) {
	n, err := conn.Int()
	return &security.Request{Command: int(n), Addr: from}, err
}

func (bare) Next(context.Context, *cedar.Conn, *security.Request) (*security.Request, error) {
	return nil, io.EOF
}

// instance asks whoever is behind a connection who it is.
func instance(t *testing.T, nc net.Conn) string {
	t.Helper()
	conn := cedar.NewConn(nc, cedar.Limits{})
	defer conn.Close()
	conn.PutInt(command.DCQueryInstance)
	if err := conn.EndMessage(); err != nil {
		t.Fatal(err)
	}
	b, err := conn.Bytes(16)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func newCommandPort(t *testing.T, knobs string) (d *CommandPort, changes chan string) {
	t.Helper()
	n, err := endpoint.NetworkFrom(snapshot(t, knobs), "STARTD")
	if err != nil {
		t.Fatal(err)
	}
	table, err := listen.NewTable(newDesk(t, knobs).answers.Commands()...)
	if err != nil {
		t.Fatal(err)
	}
	changes = make(chan string, 8)
	return &CommandPort{
		Network: n, Subsystem: "STARTD", PID: 4712, Tag: 0xab12,
		Server:  &listen.Server{Table: table, Security: bare{}},
		Machine: Machine{Interfaces: func() ([]endpoint.Interface, error) { return lab, nil }},
		File:    AddressFile{Path: filepath.Join(t.TempDir(), ".startd_address"), Version: "$CondorVersion: 25.14.0 x $", Platform: "$CondorPlatform: x $"},
		Changed: func(s cedar.Sinful) { changes <- s.String() },
		Log:     slog.New(slog.DiscardHandler),
	}, changes
}

func shown(t *testing.T, d *CommandPort) string {
	t.Helper()
	text, err := os.ReadFile(d.File.Path)
	if err != nil {
		return err.Error()
	}
	return firstLine(string(text))
}

// row: S4-043
func TestCommandPort(t *testing.T) {
	t.Parallel()
	d, changes := newCommandPort(t, "NETWORK_INTERFACE = 127.0.0.1\nBIND_ALL_INTERFACES = false\nUSE_SHARED_PORT = false\n")
	d.Super = d.File
	d.Super.Path += ".super"
	if err := d.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	public := <-changes
	to, err := cedar.ParseSinful(public)
	if err != nil || !to.NoUDP || to.Host != "127.0.0.1" || to.Port == 0 || to.SockID != "" {
		t.Fatalf("the address is %s, %v", public, err)
	}
	if s := shown(t, d); s != strings.Replace(public, "&noUDP", "", 1) {
		t.Errorf("the file shows %s; the address is %s", s, public)
	}
	text, err := os.ReadFile(d.File.Path)
	if want := shown(t, d) + "\n" + d.File.Version + "\n" + d.File.Platform + "\n"; err != nil || string(text) != want {
		t.Errorf("the file holds %q, %v; want %q", text, err, want)
	}
	if super, err := os.ReadFile(d.Super.Path); err != nil || string(super) != string(text) {
		t.Errorf("the file for administrators holds %q, %v; want %q", super, err, text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- d.Serve(ctx) }()
	nc, err := (&listen.Dialer{}).Dial(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	if got := instance(t, nc); got != "01020304fbfcfdfe" {
		t.Errorf("who answers is %s", got)
	}
	if want := "STARTD " + public; d.Name() != want {
		t.Errorf("it is called %s, want %s", d.Name(), want)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	d.Server.Wait(t.Context())
	for _, path := range []string{d.File.Path, d.Super.Path} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the address file %s is left: %v", path, err)
		}
	}
	if _, err := net.Dial("tcp", to.HostPort()); err == nil {
		t.Error("the port still answers")
	}
}

// Datagram takes a number from everyone.
func (bare) Datagram(_ context.Context, from netip.AddrPort, m cedar.Datagram) (*security.Request, *cedar.Conn, error) {
	conn := cedar.MessageReader(m.Payload, cedar.Limits{})
	n, err := conn.Int()
	return &security.Request{Command: int(n), Addr: from}, conn, err
}

// Datagrams come in at the port of the command socket, unless the owner does
// not want that.
func TestCommandPortForDatagrams(t *testing.T) {
	t.Parallel()
	for _, want := range []bool{true, false} {
		d, changes := newCommandPort(t, fmt.Sprintf("NETWORK_INTERFACE = 127.0.0.1\nBIND_ALL_INTERFACES = false\nUSE_SHARED_PORT = false\nWANT_UDP_COMMAND_SOCKET = %v\n", want))
		told := make(chan netip.AddrPort, 1)
		table, err := listen.NewTable(listen.Command{Row: command.Row{Number: 1, Name: "ONE", Terms: command.Terms{Datagrams: true}}, Handle: func(_ context.Context, c *listen.Call) error { told <- c.Addr; return nil }})
		if err != nil {
			t.Fatal(err)
		}
		d.Server.Table, d.Server.Datagrams = table, bare{}
		if err := d.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		to, err := cedar.ParseSinful(<-changes)
		if err != nil || to.NoUDP == want {
			t.Fatalf("the address is %s, %v", to, err)
		}
		if security.TakesDatagrams(to) != want || d.sockets.Datagrams() != want {
			t.Errorf("datagrams are taken: %v, want %v", d.sockets.Datagrams(), want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error)
		go func() { served <- d.Serve(ctx) }()
		if want {
			nc, err := (&listen.Dialer{}).Post(t.Context(), to)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := nc.Write([]byte{0, 0, 0, 0, 0, 0, 0, 1}); err != nil {
				t.Fatal(err)
			}
			if from := <-told; from.String() != nc.LocalAddr().String() {
				t.Errorf("it comes from %s, not from %s", from, nc.LocalAddr())
			}
			_ = nc.Close()
		}
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		d.Server.Wait(t.Context())
	}
}

// What listens for datagrams may be handed down, too.
func TestInheritedCommandPortForDatagrams(t *testing.T) { // hands descriptors over: nobody may open files meanwhile
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := net.ListenPacket("udp4", l.Addr().String())
	if err != nil {
		t.Skip("somebody has the port: ", err)
	}
	defer p.Close()
	for _, want := range []bool{true, false} {
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Skip("descriptors cannot be handed down here: ", err)
		}
		g, err := p.(*net.UDPConn).File()
		if err != nil {
			t.Fatal(err)
		}
		d, changes := newCommandPort(t, fmt.Sprintf("NETWORK_INTERFACE = 127.0.0.1\nUSE_SHARED_PORT = false\nWANT_UDP_COMMAND_SOCKET = %v\n", want))
		d.Server.Datagrams = bare{}
		d.Inherit.Commands = []Socket{{Kind: Stream, Descriptor: int(f.Fd())}, {Kind: Datagram, Descriptor: int(g.Fd())}}
		if err := d.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := <-changes; strings.Contains(s, "noUDP") == want || d.sockets.Datagrams() != want {
			t.Errorf("the address is %s", s)
		}
		d.sockets.Close()
		// The descriptors were taken over, or closed.
		if f.Close() == nil || g.Close() == nil {
			t.Error("a descriptor was left open")
		}
	}
}

// A socket for datagrams alone is no command port: it does not stay open unheard.
func TestInheritedDatagramsAlone(t *testing.T) { // hands a descriptor over: nobody may open files meanwhile
	p, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.(*net.UDPConn).File()
	if err != nil {
		t.Skip("descriptors cannot be handed down here: ", err)
	}
	_ = p.Close()
	d, changes := newCommandPort(t, "NETWORK_INTERFACE = 127.0.0.1\nUSE_SHARED_PORT = false\nWANT_UDP_COMMAND_SOCKET = true\n")
	d.Server.Datagrams = bare{}
	d.Inherit.Commands = []Socket{{Kind: Datagram, Descriptor: int(g.Fd())}}
	if err := d.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-changes
	d.sockets.Close()
	if g.Close() == nil {
		t.Error("the descriptor was left open")
	}
	again, err := net.ListenPacket("udp4", p.LocalAddr().String())
	if err != nil {
		t.Fatal("the port that was handed down is still taken:", err)
	}
	_ = again.Close()
}

// One that the parent opened for us is used instead of a new one.
func TestInheritedCommandPort(t *testing.T) { // hands a descriptor over: nobody may open files meanwhile
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Skip("descriptors cannot be handed down here: ", err)
	}
	d, changes := newCommandPort(t, "NETWORK_INTERFACE = 127.0.0.1\nUSE_SHARED_PORT = false\n")
	d.Inherit.Commands = []Socket{{Kind: Stream, Descriptor: int(f.Fd())}}
	err = d.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The descriptor was taken over; f must not close it a second time.
	if ferr := f.Close(); ferr == nil {
		t.Error("the descriptor was left open")
	}
	if s := <-changes; !strings.HasPrefix(s, "<"+l.Addr().String()+"?") {
		t.Errorf("the address is %s, the inherited one %s", s, l.Addr())
	}
	d.sockets.Close()
}

// named is a named socket in memory.
type named struct {
	calls, passed chan net.Conn
	once          sync.Once
	done          chan struct{}
}

func (n *named) Accept() (net.Conn, error) {
	select {
	case c := <-n.calls:
		return c, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}
func (n *named) Receive(net.Conn) (net.Conn, error) { return <-n.passed, nil }
func (n *named) Touch(time.Time) error              { return nil }
func (n *named) Close() error                       { n.once.Do(func() { close(n.done) }); return nil }
func (n *named) Addr() net.Addr                     { return &net.UnixAddr{Name: "x", Net: "unix"} }

func TestCommandPortBehindSharedPort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, changes := newCommandPort(t, "USE_SHARED_PORT = true\nSHARED_PORT_DAEMON_AD_FILE = /ad\nCCB_ADDRESS = cm.example\n")
		n := &named{calls: make(chan net.Conn), passed: make(chan net.Conn, 1), done: make(chan struct{})}
		d.Inherit.Endpoint = &NamedSocket{Name: "cookie/startd_99_cdef", Descriptor: 9}
		d.Machine.Named = func(id string, in *NamedSocket) (listen.NamedSocket, error) {
			if id != "startd_99_cdef" || in != d.Inherit.Endpoint {
				t.Errorf("socket %s, inherited %v", id, in)
			}
			return n, nil
		}
		var mu sync.Mutex
		ad := ""
		d.Machine.ReadFile = func(path string) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			if path != "/ad" || ad == "" {
				return nil, fs.ErrNotExist
			}
			return []byte(ad), nil
		}
		if err := d.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s, ok := d.Public(); ok {
			t.Errorf("the address is %s although there is no shared port", s)
		}
		if s := shown(t, d); s != "<192.0.2.5:0?alias=ep.example&sock=startd_99_cdef>" {
			t.Errorf("the file shows %s", s)
		}
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error)
		go func() { served <- d.Serve(ctx) }()

		mine, theirs := net.Pipe()
		n.passed <- theirs
		port, end := net.Pipe()
		n.calls <- end
		if err := listen.WritePassRequest(port); err != nil {
			t.Fatal(err)
		}
		if got := instance(t, mine); got != "01020304fbfcfdfe" {
			t.Errorf("who answers is %s", got)
		}

		mu.Lock()
		ad = "MyAddress = \"<192.0.2.5:9618?CCBID=203.0.113.1:9618%237&noUDP>\"\n"
		mu.Unlock()
		if s := <-changes; s != "<192.0.2.5:9618?CCBID=203.0.113.1:9618#7&noUDP&sock=startd_99_cdef>" || shown(t, d) != s {
			t.Errorf("the address is %s, the file shows %s", s, shown(t, d))
		}
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		d.Server.Wait(t.Context())
		_ = port.Close()
	})
}

// Behind a broker the address changes when the registration is there, and
// stays while the broker is away: it will keep the number for us.
func TestCommandPortBehindBroker(t *testing.T) {
	t.Parallel()
	d, changes := newCommandPort(t, "NETWORK_INTERFACE = 127.0.0.1\nBIND_ALL_INTERFACES = false\nUSE_SHARED_PORT = false\nCCB_ADDRESS = cm.example\nPRIVATE_NETWORK_NAME = lab\n")
	registrations := make(chan *cedar.Conn, 1)
	d.Broker = func(_ context.Context, address string) (*cedar.Conn, error) {
		if address != "cm.example" {
			t.Errorf("broker %s", address)
		}
		mine, theirs := cedartest.Pipe()
		registrations <- cedar.NewConn(theirs, cedar.Limits{})
		return cedar.NewConn(mine, cedar.Limits{}), nil
	}
	if err := d.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	direct := <-changes
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- d.Serve(ctx) }()
	conn := <-registrations
	ad, err := conn.Ad(cedar.AdOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s, _ := ad.EvalString("Name", nil); s != "STARTD "+direct {
		t.Errorf("it registers as %s", s)
	}
	_ = conn.EndOfMessage()
	reply := classad.NewAd()
	reply.SetInt("Command", 67)
	reply.SetString("CCBID", "203.0.113.1:9618#12")
	reply.SetString("ClaimId", "cookie")
	conn.PutAd(reply, cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		t.Fatal(err)
	}
	to, err := cedar.ParseSinful(<-changes)
	if err != nil || len(to.CCB) != 1 || to.CCB[0].ID != "12" || to.PrivNet != "lab" {
		t.Errorf("the address is %s, %v", to, err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestCommandPortsThatDoNotOpen(t *testing.T) {
	t.Parallel()
	d, _ := newCommandPort(t, "NETWORK_INTERFACE = 203.0.113.77\nUSE_SHARED_PORT = false\n")
	if err := d.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "no interface of this machine has this address") {
		t.Errorf("nobody's address: %v", err)
	}
	d, _ = newCommandPort(t, "TCP_FORWARDING_HOST = gate.example\nUSE_SHARED_PORT = false\n")
	d.Machine.Resolve = func(context.Context, string) (netip.Addr, error) { return netip.Addr{}, errors.New("no such host") }
	if err := d.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "TCP_FORWARDING_HOST") {
		t.Errorf("nobody's name: %v", err)
	}
	d, _ = newCommandPort(t, "USE_SHARED_PORT = true\n")
	d.Inherit.Endpoint = &NamedSocket{Name: "cookie/startd 1", Descriptor: 9}
	d.Machine.Named = func(string, *NamedSocket) (listen.NamedSocket, error) { return nil, errors.New("must not be asked") }
	if err := d.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "CONDOR_INHERIT") {
		t.Errorf("a bad id: %v", err)
	}
}

// Without condor_master nobody starts a shared port later: the daemon takes a port
// of its own unless one is there, and says why.
func TestCommandPortWithoutSharedPort(t *testing.T) {
	t.Parallel()
	alive, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	gone, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	ad := func(at net.Addr) string { return fmt.Sprintf("MyAddress = \"<%s>\"\n", at) }
	denied := errs.E("x", errs.Broken, "/lock/daemon_sock", &fs.PathError{Op: "mkdir", Path: "/lock/daemon_sock", Err: fs.ErrPermission})
	for _, tt := range []struct {
		name, ad, parent string
		named            error
		shared           bool
		want             string
	}{
		{name: "no ad", want: "/ad"},
		{name: "no ad yet", parent: "<127.0.0.1:1>", shared: true},
		{name: "no ad at all", ad: "][", want: "/ad"},
		{name: "an ad that was left behind", ad: ad(gone.Addr()), want: "nobody listens where it says"},
		{name: "a shared port", ad: ad(alive.Addr()), shared: true},
		{name: "a shared port of others", ad: ad(alive.Addr()), named: denied, want: "/lock/daemon_sock"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, _ := newCommandPort(t, "USE_SHARED_PORT = true\nSHARED_PORT_DAEMON_AD_FILE = /ad\nNETWORK_INTERFACE = 127.0.0.1\nBIND_ALL_INTERFACES = false\n")
			var said strings.Builder
			d.Log = slog.New(slog.NewTextHandler(&said, nil))
			d.Inherit.ParentAddress = tt.parent
			d.Machine.ReadFile = func(path string) ([]byte, error) {
				if tt.ad == "" {
					return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
				}
				return []byte(tt.ad), nil
			}
			d.Machine.Named = func(string, *NamedSocket) (listen.NamedSocket, error) { return &named{}, tt.named }
			if err := d.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			d.sockets.Close()
			_, behind := d.sockets.SharedPort()
			at, known := d.Public()
			if known == tt.shared || behind != tt.shared || !tt.shared && at.Port == 0 {
				t.Errorf("the address is %s (%v)", at, known)
			}
			if told := strings.Contains(said.String(), "a port of our own is taken"); told == tt.shared || !strings.Contains(said.String(), tt.want) {
				t.Errorf("it says %q, want something about %q", said.String(), tt.want)
			}
		})
	}
}
