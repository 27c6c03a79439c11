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
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
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
	if class != classInput {
		o.retry = false // the job's output waits here: its subcode has it started again elsewhere
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
		o.text += "|" + p.silent.text // as HTCondor, which has one stack of errors
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
		p.note(ad)
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
		one.Bytes += min(n, math.MaxInt64-one.Bytes) // a plugin may say what it likes
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
	exit, spec := p.start(ctx, &o, b, args)
	if o.result == pluginNotRun {
		return o, exit
	}
	p.logExit(label, o.result, exit, spec.Timeout)
	p.results(root, &o, exit, label, out, spec.Timeout)
	if o.result == pluginWell { // what is left tells why the others failed
		_ = root.Remove(in)
		_ = root.Remove(out)
	}
	return o, exit
}

// start runs the program of a plugin and notes how it ended.
func (p *Plugins) start(ctx context.Context, o *outcome, b batch, args []string) (PluginExit, PluginSpec) {
	one := b.plugin
	spec := PluginSpec{Path: one.Path, Dir: p.Scratch, Env: p.environment(one), FromJob: one.FromJob, Timeout: p.Lifetime}
	if one.FromJob {
		spec.Path = filepath.Join(p.Scratch, one.Path)
	}
	spec.Args = append([]string{spec.Path}, args...)
	if spec.Timeout <= 0 {
		spec.Timeout = pluginLifetime
	}
	p.logStart(&spec, b)
	exit, err := p.Run(ctx, spec)
	switch {
	case err != nil:
		o.result, o.subcode, o.retry = pluginNotRun, subPluginNotRun, true
		o.add("FILETRANSFER: Failed to execute %s: %s", one.Path, cause(err))
		p.say(catAlways, "FILETRANSFER: Failed to execute %s: %s", one.Path, cause(err))
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
		file := p.local(item.Name)
		args := []string{item.URL, file}
		if upload {
			args = []string{file, item.URL}
		}
		var spec PluginSpec
		exit, spec = p.start(ctx, &o, b, args)
		if o.result == pluginNotRun {
			return o, exit
		}
		p.logExit(b.plugin.Path, o.result, exit, spec.Timeout)
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
		o.add("|Error: file transfer plugin %s exited with code %d, unable to open output file %s", label, exit.Code, p.local(out))
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
		o.add("|Error: file transfer plugin %s exited (%s %d), no valid classads in output file %s", label, how, n, p.local(out))
		o.result = pluginError
		if exit.Signal == 0 { // else that tells more
			o.subcode = subPluginNoResult
		}
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
