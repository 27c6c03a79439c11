// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/errs"
)

func TestIDs(t *testing.T) {
	t.Parallel()
	if got := NewID("STARTD", 1234, 0xab12, 0); got != "startd_1234_ab12" {
		t.Error(got)
	}
	if got := NewID("Startd", 1234, 0x2, 3); got != "startd_1234_0002_3" {
		t.Error(got)
	}
	for id, want := range map[string]bool{
		"startd_1234_ab12": true, "slot1_2-x.y": true, "self": true,
		"": false, ".": false, "..": false, "a/b": false, "a b": false, "a\x00": false, "ä": false, strings.Repeat("x", 101): false,
	} {
		if ValidID(id) != want {
			t.Errorf("ValidID(%q) is %v", id, !want)
		}
	}
}

func TestPassRequest(t *testing.T) {
	t.Parallel()
	// What a CEDAR stream writes for the message is what is read here.
	want := cedartest.Encode(t, false, func(c *cedar.Conn) { c.PutInt(SharedPortPassSock) })
	var b bytes.Buffer
	if err := WritePassRequest(&b); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes()[5:], want) {
		t.Errorf("request is %x", b.Bytes())
	}
	b.WriteByte(0) // to which the descriptor is tied
	if err := readPassRequest(&b); err != nil || b.Len() != 1 {
		t.Errorf("%v, %d bytes are left", err, b.Len())
	}
	for _, bad := range []string{"", "\x01\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x4b", "\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x4c", "short"} {
		if err := readPassRequest(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is taken for a request", bad)
		}
	}
}

// named is a named socket in memory.
type named struct {
	*hall
	mu      sync.Mutex
	touched []time.Time
	gone    bool
	pass    func() (net.Conn, error)
}

func (n *named) Receive(net.Conn) (net.Conn, error) { return n.pass() }

func (n *named) Touch(now time.Time) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.gone {
		return errs.E("test", errs.NotFound, "", fs.ErrNotExist)
	}
	n.touched = append(n.touched, now)
	return nil
}

func TestEndpoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Limits{})
		ctx, cancel := context.WithCancel(t.Context())
		opened := make(chan *named, 4)
		passed := make(chan net.Conn, 1)
		p := &Endpoint{ID: "startd_1_2", Server: h.server, Log: slog.New(slog.NewTextHandler(h.log, nil)), Open: func() (NamedSocket, error) {
			n := &named{hall: newHall(), pass: func() (net.Conn, error) {
				select {
				case nc := <-passed:
					return from{nc, tcp("192.0.2.33:44")}, nil
				default:
					return nil, errors.New("nothing came")
				}
			}}
			opened <- n
			return n, nil
		}}
		served := make(chan error)
		go func() { served <- p.Serve(ctx) }()
		n := <-opened

		// Somebody says nothing, somebody says something else.
		silent := n.call("192.0.2.1:1")
		wrong := n.call("192.0.2.1:1")
		go func() { _, _ = wrong.Write(make([]byte, 13)) }()
		closed(t, wrong, time.Second)
		// A connection is handed over meanwhile.
		mine, theirs := net.Pipe()
		passed <- theirs
		port := n.call("192.0.2.1:1")
		if err := WritePassRequest(port); err != nil {
			t.Error(err)
		}
		echo(t, cedar.NewConn(mine, cedar.Limits{}), "through the shared port")
		closed(t, silent, time.Minute)
		closed(t, port, time.Minute)
		_ = mine.Close()

		time.Sleep(3600 * time.Second)
		n.mu.Lock()
		if len(n.touched) != 4 {
			t.Errorf("touched at %v, want four times in an hour", n.touched)
		}
		n.gone = true
		n.mu.Unlock()
		time.Sleep(901 * time.Second)
		select {
		case again := <-opened:
			if again == n {
				t.Error("the same socket")
			}
		default:
			t.Error("no new socket was made for the one that was removed")
		}
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		h.end(t)
	})
}

const portAd = `MyType = "SharedPort"
MyAddress = "<192.0.2.5:9618?PrivAddr=%3c10.0.0.5:9618%3e&PrivNet=lab&addrs=192.0.2.5-9618&alias=ep.example&noUDP>"
SharedPortCommandSinfuls = "<192.0.2.5:9618?addrs=192.0.2.5-9618&alias=ep.example&noUDP>,<[2001:db8::5]:9618?noUDP>"
RequestsPendingCurrent = 0
`

func TestPortAddress(t *testing.T) {
	t.Parallel()
	public, others, err := PortAddress([]byte(portAd), "startd_1_2")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := public.String(), "<192.0.2.5:9618?PrivAddr=%3c10.0.0.5:9618%3fsock%3dstartd_1_2%3e&PrivNet=lab&addrs=192.0.2.5-9618&alias=ep.example&noUDP&sock=startd_1_2>"; got != want {
		t.Errorf("public address is\n%s, want\n%s", got, want)
	}
	if len(others) != 2 || others[1].SockID != "startd_1_2" || others[1].Host != "2001:db8::5" || others[1].PrivAddr == nil {
		t.Errorf("other addresses are %v", others)
	}
	for _, bad := range []string{"", "MyAddress = 5\n", "MyAddress = \"<\"\n", "][", "MyAddress = \"<a:1>\"\nSharedPortCommandSinfuls = \"<x\"\n", strings.Repeat("a", maxPortAd+1)} {
		if _, _, err := PortAddress([]byte(bad), "x"); !errs.Is(err, errs.Invalid) {
			t.Errorf("%.40q: %v, want kind Invalid", bad, err)
		}
	}
	if got := LocalAddress(netip.MustParseAddr("192.0.2.5"), "startd_1_2", "ep").String(); got != "<192.0.2.5:0?alias=ep&sock=startd_1_2>" {
		t.Error(got)
	}
}

func TestPortWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		file := ""
		set := func(s string) { mu.Lock(); file = s; mu.Unlock() }
		var told []string
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		w := &PortWatch{ID: "x", Read: func() ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			if file == "" {
				return nil, fs.ErrNotExist
			}
			return []byte(file), nil
		}, Changed: func(s cedar.Sinful, _ []cedar.Sinful) { mu.Lock(); told = append(told, s.String()); mu.Unlock() }}
		heard := func() []string { mu.Lock(); defer mu.Unlock(); return told }
		go func() { w.Run(ctx); close(done) }()
		time.Sleep(130 * time.Second)
		set(portAd)
		time.Sleep(61 * time.Second) // the next retry
		if told := heard(); len(told) != 1 {
			t.Errorf("told %q after the ad appeared, want one address", told)
		}
		time.Sleep(time.Hour)
		if told := heard(); len(told) != 1 {
			t.Errorf("told %q although nothing changed", told)
		}
		set(strings.ReplaceAll(portAd, "9618", "9620"))
		time.Sleep(361 * time.Second)
		if told := heard(); len(told) != 2 || !strings.Contains(told[1], ":9620") {
			t.Errorf("told %q after a change", told)
		}
		cancel()
		<-done
	})
}

func FuzzPortAddress(f *testing.F) {
	f.Add([]byte(portAd))
	f.Add([]byte("MyAddress = strcat(\"<\", MyAddress)\n"))
	f.Add([]byte("[ MyAddress = \"<a:1>\" ]"))
	f.Fuzz(func(t *testing.T, file []byte) {
		public, others, err := PortAddress(file, "startd_1_2")
		if err != nil {
			return
		}
		for _, s := range append(others, public) {
			if again, err := cedar.ParseSinful(s.String()); err != nil || again.SockID != "startd_1_2" {
				t.Errorf("%s reads as %v, %v", s, again, err)
			}
		}
	})
}

func FuzzPassRequest(f *testing.F) {
	f.Add(passRequest())
	f.Add([]byte("\x01\x00\x00\x00\x08"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		if err := readPassRequest(r); err == nil && !bytes.HasPrefix(b, passRequest()) {
			t.Errorf("%x is taken for a request", b)
		}
		if len(b) > 13 && r.Len() != len(b)-13 {
			t.Errorf("%d bytes are left of %d", r.Len(), len(b))
		}
	})
}
