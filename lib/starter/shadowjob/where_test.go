// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
)

// A shadow may come back, with another place for files, while one opens a
// connection to the place before.
func TestFileServerChanges(t *testing.T) {
	t.Parallel()
	s := &mover{}
	ad := classad.NewAd()
	ad.SetString("TransferSocket", "<127.0.0.1:1>")
	var both sync.WaitGroup
	both.Go(func() {
		for range 100 {
			if err := s.updateFileServer(ad); err != nil {
				t.Error(err)
			}
		}
	})
	for range 100 { // no key is known, so nothing is opened
		if conn, err := s.open(t.Context(), 0); err == nil {
			_ = conn.Close()
			t.Error("a connection to nowhere")
		}
	}
	both.Wait()
	if at := s.server().address; at.Port != 1 {
		t.Errorf("%+v", at)
	}
}

// late sets no deadline in the past: what ends waiting has to be seen before.
type late struct {
	net.Conn
	set chan struct{}
}

func (l late) SetDeadline(t time.Time) error {
	defer close(l.set)
	return l.Conn.SetDeadline(t)
}

func (l late) SetReadDeadline(t time.Time) error {
	<-l.set // the order in which it goes wrong
	return l.Conn.SetReadDeadline(t)
}

// Who gives up does not wait for a shadow's child to end.
func TestDrainGivesUp(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		drainToEOF(ctx, cedar.NewConn(late{ours, make(chan struct{})}, cedar.Limits{}))
	}()
	select {
	case <-done:
	case <-time.After(childEnds / 2):
		t.Error("it waits")
	}
}
