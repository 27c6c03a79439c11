// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
)

// serving returns a caller whose shadow serves the files below a directory.
func serving(t testing.TB, job string) (*shadow.Caller, *shadowtest.Shadow, *os.Root) {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := shadowtest.New(shadowtest.Job{Ad: ad(t, job), Root: root})
	caller := shadow.New(serve(t, s), shadow.Options{})
	t.Cleanup(func() {
		caller.End()
		_ = root.Close()
	})
	return caller, s, root
}

// serve has a shadow serve a new connection.
func serve(t testing.TB, s *shadowtest.Shadow) *cedar.Conn {
	t.Helper()
	starter, peer := pair(t)
	go func() {
		defer func() { _ = peer.Close() }()
		_, _ = s.Serve(context.Background(), peer) // how it ends is what tests do to it
	}()
	return starter
}

// Files at the submit machine are made, written, read, listed and removed by a
// job that may, and not at all by one that may not.
func TestRemoteFiles(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c, _, root := serving(t, "WantIOProxy = true\nRequirements = A\n")
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("mkdir", c.Mkdir(ctx, "d", 0o700))
	fd, err := c.Open(ctx, "d/f", os.O_RDWR|os.O_CREATE, 0o600)
	check("open", err)
	if n, err := c.Write(ctx, fd, []byte("0123456789")); n != 10 || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	if n, err := c.Swrite(ctx, fd, []byte("abcd"), 1, 2, 5); n != 4 || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	if b, err := c.Sread(ctx, fd, 4, 1, 2, 5); string(b) != "abcd" || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
	if b, err := c.Pread(ctx, fd, 100, 0); string(b) != "0ab345cd89" || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
	if at, err := c.Seek(ctx, fd, -3, io.SeekEnd); at != 7 || err != nil {
		t.Errorf("at %d, %v", at, err)
	}
	if b, err := c.Read(ctx, fd, 2); string(b) != "d8" || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
	check("ftruncate", c.Ftruncate(ctx, fd, 4))
	check("fsync", c.Fsync(ctx, fd))
	if s, err := c.Fstat(ctx, fd); s.Size != 4 || s.Mode != 0o100600 || err != nil {
		t.Errorf("%+v, %v", s, err)
	}
	check("close", c.Close(ctx, fd))
	if err := c.Close(ctx, fd); err == nil || !strings.Contains(err.Error(), "bad file descriptor") {
		t.Errorf("closed twice: %v", err)
	}
	check("rename", c.Rename(ctx, "d/f", "g"))
	check("symlink", c.Symlink(ctx, "g", "l"))
	if to, err := c.Readlink(ctx, "l", 100); to != "g" || err != nil {
		t.Errorf("leads to %q, %v", to, err)
	}
	check("utime", c.Utime(ctx, "g", 100, 200))
	if s, err := c.Stat(ctx, "l"); s.Mtime != 200 || s.Size != 4 || err != nil {
		t.Errorf("%+v, %v", s, err)
	}
	if n, err := c.PutFile(ctx, filepath.Join(root.Name(), "p"), 0o644, []byte("put")); n != 3 || err != nil {
		t.Errorf("put %d, %v", n, err)
	}
	if n, err := c.PutFile(ctx, "empty", 0o644, nil); n != 0 || err != nil {
		t.Errorf("put %d, %v", n, err)
	}
	if _, err := c.PutFile(ctx, "no/dir", 0o644, []byte("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("put into nothing: %v", err)
	}
	if b, err := c.GetFile(ctx, "p"); string(b) != "put" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
	names, err := c.GetDir(ctx, ".")
	if len(names) != 5 || err != nil {
		t.Errorf("%q, %v", names, err)
	}
	if entries, err := c.GetLongDir(ctx, "."); len(entries) != 5 || err != nil {
		t.Errorf("%v, %v", entries, err)
	}
	check("rmdir", c.Rmdir(ctx, "d"))
	if err := c.Unlink(ctx, "d"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed twice: %v", err)
	}
	if _, err := c.GetFile(ctx, "../../etc/passwd"); err == nil {
		t.Error("a file from outside was read")
	}
	if _, err := c.Read(ctx, 3, 0); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("read of nothing: %v", err)
	}
	check("set_job_attr", c.SetJobAttr(ctx, "Stage", `"two"`))
	if text, err := c.JobAttr(ctx, "stage"); text != `"two"` || err != nil {
		t.Errorf("%s, %v", text, err)
	}
	check("constrain", c.Constrain(ctx, "B"))
	if text, err := c.JobAttr(ctx, "Requirements"); text != "(A) && (B)" || err != nil {
		t.Errorf("%s, %v", text, err)
	}

	c, _, _ = serving(t, "WantRemoteUpdates = true\n")
	if _, err := c.Open(ctx, "f", os.O_CREATE, 0o600); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("opened by a job that may not: %v", err)
	}
	check("set_job_attr", c.SetJobAttr(ctx, "A", "1"))
}

// A file that was begun with a length comes with that length or ends the
// conversation.
func TestPutFileGivenUp(t *testing.T) {
	t.Parallel()
	c, _, _ := serving(t, "WantIOProxy = true\n")
	put, err := c.BeginFile(t.Context(), "f", 0o600, 5)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := put(nil); !errors.Is(err, shadow.ErrLost) || c.Connected() {
		t.Error(err)
	}
}

// A stream is written, the connection breaks in the worst places, and the file
// is what the job wrote.
func TestStreamOut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		call shadow.Call // whose answer is cut off
		n    int         // which one of it
		kind shadow.StreamKind
		was  string
		want string
	}{
		{"nothing breaks", 0, 0, shadow.StreamOut, "old", "onetwothree"},
		{"appended", 0, 0, shadow.StreamAppend, "old ", "old onetwothree"},
		{"before a write", shadow.CallLseek, 1, shadow.StreamOut, "", "onetwothree"},
		{"after a write", shadow.CallWrite, 1, shadow.StreamOut, "", "onetwothree"},
		{"after a write, appended", shadow.CallWrite, 2, shadow.StreamAppend, "old ", "old onetwothree"},
		{"at the end", shadow.CallFsync, 0, shadow.StreamOut, "", "onetwothree"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, s, root := serving(t, "StreamOut = true\n")
			if err := root.WriteFile("out", []byte(tt.was), 0o600); err != nil {
				t.Fatal(err)
			}
			seen := 0
			s.Misbehave(func(_ int, r *shadow.Request, _ *shadow.Reply) shadowtest.Action {
				if r.Call != tt.call {
					return shadowtest.Send
				}
				seen++
				if seen-1 == tt.n {
					return shadowtest.Cut
				}
				return shadowtest.Send
			})
			broke := 0
			// mend goes on after a break, as the starter does.
			mend := func(st *shadow.Stream, err error) {
				t.Helper()
				if err == nil {
					return
				}
				if !errors.Is(err, shadow.ErrLost) {
					t.Fatal(err)
				}
				broke++
				c.Replace(serve(t, s))
				if err := st.Reopen(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			st, err := shadow.OpenStream(t.Context(), c, "out", tt.kind)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"one", "two", "three"} {
				n, err := st.Write(t.Context(), []byte(text))
				if n != len(text) {
					t.Errorf("wrote %d of %q", n, text)
				}
				mend(st, err)
			}
			mend(st, st.Close(t.Context()))
			if !st.Done() || st.Offset() != int64(len(tt.want)) {
				t.Errorf("done %t at %d", st.Done(), st.Offset())
			}
			if b, err := root.ReadFile("out"); string(b) != tt.want || err != nil {
				t.Errorf("the file has %q, %v", b, err)
			}
			if (tt.call != 0) != (broke == 1) {
				t.Errorf("the conversation broke %d times", broke)
			}
		})
	}
}

// A submit machine that lost what it had acknowledged, that has no room, or
// that is gone, is told apart.
func TestStreamFails(t *testing.T) {
	t.Parallel()
	c, s, root := serving(t, "StreamOut = true\n")
	st, err := shadow.OpenStream(t.Context(), c, "out", shadow.StreamOut)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Write(t.Context(), []byte("precious")); err != nil {
		t.Fatal(err)
	}
	s.Vanish()
	<-c.Lost()
	if _, err := st.Write(t.Context(), []byte("more")); !errors.Is(err, shadow.ErrLost) {
		t.Fatal(err)
	}
	if n, err := st.Write(t.Context(), []byte("too much")); n != 0 || !errors.Is(err, shadow.ErrLost) {
		t.Errorf("wrote %d while bytes wait, %v", n, err)
	}
	if err := root.WriteFile("out", []byte("pre"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Replace(serve(t, s))
	if err := st.Reopen(t.Context()); err == nil || errors.Is(err, shadow.ErrLost) || !strings.Contains(err.Error(), "3 bytes, 8 were written") {
		t.Errorf("a file that lost bytes: %v", err)
	}
	for _, tt := range []struct {
		name  string
		reply shadow.Reply
		text  string
	}{
		{"no room", shadow.Reply{Value: -1, Errno: cedar.ENOSPC}, "no space left"},
		{"a short write", shadow.Reply{Value: 2}, "only 2 of 5 bytes"},
	} {
		st, err := shadow.OpenStream(t.Context(), c, "out", shadow.StreamOut)
		if err != nil {
			t.Fatal(err)
		}
		s.Misbehave(func(_ int, r *shadow.Request, reply *shadow.Reply) shadowtest.Action {
			if r.Call == shadow.CallWrite {
				*reply = tt.reply
			}
			return shadowtest.Send
		})
		_, err = st.Write(t.Context(), []byte("12345"))
		if err == nil || errors.Is(err, shadow.ErrLost) || !strings.Contains(err.Error(), tt.text) || st.HoldCode() != 9 {
			t.Errorf("%s: %v", tt.name, err)
		}
		s.Misbehave(nil)
	}
}

// Standard input is read to its end, with a break in the middle.
func TestStreamIn(t *testing.T) {
	t.Parallel()
	c, s, root := serving(t, "StreamIn = true\n")
	text := strings.Repeat("0123456789abcdef", 10_000)
	if err := root.WriteFile("in", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := shadow.OpenStream(t.Context(), c, "in", shadow.StreamIn)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for n := 0; ; n++ {
		if n == 1 {
			s.Vanish()
			<-c.Lost()
		}
		b, err := st.Read(t.Context(), 1<<20)
		if errors.Is(err, shadow.ErrLost) && n == 1 {
			c.Replace(serve(t, s))
			if err := st.Reopen(t.Context()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(b) == 0 {
			break
		}
		got.Write(b)
	}
	if err := st.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got.String() != text {
		t.Errorf("read %d bytes of %d", got.Len(), len(text))
	}
	if _, err := st.Write(t.Context(), []byte("x")); err == nil || st.HoldCode() != 10 {
		t.Errorf("written to: %v", err)
	}
}

// A shadow that stalls in a write is given up after the time for an answer,
// and one that stops in the middle of an answer as well.
func TestStreamStalls(t *testing.T) {
	t.Parallel()
	for _, action := range []shadowtest.Action{shadowtest.Silent, shadowtest.Half} {
		t.Run(fmt.Sprint(action), func(t *testing.T) {
			t.Parallel()
			root, err := os.OpenRoot(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = root.Close() }()
			synctest.Test(t, func(t *testing.T) {
				s := shadowtest.New(shadowtest.Job{Ad: ad(t, "StreamOut = true\n"), Root: root})
				c := shadow.New(serve(t, s), shadow.Options{Timeout: time.Minute})
				st, err := shadow.OpenStream(t.Context(), c, "out", shadow.StreamOut)
				if err != nil {
					t.Fatal(err)
				}
				s.Misbehave(func(_ int, r *shadow.Request, _ *shadow.Reply) shadowtest.Action {
					if r.Call == shadow.CallWrite {
						return action
					}
					return shadowtest.Send
				})
				began := time.Now()
				if _, err := st.Write(t.Context(), []byte("x")); !errors.Is(err, shadow.ErrLost) {
					t.Error(err)
				}
				if took := time.Since(began); action == shadowtest.Silent && took != time.Minute || action == shadowtest.Half && took != 0 {
					t.Errorf("gave up after %s", took)
				}
			})
		})
	}
}
