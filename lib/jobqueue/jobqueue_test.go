// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
)

// schedd answers calls until one says that the socket is closed, and returns what it
// was told. refuse is the call that it refuses.
func schedd(conn *cedar.Conn, refuse int64) (heard []string, err error) {
	for {
		call, err := conn.Int()
		if err != nil {
			return heard, err
		}
		said := fmt.Sprint(call)
		if call == callSetAttribute || call == callGetAttributeInt {
			for range 2 {
				n, err := conn.Int()
				if err != nil {
					return heard, err
				}
				said += fmt.Sprint(" ", n)
			}
		}
		for conn.More() {
			s, err := conn.String()
			if err != nil {
				return heard, err
			}
			said += " " + s
		}
		heard = append(heard, said)
		if err := conn.EndOfMessage(); err != nil || call == callCloseSocket {
			return heard, err
		}
		if call == refuse {
			conn.PutInt(-1)
			conn.PutInt(13)
			if call == callCommit {
				ad := classad.NewAd()
				ad.SetString("ErrorReason", "the queue is full")
				conn.PutAd(ad, cedar.AdOptions{})
			}
		} else {
			conn.PutInt(0)
			if call == callGetAttributeInt {
				conn.PutInt(5)
			}
			if call == callCommit {
				conn.PutAd(classad.NewAd(), cedar.AdOptions{}) // warnings, of which there are none
			}
		}
		if err := conn.EndMessage(); err != nil {
			return heard, err
		}
	}
}

// What the schedd of HTCondor 25.14 reads: the owner, each attribute with its value
// before its name, the end of the transaction and of the connection. What it refuses
// ends all.
func TestUpdate(t *testing.T) {
	t.Parallel()
	attrs, err := classad.ParseAd("ExitCode = 3\nExitReason = \"a \\\"b\\\"\"\n", classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"10030 me@here", "10006 7 2 3 ExitCode", `10006 7 2 "a \"b\"" ExitReason`, "10007", "10028"}
	for _, c := range []struct {
		name, user string
		refuse     int64
		heard      []string
		fails      string
	}{
		{"all", "me@here", 0, all, ""},
		{"as itself", "", 0, all[1:], ""},
		{"not for that user", "me@here", callSetEffectiveOwner, all[:1], "SetEffectiveOwner(me@here): denied: the schedd answers -1, errno 13"},
		{"no such job", "", callSetAttribute, all[1:2], "SetAttribute(7.2, ExitCode): denied: the schedd answers -1, errno 13"},
		{"not kept", "", callCommit, all[1:4], "errno 13 the queue is full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ours, theirs := net.Pipe()
			var heard []string
			done := make(chan struct{})
			go func() {
				defer close(done)
				heard, _ = schedd(cedar.NewConn(theirs, cedar.Limits{}), c.refuse)
			}()
			err := Update(cedar.NewConn(ours, cedar.Limits{}), c.user, ID{7, 2}, attrs)
			_ = ours.Close()
			<-done
			if diff := cmp.Diff(c.heard, heard); diff != "" {
				t.Error(diff)
			}
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%v; want %q", err, c.fails)
			}
		})
	}
}

// An attribute that is a number, and one that is not there.
func TestInt(t *testing.T) {
	t.Parallel()
	for _, refuse := range []int64{0, callGetAttributeInt} {
		ours, theirs := net.Pipe()
		var heard []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			heard, _ = schedd(cedar.NewConn(theirs, cedar.Limits{}), refuse)
		}()
		n, err := Int(cedar.NewConn(ours, cedar.Limits{}), ID{7, 2}, "JobStatus")
		_ = ours.Close()
		<-done
		if heard[0] != "10009 7 2 JobStatus" || refuse == 0 && (n != 5 || err != nil) || refuse != 0 && (err == nil || !strings.Contains(err.Error(), "errno 13")) {
			t.Errorf("refused %d: %q, %d, %v", refuse, heard, n, err)
		}
	}
}

// duplex reads what was said and forgets what is written.
type duplex struct {
	net.Conn
	io.Reader
}

func (d duplex) Read(b []byte) (int, error)  { return d.Reader.Read(b) }
func (d duplex) Write(b []byte) (int, error) { return len(b), nil }

// Whatever a schedd answers: an error, and no panic.
func FuzzUpdate(f *testing.F) {
	for _, answers := range [][]int64{{0, 0}, {-1, 13}, {0, -1, 13}} {
		var b bytes.Buffer
		conn := cedar.NewConn(keeper{to: &b}, cedar.Limits{})
		for _, n := range answers {
			conn.PutInt(n)
			if err := conn.EndMessage(); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(b.Bytes())
	}
	attrs := classad.NewAd()
	attrs.SetInt("ExitCode", 0)
	f.Fuzz(func(_ *testing.T, said []byte) {
		a, b := net.Pipe()
		defer a.Close()
		defer b.Close()
		_ = Update(cedar.NewConn(duplex{a, bytes.NewReader(said)}, cedar.Limits{}), "me", ID{1, 0}, attrs)
		_, _ = Int(cedar.NewConn(duplex{a, bytes.NewReader(said)}, cedar.Limits{}), ID{1, 0}, "JobStatus")
	})
}

// keeper keeps what is written.
type keeper struct {
	net.Conn
	to *bytes.Buffer
}

func (k keeper) Write(b []byte) (int, error)    { return k.to.Write(b) }
func (keeper) RemoteAddr() net.Addr             { return nil }
func (keeper) SetWriteDeadline(time.Time) error { return nil }
