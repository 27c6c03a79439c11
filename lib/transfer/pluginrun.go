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
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
)

// What becomes of one run of a plugin, as invocation ads number it.
const (
	pluginWell     = 0
	pluginError    = 1
	pluginTimedOut = 3
	pluginNotRun   = 4
)

// What a run of a plugin is for, as invocation ads number it.
const (
	classInput      = 1
	classOutput     = 2
	classCheckpoint = 3
)

const (
	maxPluginOutput = 16 << 20  // bytes of result ads
	pluginRoom      = 16 * 1204 // bytes of the output file that are taken in advance
	pluginLifetime  = 20 * time.Hour
)

// outcome is what came of a batch.
type outcome struct {
	result  int
	subcode int
	retry   bool
	text    string        // what went wrong
	ads     []*classad.Ad // results, in the order of the plugin
}

// add notes one thing that went wrong, in the form that stacks of errors have:
// the last one first.
func (o *outcome) add(format string, args ...any) {
	text := "FILETRANSFER:1:" + oneLine(fmt.Sprintf(format, args...))
	if o.text != "" {
		text += "|" + o.text
	}
	o.text = text
}

// transfer moves a batch, and counts it in stats.
func (p *Plugins) transfer(ctx context.Context, root *os.Root, b batch, class int, progress func(int64), stats *Stats) outcome {
	began := time.Now()
	var o outcome
	var exit PluginExit
	label := b.plugin.Path
	if b.builtin {
		label = "built-in"
		o = p.builtin(ctx, root, b, class != classInput, progress)
		if o.result != pluginWell {
			exit.Code = 1
		}
	} else {
		o, exit = p.external(ctx, root, b, class != classInput)
	}
	invocation := classad.NewAd()
	invocation.SetInt("TransferClass", int64(class))
	invocation.SetString("PluginBasename", path.Base(filepath.ToSlash(label)))
	var schemes []string
	for _, item := range b.items {
		schemes = append(schemes, methodOf(item.URL))
	}
	slices.Sort(schemes)
	invocation.SetString("Schemes", strings.Join(slices.Compact(schemes), ","))
	invocation.SetInt("Result", int64(o.result))
	invocation.SetInt("DurationInSeconds", int64(time.Since(began)/time.Second))
	invocation.SetBool("ExitBySignal", exit.Signal != 0)
	if exit.Signal != 0 {
		invocation.SetInt("ExitSignal", int64(exit.Signal))
	} else {
		invocation.SetInt("ExitCode", int64(exit.Code))
	}
	if o.text != "" && p.silent.text != "" {
		o.text += "|" + p.silent.text // as the original, which has one stack of errors
	}
	stats.PluginResults = append(stats.PluginResults, invocation)
	for _, ad := range o.ads {
		ad.Delete("PluginExitCode")
		ad.Delete("PluginExitSignal")
		if exit.Signal != 0 {
			ad.SetInt("PluginExitSignal", int64(exit.Signal))
		} else {
			ad.SetInt("PluginExitCode", int64(exit.Code))
		}
		stats.count(ad)
		stats.PluginResults = append(stats.PluginResults, ad)
	}
	return o
}

// count adds one result of a plugin.
func (s *Stats) count(ad *classad.Ad) {
	protocol := strings.ToUpper(text(ad, "TransferProtocol"))
	if protocol == "" || len(protocol) > 32 || strings.ContainsFunc(protocol, func(r rune) bool { return r < '0' || r > '9' && r < 'A' || r > 'Z' }) ||
		protocol[0] <= '9' || protocol == "CEDAR" {
		return
	}
	if s.Protocols == nil {
		s.Protocols = map[string]ProtocolStats{}
	}
	one := s.Protocols[protocol]
	one.Files++
	if n, ok := ad.EvalInt("TransferTotalBytes", nil); ok && n > 0 {
		one.Bytes += n
	}
	s.Protocols[protocol] = one
}

// external runs a plugin's program for a batch.
func (p *Plugins) external(ctx context.Context, root *os.Root, b batch, upload bool) (outcome, PluginExit) {
	if !b.plugin.Multi {
		return p.oneByOne(ctx, root, b, upload)
	}
	var o outcome
	label := b.plugin.Path
	base := "." + filepath.Base(label)
	in, out := base+".in", base+".out"
	fail := func(err error) (outcome, PluginExit) {
		no, why := errnoOf(p.errno, err)
		o.result, o.subcode = pluginError, no
		o.add("|Error: preparing file transfer plugin %s: (errno %d) %s", label, no, why)
		return o, PluginExit{}
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{in, p.list(b)}, {out, bytes.Repeat([]byte(" "), pluginRoom)}} {
		if err := writeNew(root, f.name, f.text, 0o644); err != nil {
			return fail(err)
		}
		if p.Owner != nil {
			if err := p.Owner(root, f.name, false); err != nil {
				return fail(err)
			}
		}
	}
	dir := p.Scratch
	args := []string{"-infile", filepath.Join(dir, in), "-outfile", filepath.Join(dir, out)}
	if upload {
		args = append(args, "-upload")
	}
	exit, spec := p.start(ctx, &o, b.plugin, args)
	if o.result == pluginNotRun {
		return o, exit
	}
	p.results(root, &o, exit, label, out, spec.Timeout)
	if o.result == pluginWell { // what is left tells why the others failed
		_ = root.Remove(in)
		_ = root.Remove(out)
	}
	return o, exit
}

// start runs the program of a plugin and notes how it ended.
func (p *Plugins) start(ctx context.Context, o *outcome, one Plugin, args []string) (PluginExit, PluginSpec) {
	spec := PluginSpec{Path: one.Path, Dir: p.Scratch, Env: p.environment(one), FromJob: one.FromJob, Timeout: p.Lifetime}
	if one.FromJob {
		spec.Path = filepath.Join(p.Scratch, one.Path)
	}
	spec.Args = append([]string{spec.Path}, args...)
	if spec.Timeout <= 0 {
		spec.Timeout = pluginLifetime
	}
	exit, err := p.Run(ctx, spec)
	switch {
	case err != nil:
		o.result, o.subcode, o.retry = pluginNotRun, subPluginNotRun, true
		o.add("FILETRANSFER: Failed to execute %s: %s", one.Path, cause(err))
	case exit.TimedOut:
		exit.Code = subTimeout
		o.result, o.subcode = pluginTimedOut, subTimeout
	case exit.Signal != 0:
		o.result, o.subcode = pluginError, exit.Signal
	case exit.Code != 0:
		o.result, o.subcode = pluginError, exit.Code<<8
	}
	return exit, spec
}

// oneByOne runs a plugin of the old kind: source and destination are its
// arguments, and what it prints are attributes of the result. It stops at the
// first failure.
func (p *Plugins) oneByOne(ctx context.Context, root *os.Root, b batch, upload bool) (o outcome, exit PluginExit) {
	for _, item := range b.items {
		file := filepath.Join(p.Scratch, filepath.FromSlash(item.Name))
		args := []string{item.URL, file}
		if upload {
			args = []string{file, item.URL}
		}
		var spec PluginSpec
		exit, spec = p.start(ctx, &o, b.plugin, args)
		if o.result == pluginNotRun {
			return o, exit
		}
		ad := lines(exit.Output)
		ad.SetString("TransferUrl", item.URL)
		ad.SetString("TransferFileName", item.Name)
		ad.SetBool("TransferSuccess", o.result == pluginWell)
		if _, ok := ad.Lookup("TransferProtocol"); !ok {
			ad.SetString("TransferProtocol", methodOf(item.URL))
		}
		if info, err := root.Stat(filepath.FromSlash(item.Name)); err == nil && o.result == pluginWell {
			ad.SetInt("TransferTotalBytes", info.Size())
		}
		o.ads = append(o.ads, ad)
		switch {
		case o.result == pluginWell:
			continue
		case o.result == pluginTimedOut:
			o.add("File transfer plugin %s timed out after %d seconds.", b.plugin.Path, int(spec.Timeout/time.Second))
		default:
			o.judge(ad, exit.Code, b.plugin.Path)
		}
		return o, exit
	}
	return o, exit
}

// results reads what the program wrote.
func (p *Plugins) results(root *os.Root, o *outcome, exit PluginExit, label, out string, timeout time.Duration) {
	text, err := readMost(root, out, maxPluginOutput)
	if err != nil {
		o.add("|Error: file transfer plugin %s exited with code %d, unable to open output file %s", label, exit.Code, out)
		if o.result == pluginWell {
			o.result = pluginError
		}
		return
	}
	o.ads = parseAds(text)
	for _, ad := range o.ads {
		o.judge(ad, exit.Code, label)
	}
	switch {
	case len(o.ads) == 0 && !exit.TimedOut:
		how, n := "exit code", exit.Code
		if exit.Signal != 0 {
			how, n = "signal", exit.Signal
		}
		o.add("|Error: file transfer plugin %s exited (%s %d), no valid classads in output file %s", label, how, n, out)
		o.result, o.subcode = pluginError, subPluginNoResult
	case o.result == pluginTimedOut && o.text == "":
		o.add("File transfer plugin %s timed out after %d seconds.", label, int(timeout/time.Second))
	case o.result != pluginWell && o.text == "":
		o.add("File transfer plugin %s failed unexpectedly with exit code %d, did not report a TransferError message.", label, exit.Code)
	}
}

// judge looks at one result.
func (o *outcome) judge(ad *classad.Ad, code int, label string) {
	well, ok := ad.EvalBool("TransferSuccess", nil)
	where := safeURL(text(ad, "TransferUrl"))
	switch {
	case !ok:
		o.add("non-zero exit (%d) from %s. |Error: File transfer plugin %s exited without producing a TransferSuccess result  (%s)|", code, label, label, where)
	case !well:
		why := text(ad, "TransferError")
		if why == "" {
			why = "File transfer plugin " + label + " exited unexpectedly without producing an error message "
		}
		o.add("non-zero exit (%d) from %s. |Error: %s ( URL file = %s )|", code, label, why, where)
	}
}

// list is what a plugin is to move: an ad for each file, before them what the
// job has to say to plugins.
func (p *Plugins) list(b batch) []byte {
	var out []byte
	dir := p.Scratch
	put := func(ad *classad.Ad) { out = append(ad.AppendText(out, classad.New), '\n') }
	shared := classad.NewAd()
	if p.Job != nil && b.plugin.Protocol >= 2 {
		names := []string{"PluginData"}
		for _, item := range b.items {
			if n := methodOf(item.URL) + "_PluginData"; !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
		for _, name := range names {
			e, ok := p.Job.Lookup(name)
			if !ok {
				continue
			}
			if b.plugin.Protocol < 4 {
				shared.Set(name, e)
				continue
			}
			ad := classad.NewAd()
			if scheme, ok := strings.CutSuffix(name, "_PluginData"); ok {
				ad.SetString("Protocol", scheme)
			}
			ad.Set(name, e)
			put(ad)
		}
	}
	for _, item := range b.items {
		ad := classad.NewAd()
		ad.SetString("Url", item.URL)
		ad.SetString("LocalFileName", filepath.Join(dir, filepath.FromSlash(item.Name)))
		ad.Update(shared)
		put(ad)
	}
	return out
}

// environment is what a plugin finds beside what its runner has.
func (p *Plugins) environment(one Plugin) []string {
	env := slices.Clone(p.Env)
	prefix := one.name() + "_"
	for _, kv := range p.JobEnv {
		if len(kv) >= len(prefix) && strings.EqualFold(kv[:len(prefix)], prefix) {
			env = append(env, kv)
		}
	}
	return env
}

// parseAds reads the ads that a plugin wrote: in brackets, one after the
// other, with anything between them. What is no ad is passed over.
func parseAds(text []byte) []*classad.Ad {
	var all []*classad.Ad
	for len(all) < maxURLs {
		at := bytes.IndexByte(text, '[')
		if at < 0 {
			break
		}
		text = text[at:]
		end := bracket(text)
		if end < 0 {
			break
		}
		if ad, err := classad.ParseAd(string(text[:end]), classad.New); err == nil && ad.Len() > 0 {
			all = append(all, ad)
		}
		text = text[end:]
	}
	return all
}

// bracket returns where the bracket that text begins with is closed, outside
// of strings; -1 if nowhere.
func bracket(text []byte) int {
	depth := 0
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '[':
			depth++
		case c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// writeNew writes a file in place of whatever is there.
func writeNew(root *os.Root, name string, text []byte, mode fs.FileMode) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// readMost reads a file of at most limit bytes.
func readMost(root *os.Root, name string, limit int64) ([]byte, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // to open a pipe is to wait for who writes to it
		return nil, fmt.Errorf("no plain file: %w", fs.ErrInvalid)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("no plain file of at most %d bytes: %w", limit, errors.Join(err, fs.ErrInvalid))
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// within returns p for a scratch directory, with its programs asked.
func (p *Plugins) within(ctx context.Context, root *os.Root, owner func(*os.Root, string, bool) error, system host.Errno) *Plugins {
	q := *p
	q.errno = system
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
	return o.text
}

// fetch gets the files that were announced by URL. An error is the end of the
// conversation.
func (r *receiver) fetch() error {
	p := r.o.Plugins.within(r.ctx, r.into, r.o.Owner, r.Errno)
	batches, unknown := p.batches(r.urls)
	if unknown != nil {
		r.fail(&WireFailure{
			HoldCode: HoldDownload, HoldSubcode: subPluginUnknown,
			Reason: fmt.Sprintf("%s at %s - |Error: receiving file %s: %s", r.Name, r.Address, r.path(unknown.Name), p.noPlugin(unknown)),
		})
		return nil
	}
	for _, b := range batches {
		o := p.transfer(r.ctx, r.into, b, classInput, r.Progress, &r.stats)
		if err := r.ctx.Err(); err != nil {
			return context.Cause(r.ctx)
		}
		if o.result != pluginWell || o.text != "" {
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
		p = p.within(u.ctx, u.from, nil, u.Errno)
		one, builtin, known = p.find(methodOf(first.dest))
	}
	for _, e := range entries {
		if e.dest == "" || e.remote || e.dir || e.link || e.err != nil {
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
	var o outcome
	switch {
	case len(items) == 0:
		items = []urlItem{{URL: first.dest, Name: first.source}}
		err := first.err
		if first.link {
			err = errIsDirectory
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
		u.fail(o.failure(HoldUpload))
	}
	return len(items), u.report(items, entries, o)
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
		well, why := false, o.text
		if result != nil {
			well, _ = result.EvalBool("TransferSuccess", nil)
			if s := text(result, "TransferError"); s != "" {
				why = s
			}
		} else if why == "" {
			why = "the plugin reported nothing for this file"
			u.fail(&WireFailure{HoldCode: HoldUpload, HoldSubcode: subPluginNoResult, Reason: "|Error: " + why + ": " + safeURL(item.URL)})
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
