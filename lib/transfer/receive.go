// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// ReceiveOptions say how files are received.
type ReceiveOptions struct {
	Executable string // name of the job's executable, which gets mode 0755; "" for none
	// Owner is called for everything that was made, right after; nil is nobody.
	Owner    func(root *os.Root, name string, dir bool) error
	Plugins  *Plugins                        // for URLs; nil refuses them
	MaxBytes int64                           // of all files together; 0 or less is no limit
	MaxItems int                             // files and directories; 0 is 16 million
	Rename   func(name string) (to string)   // where a file goes below the root; nil is the name it has
	create   func(name string) (sink, error) // in place of a file; for tests
}

// sink is an open file that is being received.
type sink interface {
	io.WriteCloser
	Chmod(fs.FileMode) error
}

// receiver is the downloading end.
type receiver struct {
	*talk
	into  *os.Root
	o     ReceiveOptions
	items int
	urls  []urlItem
	texts int       // bytes of urls
	told  int       // bytes of the ads in stats.Reported
	modes []dirMode // of directories that their owner may not write to, set at the end
	most  int64
}

type dirMode struct {
	name string
	mode fs.FileMode
}

// Receive receives the files of a transfer into a directory, and nothing
// outside it, whatever the other end says. It goes on after a failure of its
// own, so that both ends can report. The error is a *WireFailure, or that of
// ctx. The connection is at its end then and remains the caller's to close.
func Receive(ctx context.Context, s Side, into *os.Root, o ReceiveOptions) (Stats, error) {
	t, done := newTalk(ctx, s)
	defer done()
	r := &receiver{talk: t, into: into, o: o, most: noLimit}
	if o.MaxBytes > 0 {
		r.most = o.MaxBytes
	}
	if r.o.MaxItems <= 0 {
		r.o.MaxItems = defaultMaxItems
	}
	err := r.run()
	r.log("files received", err)
	return r.stats, err
}

func (r *receiver) run() error {
	final, err := r.c.Int()
	if err == nil && final == 0 && !r.c.More() {
		return r.refused()
	}
	if err == nil {
		_, err = r.c.Ad(cedar.AdOptions{}) // SandboxSize, for a queue that there is not here
	}
	if err == nil {
		err = r.c.EndOfMessage()
	}
	if err != nil {
		return r.broken("beginning the transfer", err)
	}
	r.stats.Final = final != 0
	for {
		cmd, err := r.readInt()
		if err != nil {
			return r.broken("waiting for a file", err)
		}
		if cmd == cmdFinished {
			break
		}
		if err := r.item(cmd); err != nil {
			return err
		}
	}
	for i := len(r.modes) - 1; i >= 0; i-- {
		if err := r.into.Chmod(r.modes[i].name, r.modes[i].mode); err != nil {
			r.failWrite(r.modes[i].name, err)
		}
	}
	if r.first == nil && len(r.urls) > 0 {
		if err := r.fetch(); err != nil {
			return err
		}
	}
	return r.finish()
}

// finish exchanges the final reports.
func (r *receiver) finish() error {
	theirs := r.readAck()
	if err := r.ctx.Err(); err != nil {
		return context.Cause(r.ctx)
	}
	if theirs != nil {
		mine := fmt.Sprintf("%s failed to receive file(s) from %s", r.Name, r.peer())
		if theirs.Broken {
			return r.broken("waiting for the final report", theirs.Err)
		}
		report := *theirs
		report.Reason = mine
		r.stats.failed = true
		_ = r.sendAck(&report) // the failure that counts is known already
		theirs.Reason = oneLine(theirs.Reason + "; " + mine)
		if r.first != nil {
			theirs.Err = r.first
		}
		return theirs
	}
	if r.first != nil {
		r.stats.failed = true
		_ = r.sendAck(r.first) // as above
		return r.first
	}
	if err := r.sendAck(nil); err != nil {
		return r.broken("sending the final report", err)
	}
	return nil
}

// item receives what follows a transfer command. An error is the end of the
// conversation; what fails here alone is noted.
func (r *receiver) item(cmd int64) error {
	name, err := r.c.String()
	if err == nil {
		err = r.c.EndOfMessage()
	}
	if err != nil {
		return r.broken("receiving a file's name", err)
	}
	if r.items++; r.items > r.o.MaxItems {
		return r.giveUp(&WireFailure{
			HoldCode: HoldDownload, HoldSubcode: int(cedar.ENOSPC),
			Reason: fmt.Sprintf("%s at %s - |Error: more than %d files and directories", r.Name, r.Address, r.o.MaxItems),
		})
	}
	to, legal := name, cmd == cmdOther
	if !legal {
		legal = legalName(name)
		if legal && r.o.Rename != nil {
			to = r.o.Rename(name)
			legal = legalName(to)
		}
		to = filepath.FromSlash(to)
	}
	if !legal {
		r.fail(&WireFailure{
			HoldCode: HoldDownload, HoldSubcode: subNotPermitted,
			Reason: oneLine(fmt.Sprintf("%s at %s - |Error: Attempt to write to illegal sandbox path: %.200s", r.Name, r.Address, name)),
		})
	}
	if !r.meGoes {
		if err := r.giveGoAhead(&r.most); err != nil {
			return err
		}
	}
	if !r.peerGoes {
		if err := r.awaitGoAhead(); err != nil {
			return err
		}
	}
	began, before := time.Now(), r.stats.Bytes
	if err := r.content(cmd, name, to, legal); err != nil {
		return err
	}
	if cmd != cmdURL {
		r.note(name, began, r.stats.Bytes-before)
	}
	return nil
}

// content receives what a transfer command announced as name.
func (r *receiver) content(cmd int64, name, to string, legal bool) error {
	switch cmd {
	case cmdFile, cmdEncrypt, cmdDontCrypt:
		if cmd != cmdFile {
			r.stats.uncounted++
		}
		return r.file(to, legal, r.o.Executable != "" && name == path.Base(filepath.ToSlash(r.o.Executable)))
	case cmdMkdir:
		return r.mkdir(to, legal)
	case cmdURL:
		return r.url(to, legal)
	case cmdOther:
		return r.other()
	case cmdX509:
		return r.proxy(to, legal)
	}
	return r.giveUp(&WireFailure{
		HoldCode: HoldDownload, HoldSubcode: int(cedar.EINVAL),
		Reason: fmt.Sprintf("%s at %s - |Error: transfer command %d is not known", r.Name, r.Address, cmd),
	})
}

// giveUp ends a conversation that cannot go on, and says why for what it is
// worth: the other end may still be sending.
func (r *receiver) giveUp(f *WireFailure) error {
	r.fail(f)
	r.stats.failed = true
	_ = r.sendAck(r.first)
	r.first.Broken = true
	return r.first
}

// path is what a name is called in messages.
func (r *receiver) path(name string) string { return filepath.Join(r.into.Name(), name) }

// failWrite notes that name could not be written.
func (r *receiver) failWrite(name string, err error) {
	no, why := errnoOf(r.Errno, err)
	r.fail(&WireFailure{
		HoldCode: HoldDownload, HoldSubcode: no, Err: err,
		Reason: oneLine(fmt.Sprintf("%s at %s - |Error: writing to file %s: (errno %d) %s", r.Name, r.Address, r.path(name), no, why)),
	})
}

// legalName reports whether a name from the other end may be made below the
// root at all.
func legalName(name string) bool {
	if len(name) > maxName || strings.ContainsAny(name, "\x00\n\r") || path.IsAbs(name) {
		return false
	}
	local := filepath.FromSlash(name)
	if !filepath.IsLocal(local) || filepath.Clean(local) == "." {
		return false
	}
	for part := range strings.SplitSeq(filepath.ToSlash(local), "/") {
		if part == ".." {
			return false
		}
	}
	return true
}

// dataSink counts and writes what arrives, and remembers its own failure.
type dataSink struct {
	w        io.Writer
	progress func(int64)
	n        int64
	err      error
}

func (d *dataSink) Write(b []byte) (int, error) {
	if d.progress != nil {
		d.progress(int64(len(b)))
	}
	n, err := d.w.Write(b)
	d.n += int64(n)
	d.err = err
	return n, err
}

func (r *receiver) file(name string, legal, executable bool) error {
	mode, missing, err := r.c.FileMode()
	if err == nil {
		err = r.c.EndOfMessage()
	}
	if err != nil {
		return r.broken("receiving a file's mode", err)
	}
	into := dataSink{w: io.Discard, progress: r.Progress}
	var f sink
	if legal && !missing && r.first == nil {
		f, err = r.open(name)
		if err != nil {
			r.failWrite(name, err)
		} else {
			into.w = f
		}
	}
	limit := int64(noLimit)
	if r.most >= 0 {
		limit = max(0, r.most+sizeSlack-r.stats.Bytes)
	}
	n, err := r.c.GetFile(r.ctx, &into, limit)
	if err == nil || into.err != nil && !r.c.Broken() {
		err = r.c.EndOfMessage()
	}
	if f != nil {
		r.close(f, name, mode, executable, into.err, err == nil)
	}
	if err != nil {
		if errs.Is(err, errs.Exhausted) && limit >= 0 {
			return r.giveUp(&WireFailure{
				HoldCode: HoldOutputSize, Err: err,
				Reason: fmt.Sprintf("%s at %s - |Error: receiving file %s: max total download bytes exceeded (max=%d MB)",
					r.Name, r.Address, r.path(name), r.most>>20),
			})
		}
		return r.broken("receiving file "+r.path(name), err)
	}
	r.stats.Bytes += n
	r.stats.Files++ // one that was missing too, as HTCondor counts
	return nil
}

// open makes a new file, in place of one that is there.
func (r *receiver) open(name string) (sink, error) {
	if r.o.create != nil {
		return r.o.create(name)
	}
	const create = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := r.into.OpenFile(name, create, 0o600)
	if errors.Is(err, fs.ErrExist) { // never through a link
		if err = r.into.Remove(name); err == nil {
			f, err = r.into.OpenFile(name, create, 0o600)
		}
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// close gives a received file its mode and owner. One that did not arrive
// whole, or could not be written to its end, is removed.
func (r *receiver) close(f sink, name string, mode fs.FileMode, executable bool, err error, whole bool) {
	if !whole && err == nil {
		_ = f.Close()
		if r.o.create == nil {
			_ = r.into.Remove(name) // half a file is worse than none
		}
		return
	}
	switch {
	case executable:
		mode = 0o755
	case mode == 0:
		mode = 0o644
	}
	if err == nil {
		err = f.Chmod(mode)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil && r.o.Owner != nil {
		err = r.o.Owner(r.into, name, false)
	}
	if err == nil {
		return
	}
	if r.o.create == nil {
		_ = r.into.Remove(name) // as above
	}
	r.failWrite(name, err)
}

func (r *receiver) mkdir(name string, legal bool) error {
	mode, _, err := r.c.FileMode()
	if err == nil {
		err = r.c.EndOfMessage()
	}
	if err != nil {
		return r.broken("receiving a directory's mode", err)
	}
	if !legal || r.first != nil {
		return nil
	}
	if mode == 0 {
		mode = 0o700
	}
	if err := r.makeDir(name, mode); err != nil {
		no, why := errnoOf(r.Errno, err)
		r.fail(&WireFailure{
			HoldCode: HoldDownload, HoldSubcode: no, Err: err,
			Reason: oneLine(fmt.Sprintf("%s at %s failed to create directory %s: %s (errno %d)", r.Name, r.Address, r.path(name), why, no)),
		})
	}
	return nil
}

func (r *receiver) makeDir(name string, mode fs.FileMode) error {
	err := r.into.Mkdir(name, mode|0o700)
	if errors.Is(err, fs.ErrExist) {
		info, serr := r.into.Lstat(name)
		if serr == nil && info.IsDir() {
			return nil // files may be added to one that is there
		}
		if err = r.into.Remove(name); err == nil {
			err = r.into.Mkdir(name, mode|0o700)
		}
	}
	if err != nil {
		return err
	}
	if mode&0o700 != 0o700 {
		if len(r.modes) >= maxURLs {
			return errors.New("too many directories that cannot be written to")
		}
		r.modes = append(r.modes, dirMode{name, mode})
	} else if mode&^0o755 != 0 { // the umask took these away
		err = r.into.Chmod(name, mode)
	}
	if err == nil && r.o.Owner != nil {
		err = r.o.Owner(r.into, name, true)
	}
	return err
}

// url takes note of a file that this end must fetch itself.
func (r *receiver) url(name string, legal bool) error {
	address, err := r.c.String()
	if err == nil {
		err = r.c.EndOfMessage()
	}
	if err != nil {
		return r.broken("receiving a URL", err)
	}
	switch {
	case !legal || r.first != nil:
	case len(r.urls) >= maxURLs:
		return r.giveUp(&WireFailure{
			HoldCode: HoldDownload, HoldSubcode: int(cedar.EINVAL),
			Reason: fmt.Sprintf("%s at %s - |Error: more than %d URLs", r.Name, r.Address, maxURLs),
		})
	case !r.o.Plugins.enabled():
		r.fail(&WireFailure{
			HoldCode: HoldDownload, HoldSubcode: int(cedar.ENOSYS),
			Reason: oneLine(fmt.Sprintf("%s at %s - |Error: receiving file %s: URL transfers are disabled by configuration.  Cannot transfer URL file = %s .",
				r.Name, r.Address, r.path(name), safeURL(address))),
		})
	case r.texts+len(address) > maxURLText:
		return r.giveUp(&WireFailure{
			HoldCode: HoldDownload, HoldSubcode: int(cedar.EINVAL),
			Reason: fmt.Sprintf("%s at %s - |Error: URLs of more than %d bytes", r.Name, r.Address, maxURLText),
		})
	default:
		r.texts += len(address)
		r.urls = append(r.urls, urlItem{URL: address, Name: name})
	}
	return nil
}

// other handles what is said by an ad.
func (r *receiver) other() error {
	ad, err := r.readAd()
	if err != nil {
		return r.broken("receiving the ad of a file", err)
	}
	switch sub, _ := ad.EvalInt("SubCommand", nil); sub {
	case subUploadURL:
		if size := len(ad.Text(classad.Old)); len(r.stats.Reported) < maxURLs && r.told+size <= maxURLText {
			r.told += size
			r.stats.Reported = append(r.stats.Reported, ad)
		}
		if result, ok := ad.EvalInt("Result", nil); !ok || result != 0 {
			checkpoint, _ := ad.EvalBool("CheckpointURL", nil)
			r.fail(&WireFailure{
				HoldCode: HoldDownload, HoldSubcode: int(result), Retry: checkpoint,
				Reason: oneLine(fmt.Sprintf("%s at %s failed due to remote transfer hook error: %s", r.Name, r.Address, r.path(text(ad, "Filename")))),
			})
		}
	case subReuse: // nothing is kept here from job to job
		reply := classad.NewAd()
		reply.SetInt("Result", 1)
		if err := r.putAd(reply); err != nil {
			return r.broken("declining to reuse files", err)
		}
	case subSignURLs: // as a shadow without keys
		reply := classad.NewAd()
		if list, ok := ad.Lookup("SignList"); ok {
			reply.Set("SignList", list)
		}
		if err := r.putAd(reply); err != nil {
			return r.broken("returning URLs", err)
		}
	}
	return nil
}

// safeURL is a URL without what may be a secret.
func safeURL(u string) string {
	if i := strings.IndexByte(u, '?'); i >= 0 {
		u = u[:i] + "?..."
	}
	if scheme, rest, ok := strings.Cut(u, "://"); ok {
		host, _, _ := strings.Cut(rest, "/")
		if i := strings.LastIndexByte(host, '@'); i >= 0 {
			u = scheme + "://" + rest[i+1:]
		}
	}
	return string(bytes.ToValidUTF8([]byte(u), []byte("?")))
}
