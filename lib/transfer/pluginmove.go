// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// within returns p for a scratch directory and one end of a transfer, with its
// programs asked.
func (p *Plugins) within(ctx context.Context, root *os.Root, owner func(*os.Root, string, bool) error, t *talk) *Plugins {
	q := *p
	q.errno, q.log, q.record = t.Errno, t.Log, t.Record
	_ = q.Load(ctx) // what is of no use is told when something fails
	if q.Job != nil && !slices.ContainsFunc(q.List, func(one Plugin) bool { return one.FromJob }) {
		own, err := JobPlugins(q.Job)
		if err != nil {
			q.silent.add("%v", err)
		}
		q.List = append(slices.Clip(q.List), own...)
	}
	if q.Scratch == "" {
		q.Scratch = root.Name()
	}
	if q.Owner == nil {
		q.Owner = owner
	}
	return &q
}

// failure is what a batch's outcome means for the transfer.
func (o outcome) failure(code int) *WireFailure {
	return &WireFailure{HoldCode: code, HoldSubcode: o.subcode, Reason: o.text, Retry: o.retry}
}

// noPlugin says that nothing here knows a method.
func (p *Plugins) noPlugin(item *urlItem) string {
	o := outcome{text: p.silent.text}
	o.add("FILETRANSFER: plugin for type %s not found!", methodOf(item.URL))
	p.say(catAlways, "FILETRANSFER: plugin for type %s not found!", methodOf(item.URL))
	return o.text
}

// fetch gets the files that were announced by URL. An error is the end of the
// conversation.
func (r *receiver) fetch() error {
	p := r.o.Plugins.within(r.ctx, r.into, r.o.Owner, r.talk)
	batches, unknown := p.batches(r.urls)
	if unknown != nil {
		r.fail(&WireFailure{
			HoldCode: HoldDownload, HoldSubcode: subPluginUnknown,
			Reason: fmt.Sprintf("%s at %s - |Error: receiving file %s: %s", r.Name, r.Address, r.path(unknown.Name), p.noPlugin(unknown)),
		})
		r.note(unknown.Name, time.Now(), 0)
		return nil
	}
	for _, b := range batches {
		o := p.transfer(r.ctx, r.into, b, classInput, r.Progress, &r.stats)
		if err := r.ctx.Err(); err != nil {
			return context.Cause(r.ctx)
		}
		if o.result != pluginWell || o.text != "" {
			p.say(catAlways, "FILETRANSFER: Multiple file download failed: %s", o.text)
			r.fail(o.failure(HoldDownload))
			continue
		}
		for _, item := range b.items {
			r.fetched(item.Name)
		}
	}
	return nil
}

// fetched gives a file that a plugin made its mode and owner. There need be none:
// a plugin that says that all is well is believed, for it may have unpacked what
// it fetched, or fetched nothing because all was there.
func (r *receiver) fetched(name string) {
	info, err := r.into.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil && r.o.Owner != nil { // only its owner may change it then
		err = r.o.Owner(r.into, name, info.IsDir())
	}
	if err == nil && info.Mode().IsRegular() && r.o.Executable != "" && filepath.Base(name) == filepath.Base(r.o.Executable) {
		err = r.into.Chmod(name, 0o755)
	}
	if err != nil {
		r.failWrite(name, err)
	}
}

// store stores the first of entries at its URL, and with it those that the
// same plugin stores; it returns how many.
func (u *sending) store(entries []entry) (int, error) {
	first := entries[0]
	if err := u.header(cmdOther, first.name); err != nil {
		return 1, err
	}
	var items []urlItem
	p := u.o.Plugins
	one, builtin, known := Plugin{}, false, false
	if p.enabled() {
		p = p.within(u.ctx, u.from, nil, u.talk)
		p.outside = u.o.Outside
		one, builtin, known = p.find(methodOf(first.dest))
	}
	for _, e := range entries {
		if e.dest == "" || e.remote || !e.pluggable(p, one) {
			break
		}
		other, _, ok := p.findIf(known, methodOf(e.dest))
		if len(items) > 0 && (!ok || other.Path != one.Path) {
			break
		}
		items = append(items, urlItem{URL: e.dest, Name: e.source})
	}
	class := classOutput
	if u.p.Checkpoint != nil {
		class = classCheckpoint
	}
	if len(items) == 0 && !known && first.absent() { // that there is no plugin comes first
		items = []urlItem{{URL: first.dest, Name: first.source}}
	}
	var o outcome
	switch {
	case len(items) == 0:
		items = []urlItem{{URL: first.dest, Name: first.source}}
		err := first.err
		switch {
		case first.link:
			err = errIsDirectory
		case err == nil:
			err = errNotPermitted // of a file outside, with a plugin that has more rights than the job
		}
		no, why := errnoOf(u.Errno, err)
		o.result, o.subcode = pluginError, no
		o.add("|Error: reading from file %s: (errno %d) %s", u.path(first.source), no, why)
	case !p.enabled():
		o.result, o.subcode = pluginError, subPluginBroken
		o.add("URL transfers are disabled by configuration.  Cannot transfer URL file = %s .", safeURL(first.dest))
	case !known:
		o.result, o.subcode = pluginError, subPluginUnknown
		o.text = p.noPlugin(&items[0])
	default:
		o = p.transfer(u.ctx, u.from, batch{plugin: one, builtin: builtin, items: items}, class, u.Progress, &u.stats)
		if err := u.ctx.Err(); err != nil {
			return 1, context.Cause(u.ctx)
		}
	}
	if o.result != pluginWell || o.text != "" && !u.theirsToJudge(o) {
		f := o.failure(HoldUpload)
		// The words of HTCondor: what a plugin that takes many files says stands
		// behind the file that failed before, which there is none of; one that takes
		// them one by one is told of with its file.
		switch {
		case first.err != nil && !first.absent() || first.link:
		case known && (builtin || one.Multi):
			f.Reason = ": " + f.Reason
		default:
			f.Reason = "|Error: sending file " + u.path(first.source) + ": " + f.Reason
			u.failures++
		}
		u.fail(f)
	}
	return len(items), u.report(items, entries, o)
}

// absent reports whether the file of an entry is not there.
func (e entry) absent() bool { return e.err != nil && errors.Is(e.err, fs.ErrNotExist) }

// pluggable reports whether an entry is given to a plugin to be stored: a plain
// file, or one that is not there, of which the plugin says what that means. A
// file outside is given only to a plugin that has no more rights than the job.
func (e entry) pluggable(p *Plugins, one Plugin) bool {
	switch {
	case e.dir, e.link, e.err != nil && !e.absent():
		return false
	case filepath.IsAbs(e.source) && one.Path != "" && !one.FromJob:
		return !p.Privileged
	}
	return true
}

// findIf is find for a plugin set that is in use.
func (p *Plugins) findIf(inUse bool, method string) (Plugin, bool, bool) {
	if !inUse {
		return Plugin{}, false, false
	}
	return p.find(method)
}

// report tells the other end what became of items, whose first one was
// announced already.
func (u *sending) report(items []urlItem, entries []entry, o outcome) error {
	byURL := map[string]*classad.Ad{}
	for _, ad := range o.ads {
		byURL[text(ad, "TransferUrl")] = ad
	}
	for i, item := range items {
		if i > 0 {
			if err := u.header(cmdOther, entries[i].name); err != nil {
				return err
			}
		}
		ad := classad.NewAd()
		ad.SetInt("ProtocolVersion", 1)
		ad.SetInt("Command", cmdOther)
		ad.SetInt("SubCommand", subUploadURL)
		if u.p.Checkpoint != nil {
			ad.SetBool("CheckpointURL", true)
		}
		ad.SetString("Filename", path.Base(item.Name))
		ad.SetString("OutputDestination", item.URL)
		result := byURL[item.URL]
		// A plugin that is done well is believed where it reports less than it was
		// given, or calls a URL by another name.
		well, why := o.result == pluginWell && o.text == "", o.text
		if result != nil {
			well, _ = result.EvalBool("TransferSuccess", nil)
			if s := text(result, "TransferError"); s != "" {
				why = s
			}
		}
		if well {
			ad.SetInt("Result", 0)
		} else {
			ad.SetInt("Result", 1)
			ad.SetString("ErrorString", oneLine(why))
		}
		if err := u.putAd(ad); err != nil {
			return u.broken("reporting a file that was stored", err)
		}
	}
	return nil
}
