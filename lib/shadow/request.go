// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/delegation"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// MaxData is how many bytes one call may carry, in either direction.
const MaxData = 256 << 20

// Request is one call with its arguments. Ints and Texts are in the order of
// the wire; Data has as many bytes as the second integer says, for the calls
// that write, and is the request of a delegation for get_delegated_proxy.
type Request struct {
	Call  Call
	Ints  [5]int64
	Texts [2]string
	Ad    *classad.Ad
	Data  []byte
}

// Put puts the request, without ending the message.
func (r *Request) Put(conn *cedar.Conn) {
	conn.PutInt(int64(r.Call))
	f, _ := r.Call.form()
	ints, texts := 0, 0
	for _, item := range f.items {
		switch item {
		case 'i':
			conn.PutInt(r.Ints[ints])
			ints++
		case 's':
			conn.PutString(r.Texts[texts])
			texts++
		case 'a':
			conn.PutAd(r.Ad, cedar.AdOptions{})
		case 'd':
			conn.PutBytes(r.Data)
		case 'm':
			_ = conn.EndMessage() // its error is that of the message that follows, too
			delegation.Put(conn, r.Data)
		}
	}
}

// check finds what cannot be sent, before anything is.
func (r *Request) check() error {
	f, ok := r.Call.form()
	if !ok {
		return errors.New("there is no such call")
	}
	for _, t := range r.Texts {
		if strings.IndexByte(t, 0) >= 0 {
			return fmt.Errorf("the text %.80q holds a NUL", t)
		}
	}
	if strings.Contains(f.items, "a") {
		if r.Ad == nil {
			return errors.New("the ad is missing")
		}
		var line []byte // the text of the whole ad would be garbage of three times its size
		for name, e := range r.Ad.All() {
			if line = e.AppendText(append(line[:0], name...), classad.Old); bytes.IndexByte(line, 0) >= 0 {
				return errors.New("the ad holds a NUL")
			}
		}
	}
	if len(r.Data) > MaxData {
		return fmt.Errorf("%d bytes, at most %d fit", len(r.Data), MaxData)
	}
	return nil
}

// ReadRequest reads a request to its end, as a shadow does. Of a write whose
// length is not from 1 to MaxData the bytes are dropped: Data is nil then. An
// unknown call is errs.Unsupported and leaves the stream at the next message;
// anything else that is wrong is errs.Invalid and does not.
func ReadRequest(conn *cedar.Conn) (*Request, error) {
	n, err := conn.Int()
	if err != nil {
		return nil, err
	}
	r := &Request{Call: Call(n)}
	f, ok := r.Call.form()
	if !ok {
		conn.DiscardMessage()
		return r, errs.E("shadow.ReadRequest", errs.Unsupported, conn.Peer(), fmt.Errorf("%s is unknown", r.Call))
	}
	ints, texts := 0, 0
	for _, item := range f.items {
		switch item {
		case 'i':
			r.Ints[ints], err = conn.Int()
			ints++
		case 's':
			r.Texts[texts], err = conn.String()
			texts++
		case 'a':
			r.Ad, err = conn.Ad(cedar.AdOptions{})
		case 'd':
			if size := r.Ints[1]; size < 1 || size > MaxData {
				conn.DiscardMessage()
				return r, nil
			}
			r.Data, err = conn.Bytes(int(r.Ints[1]))
		case 'm':
			if err = conn.EndOfMessage(); err == nil {
				r.Data, err = delegation.Read(conn)
			}
		}
		if err != nil {
			return r, errs.E("shadow.ReadRequest", errs.Other, r.Call.String(), err)
		}
	}
	if err := conn.EndOfMessage(); err != nil {
		return r, errs.E("shadow.ReadRequest", errs.Other, r.Call.String(), err)
	}
	return r, nil
}
