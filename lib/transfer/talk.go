// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
)

// talk is what both roles have in common.
type talk struct {
	Side
	ctx   context.Context
	c     *cedar.Conn
	stats Stats
	first *WireFailure // the first failure at this end

	meGoes, peerGoes bool // each end said that all files may follow
	peerMax          int64
}

func newTalk(ctx context.Context, s Side) (*talk, func()) {
	if s.Name == "" {
		s.Name = "STARTER"
	}
	if s.Timeout <= 0 {
		s.Timeout = defaultIdleTimeout
	}
	if s.Address == "" {
		s.Address = ipOf(s.Conn.NetConn().LocalAddr())
	}
	t := &talk{Side: s, ctx: ctx, c: s.Conn, peerMax: noLimit}
	before := s.Conn.Limits().Timeout
	s.Conn.SetTimeout(s.Timeout)
	release := s.Conn.Bind(ctx)
	return t, func() {
		release()
		s.Conn.SetTimeout(before)
	}
}

// log says once how a transfer ended.
func (t *talk) log(what string, err error) {
	if t.Log == nil {
		return
	}
	attrs := []any{"peer", t.c.Peer(), "files", t.stats.Files, "bytes", t.stats.Bytes}
	if err != nil {
		t.Log.Warn(what, append(attrs, "err", err)...)
		return
	}
	t.Log.Debug(what, attrs...)
}

func ipOf(a net.Addr) string {
	if a == nil {
		return "disconnected socket"
	}
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

// peer is the other end in messages.
func (t *talk) peer() string { return "<" + t.c.Peer() + ">" }

// fail notes the first failure at this end.
func (t *talk) fail(f *WireFailure) {
	if t.first == nil {
		t.first = f
	}
}

// broken is the end of a conversation: the connection failed, or the other
// end said what nobody can follow. Both may be tried again.
func (t *talk) broken(doing string, err error) error {
	if cause := t.ctx.Err(); cause != nil {
		return context.Cause(t.ctx)
	}
	return &WireFailure{
		Reason: oneLine(fmt.Sprintf("%s at %s: connection with %s failed while %s: %v", t.Name, t.Address, t.peer(), doing, err)),
		Retry:  true, Broken: true, Err: err,
	}
}

func (t *talk) putInt(i int64) error {
	t.c.PutInt(i)
	return t.c.EndMessage()
}

func (t *talk) putAd(ad *classad.Ad) error {
	t.c.PutAd(ad, cedar.AdOptions{})
	return t.c.EndMessage()
}

func (t *talk) readInt() (int64, error) {
	i, err := t.c.Int()
	if err != nil {
		return 0, err
	}
	return i, t.c.EndOfMessage()
}

func (t *talk) readAd() (*classad.Ad, error) {
	ad, err := t.c.Ad(cedar.AdOptions{})
	if err != nil {
		return nil, err
	}
	return ad, t.c.EndOfMessage()
}

// errRefused is what a shadow says by a lone 0 in place of its first message.
var errRefused = errors.New("the TransferKey is not valid there")

// refused is the failure for a wrong key.
func (t *talk) refused() error {
	return &WireFailure{
		Reason: fmt.Sprintf("%s at %s: %s refused the transfer: %v", t.Name, t.Address, t.peer(), errRefused),
		Retry:  true, Broken: true, Err: errRefused,
	}
}

// awaitGoAhead asks the other end whether it is ready, and waits for as long
// as it says that it is still there.
func (t *talk) awaitGoAhead() error {
	alive := max(t.Timeout, minAlive)
	if err := t.putInt(int64(alive / time.Second)); err != nil {
		return t.broken("asking for the go-ahead", err)
	}
	t.c.SetTimeout(alive + aliveSlop)
	defer t.c.SetTimeout(t.Timeout)
	for {
		// A lone 0 stands here if the key was refused: an ad without lines
		// whose two types are missing.
		ad, err := t.c.Ad(cedar.AdOptions{NoTypes: true})
		if err == nil && !t.c.More() && ad.Len() == 0 {
			_ = t.c.EndOfMessage()
			return t.refused()
		}
		for range 2 {
			if err == nil {
				_, err = t.c.String()
			}
		}
		if err == nil {
			err = t.c.EndOfMessage()
		}
		if err != nil {
			return t.broken("waiting for the go-ahead", err)
		}
		result, ok := ad.EvalInt("Result", nil)
		if !ok {
			return &WireFailure{
				HoldCode: holdInvalidAhead, HoldSubcode: 1,
				Reason: oneLine("GoAhead message missing attribute: Result.  Full classad: [" + ad.Text(classad.Old) + "]"),
			}
		}
		if most, ok := ad.EvalInt("MaxTransferBytes", nil); ok {
			t.peerMax = most
		}
		switch {
		case result == 0:
			if d, ok := ad.EvalInt("Timeout", nil); ok && d > 0 && d <= 1<<31 {
				t.c.SetTimeout(time.Duration(d) * time.Second)
			}
		case result < 0:
			f := &WireFailure{Retry: true, Reason: oneLine(text(ad, "HoldReason"))}
			if again, ok := ad.EvalBool("TryAgain", nil); ok {
				f.Retry = again
			}
			f.HoldCode, f.HoldSubcode = number(ad, "HoldReasonCode"), number(ad, "HoldReasonSubCode")
			if f.Reason == "" {
				f.Reason = fmt.Sprintf("%s gave no go-ahead", t.peer())
			}
			return f
		default:
			t.peerGoes = result >= goAheadAlways
			return nil
		}
	}
}

// giveGoAhead answers the other end's question: it may go ahead, always.
func (t *talk) giveGoAhead(most *int64) error {
	alive, err := t.readInt()
	if err != nil {
		return t.broken("being asked for the go-ahead", err)
	}
	ad := classad.NewAd()
	if alive < int64(minAlive/time.Second) {
		ad.SetInt("Timeout", int64(minAlive/time.Second))
		ad.SetInt("Result", 0)
		if err := t.putAd(ad); err != nil {
			return t.broken("giving the go-ahead", err)
		}
	}
	ad.SetInt("Result", goAheadAlways)
	if most != nil {
		ad.SetInt("MaxTransferBytes", *most)
	}
	if err := t.putAd(ad); err != nil {
		return t.broken("giving the go-ahead", err)
	}
	t.meGoes = true
	return nil
}

// sendAck reports how this end fared; f is nil if well.
func (t *talk) sendAck(f *WireFailure) error {
	ad := classad.NewAd()
	switch {
	case f == nil:
		ad.SetInt("Result", 0)
	case f.Retry:
		ad.SetInt("Result", 1)
	default:
		ad.SetInt("Result", -1)
	}
	if err := ad.SetText("TransferStats", t.stats.Ad().Text(classad.New)); err != nil {
		return err
	}
	if f != nil {
		ad.SetInt("HoldReasonCode", int64(f.HoldCode))
		ad.SetInt("HoldReasonSubCode", int64(f.HoldSubcode))
		ad.SetString("HoldReason", oneLine(f.Reason))
	}
	return t.putAd(ad)
}

// readAck reads how the other end fared: nil if well.
func (t *talk) readAck() *WireFailure {
	ad, err := t.readAd()
	if err != nil {
		return &WireFailure{Retry: true, Broken: true, Err: err}
	}
	result, ok := ad.EvalInt("Result", nil)
	if !ok {
		return &WireFailure{HoldCode: holdInvalidAck, Reason: "Download acknowledgment missing attribute: Result"}
	}
	if v, ok := ad.Lookup("TransferStats"); ok {
		if stats, err := classad.ParseAd(v.String(), classad.New); err == nil {
			t.stats.Peer = stats
		}
	}
	if result == 0 {
		return nil
	}
	return &WireFailure{
		HoldCode: number(ad, "HoldReasonCode"), HoldSubcode: number(ad, "HoldReasonSubCode"),
		Reason: oneLine(text(ad, "HoldReason")), Retry: result > 0,
	}
}

func text(ad *classad.Ad, name string) string {
	s, _ := ad.EvalString(name, nil)
	return s
}

func number(ad *classad.Ad, name string) int {
	i, _ := ad.EvalInt(name, nil)
	return int(i)
}

// oneLine makes a text one that may stand in a hold reason.
func oneLine(s string) string {
	return strings.NewReplacer("\r\n", "\\n", "\n", "\\n", "\r", "\\n", "\x00", "").Replace(s)
}

// sysError is a failure of ours that has a number of the system.
type sysError struct {
	no   cedar.Errno
	text string
}

func (e *sysError) Error() string { return e.text }

// The failures of ours, as the C library names them.
var (
	errNotPermitted error = &sysError{cedar.EPERM, "Operation not permitted"}
	errIsDirectory  error = &sysError{cedar.EISDIR, "Is a directory"}
	errTooDeep      error = &sysError{cedar.EINVAL, "Directories are nested too deep"}
)

// errnoOf returns the number of an error, and its text as the C library has
// it; system knows those of the system, and may be nil.
func errnoOf(system host.Errno, err error) (int, string) {
	var own *sysError
	if errors.As(err, &own) {
		return int(own.no), own.text
	}
	if system != nil {
		if no, text, ok := system(err); ok {
			return no, text
		}
	}
	no := cedar.ErrnoOf(err)
	switch no {
	case cedar.ENOENT:
		return int(no), "No such file or directory"
	case cedar.EACCES:
		return int(no), "Permission denied"
	case cedar.EEXIST:
		return int(no), "File exists"
	}
	return int(no), capital(cause(err).Error())
}

func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToUpper(r)) + s[n:]
}
