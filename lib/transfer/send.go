// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// SendPlan is what is sent. PlanOutput makes it for a starter.
type SendPlan struct {
	Final    bool // files go to their final place; otherwise to the spool
	Items    []SendItem
	Preserve bool            // names keep their directories: PreserveRelativePaths
	Quiet    map[string]bool // last parts of names that are never sent
	Std      []string        // the standard files, which do not count as spooled
	// Encrypt and DontEncrypt are patterns with * of names that are sent with
	// the commands for that, which makes no difference on a stream that is
	// encrypted as a whole.
	Encrypt, DontEncrypt []string
	// Checkpoint is set if the files are a checkpoint that is stored at a URL.
	Checkpoint *Checkpoint
}

// Checkpoint says which checkpoint is stored where.
type Checkpoint struct {
	Number      int
	Destination string // CheckpointDestination
	GlobalJobID string
}

// SendOptions say how files are sent.
type SendOptions struct {
	Plugins  *Plugins // for destinations that are URLs; nil refuses them
	MaxBytes int64    // of all files together; 0 or less is no limit
	Outside  Outside  // opens what absolute paths outside lead to; nil refuses them
	open     func(name string) (source, error)
	tree     browser
}

// source is an open file that is being sent.
type source interface {
	io.ReadCloser
	Stat() (fs.FileInfo, error)
}

// sending is the uploading end.
type sending struct {
	*talk
	from     *os.Root
	p        SendPlan
	o        SendOptions
	total    int64 // as it counts against limits
	failures int
}

// Send sends files from a directory, and none from outside it unless Outside
// opens them. It goes on
// after a file that cannot be read, so that both ends can report. The error is
// a *WireFailure, or that of ctx. The connection is at its end then and
// remains the caller's to close.
func Send(ctx context.Context, s Side, from *os.Root, p SendPlan, o SendOptions) (Stats, error) {
	t, done := newTalk(ctx, s)
	defer done()
	u := &sending{talk: t, from: from, p: p, o: o}
	if u.o.tree == nil {
		u.o.tree = rootTree{from}
	}
	if u.o.open == nil {
		u.o.open = func(name string) (source, error) {
			open := from.Open
			if filepath.IsAbs(name) {
				open = u.outside
			}
			f, err := open(name)
			if err != nil {
				return nil, err
			}
			return f, nil
		}
	}
	err := u.run()
	u.log("files sent", err)
	return u.stats, err
}

func (u *sending) run() error {
	entries := expand(u.o.tree, u.o.Outside, u.p)
	if u.p.Checkpoint != nil {
		manifest, err := u.checkpoint(&entries)
		if err != nil {
			no, why := errnoOf(u.Errno, err)
			u.fail(&WireFailure{HoldCode: HoldUpload, HoldSubcode: no, Err: err,
				Reason: oneLine(fmt.Sprintf("|Error: the checkpoint's manifest: (errno %d) %s", no, why))})
			entries = nil
		} else {
			defer func() { _ = u.from.Remove(manifest) }() // it is at the other end, or of no use
		}
	}
	size := int64(0)
	for _, e := range entries {
		size += e.size
	}
	ad := classad.NewAd()
	ad.SetInt("SandboxSize", size)
	u.c.PutInt(asInt(u.p.Final))
	if err := u.putAd(ad); err != nil {
		return u.broken("beginning the transfer", err)
	}
	for i := 0; i < len(entries); {
		if err := u.ctx.Err(); err != nil {
			return context.Cause(u.ctx)
		}
		n, err := u.entry(entries[i:])
		if err != nil {
			return err
		}
		i += n
	}
	return u.finish()
}

func asInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// finish exchanges the final reports.
func (u *sending) finish() error {
	if err := u.putInt(cmdFinished); err != nil {
		return u.broken("ending the list of files", err)
	}
	u.stats.Bytes = u.total
	where := fmt.Sprintf("%s at %s failed to send file(s) to %s", u.Name, u.Address, u.peer())
	report := u.first
	if report != nil {
		if u.failures > 0 {
			report.Reason = fmt.Sprintf("|Error: %d total failures: first failure: %s", u.failures, strings.TrimPrefix(report.Reason, "|Error: "))
		}
		report.Reason = oneLine(where + ": " + report.Reason)
	}
	if err := u.sendAck(report); err != nil {
		return u.broken("sending the final report", err)
	}
	theirs := u.readAck()
	if err := u.ctx.Err(); err != nil {
		return context.Cause(u.ctx)
	}
	switch {
	case theirs != nil && theirs.Broken:
		return u.broken("waiting for the final report", theirs.Err)
	case theirs != nil && report != nil:
		// What they say of our failure is in their own words once more.
		report.Reason += "; " + theirs.Reason
		report.Retry = theirs.Retry
		return report
	case theirs != nil:
		theirs.Reason = oneLine(where + "; " + theirs.Reason)
		return theirs
	case report != nil:
		return report
	}
	return nil
}

// header announces a file.
func (u *sending) header(cmd int64, name string) error {
	err := u.putInt(cmd)
	if err == nil {
		u.c.PutString(name)
		err = u.c.EndMessage()
	}
	if err != nil {
		return u.broken("announcing file "+name, err)
	}
	if !u.peerGoes {
		if err := u.awaitGoAhead(); err != nil {
			return err
		}
	}
	if !u.meGoes {
		return u.giveGoAhead(nil)
	}
	return nil
}

// entry sends the first of entries, or as many as one plugin stores at once,
// and returns how many those were. An error is the end of the conversation.
func (u *sending) entry(entries []entry) (int, error) {
	e := entries[0]
	switch {
	case e.dest != "":
		return u.store(entries)
	case e.remote:
		if err := u.header(cmdURL, e.name); err != nil {
			return 1, err
		}
		u.c.PutString(e.source)
		if err := u.c.EndMessage(); err != nil {
			return 1, u.broken("sending a URL", err)
		}
		u.total += int64(len(e.source))
		return 1, nil
	case e.dir:
		if err := u.header(cmdMkdir, e.name); err != nil {
			return 1, err
		}
		u.c.PutFileMode(e.mode)
		if err := u.c.EndMessage(); err != nil {
			return 1, u.broken("sending a directory", err)
		}
		u.total += 4 // the mode, as HTCondor counts
		u.sent(e)
		return 1, nil
	}
	cmd := int64(cmdFile)
	if matches(u.p.DontEncrypt, e.source) {
		cmd = cmdDontCrypt
	}
	if matches(u.p.Encrypt, e.source) {
		cmd = cmdEncrypt
	}
	if err := u.header(cmd, e.name); err != nil {
		return 1, err
	}
	if err := u.file(e); err != nil {
		return 1, err
	}
	u.sent(e)
	return 1, nil
}

// sent counts what went over the connection.
func (u *sending) sent(e entry) {
	u.stats.Files++
	if !strings.Contains(e.name, "/") && !slices.Contains(u.p.Std, e.name) {
		u.stats.Spooled = append(u.stats.Spooled, e.name)
	}
}

// path is what a name is called in messages.
func (u *sending) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(u.from.Name(), name)
}

// outside opens what lies outside, if that may be.
func (u *sending) outside(path string) (*os.File, error) {
	if u.o.Outside == nil {
		return nil, errNotPermitted
	}
	return u.o.Outside(path)
}

// missing sends what stands for a file that cannot be read: one that is there
// with its mode, as an empty one.
func (u *sending) missing(e entry, err error) error {
	no, why := errnoOf(u.Errno, err)
	reason := fmt.Sprintf("|Error: reading from file %s: (errno %d) %s", u.path(e.source), no, why)
	if e.link {
		reason += "- Transfer of symlinks to directories is not supported."
	}
	u.failures++
	u.fail(&WireFailure{HoldCode: HoldUpload, HoldSubcode: no, Err: err, Reason: oneLine(reason)})
	if e.err != nil || e.link {
		u.c.PutInt(cedar.ModeMissing)
	} else {
		u.c.PutFileMode(e.mode)
	}
	werr := u.c.EndMessage()
	if werr == nil {
		werr = u.c.PutEmptyFile()
	}
	if werr == nil {
		werr = u.c.EndMessage()
	}
	if werr != nil {
		return u.broken("sending file "+u.path(e.source), werr)
	}
	return nil
}

func (u *sending) file(e entry) error {
	if e.link {
		return u.missing(e, errIsDirectory)
	}
	if e.err != nil {
		return u.missing(e, e.err)
	}
	f, err := u.o.open(filepath.FromSlash(e.source))
	if err != nil {
		return u.missing(e, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errs.E("transfer.Send", errs.Invalid, e.source, errors.New("not a plain file"))
	}
	if err != nil {
		return u.missing(e, err)
	}
	size, limited, byPeer, most := u.allowed(info.Size())
	if limited {
		reason, code := "upload", HoldInputSize
		if byPeer {
			reason, code = "download", HoldOutputSize
		}
		u.failures++
		u.fail(&WireFailure{HoldCode: code, Reason: oneLine(fmt.Sprintf("|Error: sending file %s: max total %s bytes exceeded (max=%d MB, this file=%d MB)",
			u.path(e.source), reason, most>>20, info.Size()>>20))})
	}
	u.c.PutFileMode(info.Mode())
	err = u.c.EndMessage()
	if err == nil {
		from := dataSource{r: f, progress: u.Progress}
		err = u.c.PutFile(u.ctx, &from, size)
		if err == nil {
			err = u.c.EndMessage()
		}
		if from.err != nil && !errors.Is(from.err, io.EOF) {
			err = from.err // it broke the stream; this is why
		}
	}
	if err != nil {
		return u.lastWord(e, err)
	}
	u.total += size
	return nil
}

// lastWord is broken for a file that the other end did not take: it may have
// said why before it went.
func (u *sending) lastWord(e entry, err error) error {
	broken := u.broken("sending file "+u.path(e.source), err)
	if !errs.Is(err, errs.Transient) || u.ctx.Err() != nil {
		return broken
	}
	u.c.SetTimeout(lastWordTimeout)
	theirs := u.readAck()
	if theirs == nil || theirs.Broken || theirs.HoldCode == 0 {
		return broken
	}
	theirs.Broken, theirs.Err = true, err
	theirs.Reason = oneLine(fmt.Sprintf("%s at %s failed to send file(s) to %s: |Error: sending file %s; %s", u.Name, u.Address, u.peer(), u.path(e.source), theirs.Reason))
	return theirs
}

// allowed returns how much of a file may be sent.
func (u *sending) allowed(size int64) (n int64, limited, byPeer bool, most int64) {
	most = noLimit
	if u.o.MaxBytes > 0 {
		most = u.o.MaxBytes
	}
	if u.peerMax >= 0 && (most < 0 || u.peerMax < most) {
		most, byPeer = u.peerMax, true
	}
	if most < 0 {
		return size, false, false, most
	}
	left := max(0, most-u.total)
	return min(size, left), size > left, byPeer, most
}

// dataSource counts what is read, and remembers its own failure.
type dataSource struct {
	r        io.Reader
	progress func(int64)
	err      error
}

func (d *dataSource) Read(b []byte) (int, error) {
	n, err := d.r.Read(b)
	if err != nil {
		d.err = err
	}
	if d.progress != nil && n > 0 {
		d.progress(int64(n))
	}
	return n, err
}

// matches reports whether name is one of patterns, in which * stands for
// anything.
func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if globbed(p, name) || globbed(p, path.Base(name)) {
			return true
		}
	}
	return false
}

// globbed matches a pattern in which * stands for anything, slashes too.
func globbed(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
