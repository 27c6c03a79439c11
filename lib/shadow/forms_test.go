// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/shadow"
)

// wire is what goes over the wire: int for an integer, string, []byte, and
// *classad.Ad.
type wire []any

func (w wire) put(c *cedar.Conn) {
	for _, item := range w {
		switch x := item.(type) {
		case int:
			c.PutInt(int64(x))
		case string:
			c.PutString(x)
		case []byte:
			c.PutBytes(x)
		case *classad.Ad:
			c.PutAd(x, cedar.AdOptions{})
		}
	}
}

func ad(t testing.TB, text string) *classad.Ad {
	t.Helper()
	a, err := classad.ParseAd(text, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// block is an answer of 1024 bytes.
func block(text string) []byte { return append([]byte(text), make([]byte, 1024-len(text))...) }

const statLine = "64768 131 33188 1 1000 1000 0 4067 4096 8 1795188544 1795188545 1795188546"

// Every call that was not recorded, with its numbers and items as the table of
// the wire has them, and what an answer comes to.
func TestCallForms(t *testing.T) {
	t.Parallel()
	empty := classad.NewAd()
	update := ad(t, "A = 1\n")
	stat := shadow.Stat{
		Dev: 64768, Ino: 131, Mode: 33188, Nlink: 1, UID: 1000, GID: 1000, Size: 4067, BlockSize: 4096, Blocks: 8,
		Atime: 1795188544, Mtime: 1795188545, Ctime: 1795188546,
	}
	fs := shadow.Statfs{Type: 61267, BlockSize: 4096, Blocks: 100, Free: 50, Available: 40, Files: 30, FilesFree: 20}
	type call = func(ctx context.Context, c *shadow.Caller) (any, error)
	done := func(f func(context.Context, *shadow.Caller) error) call {
		return func(ctx context.Context, c *shadow.Caller) (any, error) { return nil, f(ctx, c) }
	}
	for _, tt := range []struct {
		name       string
		call       call
		ask, reply wire
		want       any
	}{
		{"get_user_info", func(ctx context.Context, c *shadow.Caller) (any, error) {
			u, g, err := c.UserInfo(ctx)
			return [2]int{u, g}, err
		}, wire{-76}, wire{0, ad(t, "Uid = 7\nGid = 8\n")}, [2]int{7, 8}},
		{"job_termination", done(func(ctx context.Context, c *shadow.Caller) error { return c.JobTermination(ctx, update) }), wire{-82, update}, wire{0}, nil},
		{"dprintf_stats", done(func(ctx context.Context, c *shadow.Caller) error { return c.Say(ctx, "hello") }), wire{-84, "hello"}, wire{0}, nil},
		{"request_guidance", func(ctx context.Context, c *shadow.Caller) (any, error) {
			n, reply, err := c.Guidance(ctx, update)
			command, _ := reply.EvalString("Command", nil)
			return fmt.Sprint(n, command), err
		}, wire{305, update}, wire{0, ad(t, "Command = \"CarryOn\"\n")}, "0CarryOn"},
		{"request_guidance that nobody knows", func(ctx context.Context, c *shadow.Caller) (any, error) {
			n, _, err := c.Guidance(ctx, update)
			return n, err
		}, wire{305, update}, wire{-1, empty}, -1},
		{"get_job_attr", func(ctx context.Context, c *shadow.Caller) (any, error) { return c.JobAttr(ctx, "Rank") }, wire{285, "Rank"}, wire{0, "UNDEFINED"}, "UNDEFINED"},
		{"set_job_attr", done(func(ctx context.Context, c *shadow.Caller) error { return c.SetJobAttr(ctx, "Rank", "Memory * 2") }), wire{286, "Memory * 2", "Rank"}, wire{0}, nil},
		{"constrain", done(func(ctx context.Context, c *shadow.Caller) error { return c.Constrain(ctx, "Memory > 5") }), wire{287, "Memory > 5"}, wire{0}, nil},
		{"get_file_info_new", func(ctx context.Context, c *shadow.Caller) (any, error) { return c.FileInfo(ctx, "a") }, wire{-74, "a"}, wire{0, "remote:/iwd/a"}, "remote:/iwd/a"},
		{"getcreds", func(ctx context.Context, c *shadow.Caller) (any, error) {
			creds, err := c.Creds(ctx, false)
			var all []string
			for _, x := range creds {
				all = append(all, x.Service, x.Data.Reveal())
			}
			return strings.Join(all, "|"), err
		}, wire{302, ""}, wire{1, ad(t, "Service = \"box_private.use\"\nData = \"c2VjcmV0\"\n"), 1, ad(t, "Service = \"gh\"\nData = \"eA==\"\n"), 0}, "box*private|secret|gh|x"},
		{"get_docker_creds", func(ctx context.Context, c *shadow.Caller) (any, error) {
			reply, err := c.DockerCreds(ctx)
			return reply.Text(classad.Old), err
		}, wire{-85, empty}, wire{ad(t, "auths = [ a = 1 ]\n")}, "auths = [ a = 1 ]\n"},
		{"open", func(ctx context.Context, c *shadow.Caller) (any, error) {
			return c.Open(ctx, "f", os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_EXCL|os.O_APPEND, 0o640)
		}, wire{66, 0x1702, 0o640, "f"}, wire{5}, 5},
		{"close", done(func(ctx context.Context, c *shadow.Caller) error { return c.Close(ctx, 5) }), wire{10, 5}, wire{0}, nil},
		{"fsync", done(func(ctx context.Context, c *shadow.Caller) error { return c.Fsync(ctx, 5) }), wire{26, 5}, wire{0}, nil},
		{"read", func(ctx context.Context, c *shadow.Caller) (any, error) { return c.Read(ctx, 5, 10) }, wire{71, 5, 10}, wire{3, []byte("abc")}, []byte("abc")},
		{"read at the end", func(ctx context.Context, c *shadow.Caller) (any, error) {
			b, err := c.Read(ctx, 5, 10)
			return len(b), err
		}, wire{71, 5, 10}, wire{0}, 0},
		{"write", func(ctx context.Context, c *shadow.Caller) (any, error) { return c.Write(ctx, 5, []byte("abcd")) }, wire{120, 5, 4, []byte("abcd")}, wire{4}, 4},
		{"lseek", func(ctx context.Context, c *shadow.Caller) (any, error) { return c.Seek(ctx, 5, -7, 2) }, wire{54, 5, -7, 2}, wire{1 << 40}, int64(1 << 40)},
		{"pread", func(ctx context.Context, c *shadow.Caller) (any, error) { return c.Pread(ctx, 5, 10, 99) }, wire{289, 5, 10, 99}, wire{1, []byte("x")}, []byte("x")},
		{"pwrite", func(ctx context.Context, c *shadow.Caller) (any, error) { return c.Pwrite(ctx, 5, []byte("ab"), 99) }, wire{290, 5, 2, 99, []byte("ab")}, wire{2}, 2},
		{"sread", func(ctx context.Context, c *shadow.Caller) (any, error) { return c.Sread(ctx, 5, 10, 99, 2, 4) }, wire{298, 5, 10, 99, 2, 4}, wire{2, []byte("xy")}, []byte("xy")},
		{"swrite", func(ctx context.Context, c *shadow.Caller) (any, error) {
			return c.Swrite(ctx, 5, []byte("abc"), 99, 2, 4)
		}, wire{291, 5, 3, 99, 2, 4, []byte("abc")}, wire{3}, 3},
		{"unlink", done(func(ctx context.Context, c *shadow.Caller) error { return c.Unlink(ctx, "f") }), wire{115, "f"}, wire{0}, nil},
		{"rename", done(func(ctx context.Context, c *shadow.Caller) error { return c.Rename(ctx, "f", "g") }), wire{78, "f", "g"}, wire{0}, nil},
		{"mkdir", done(func(ctx context.Context, c *shadow.Caller) error { return c.Mkdir(ctx, "d", 0o755) }), wire{58, "d", 0o755}, wire{0}, nil},
		{"rmdir", done(func(ctx context.Context, c *shadow.Caller) error { return c.Rmdir(ctx, "d") }), wire{79, "d"}, wire{0}, nil},
		{"rmall", done(func(ctx context.Context, c *shadow.Caller) error { return c.RmAll(ctx, "d") }), wire{292, "d"}, wire{0}, nil},
		{"link", done(func(ctx context.Context, c *shadow.Caller) error { return c.Link(ctx, "f", "g") }), wire{52, "f", "g"}, wire{0}, nil},
		{"symlink", done(func(ctx context.Context, c *shadow.Caller) error { return c.Symlink(ctx, "f", "g") }), wire{111, "f", "g"}, wire{0}, nil},
		{"readlink", func(ctx context.Context, c *shadow.Caller) (any, error) { return c.Readlink(ctx, "g", 100) }, wire{72, "g", 100}, wire{1, []byte("f")}, "f"},
		{"getfile", func(ctx context.Context, c *shadow.Caller) (any, error) { return c.GetFile(ctx, "f") }, wire{293, "f"}, wire{2, []byte("hi")}, []byte("hi")},
		{"getdir", func(ctx context.Context, c *shadow.Caller) (any, error) { return c.GetDir(ctx, "d") }, wire{296, "d"}, wire{5, "a\nb\n\n"}, []string{"a", "b"}},
		{"getlongdir", func(ctx context.Context, c *shadow.Caller) (any, error) { return c.GetLongDir(ctx, "d") }, wire{295, "d"}, wire{9, "a\n" + statLine + "\n\n"}, []shadow.Entry{{Name: "a", Stat: stat}}},
		{"whoami", func(ctx context.Context, c *shadow.Caller) (any, error) { return c.Whoami(ctx, 50) }, wire{297, 50}, wire{6, []byte("CONDOR")}, "CONDOR"},
		{"whoareyou", func(ctx context.Context, c *shadow.Caller) (any, error) { return c.WhoAreYou(ctx, "h", 50) }, wire{299, "h", 50}, wire{7, []byte("UNKNOWN")}, "UNKNOWN"},
		{"stat", func(ctx context.Context, c *shadow.Caller) (any, error) { return c.Stat(ctx, "f") }, wire{108, "f"}, wire{0, block(statLine + "\n")}, stat},
		{"lstat", func(ctx context.Context, c *shadow.Caller) (any, error) { return c.Lstat(ctx, "f") }, wire{55, "f"}, wire{0, block(statLine + "\n")}, stat},
		{"fstat", func(ctx context.Context, c *shadow.Caller) (any, error) { return c.Fstat(ctx, 5) }, wire{24, 5}, wire{0, block(statLine + "\n")}, stat},
		{"statfs", func(ctx context.Context, c *shadow.Caller) (any, error) { return c.Statfs(ctx, "f") }, wire{109, "f"}, wire{0, block("61267 4096 100 50 40 30 20\n")}, fs},
		{"fstatfs", func(ctx context.Context, c *shadow.Caller) (any, error) { return c.Fstatfs(ctx, 5) }, wire{25, 5}, wire{0, block("61267 4096 100 50 40 30 20\n")}, fs},
		{"access", done(func(ctx context.Context, c *shadow.Caller) error { return c.Access(ctx, "f", 4) }), wire{1, "f", 4}, wire{0}, nil},
		{"chmod", done(func(ctx context.Context, c *shadow.Caller) error { return c.Chmod(ctx, "f", 0o600) }), wire{7, "f", 0o600}, wire{0}, nil},
		{"chown", done(func(ctx context.Context, c *shadow.Caller) error { return c.Chown(ctx, "f", 1, 2) }), wire{8, "f", 1, 2}, wire{0}, nil},
		{"lchown", done(func(ctx context.Context, c *shadow.Caller) error { return c.Lchown(ctx, "f", 1, 2) }), wire{251, "f", 1, 2}, wire{0}, nil},
		{"fchmod", done(func(ctx context.Context, c *shadow.Caller) error { return c.Fchmod(ctx, 5, 0o600) }), wire{19, 5, 0o600}, wire{0}, nil},
		{"fchown", done(func(ctx context.Context, c *shadow.Caller) error { return c.Fchown(ctx, 5, 1, 2) }), wire{20, 5, 1, 2}, wire{0}, nil},
		{"ftruncate", done(func(ctx context.Context, c *shadow.Caller) error { return c.Ftruncate(ctx, 5, 77) }), wire{27, 5, 77}, wire{0}, nil},
		{"truncate", done(func(ctx context.Context, c *shadow.Caller) error { return c.Truncate(ctx, "f", 77) }), wire{113, "f", 77}, wire{0}, nil},
		{"utime", done(func(ctx context.Context, c *shadow.Caller) error { return c.Utime(ctx, "f", 11, 12) }), wire{242, "f", 11, 12}, wire{0}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			starter, peer := pair(t)
			caller := shadow.New(starter, shadow.Options{})
			defer caller.End()
			failed := make(chan error, 1)
			go func() {
				b, err := peer.Rest()
				err = errors.Join(err, peer.EndOfMessage())
				if err == nil {
					err = cedartest.Diff(cedartest.Encode(t, true, tt.ask.put), b)
				}
				tt.reply.put(peer)
				failed <- errors.Join(err, peer.EndMessage())
			}()
			got, err := tt.call(t.Context(), caller)
			if err := errors.Join(err, <-failed); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			// The same request, read as a shadow reads it, says the same.
			bytes := cedartest.Encode(t, true, tt.ask.put)
			request, err := shadow.ReadRequest(cedartest.Reader(t, bytes, true))
			if err != nil {
				t.Fatal(err)
			}
			if err := cedartest.Diff(bytes, cedartest.Encode(t, true, request.Put)); err != nil {
				t.Error(err)
			}
		})
	}
}
