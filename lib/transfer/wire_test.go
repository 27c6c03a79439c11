// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

const vectors = "../cedar/testdata/vectors/"

// recorded returns the recorded connections for one command.
func recorded(t testing.TB, file string, command int) []*cedartest.Connection {
	var all []*cedartest.Connection
	for _, c := range cedartest.Load(t, vectors+file).Connections {
		if strings.Contains(c.Note, fmt.Sprintf("(%d)", command)) {
			all = append(all, c)
		}
	}
	return all
}

// recordedFile is one file of a recorded transfer.
type recordedFile struct {
	name string
	mode fs.FileMode
	data []byte
}

// filesOf reads the files out of a recording.
func filesOf(c *cedartest.Connection) []recordedFile {
	var all []recordedFile
	for _, m := range c.Messages {
		switch {
		case m.Note == "file name":
			all = append(all, recordedFile{name: *m.Items[0].Str})
		case m.Note == "file mode":
			all[len(all)-1].mode = fs.FileMode(*m.Items[0].Int)
		case m.Note == "file data":
			for _, it := range m.Items {
				all[len(all)-1].data = append(all[len(all)-1].data, it.Bytes...)
			}
		}
	}
	return all
}

// player plays one end of a recorded transfer after its handshake. Final
// reports of ours must say at least what was recorded.
func player(c *cedartest.Connection, role cedartest.Role) *cedartest.Player {
	encrypted := false
	return &cedartest.Player{
		Conn: c, Role: role,
		Skip: func(m *cedartest.Message) bool {
			encrypted = encrypted || m.Event == cedartest.EncryptionOn
			return !encrypted
		},
		Check: func(m *cedartest.Message, got []byte) error {
			if !strings.HasPrefix(m.Note, "final ack") {
				return cedartest.Diff(m.Plaintext, got)
			}
			if !bytes.Contains(got, []byte("Result = 0")) || !bytes.Contains(got, []byte("CedarFilesCount = 3")) {
				return fmt.Errorf("final report %q", got)
			}
			return nil
		},
	}
}

func secured(t testing.TB, c *cedartest.Connection, p *cedartest.Player) (*cedar.Conn, func()) {
	nc, wait := p.Start(t)
	conn := cedar.NewConn(nc, cedar.Limits{})
	if err := conn.EnableAES(c.Session.Key); err != nil {
		t.Fatal(err)
	}
	return conn, wait
}

func recordedKey(c *cedartest.Connection) cedar.Secret {
	for _, m := range c.Messages {
		if m.Note == "TransferKey" {
			return cedar.Secret(*m.Items[0].Secret)
		}
	}
	return ""
}

// Every recorded transfer is understood and answered as it was, as the end
// that received and as the end that sent.
func TestRecorded(t *testing.T) {
	t.Parallel()
	n := 0
	for _, file := range []string{"ep-claim-job-complete.json", "ep-pslot-leftovers.json", "ep-claim-leftovers-form.json", "ep-claim-minimal-info.json",
		"ep-claim-release-by-ep.json", "ep-claim-hold.json", "ep-reconnect-new-shadow.json", "ep-reconnect-same-shadow.json"} {
		for _, number := range []int{command.FiletransUpload, command.FiletransDownload} {
			for i, c := range recorded(t, file, number) {
				files := filesOf(c)
				if last := c.Messages[len(c.Messages)-2]; len(files) == 0 || !strings.HasPrefix(last.Note, "final ack") {
					continue
				}
				n++
				t.Run(fmt.Sprintf("%s/%d/%d", file, number, i), func(t *testing.T) {
					t.Parallel()
					t.Run("receiving", func(t *testing.T) { receiveRecorded(t, c, number, files) })
					t.Run("sending", func(t *testing.T) { sendRecorded(t, c, number, files) })
				})
			}
		}
	}
	if n < 4 {
		t.Errorf("only %d recorded transfers", n)
	}
}

// A shadow that lost its connection refuses the key that it gave out.
func TestRecordedRefusal(t *testing.T) {
	t.Parallel()
	c := recorded(t, "ep-reconnect-same-shadow.json", command.FiletransDownload)[0]
	conn, wait := secured(t, c, player(c, cedartest.Server))
	if err := Begin(conn, recordedKey(c)); err != nil {
		t.Fatal(err)
	}
	from := root(t)
	put(t, from.Name(), map[string]string{"_condor_stdout": strings.Repeat("x", 1047)})
	_, err := Send(t.Context(), Side{Conn: conn}, from, SendPlan{Final: true, Items: items("_condor_stdout")}, SendOptions{})
	if f := failure(t, err); !f.Retry || !errors.Is(err, errRefused) {
		t.Errorf("%+v", f)
	}
	_ = conn.Close()
	wait()
}

// receiveRecorded takes the place of the end that received.
func receiveRecorded(t *testing.T, c *cedartest.Connection, number int, files []recordedFile) {
	uploader := cedartest.Server
	if number == command.FiletransDownload {
		uploader = cedartest.Client
	}
	conn, wait := secured(t, c, player(c, uploader))
	if uploader == cedartest.Server {
		if err := Begin(conn, recordedKey(c)); err != nil {
			t.Fatal(err)
		}
	} else {
		key, err := conn.Secret()
		if err != nil || key != recordedKey(c) || conn.EndOfMessage() != nil {
			t.Fatalf("the key: %v", err)
		}
	}
	into := root(t)
	stats, err := Receive(t.Context(), Side{Conn: conn}, into, ReceiveOptions{Executable: "x.sh"})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	wait()
	size := int64(0)
	for _, f := range files {
		got, err := into.ReadFile(f.name)
		if err != nil || !bytes.Equal(got, f.data) {
			t.Errorf("%s: %v, %d bytes, want %d", f.name, err, len(got), len(f.data))
		}
		if info, err := into.Stat(f.name); err == nil && info.Mode().Perm() != f.mode {
			t.Errorf("%s has mode %v, want %v", f.name, info.Mode(), f.mode)
		}
		size += int64(len(f.data))
	}
	if stats.Files != len(files) || stats.Bytes != size || stats.Final != (number == command.FiletransDownload) {
		t.Errorf("stats %+v", stats)
	}
}

// sendRecorded takes the place of the end that sent.
func sendRecorded(t *testing.T, c *cedartest.Connection, number int, files []recordedFile) {
	downloader := cedartest.Client
	if number == command.FiletransDownload {
		downloader = cedartest.Server
	}
	conn, wait := secured(t, c, player(c, downloader))
	if downloader == cedartest.Server {
		if err := Begin(conn, recordedKey(c)); err != nil {
			t.Fatal(err)
		}
	} else if key, err := conn.Secret(); err != nil || key != recordedKey(c) || conn.EndOfMessage() != nil {
		t.Fatalf("the key: %v", err)
	}
	from := root(t)
	plan := SendPlan{Final: number == command.FiletransDownload}
	for _, f := range files {
		if err := from.WriteFile(f.name, f.data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := from.Chmod(f.name, f.mode); err != nil {
			t.Fatal(err)
		}
		plan.Items = append(plan.Items, SendItem{Source: f.name})
	}
	stats, err := Send(t.Context(), Side{Conn: conn}, from, plan, SendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	wait()
	if got := stats.Peer; got == nil {
		t.Error("no TransferStats of the other end")
	}
}

// ends returns two ends of an encrypted connection in memory.
func ends(t testing.TB) (a, b *cedar.Conn) {
	x, y := cedartest.Pipe()
	t.Cleanup(func() {
		_ = x.Close()
		_ = y.Close()
	})
	a, b = cedar.NewConn(x, cedar.Limits{}), cedar.NewConn(y, cedar.Limits{})
	for _, c := range []*cedar.Conn{a, b} {
		if err := c.EnableAES(make([]byte, 32)); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

// moved is what came of a transfer at both ends.
type moved struct {
	sent, got           Stats
	sendErr, receiveErr error
}

// move sends plan from one directory and receives it in another one.
func move(t testing.TB, from, into *os.Root, plan SendPlan, so SendOptions, ro ReceiveOptions) moved {
	t.Helper()
	return moveWith(t, from, into, plan, so, ro, nil)
}

// moveWith is move with somebody who keeps records of what is received.
func moveWith(t testing.TB, from, into *os.Root, plan SendPlan, so SendOptions, ro ReceiveOptions, record func(*classad.Ad)) moved {
	t.Helper()
	a, b := ends(t)
	var m moved
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.sent, m.sendErr = Send(t.Context(), Side{Conn: a, Address: "10.0.0.1"}, from, plan, so)
		_ = a.Close()
	}()
	m.got, m.receiveErr = Receive(t.Context(), Side{Conn: b, Name: "SHADOW", Address: "10.0.0.2", Errno: testErrno, Record: record}, into, ro)
	_ = b.Close()
	<-done
	return m
}

func items(names ...string) (all []SendItem) {
	for _, n := range names {
		all = append(all, SendItem{Source: n})
	}
	return all
}

func failure(t testing.TB, err error) *WireFailure {
	t.Helper()
	var f *WireFailure
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a *WireFailure", err)
	}
	return f
}

// Directories are sent before what is in them, links as what they lead to.
func TestMoveTree(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		plan SendPlan
		want map[string]string
	}{
		"files and directories": {
			SendPlan{Items: items("a", "d", "empty")},
			map[string]string{"a": "A", "d/": "", "d/b": "B", "d/e/": "", "d/e/c": "C", "d/into": "A", "empty": ""},
		},
		"contents": {
			SendPlan{Items: items("d/")},
			map[string]string{"b": "B", "e/": "", "e/c": "C", "into": "A"},
		},
		"last part of a path": {
			SendPlan{Items: items("d/e/c")},
			map[string]string{"c": "C"},
		},
		"preserved": {
			SendPlan{Items: items("d/e/c", "d/b"), Preserve: true},
			map[string]string{"d/": "", "d/b": "B", "d/e/": "", "d/e/c": "C"},
		},
		"a link to a file, which is twice there": {
			SendPlan{Items: items("link", "a", "a")},
			map[string]string{"link": "A", "a": "A"},
		},
		"quiet": {
			SendPlan{Items: items("d", "a"), Quiet: map[string]bool{"b": true, "a": true}},
			map[string]string{"d/": "", "d/e/": "", "d/e/c": "C", "d/into": "A"},
		},
		"encrypted": {
			SendPlan{Items: items("a", "d/b"), Encrypt: []string{"a*"}, DontEncrypt: []string{"*b", "a"}},
			map[string]string{"a": "A", "b": "B"},
		},
		"nothing": {SendPlan{}, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, into := root(t), root(t)
			put(t, from.Name(), map[string]string{"a": "A", "d/b": "B", "d/e/c": "C", "empty": ""})
			for link, to := range map[string]string{"link": "a", "d/into": "../a"} {
				if err := from.Symlink(to, link); err != nil {
					t.Skip(err)
				}
			}
			m := move(t, from, into, tt.plan, SendOptions{}, ReceiveOptions{})
			if m.sendErr != nil || m.receiveErr != nil {
				t.Fatal(m.sendErr, m.receiveErr)
			}
			if diff := cmp.Diff(tt.want, treeOf(t, into)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// treeOf reads a directory: contents of files by their names, "" for a
// directory, whose name ends in a slash.
func treeOf(t testing.TB, r *os.Root) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(r.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
		case d.IsDir():
			all[name+"/"] = ""
		default:
			b, err := fs.ReadFile(r.FS(), name)
			if err != nil {
				return err
			}
			all[name] = string(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestModes(t *testing.T) {
	t.Parallel()
	from, into := root(t), root(t)
	put(t, from.Name(), map[string]string{"a": "A", "x": "X", "d/f": "F"})
	for name, mode := range map[string]fs.FileMode{"a": 0o640, "x": 0o600, "d/f": 0o666, "d": 0o555} {
		if err := from.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = from.Chmod("d", 0o755)
		_ = into.Chmod("d", 0o755)
	})
	var owned []string
	m := move(t, from, into, SendPlan{Items: items("a", "x", "d")}, SendOptions{}, ReceiveOptions{
		Executable: "/data/u/x",
		Owner: func(_ *os.Root, name string, dir bool) error {
			owned = append(owned, fmt.Sprintf("%s %v", filepath.ToSlash(name), dir))
			return nil
		},
	})
	if m.sendErr != nil || m.receiveErr != nil {
		t.Fatal(m.sendErr, m.receiveErr)
	}
	for name, want := range map[string]fs.FileMode{"a": 0o640, "x": 0o755, "d/f": 0o666, "d": 0o555} {
		if info, err := into.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want %v", name, info.Mode(), err, want)
		}
	}
	if diff := cmp.Diff([]string{"a false", "x false", "d true", "d/f false"}, owned); diff != "" {
		t.Error(diff)
	}
}

// A file that cannot be read is named by both ends, and the others arrive.
func TestMissingSource(t *testing.T) {
	t.Parallel()
	from, into := root(t), root(t)
	put(t, from.Name(), map[string]string{"a": "A", "d/b": "B"})
	if err := from.Symlink("d", "dirlink"); err != nil {
		t.Skip(err)
	}
	m := move(t, from, into, SendPlan{Final: true, Items: items("none", "dirlink", "../outside", "a")}, SendOptions{}, ReceiveOptions{})
	s, r := failure(t, m.sendErr), failure(t, m.receiveErr)
	want := fmt.Sprintf("STARTER at 10.0.0.1 failed to send file(s) to <server>: |Error: 3 total failures: first failure: "+
		"reading from file %s/none: (errno 2) No such file or directory; SHADOW failed to receive file(s) from <client>", from.Name())
	if s.HoldCode != HoldUpload || s.HoldSubcode != 2 || s.Retry || s.Reason != want {
		t.Errorf("sender: %+v\nwant %s", s, want)
	}
	if r.HoldCode != HoldUpload || r.HoldSubcode != 2 || r.Retry || r.Reason != want {
		t.Errorf("receiver: %+v\nwant %s", r, want)
	}
	if diff := cmp.Diff(map[string]string{"a": "A"}, treeOf(t, into)); diff != "" {
		t.Error(diff)
	}
}

// failingSink is a disk that becomes full.
type failingSink struct{ left int }

func (f *failingSink) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, &fs.PathError{Op: "write", Path: "x", Err: errNoSpace}
	}
	return len(b), nil
}
func (f *failingSink) Chmod(fs.FileMode) error { return nil }
func (f *failingSink) Close() error            { return nil }

// A full disk at the receiving end holds the job, with the number of it, and
// the conversation goes on to its end.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	from, into := root(t), root(t)
	put(t, from.Name(), map[string]string{"big": strings.Repeat("x", 1<<20), "b": "B"})
	m := move(t, from, into, SendPlan{Items: items("big", "b")}, SendOptions{},
		ReceiveOptions{create: func(string) (sink, error) { return &failingSink{left: 300_000}, nil }})
	s, r := failure(t, m.sendErr), failure(t, m.receiveErr)
	text := fmt.Sprintf("SHADOW at 10.0.0.2 - |Error: writing to file %s: (errno 28) No space left on device", filepath.Join(into.Name(), "big"))
	if r.HoldCode != HoldDownload || r.HoldSubcode != 28 || r.Retry || r.Reason != text {
		t.Errorf("receiver: %+v\nwant %s", r, text)
	}
	if s.HoldCode != HoldDownload || s.HoldSubcode != 28 || s.Retry || s.Reason != "STARTER at 10.0.0.1 failed to send file(s) to <server>; "+text {
		t.Errorf("sender: %+v", s)
	}
}

// fakeFile is a plain file of a size, read from nowhere.
type fakeFile struct {
	size, at int64
	err      error
}

func (f *fakeFile) Read(b []byte) (int, error) {
	if f.err != nil && f.at > f.size/2 {
		return 0, f.err
	}
	n := int(min(int64(len(b)), f.size-f.at))
	if n == 0 {
		return 0, io.EOF
	}
	f.at += int64(n)
	return n, nil
}
func (f *fakeFile) Close() error               { return nil }
func (f *fakeFile) Stat() (fs.FileInfo, error) { return fakeInfo{f.size}, nil }

type fakeInfo struct{ size int64 }

func (i fakeInfo) Name() string     { return "big" }
func (i fakeInfo) Size() int64      { return i.size }
func (fakeInfo) Mode() fs.FileMode  { return 0o600 }
func (fakeInfo) ModTime() time.Time { return time.Time{} }
func (fakeInfo) IsDir() bool        { return false }
func (fakeInfo) Sys() any           { return nil }

// countingSink takes a file of any size.
type countingSink struct{ n int64 }

func (c *countingSink) Write(b []byte) (int, error) { c.n += int64(len(b)); return len(b), nil }
func (c *countingSink) Chmod(fs.FileMode) error     { return nil }
func (c *countingSink) Close() error                { return nil }

// A file beyond 4 GiB keeps its size.
func TestBeyond4GiB(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 4 GiB")
	}
	t.Parallel()
	const size = 1<<32 + 12345
	from, into := root(t), root(t)
	put(t, from.Name(), map[string]string{"big": ""})
	var got countingSink
	var progress int64
	a, b := tcpEnds(t)
	done := make(chan error, 1)
	go func() {
		_, err := Send(t.Context(), Side{Conn: a}, from, SendPlan{Items: items("big")},
			SendOptions{open: func(string) (source, error) { return &fakeFile{size: size}, nil }})
		done <- err
	}()
	stats, err := Receive(t.Context(), Side{Conn: b, Progress: func(n int64) { progress += n }}, into,
		ReceiveOptions{create: func(string) (sink, error) { return &got, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got.n != size || stats.Bytes != size || progress != size {
		t.Errorf("got %d, stats %d, progress %d, want %d", got.n, stats.Bytes, progress, int64(size))
	}
}

// Holes in a file arrive as zeros, and what was sent at the top is listed for
// the spool.
func TestSparse(t *testing.T) {
	t.Parallel()
	from, into := root(t), root(t)
	f, err := from.Create("holes")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("end"), 5<<20); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	put(t, from.Name(), map[string]string{"d/a": "A", "_condor_stdout": ""})
	m := move(t, from, into, SendPlan{Items: items("holes", "d", "_condor_stdout"), Std: []string{"_condor_stdout"}}, SendOptions{}, ReceiveOptions{})
	if m.sendErr != nil || m.receiveErr != nil {
		t.Fatal(m.sendErr, m.receiveErr)
	}
	got, err := into.ReadFile("holes")
	if err != nil || len(got) != 5<<20+3 || string(got[5<<20:]) != "end" || len(bytes.Trim(got[:5<<20], "\x00")) != 0 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if diff := cmp.Diff([]string{"holes", "d"}, m.sent.Spooled); diff != "" {
		t.Error(diff)
	}
}

// A receiver that gives up says why before it goes, and the sender that is in
// the middle of a file hears it.
func TestLastWord(t *testing.T) {
	t.Parallel()
	from := root(t)
	put(t, from.Name(), map[string]string{"big": ""})
	a, b := tcpEnds(t)
	go func() {
		s := script(t, b)
		s.answers(4)
		s.ad("[ Result = 2; MaxTransferBytes = -1 ]").int(300)
		s.answers(3) // always, mode, size
		s.ad(`[ Result = -1; HoldReasonCode = 12; HoldReasonSubCode = 28; HoldReason = "full" ]`)
		if tcp, ok := b.NetConn().(*net.TCPConn); ok {
			_ = tcp.CloseRead() // what comes is dropped, so that nothing resets the connection before it is read
			_ = tcp.CloseWrite()
		}
		_, _ = io.Copy(io.Discard, b.NetConn())
	}()
	cut := &fakeFile{size: 64 << 20, err: errs.E("read", errs.Transient, "x", errors.New("connection reset"))}
	_, err := Send(t.Context(), Side{Conn: a}, from, SendPlan{Items: items("big")}, SendOptions{open: func(string) (source, error) { return cut, nil }})
	if f := failure(t, err); f.HoldCode != HoldDownload || f.HoldSubcode != 28 || f.Retry || !f.Broken || !strings.Contains(f.Reason, "full") {
		t.Errorf("%+v", f)
	}
}

// A connection that breaks in the middle of a file is worth another try.
func TestBrokenMiddle(t *testing.T) {
	t.Parallel()
	from, into := root(t), root(t)
	put(t, from.Name(), map[string]string{"big": ""})
	m := move(t, from, into, SendPlan{Items: items("big")},
		SendOptions{open: func(string) (source, error) { return &fakeFile{size: 1 << 20, err: errors.New("cut")}, nil }}, ReceiveOptions{})
	for _, err := range []error{m.sendErr, m.receiveErr} {
		if f := failure(t, err); !f.Retry || !f.Broken || f.HoldCode != 0 {
			t.Errorf("%+v", f)
		}
	}
	if got := treeOf(t, into); got["big"] != "" {
		t.Errorf("half a file of %d bytes is left", len(got["big"]))
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		so         SendOptions
		ro         ReceiveOptions
		code       int
		want       string
		wantRecved int
	}{
		"of the sender":   {SendOptions{MaxBytes: 2 << 20}, ReceiveOptions{}, HoldInputSize, "max total upload bytes exceeded (max=2 MB, this file=3 MB)", 2 << 20},
		"of the receiver": {SendOptions{}, ReceiveOptions{MaxBytes: 1 << 20}, HoldOutputSize, "max total download bytes exceeded (max=1 MB, this file=3 MB)", 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, into := root(t), root(t)
			put(t, from.Name(), map[string]string{"big": strings.Repeat("x", 3<<20)})
			m := move(t, from, into, SendPlan{Items: items("big")}, tt.so, tt.ro)
			for _, err := range []error{m.sendErr, m.receiveErr} {
				if f := failure(t, err); f.HoldCode != tt.code || f.HoldSubcode != 0 || f.Retry || !strings.Contains(f.Reason, tt.want) {
					t.Errorf("%+v", f)
				}
			}
			if n := len(treeOf(t, into)["big"]); n != tt.wantRecved {
				t.Errorf("%d bytes arrived, want %d", n, tt.wantRecved)
			}
		})
	}
}

// script is the other end of a transfer, written by hand.
func script(t testing.TB, c *cedar.Conn) *scripted { return &scripted{t: t, c: c} }

type scripted struct {
	t testing.TB
	c *cedar.Conn
}

func (s *scripted) int(i int64) *scripted {
	s.c.PutInt(i)
	return s.end()
}

func (s *scripted) str(v string) *scripted {
	s.c.PutString(v)
	return s.end()
}

func (s *scripted) ad(text string) *scripted {
	ad, err := classad.ParseAd(text, classad.New)
	if err != nil {
		s.t.Fatal(err)
	}
	s.c.PutAd(ad, cedar.AdOptions{})
	return s.end()
}

func (s *scripted) end() *scripted {
	if err := s.c.EndMessage(); err != nil {
		s.t.Error(err)
	}
	return s
}

func (s *scripted) begin(final int64) *scripted {
	s.c.PutInt(final)
	return s.ad("[ SandboxSize = 0 ]")
}

// file sends a file as any sender does, after "always" was said both ways.
func (s *scripted) file(name, data string) *scripted {
	s.int(cmdFile).str(name).int(0o644)
	if err := s.c.PutFile(s.t.Context(), strings.NewReader(data), int64(len(data))); err != nil {
		s.t.Error(err)
	}
	return s.end()
}

// ahead says go ahead, always, in the place where it is said first.
func (s *scripted) ahead() *scripted { return s.int(300).ad("[ Result = 2 ]") }

// answers reads n messages of the other end and returns the last one.
func (s *scripted) answers(n int) (last *classad.Ad) {
	for range n {
		b, err := s.c.Rest()
		if err == nil {
			err = s.c.EndOfMessage()
		}
		if err != nil {
			s.t.Error(err)
			return nil
		}
		last = classad.NewAd()
		c := cedartest.Reader(s.t, b, true)
		if ad, err := c.Ad(cedar.AdOptions{}); err == nil {
			last = ad
		}
	}
	return last
}

// receiveFrom runs Receive against a script.
func receiveFrom(t *testing.T, o ReceiveOptions, play func(*scripted)) (*os.Root, Stats, error) {
	t.Helper()
	a, b := ends(t)
	play(script(t, a))
	into := root(t)
	stats, err := Receive(t.Context(), Side{Conn: b, Address: "10.0.0.2"}, into, o)
	return into, stats, err
}

// No name leads out of the directory, whatever it is; the transfer fails for
// good, with the number of EPERM, and is still followed to its end.
func TestIllegalNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", ".", "..", "../x", "/etc/passwd", "a/../../x", "a/..", "d/../x", "//x", "x\ny", "x\ry", strings.Repeat("x", maxName+1),
	} {
		for _, cmd := range []int64{cmdFile, cmdMkdir, cmdURL} {
			parent := t.TempDir()
			if err := os.Mkdir(filepath.Join(parent, "scratch"), 0o700); err != nil {
				t.Fatal(err)
			}
			into, err := os.OpenRoot(filepath.Join(parent, "scratch"))
			if err != nil {
				t.Fatal(err)
			}
			a, b := ends(t)
			s := script(t, a).begin(0).int(cmd).str(name).ahead()
			switch cmd {
			case cmdFile:
				s.int(0o644)
				s.c.PutFile(t.Context(), strings.NewReader("evil"), 4)
				s.end()
			case cmdMkdir:
				s.int(0o755)
			case cmdURL:
				s.str("data:,evil")
			}
			s.file("after", "A").int(cmdFinished).ad("[ Result = 0 ]")
			_, err = Receive(t.Context(), Side{Conn: b}, into, ReceiveOptions{Plugins: &Plugins{}})
			into.Close()
			f := failure(t, err)
			if f.HoldCode != HoldDownload || f.HoldSubcode != subNotPermitted || f.Retry || !strings.Contains(f.Reason, "illegal sandbox path") || strings.ContainsAny(f.Reason, "\n\r") {
				t.Errorf("%q by %d: %+v", name, cmd, f)
			}
			var found []string
			_ = filepath.WalkDir(parent, func(p string, _ fs.DirEntry, _ error) error { found = append(found, p); return nil })
			if len(found) != 2 {
				t.Errorf("%q by %d made %q", name, cmd, found)
			}
			if ad := s.answers(3); number(ad, "Result") != -1 || number(ad, "HoldReasonCode") != HoldDownload {
				t.Errorf("%q by %d: reported %v", name, cmd, ad)
			}
		}
	}
}

// A link in the directory is no way out either, nor is what it leads to
// written to.
func TestThroughLinks(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	put(t, outside, map[string]string{"secret": "S"})
	from, into := root(t), root(t)
	put(t, from.Name(), map[string]string{"link/secret": "evil", "file": "new"})
	if err := into.Symlink(outside, "link"); err != nil {
		t.Skip(err)
	}
	if err := into.Symlink(filepath.Join(outside, "secret"), "file"); err != nil {
		t.Fatal(err)
	}
	// the directory is there already, as a link
	a, b := ends(t)
	script(t, a).begin(0).int(cmdFile).str("link/secret").ahead().int(0o644)
	a.PutFile(t.Context(), strings.NewReader("evil"), 4)
	_ = a.EndMessage()
	script(t, a).int(cmdFinished).ad("[ Result = 0 ]")
	if _, err := Receive(t.Context(), Side{Conn: b}, into, ReceiveOptions{}); failure(t, err).HoldCode != HoldDownload {
		t.Error(err)
	}
	if m := move(t, from, into, SendPlan{Items: items("file", "link")}, SendOptions{}, ReceiveOptions{}); m.receiveErr != nil {
		t.Error(m.receiveErr)
	}
	if got, _ := os.ReadFile(filepath.Join(outside, "secret")); string(got) != "S" {
		t.Errorf("outside is %q", got)
	}
	// and out: what a link leads to outside is not sent
	if err := from.Symlink(filepath.Join(outside, "secret"), "out"); err != nil {
		t.Fatal(err)
	}
	m := move(t, from, root(t), SendPlan{Items: items("out")}, SendOptions{}, ReceiveOptions{})
	if failure(t, m.sendErr).HoldCode != HoldUpload || m.got.Bytes != 0 {
		t.Errorf("%+v", m)
	}
}

// What cannot be followed ends the transfer: another try, or none.
func TestHostile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		play    func(s *scripted)
		o       ReceiveOptions
		code    int
		sub     int
		retry   bool
		broken  bool
		mention string
	}{
		"a wrong key":        {play: func(s *scripted) { s.int(0) }, retry: true, broken: true, mention: "TransferKey"},
		"vanishes at once":   {play: func(s *scripted) { s.c.Close() }, retry: true, broken: true, mention: "beginning"},
		"vanishes in a list": {play: func(s *scripted) { s.begin(0); s.c.Close() }, retry: true, broken: true, mention: "waiting for a file"},
		"out of order":       {play: func(s *scripted) { s.begin(0).str("name") }, retry: true, broken: true},
		"an unknown command": {play: func(s *scripted) { s.begin(0).int(77).str("x").ahead() }, code: HoldDownload, sub: 22, broken: true, mention: "77"},
		"refuses to go ahead": {play: func(s *scripted) {
			s.begin(0).int(cmdFile).str("x").int(300).ad(`[ Result = -1; TryAgain = false; HoldReasonCode = 13; HoldReasonSubCode = 5; HoldReason = "queue" ]`)
		}, code: HoldUpload, sub: 5, mention: "queue"},
		"goes ahead without a result": {play: func(s *scripted) { s.begin(0).int(cmdFile).str("x").int(300).ad(`[ A = 1 ]`) }, code: 18, sub: 1},
		"a negative size":             {play: func(s *scripted) { s.begin(0).int(cmdFile).str("x").ahead().int(0o644); s.c.PutInt(-1); s.int(1) }, retry: true, broken: true},
		"a huge size and an end": {play: func(s *scripted) {
			s.begin(0).int(cmdFile).str("x").ahead().int(0o644)
			s.c.PutInt(1 << 62)
			s.int(262144)
			s.c.Close()
		}, retry: true, broken: true},
		"more than may be": {play: func(s *scripted) {
			s.begin(0).int(cmdFile).str("x").ahead().int(0o644)
			s.c.PutInt(1 << 62)
			s.int(262144)
		},
			o: ReceiveOptions{MaxBytes: 1 << 20}, code: HoldOutputSize, broken: true, mention: "max=1 MB"},
		"a flood of directories": {play: func(s *scripted) {
			s.begin(0).int(cmdMkdir).str("d").ahead().int(0o755)
			for i := range 20 {
				s.int(cmdMkdir).str(fmt.Sprint("d", i)).int(0o755)
			}
		}, o: ReceiveOptions{MaxItems: 10}, code: HoldDownload, sub: 28, broken: true, mention: "more than 10 files"},
		"a directory too deep": {play: func(s *scripted) {
			s.begin(0).int(cmdMkdir).str("a/b/c").ahead().int(0o755).int(cmdFinished).ad("[ Result = 0 ]")
		}, code: HoldDownload, sub: 2, mention: "failed to create directory"},
		"no URLs here": {play: func(s *scripted) {
			s.begin(0).int(cmdURL).str("x").ahead().str("http://u:p@h/x?token=t").int(cmdFinished).ad("[ Result = 0 ]")
		}, code: HoldDownload, sub: 40, mention: "URL file = http://h/x?... ."},
		"no plugin": {play: func(s *scripted) {
			s.begin(0).int(cmdURL).str("x").ahead().str("osdf:///x").int(cmdFinished).ad("[ Result = 0 ]")
		}, o: ReceiveOptions{Plugins: &Plugins{}}, code: HoldDownload, sub: subPluginUnknown, mention: "osdf"},
		"a local file by URL": {play: func(s *scripted) {
			s.begin(0).int(cmdURL).str("x").ahead().str("file:///etc/passwd").int(cmdFinished).ad("[ Result = 0 ]")
		}, o: ReceiveOptions{Plugins: &Plugins{}}, code: HoldDownload, sub: subPluginUnknown, mention: "file"},
		"fails itself": {play: func(s *scripted) {
			s.begin(0).int(cmdFinished).ad(`[ Result = -1; HoldReasonCode = 13; HoldReasonSubCode = 2; HoldReason = "SHADOW: no\nfile" ]`)
		}, code: 13, sub: 2, mention: `SHADOW: no file; STARTER failed to receive file(s) from <client>`},
		"fails this time": {play: func(s *scripted) { s.begin(0).int(cmdFinished).ad(`[ Result = 1 ]`) }, retry: true},
		"reports nothing": {play: func(s *scripted) { s.begin(0).int(cmdFinished).ad(`[ X = 1 ]`) }, code: 11, mention: "missing attribute: Result"},
		"a hook that failed": {play: func(s *scripted) {
			s.begin(1).int(cmdOther).str("f").ahead().ad(`[ SubCommand = 7; Filename = "f"; Result = 1; ErrorString = "x" ]`).int(cmdFinished).ad("[ Result = 0 ]")
		}, code: HoldDownload, sub: 1, mention: "remote transfer hook error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			into, _, err := receiveFrom(t, tt.o, tt.play)
			f := failure(t, err)
			if f.HoldCode != tt.code || f.HoldSubcode != tt.sub || f.Retry != tt.retry || f.Broken != tt.broken || !strings.Contains(f.Error(), tt.mention) {
				t.Errorf("%+v", f)
			}
			for name, data := range treeOf(t, into) {
				if data != "" {
					t.Errorf("%s is left with %d bytes", name, len(data))
				}
			}
		})
	}
}

// What other commands say is answered, and files follow.
func TestOtherCommands(t *testing.T) {
	t.Parallel()
	a, b := ends(t)
	s := script(t, a).begin(0)
	s.int(cmdOther).str("").ahead().ad(`[ SubCommand = 8; Tag = "u"; ReuseList = { } ]`)
	s.int(cmdOther).str("").ad(`[ SubCommand = 9; SignList = { "s3://b/o" } ]`)
	s.int(cmdOther).str("").ad(`[ SubCommand = 12 ]`)
	s.file("a", "A").int(cmdFinished).ad("[ Result = 0 ]")
	into := root(t)
	if _, err := Receive(t.Context(), Side{Conn: b}, into, ReceiveOptions{}); err != nil {
		t.Fatal(err)
	}
	if reuse := s.answers(3); number(reuse, "Result") != 1 {
		t.Errorf("reuse: %v", reuse)
	}
	if sign := s.answers(1).Text(classad.New); !strings.Contains(sign, "s3://b/o") {
		t.Errorf("signed: %v", sign)
	}
	if got := treeOf(t, into); got["a"] != "A" {
		t.Errorf("got %v", got)
	}
}

// Waiting for the go-ahead has no end while the other end says that it is
// there, and one when it does not.
func TestPatience(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]bool{"alive": false, "silent": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := root(t)
			put(t, from.Name(), map[string]string{"a": "A"})
			synctest.Test(t, func(t *testing.T) {
				a, b := ends(t)
				go func() {
					s := script(t, b)
					if s.answers(4); silent { // flag, command, name, interval
						return
					}
					for range 1000 {
						time.Sleep(290 * time.Second)
						s.ad("[ Result = 0; Timeout = 300 ]")
					}
					s.ad("[ Result = 2; MaxTransferBytes = -1 ]").int(10)
					s.answers(2) // longer interval, always
					s.answers(3) // mode, size, data
					s.answers(2) // end, report
					s.ad("[ Result = 0 ]")
				}()
				began := time.Now()
				_, err := Send(t.Context(), Side{Conn: a}, from, SendPlan{Items: items("a")}, SendOptions{})
				waited := time.Since(began)
				switch {
				case !silent && (err != nil || waited < 1000*290*time.Second):
					t.Errorf("%v after %v", err, waited)
				case silent && (!failure(t, err).Retry || !errs.Is(err, errs.Expired) || waited != 320*time.Second):
					t.Errorf("%v after %v", err, waited)
				}
			})
		})
	}
}

// A transfer that is cancelled ends with the cause.
func TestCancelledWire(t *testing.T) {
	t.Parallel()
	why := errors.New("the job was removed")
	for _, sending := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, _ := ends(t)
			dir := root(t)
			put(t, dir.Name(), map[string]string{"a": "A"})
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				time.Sleep(time.Second)
				cancel(why)
			}()
			var err error
			if sending {
				_, err = Send(ctx, Side{Conn: a}, dir, SendPlan{Items: items("a")}, SendOptions{})
			} else {
				_, err = Receive(ctx, Side{Conn: a}, dir, ReceiveOptions{})
			}
			if !errors.Is(err, why) {
				t.Errorf("sending %v: %v", sending, err)
			}
		})
	}
}
