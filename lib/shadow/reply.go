// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"fmt"
	"math"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/delegation"
	"github.com/execpoint/execpoint/lib/classad"
)

// blockSize is the size of an answer that describes a file.
const blockSize = 1024

// mostCreds bounds the credentials of one answer.
const mostCreds = 1000

// Reply is the answer to a call. Which fields count is a matter of the call.
type Reply struct {
	Value int64
	Errno cedar.Errno // when Value is negative
	Text  string
	Texts [6]string // of get_sec_session_info
	Data  []byte
	Ad    *classad.Ad
	Ads   []*classad.Ad // of getcreds
}

// Put puts the answer to call, without ending the message. For a call that has
// no answer nothing is put.
func (r *Reply) Put(conn *cedar.Conn, call Call) {
	f, ok := call.form()
	if !ok || f.answer == answerNone {
		return
	}
	switch f.answer {
	case answerBare:
		conn.PutAd(r.Ad, cedar.AdOptions{})
		return
	case answerCreds:
		for _, ad := range r.Ads {
			conn.PutInt(1)
			conn.PutAd(ad, cedar.AdOptions{})
		}
		conn.PutInt(r.Value)
		return
	case answerProxy:
		delegation.Put(conn, r.Data)
		return
	}
	conn.PutInt(r.Value)
	switch {
	case f.answer == answerGuidance:
		conn.PutAd(r.Ad, cedar.AdOptions{})
		return
	case f.answer == answerLone:
		return
	case r.Value < 0:
		conn.PutInt(int64(r.Errno))
		return
	}
	switch f.answer {
	case answerText:
		conn.PutString(r.Text)
	case answerData:
		conn.PutBytes(r.Data)
	case answerBlock:
		block := make([]byte, blockSize)
		copy(block[:blockSize-1], r.Text)
		conn.PutBytes(block)
	case answerAd:
		conn.PutAd(r.Ad, cedar.AdOptions{})
	case answerSessions:
		for i := 0; i < len(r.Texts); i += 3 {
			conn.PutString(r.Texts[i])
			conn.PutString(r.Texts[i+1])
			conn.PutSecret(cedar.Secret(r.Texts[i+2]))
		}
	}
}

// ReadReply reads the answer to a request, without the end of the message. It
// fails for more bytes than were asked for.
func ReadReply(conn *cedar.Conn, request *Request) (r Reply, err error) {
	f, ok := request.Call.form()
	if !ok || f.answer == answerNone {
		return r, fmt.Errorf("%s has no answer", request.Call)
	}
	switch f.answer {
	case answerBare:
		r.Ad, err = conn.Ad(cedar.AdOptions{})
		return r, err
	case answerCreds:
		err = r.readCreds(conn)
		return r, err
	case answerProxy:
		r.Data, err = delegation.Read(conn)
		return r, err
	}
	if r.Value, err = conn.Int(); err != nil {
		return r, err
	}
	switch {
	case f.answer == answerGuidance:
		r.Ad, err = conn.Ad(cedar.AdOptions{})
		return r, err
	case f.answer == answerLone:
		return r, nil
	case r.Value < 0:
		var n int64
		n, err = conn.Int()
		r.Errno = cedar.Errno(n)
		return r, err
	}
	if most := request.most(); r.Value > most {
		return r, fmt.Errorf("its value is %d, at most %d can be", r.Value, most)
	}
	switch f.answer {
	case answerText:
		r.Text, err = conn.String()
	case answerData:
		r.Data, err = conn.Bytes(int(r.Value))
	case answerBlock:
		r.Data, err = conn.Bytes(blockSize)
	case answerAd:
		r.Ad, err = conn.Ad(cedar.AdOptions{})
	case answerSessions:
		for i := 0; i < len(r.Texts) && err == nil; i++ {
			r.Texts[i], err = conn.String()
		}
	}
	return r, err
}

// most is the largest value that an answer may have: how many bytes come back
// or were taken, or a file descriptor.
func (r *Request) most() int64 {
	switch r.Call {
	case CallRead, CallPread, CallSread:
		return r.Ints[1]
	case CallReadlink, CallWhoami, CallWhoareyou:
		return r.Ints[0]
	case CallGetfile:
		return MaxData
	case CallWrite, CallPwrite, CallSwrite:
		return int64(len(r.Data))
	case CallOpen, CallPutfile:
		return math.MaxInt32
	}
	return math.MaxInt64
}

// What an answer may have by its kind, in bytes. Whoever has the access point has the
// starter read its answers, and the starter's memory is not the job's: it is nobody's
// limit. The ads of HTCondor's shadow are those of its jobs, some 20 KB, and some MB
// where a job names each of a hundred thousand files. Credentials are tokens.
const (
	mostValues = 64 << 10 // numbers, blocks, keys of sessions
	mostAd     = 8 << 20
	mostLines  = 100_000 // of an ad
	mostText   = 4 << 20 // an attribute, or the names in a directory
	mostTokens = 4 << 20
)

// mostAnswer is how long the message may be that answers.
func (r *Request) mostAnswer() int {
	f, _ := r.Call.form()
	switch f.answer {
	case answerAd, answerBare, answerGuidance:
		return mostAd
	case answerCreds:
		return mostTokens
	case answerProxy:
		return delegation.MostChain + mostValues
	case answerText:
		return mostText
	case answerData: // as much as was asked for
		return int(min(max(r.most(), 0), MaxData)) + mostValues
	}
	return mostValues
}

func (r *Reply) readCreds(conn *cedar.Conn) error {
	for {
		n, err := conn.Int()
		if err != nil {
			return err
		}
		if n <= 0 {
			r.Value = n
			return nil
		}
		if len(r.Ads) == mostCreds {
			return fmt.Errorf("more than %d credentials", mostCreds)
		}
		ad, err := conn.Ad(cedar.AdOptions{})
		if err != nil {
			return err
		}
		r.Ads = append(r.Ads, ad)
	}
}
