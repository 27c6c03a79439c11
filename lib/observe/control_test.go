// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar/cedartest"
)

// Whatever comes on the control socket is answered with one line of JSON. The
// user who asks is the one that the system vouches for, whatever the question
// says, and a question that is read is the same when it is written.
func FuzzControl(f *testing.F) {
	for _, line := range []string{
		`{"op":"status"}`, `{"op":"explain","subject":"slot1_1","job":"RequestCpus = 1\n"}`, `{"op":"drain","drain":{"how":"quick","then":"resume","start":"true"}}`,
		`{"op":"vacate","fast":true,"By":"root"}`, `{"op":"resume","by":"root","-":"root"}`, "{nonsense", "", "null", "[]", `{"op":"`, `{"op":7}`, strings.Repeat("[", 10_000),
		"{}\n{}",
	} {
		f.Add([]byte(line + "\n"))
	}
	f.Add([]byte(`{"op":"status"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		asked := 0
		var last Request
		ask := func(b []byte) (resp Response) {
			mine, yours := cedartest.Pipe()
			_, _ = mine.Write(b)
			half := &ended{Conn: yours, left: len(b)}
			serveOne(half, func(net.Conn) (string, error) { return "alice", nil }, func(r Request) Response {
				asked++
				last = r
				return Response{Err: r.Op + r.Subject + r.Job}
			})
			said, err := io.ReadAll(mine)
			if err != nil || bytes.Count(said, []byte("\n")) != 1 || json.Unmarshal(said, &resp) != nil {
				t.Fatalf("%q is answered %q, %v", b, said, err)
			}
			return resp
		}
		resp := ask(b)
		switch {
		case asked == 0 && resp.Err == "", asked > 1:
			t.Fatalf("%q was asked %d times and is answered %+v", b, asked, resp)
		case asked == 0:
			return
		case last.By != "alice":
			t.Errorf("%q is asked by %q", b, last.By)
		}
		first := last
		again, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		ask(append(again, '\n'))
		if d := cmp.Diff(first, last); d != "" {
			t.Errorf("%q is written as %q (-first +again)\n%s", b, again, d)
		}
	})
}

// ended is a connection whose peer says no more than what it said already.
type ended struct {
	net.Conn
	left int
}

func (e *ended) Read(b []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n, err := e.Conn.Read(b)
	e.left -= n
	return n, err
}
