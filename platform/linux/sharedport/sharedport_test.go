// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sharedport

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
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

func places(t *testing.T) map[string]Place {
	return map[string]Place{
		"file":     {Dir: filepath.Join(t.TempDir(), "daemon_sock"), ID: "startd_1_2"},
		"abstract": {Cookie: strings.Repeat("c", 50) + filepath.Base(t.TempDir()) + t.Name()[:8], ID: "startd_1_2"},
	}
}

// tcpPair returns the two ends of a TCP connection.
func tcpPair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp4", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(); _ = server.Close() })
	return client, server
}

// A connection that somebody else accepted is served as if it had come here,
// and its address is that of the client.
func TestHandover(t *testing.T) {
	t.Parallel()
	for name, place := range places(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan netip.AddrPort, 1)
			table, err := listen.NewTable(listen.Command{Row: command.Row{Number: 7, Name: "SEVEN"}, Handle: func(_ context.Context, c *listen.Call) error {
				asked <- c.Addr
				c.Conn.PutString("served")
				return c.Conn.EndMessage()
			}})
			if err != nil {
				t.Fatal(err)
			}
			server := &listen.Server{Table: table, Security: bare{}}
			ctx, cancel := context.WithCancel(t.Context())
			opened := make(chan struct{}, 1)
			p := &listen.Endpoint{ID: place.ID, Server: server, Open: func() (listen.NamedSocket, error) {
				l, err := Listen(place)
				opened <- struct{}{}
				return l, err
			}}
			ended := make(chan error, 1)
			go func() { ended <- p.Serve(ctx) }()
			<-opened

			client, accepted := tcpPair(t)
			c, err := Dial(place)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := errors.Join(listen.WritePassRequest(c), Pass(c, accepted), accepted.Close()); err != nil {
				t.Fatal(err)
			}
			conn := cedar.NewConn(client, cedar.Limits{})
			conn.PutInt(7)
			if err := conn.EndMessage(); err != nil {
				t.Fatal(err)
			}
			if s, err := conn.String(); s != "served" {
				t.Errorf("reply is %q, %v", s, err)
			}
			if got := (<-asked).String(); got != client.LocalAddr().String() {
				t.Errorf("it came from %s, want %s", got, client.LocalAddr())
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			server.Wait(t.Context())
			if _, err := Dial(place); !errs.Is(err, errs.NotFound) {
				t.Errorf("after the end: %v, want kind NotFound", err)
			}
			if place.Dir != "" {
				if _, err := os.Lstat(filepath.Join(place.Dir, place.ID)); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the file is left: %v", err)
				}
			}
		})
	}
}

// accepted returns the two ends of a connection to a listener.
func accepted(t *testing.T, place Place) (l *Listener, client, server net.Conn) {
	t.Helper()
	l, err := Listen(place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if client, err = Dial(place); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(); _ = server.Close() })
	return l, client, server
}

func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("needs /proc: ", err)
	}
	return len(names)
}

// Whatever else comes in place of one descriptor is refused, and none is left
// open.
func TestBadHandovers(t *testing.T) { // counts open files: not parallel
	l, client, server := accepted(t, Place{Dir: t.TempDir(), ID: "x"})
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	uc := client.(*net.UnixConn)
	fd := int(file.Fd())
	many := make([]int, 40)
	for i := range many {
		many[i] = fd
	}
	for name, oob := range map[string][]byte{
		"nothing":     nil,
		"two":         unix.UnixRights(fd, fd),
		"forty":       unix.UnixRights(many...),
		"no socket":   unix.UnixRights(fd),
		"a name only": unix.UnixCredentials(&unix.Ucred{Pid: int32(os.Getpid()), Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())}),
	} {
		before := openFiles(t)
		if _, _, err := uc.WriteMsgUnix([]byte{0}, oob, nil); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if nc, err := l.Receive(server); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v, %v; want kind Invalid", name, nc, err)
		}
		if after := openFiles(t); after != before {
			t.Errorf("%s: %d files are open, were %d", name, after, before)
		}
	}
	if err := server.SetDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Receive(server); !errs.Is(err, errs.Transient) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("silence: %v", err)
	}
}

func TestListenAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := Listen(Place{Dir: dir, ID: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(Place{Dir: dir, ID: "x"}); !errs.Is(err, errs.Broken) {
		t.Errorf("a socket that somebody listens on was taken: %v", err)
	}
	// Left behind by a process that died.
	first.l.SetUnlinkOnClose(false)
	if err := first.l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Listen(Place{Dir: dir, ID: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.Touch(time.Unix(1e9, 0)); err != nil {
		t.Error(err)
	}
	if st, err := os.Stat(filepath.Join(dir, "x")); err != nil || !st.ModTime().Equal(time.Unix(1e9, 0)) {
		t.Errorf("touched: %v, %v", st, err)
	}
	if err := os.Remove(filepath.Join(dir, "x")); err != nil {
		t.Fatal(err)
	}
	if err := again.Touch(time.Now()); !errs.Is(err, errs.NotFound) {
		t.Errorf("touch of a file that is gone: %v, want kind NotFound", err)
	}
}

func TestInherited(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	parent, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "startd_5_6"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := parent.File()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(int(f.Fd())) // as if it came through exec
	if err != nil {
		t.Fatal(err)
	}
	l, err := Inherited(fd, filepath.Join(dir, "startd_5_6"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := Dial(Place{Dir: dir, ID: "startd_5_6"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "startd_5_6")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the inherited file is left: %v", err)
	}
	_ = f.Close()

	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	tf, err := tcp.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer tf.Close()
	if fd, err = unix.Dup(int(tf.Fd())); err != nil {
		t.Fatal(err)
	}
	if _, err := Inherited(fd, "x"); !errs.Is(err, errs.Invalid) {
		t.Errorf("a TCP socket as named socket: %v, want kind Invalid", err)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	if _, err := Listen(Place{ID: "x"}); !errs.Is(err, errs.Invalid) {
		t.Errorf("nowhere: %v", err)
	}
	if _, err := Listen(Place{Dir: "/" + strings.Repeat("d", 120), ID: "x"}); !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "DAEMON_SOCKET_DIR") {
		t.Errorf("too long: %v", err)
	}
	const cookie = "verysecretcookie"
	l, err := Listen(Place{Cookie: cookie, ID: filepath.Base(t.TempDir())})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if strings.Contains(l.Addr().String(), cookie) {
		t.Errorf("the address for logs is %s", l.Addr())
	}
	if _, err := Dial(Place{Cookie: cookie, ID: "nobody"}); err == nil || strings.Contains(err.Error(), cookie) {
		t.Errorf("the error is %v", err)
	}
	if _, err := Listen(Place{Cookie: cookie, ID: strings.TrimPrefix(l.l.Addr().String(), "@"+cookie+"/")}); err == nil || strings.Contains(err.Error(), cookie) {
		t.Errorf("taken: %v", err)
	}
}

// A socket that root makes in the folder of somebody else is that one's, so
// that a shared port without rights can connect.
func TestSocketIsOfTheFoldersOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Skip("needs the right to give files away: ", err)
	}
	l, err := Listen(Place{Dir: dir, ID: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(dir, "x"), &st); err != nil || st.Uid != 65534 || st.Gid != 65534 {
		t.Errorf("the socket is of %d:%d, %v; want 65534:65534", st.Uid, st.Gid, err)
	}
	// What is put in its place is not given away.
	other := filepath.Join(dir, "file")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := yield(other); err == nil {
		t.Error("a file was given away")
	}
}
