// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/transfer"
)

// mover moves the files of a job, each time over a connection of its own. One
// transfer is made at a time.
type mover struct {
	cfg   *Config
	conv  *conversation
	place *job.Place // nil before the job has one

	mu    sync.Mutex
	where fileServer // changes with a reconnect, whatever is being sent

	input *closeAfterPeer // the connection over which input came; nil without
	// counters are what the job's ad showed after the last transfer.
	counters map[direction]transferCounters
	anew     atomic.Bool // a shadow came back, which moves no files now
	records  records
	manifest string // directory of the job's manifest, "" as long as there is none
	creds    string // directory of the job's credentials, "" for none
	tickets  string // name of its ticket cache of Kerberos in the scratch directory, "" for none
}

// fileServer is where the shadow gives and takes files.
type fileServer struct {
	address cedar.Sinful
	key     cedar.Secret
	session string // its id
	version string
}

// updateFileServer has an ad of the shadow say where files are given and taken from
// now on: the job's at first, that of a reconnect later.
func (m *mover) updateFileServer(ad *classad.Ad) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.where.learn(ad)
}

// session names the session with which connections for files are opened.
func (m *mover) session(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.where.session = id
}

// server is where files are given and taken now.
func (m *mover) server() fileServer {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.where
}

// learn reads where files are given and taken from an ad of the shadow.
func (f *fileServer) learn(ad *classad.Ad) error {
	if v, ok := ad.EvalString("ShadowVersion", nil); ok {
		f.version = v
	}
	if key, ok := ad.EvalString("TransferKey", nil); ok {
		f.key = cedar.Secret(key)
	}
	text, ok := ad.EvalString("TransferSocket", nil)
	if !ok {
		return nil // it matters only if files are moved
	}
	address, err := cedar.ParseSinful(text)
	if err != nil {
		return errs.E("starter.shadow", errs.Invalid, "TransferSocket", err)
	}
	f.address = address
	return nil
}

// carried is what a transfer moved.
type carried struct {
	files int
	bytes int64
}

// open opens a connection for files.
func (m *mover) open(ctx context.Context, command int) (*cedar.Conn, error) {
	return m.openAt(ctx, m.server(), command)
}

// openAt opens one to where files are.
func (m *mover) openAt(ctx context.Context, where fileServer, command int) (*cedar.Conn, error) {
	const op = "starter.transfer"
	if where.address.IsZero() || where.key == "" {
		return nil, errs.E(op, errs.Invalid, "TransferSocket", errors.New("the shadow does not say where files are"))
	}
	// A broker may have to find the shadow first, which may be gone.
	limit, cancel := context.WithTimeout(ctx, m.cfg.Plan.Settings.Pool.Wire)
	defer cancel()
	conn, _, err := m.conv.client.Command(limit, where.address, command, security.Options{Session: where.session})
	if err != nil {
		return nil, mayPass("opening a connection for files", err)
	}
	if err := transfer.Begin(conn, where.key); err != nil {
		_ = conn.Close()
		return nil, mayPass("opening a connection for files", err)
	}
	return conn, nil
}

// mayPass is a failure that may pass.
func mayPass(doing string, err error) error {
	return &transfer.WireFailure{Reason: doing + ": " + err.Error(), Retry: true, Broken: true, Err: err}
}

func (m *mover) side(conn *cedar.Conn) transfer.Side {
	return transfer.Side{
		Conn: conn, PeerVersion: m.server().version, Log: job.OwnLog(m.conv.log), Record: m.recorder(), Errno: m.cfg.Errno,
		Timeout:  m.cfg.Plan.Settings.Pool.Wire,
		Progress: m.cfg.Progress,
	}
}

// awaitChild waits until the shadow has seen the end of the child that moved files
// that way, which is itself gone, and reports whether it has.
func (m *mover) awaitChild(ctx context.Context, d direction) bool {
	return awaitTransferChild(ctx, m.conv.caller.JobInfo, d, m.counters)
}

// fetch brings the input once. ready says of a failure that the shadow could
// begin another transfer.
func (m *mover) fetch(ctx context.Context) (_ carried, ready bool, err error) {
	p := m.place
	conn, err := m.open(ctx, command.FiletransUpload)
	if err != nil {
		return carried{}, false, err
	}
	defer func() {
		switch f := new(transfer.WireFailure); {
		case err == nil:
			m.input = newCloseAfterPeer(conn)
			return
		case errors.As(err, &f) && !f.Broken:
			drainToEOF(ctx, conn)
			ready = m.awaitChild(ctx, inward)
		}
		_ = conn.Close()
	}()
	o := transfer.ReceiveOptions{Plugins: m.plugins(), Owner: m.owner()}
	if remaps := p.Job.Text("TransferInputRemaps"); remaps != "" {
		if o.Rename, err = transfer.Renames(remaps); err != nil {
			return carried{}, false, err
		}
	}
	if cmd := p.Job.Text("Cmd"); p.Job.Flag("TransferExecutable") && cmd != "" {
		o.Executable = filepath.Base(cmd)
	}
	if err := p.WriteAds(); err != nil { // for plugins; the job gets its own when it starts
		m.conv.log.Info("plugins find no ad of the job", "err", err)
	}
	var got transfer.Stats
	err = p.AsUser(func() (err error) {
		got, err = transfer.Receive(ctx, m.side(conn), p.Box.Root(), o)
		return err
	})
	if len(got.PluginResults) > 0 {
		if rerr := m.conv.caller.RegisterJob(ctx, pluginResults("Input", got.PluginResults)); rerr != nil && err == nil {
			err = rerr
		}
	}
	return carried{got.Files, got.Total()}, false, err
}

// uploading says which files are sent, in the word with which the attributes that
// tell of it begin.
type uploading string

const (
	ofCheckpoint uploading = "Checkpoint"
	ofOutput     uploading = "Output" // after it the shadow moves no files any more
)

// upload sends files to a shadow that has heard all that was to be told before.
func (m *mover) upload(ctx context.Context, plan transfer.SendPlan, which uploading) (transfer.Stats, error) {
	m.inputOver(ctx)
	conn, err := m.open(ctx, command.FiletransDownload)
	if err != nil {
		return transfer.Stats{}, err
	}
	defer func() { _ = conn.Close() }()
	var sent transfer.Stats
	err = m.place.AsUser(func() (err error) {
		sent, err = transfer.Send(ctx, m.side(conn), m.place.Box.Root(), plan, transfer.SendOptions{Plugins: m.plugins(), Outside: m.outside()})
		return err
	})
	f := new(transfer.WireFailure)
	if which == ofCheckpoint && (err == nil || errors.As(err, &f) && !f.Broken) {
		if drainToEOF(ctx, conn); !m.awaitChild(ctx, outward) {
			m.conv.log.Warn("the shadow does not show that it is done with the files it was sent")
		}
	}
	// Also, and most of all, when it failed: the results say why.
	if len(sent.PluginResults) > 0 {
		if rerr := m.conv.caller.RegisterJob(ctx, pluginResults(string(which), sent.PluginResults)); err == nil {
			err = rerr
		}
	}
	return sent, err
}

// inputOver waits until the shadow is done with the input that it sent.
func (m *mover) inputOver(ctx context.Context) {
	if m.input == nil {
		return
	}
	m.input.await(ctx)
	m.input = nil
	if !m.anew.Load() && !m.awaitChild(ctx, inward) {
		m.conv.log.Warn("the shadow does not show that it is done with the input")
	}
}

// pluginResults is the update that tells of plugins.
func pluginResults(which string, results []*classad.Ad) *classad.Ad {
	list := make([]*classad.Expr, len(results))
	for i, r := range results {
		list[i] = classad.Literal(classad.AdValue(r))
	}
	ad := classad.NewAd()
	ad.SetValue(which+"PluginResultList", classad.List(list...))
	return ad
}

// outputPlan says what is sent of a job that has ended. All of it is planned if its
// end counts as a success, the files for failures else.
func (m *mover) outputPlan(e job.Ending) (transfer.SendPlan, error) {
	m.writeManifest("out", nil)
	want, said := job.Promised(m.place.Job.Ad, "JobSuccess")
	ending := m.ending()
	ending.Failed = said && !job.SameEnd(e.Status, want)
	if m.manifest != "" {
		ending.Added = append(ending.Added, m.manifest)
	}
	if !e.Final {
		ending.Occasion = transfer.AtEviction
	}
	switch err := m.findChanged(&ending, e.Before); {
	case errors.Is(err, fs.ErrNotExist):
		ending.Gone = e.Final
	case err != nil:
		return transfer.SendPlan{}, err
	}
	return transfer.PlanOutput(m.place.Job.Ad, ending)
}

// failedPlan says what there is to send of a job whose input did not come.
func (m *mover) failedPlan() (transfer.SendPlan, error) {
	ending := m.ending()
	ending.Failed = true
	return transfer.PlanOutput(m.place.Job.Ad, ending)
}

// checkpointPlan says what is saved: what transfer_checkpoint_files lists, else
// transfer_output_files, else what is new or changed.
func (m *mover) checkpointPlan(number int, before transfer.Listing) (transfer.SendPlan, error) {
	ending := m.ending()
	ending.Occasion, ending.Number = transfer.AtCheckpoint, number
	if err := m.findChanged(&ending, before); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return transfer.SendPlan{}, err
	}
	return transfer.PlanOutput(m.place.Job.Ad, ending)
}

// findChanged notes what is new or changed since the job began, or was by an
// earlier run. The error is fs.ErrNotExist if the job has removed its scratch
// directory.
func (m *mover) findChanged(e *transfer.Ending, before transfer.Listing) error {
	p := m.place
	return p.AsUser(func() (err error) {
		e.Earlier = transfer.Earlier(p.Box.Root(), p.Job.Ad)
		e.Changed, err = transfer.Changed(p.Box.Root(), before)
		return err
	})
}

// ending is what is known of the scratch directory when output is sent.
func (m *mover) ending() transfer.Ending {
	j, scratch := m.place.Job, m.place.Box.Scratch()
	ending := transfer.Ending{Occasion: transfer.AtExit, Scratch: scratch}
	for _, f := range []struct {
		file job.StdFile
		to   *string
	}{{j.Stdout, &ending.Stdout}, {j.Stderr, &ending.Stderr}} {
		if name, err := filepath.Rel(scratch, f.file.Path); f.file.Path != "" && err == nil && filepath.IsLocal(name) {
			*f.to = name
		}
	}
	ending.Quiet = map[string]bool{sandbox.JobAdFile: true, sandbox.MachineAdFile: true, m.tickets: true}
	return ending
}
