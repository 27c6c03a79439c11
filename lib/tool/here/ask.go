// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package here

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/observe"
)

// Timeout bounds how long one Execution Point may take to answer.
const Timeout = 5 * time.Second

// Answer is what one Execution Point says.
type Answer struct {
	Socket string
	Said   observe.Response
	Err    error // its refusal
}

// Call puts a request to one Execution Point.
func Call(ctx context.Context, socket string, req observe.Request) (observe.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	return observe.Call(ctx, socket, req)
}

// Ask puts a request to each of the Execution Points that are found. One that is just
// starting or ending has no answer.
func (f Found) Ask(ctx context.Context, req observe.Request) []Answer {
	var all []Answer
	for _, socket := range f.Sockets {
		resp, err := Call(ctx, socket, req)
		if errs.Is(err, errs.NotFound) {
			continue
		}
		all = append(all, Answer{socket, resp, Sentence(err)})
	}
	return all
}

// Sentence is what the Execution Point itself said, without the way it came.
func Sentence(err error) error {
	var e *errs.Error
	if errors.As(err, &e) && e.Kind == errs.Invalid && e.Err != nil {
		return e.Err
	}
	return err
}

// ErrNone says that no Execution Point runs that could be meant.
var ErrNone = errors.New("no Execution Point of this user is running here")

// Several is the error of One where more than one runs and none of them is named.
type Several struct{ PIDs []int }

// Error names them.
func (e *Several) Error() string {
	return fmt.Sprintf("several Execution Points of this user run here; -pid or CONDOR_CONFIG says which: %v", e.PIDs)
}

// One is the socket of the one Execution Point that is meant, by its process or, with
// pid 0, because no other runs or its configuration is named: what changes something is
// never told to several. The error is ErrNone, *Several, about pid, or why one that
// may be meant may not be asked.
func (f Found) One(ctx context.Context, pid int) (socket string, err error) {
	if pid == 0 && len(f.Sockets) == 1 {
		return f.Sockets[0], nil
	}
	var pids []int
	var named []string
	var denied error
	for _, a := range f.Ask(ctx, observe.Request{Op: observe.OpStatus}) {
		if errs.Is(a.Err, errs.Denied) {
			denied = a.Err
		}
		if a.Err == nil && a.Said.Status != nil {
			if a.Said.Status.PID == pid {
				return a.Socket, nil
			}
			socket, pids = a.Socket, append(pids, a.Said.Status.PID)
			if slices.Contains(f.named, a.Socket) {
				named = append(named, a.Socket)
			}
		}
	}
	switch {
	case denied != nil && (len(pids) == 0 || pid != 0):
		return "", denied
	case len(pids) == 0:
		return "", ErrNone
	case pid != 0:
		return "", fmt.Errorf("no Execution Point of this user has pid %d; there are %v", pid, pids)
	case len(pids) == 1:
		return socket, nil
	case len(named) == 1:
		return named[0], nil
	}
	return "", &Several{pids}
}
