// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/explain"
)

// What a Request may ask.
const (
	OpStatus  = "status"  // the slots and the jobs of the EP
	OpExplain = "explain" // why Request.Subject, a slot or a job, is as it is, or what becomes of Request.Job
	OpDrain   = "drain"   // empty the machine of jobs, as Request.Drain says
	OpResume  = "resume"  // take the drain back that Request.Subject names, any if it is empty
	OpVacate  = "vacate"  // end the claim of the slot Request.Subject, of every slot if it is empty
)

// CommandOf is the command by which a question is asked over the wire, and whose
// level it needs at the control socket too. A question that is not known needs as
// much as one that changes something.
func CommandOf(op string) (number int, known bool) {
	switch op {
	case OpStatus, OpExplain:
		return command.ExecpointLook, true
	case OpDrain, OpResume, OpVacate:
		return command.ExecpointChange, true
	}
	return command.ExecpointChange, false
}

// maxMessage bounds one message either way, in bytes.
const maxMessage = 16 << 20

// MostRequest bounds a question, which may hold the ad of a job, and MostAnswer
// one that goes over the wire, in bytes.
const (
	MostRequest = 1 << 20
	MostAnswer  = 8 << 20
)

// ioTimeout bounds how long a silent peer keeps a connection.
const ioTimeout = 10 * time.Second

// Request is one question on the control socket.
type Request struct {
	Op      string `json:"op"`
	Subject string `json:"subject,omitempty"`
	// Subject of OpExplain is a slot or a job; if it is empty and there is no
	// Job, every slot is meant.
	//
	// Job is the ad of a job that might be submitted, in the old syntax. The
	// question is then about it, with a Subject about that slot for it.
	Job string `json:"job,omitempty"`
	// Drain says how to drain.
	Drain *Drain `json:"drain,omitempty"`
	// Fast says not to give the jobs of vacated slots any time.
	Fast bool `json:"fast,omitempty"`

	// By is the user who asks, as the system vouches for it; "" if it does
	// not. Ours says that it is root or the user of the EP. They do not travel.
	By   string `json:"-"`
	Ours bool   `json:"-"`
}

// PeerOf names the user at the other end of a connection, and says whether it is
// root or the user of this program.
type PeerOf func(net.Conn) (name string, ours bool, err error)

// mostOfOne is how many questions of one other user are answered at a time. Root
// and the user of the EP may ask as many as they like: they can end it anyway.
const mostOfOne = 4

// crowd counts the connections of other users.
type crowd struct {
	mu sync.Mutex
	of map[string]int
}

// enter lets one more connection in, unless there are too many of that user.
func (c *crowd) enter(who string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[who] >= mostOfOne {
		return false
	}
	c.of[who]++
	return true
}

func (c *crowd) leave(who string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[who]--; c.of[who] == 0 {
		delete(c.of, who)
	}
}

// Drain is how a machine is to be drained.
type Drain struct {
	How    string `json:"how,omitempty"`    // graceful (the default), quick or fast
	Then   string `json:"then,omitempty"`   // stay (the default), resume, exit, restart or reconfigure
	Reason string `json:"reason,omitempty"` // default: "by" and who asks
	Start  string `json:"start,omitempty"`  // START meanwhile
	Check  string `json:"check,omitempty"`  // what must be true of every slot
}

// Response answers one Request. Err is a sentence for a person; the other
// fields are meaningful only when it is empty.
type Response struct {
	Err          string            `json:"error,omitempty"`
	Status       *Status           `json:"status,omitempty"`
	Explanations []*explain.Report `json:"explanations,omitempty"`
	Code         int               `json:"code,omitempty"`     // of a refusal, 0 if it has none
	DrainID      string            `json:"drain_id,omitempty"` // of the drain that was begun
}

// Status is what an EP is doing at one moment.
type Status struct {
	Name    string    `json:"name"`              // host name of the EP
	Program string    `json:"program,omitempty"` // condor_startd or condor_ep run
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Dir     string    `json:"dir"` // its private directory
	Slots   []Slot    `json:"slots"`
	Jobs    *JobCount `json:"jobs,omitempty"` // of the embedded access point, if there is one

	Draining *Draining `json:"draining,omitempty"`
	// NotContained says what of jobs this EP cannot contain, and why.
	NotContained []string `json:"not_contained,omitempty"`
	// Ending says why the EP ends, "" if it does not.
	Ending string `json:"ending,omitempty"`
}

// Draining is how far the draining of a machine is.
type Draining struct {
	ID     string    `json:"id"`
	How    string    `json:"how"`
	Then   string    `json:"then"`
	Reason string    `json:"reason"`
	By     string    `json:"by,omitempty"`
	Since  time.Time `json:"since"`
	// Until is when the last job will be gone at the latest; absent if no job
	// is left, or if one may stay as long as it likes.
	Until *time.Time `json:"until,omitempty"`
	// Jobs are still there.
	Jobs int `json:"jobs"`
	// Drained says that every slot is drained.
	Drained bool `json:"drained"`
	// Start lets jobs in meanwhile.
	Start string `json:"start,omitempty"`
}

// Slot is one line of a status listing.
type Slot struct {
	Name      string    `json:"name"`
	Type      string    `json:"type"` // Static, Partitionable, Dynamic
	State     string    `json:"state"`
	Activity  string    `json:"activity"`
	Since     time.Time `json:"since"` // when State and Activity were entered
	Cpus      float64   `json:"cpus"`
	MemoryMiB int64     `json:"memory_mib"`
	DiskKiB   int64     `json:"disk_kib"`
	Job       string    `json:"job,omitempty"`
	User      string    `json:"user,omitempty"`
	Broken    string    `json:"broken,omitempty"` // why, if the slot is broken
}

// JobCount counts the jobs of the embedded access point by what they do.
type JobCount struct {
	Idle    int `json:"idle"`
	Running int `json:"running"`
	Held    int `json:"held"`
	Done    int `json:"done"`
	Total   int `json:"total"`
}

// Serve answers connections on l, one request each, until l is closed. answer is
// called from several goroutines. peer may be nil where nobody can know who asks.
// What keeps a connection from being accepted is told to problem, once until one is
// accepted again, and tried again after a pause: it is a lack that passes.
func Serve(l net.Listener, peer PeerOf, answer func(Request) Response, problem func(error)) {
	others := &crowd{of: make(map[string]int)}
	pause := time.Duration(0)
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			if pause == 0 && problem != nil {
				problem(errs.E("observe.Serve", errs.Transient, l.Addr().String(), err))
			}
			pause = clock.Longer(pause)
			time.Sleep(pause)
			continue
		}
		pause = 0
		var from Request
		if peer != nil {
			from.By, from.Ours, _ = peer(c) // who cannot be known stays unnamed
		}
		if !from.Ours && peer != nil && !others.enter(from.By) {
			_ = c.Close()
			continue
		}
		go func() {
			serveOne(c, from, answer)
			if !from.Ours && peer != nil {
				others.leave(from.By)
			}
		}()
	}
}

// serveOne answers one connection; from says who asks.
func serveOne(c net.Conn, from Request, answer func(Request) Response) {
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(ioTimeout)); err != nil {
		return
	}
	var req Request
	var resp Response
	line, err := readLine(c, MostRequest)
	if err == nil {
		err = json.Unmarshal(line, &req)
	}
	req.By, req.Ours = from.By, from.Ours
	if err != nil {
		resp.Err = "the request is not one line of JSON: " + err.Error()
	} else {
		resp = answer(req)
	}
	b, err := json.Marshal(resp)
	if err != nil {
		b = []byte(`{"error":"the answer cannot be written as JSON"}`)
	}
	// The peer may be gone; there is nobody else to tell.
	_, _ = c.Write(append(b, '\n'))
}

// Call asks the EP that listens at path. The error is of kind NotFound when
// nobody listens there, Denied when it may not be asked, and carries the EP's own sentence when it refuses.
func Call(ctx context.Context, path string, req Request) (Response, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		kind := errs.NotFound
		if errors.Is(err, fs.ErrPermission) {
			kind = errs.Denied
		}
		return Response{}, errs.E("observe.Call", kind, path, err)
	}
	defer c.Close()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(ioTimeout)
	}
	if err := c.SetDeadline(deadline); err != nil {
		return Response{}, errs.E("observe.Call", errs.Broken, path, err)
	}
	b, err := json.Marshal(req)
	if err != nil {
		return Response{}, errs.E("observe.Call", errs.Invalid, path, err)
	}
	if _, err := c.Write(append(b, '\n')); err != nil {
		return Response{}, errs.E("observe.Call", errs.Transient, path, err)
	}
	line, err := readLine(c, maxMessage)
	if err != nil {
		return Response{}, errs.E("observe.Call", errs.Transient, path, err)
	}
	var resp Response
	if err := json.Unmarshal(line, &resp); err != nil {
		return Response{}, errs.E("observe.Call", errs.Broken, path, err)
	}
	if resp.Err != "" {
		return resp, errs.E("observe.Call", errs.Invalid, path, errors.New(resp.Err))
	}
	return resp, nil
}

func readLine(r io.Reader, limit int64) ([]byte, error) {
	b, err := bufio.NewReader(io.LimitReader(r, limit)).ReadBytes('\n')
	if errors.Is(err, io.EOF) && int64(len(b)) >= limit {
		return nil, fmt.Errorf("longer than %d bytes", limit)
	}
	return b, err
}
