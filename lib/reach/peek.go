// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/classad"
)

// mostPeeked bounds the files of one request.
const mostPeeked = 64

// peekedFile is one file of a request: what of it is sent.
type peekedFile struct {
	name   string        // relative to the scratch directory
	label  *classad.Expr // what the answer calls it: 0, 1 or a name
	offset int64         // asked for; negative is the end, as far as the bytes go
	file   *os.File      // nil: it cannot be read
	from   int64
	size   int64
}

// peek sends parts of the job's files to its owner (condor_tail).
func (cs *CommandSocket) peek(ctx context.Context, c *listen.Call) error {
	t, running := cs.cfg.Job.Running()
	if err := cs.owner(c, t); err != nil {
		return err // HTCondor does not answer this one either
	}
	ad, err := readAd(c)
	if err != nil {
		return err
	}
	if !cs.cfg.allows(cs.cfg.Settings.Peek, t) {
		return refuse(c.Conn, cs.cfg.Endpoint.Version, false, "ENABLE_PEEK_JOB is false on this machine")
	}
	if why, retry := t.unready(running); why != "" {
		return refuse(c.Conn, cs.cfg.Endpoint.Version, retry, why)
	}
	all, err := readPeek(ad, t)
	if err != nil {
		return refuse(c.Conn, cs.cfg.Endpoint.Version, false, err.Error())
	}
	defer func() {
		for _, g := range all {
			if g.file != nil {
				_ = g.file.Close()
			}
		}
	}()
	for _, g := range all {
		if err := g.open(t); err != nil {
			// It may come yet, unless the name leads out of the sandbox.
			return refuse(c.Conn, cs.cfg.Endpoint.Version, errors.Is(err, os.ErrNotExist), oneLine(err.Error()))
		}
	}
	most := int64(-1)
	if n, ok := ad.EvalInt("MaxTransferBytes", nil); ok {
		most = n
	}
	portion(all, most)
	return cs.sendPeek(ctx, c.Conn, all)
}

// readPeek reads which files are asked for. Those that are neither a standard
// stream nor output of the job are an error.
func readPeek(ad *classad.Ad, t Target) ([]*peekedFile, error) {
	var all []*peekedFile
	stream := func(attr, offset, name string, number int64) {
		want, _ := ad.EvalBool(attr, nil)
		if !want || name == "" {
			return
		}
		g := &peekedFile{name: name, label: classad.Literal(classad.Int(number)), offset: -1}
		if n, ok := ad.EvalInt(offset, nil); ok {
			g.offset = n
		}
		all = append(all, g)
	}
	stream("Out", "OutOffset", t.Stdout, 0)
	stream("Err", "ErrOffset", t.Stderr, 1)

	names, err := listOf(ad, "TransferFiles")
	if err != nil {
		return nil, err
	}
	offsets, err := listOf(ad, "TransferOffsets")
	if err != nil {
		return nil, err
	}
	for i, v := range names {
		name, ok := v.AsString()
		if !ok {
			return nil, fmt.Errorf("entry %d of TransferFiles is %s; want the name of a file", i, v)
		}
		path, err := t.output(name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(g *peekedFile) bool { return g.name == path }) {
			continue
		}
		g := &peekedFile{name: path, label: classad.Literal(classad.String(name)), offset: -1}
		if i < len(offsets) {
			if n, ok := offsets[i].AsInt(); ok {
				g.offset = n
			}
		}
		all = append(all, g)
	}
	return all, nil
}

// listSteps is what the entries of a list that a tool sends may take together.
const listSteps = 100_000

// listOf evaluates the elements of a list; one that is not there is empty.
func listOf(ad *classad.Ad, name string) ([]classad.Value, error) {
	e, ok := ad.Lookup(name)
	if !ok {
		return nil, nil
	}
	env := &classad.Env{My: ad, Budget: classad.NewBudget(listSteps)}
	elems, ok := e.Eval(env).AsList()
	if !ok {
		return nil, fmt.Errorf("%s is no list", name)
	}
	if len(elems) > mostPeeked {
		return nil, fmt.Errorf("%s has %d entries; at most %d can be asked for at once", name, len(elems), mostPeeked)
	}
	all := make([]classad.Value, len(elems))
	for i, e := range elems {
		all[i] = e.Eval(env)
	}
	if env.Budget.Spent() {
		return nil, fmt.Errorf("%s takes more than %d steps: want the names themselves", name, listSteps)
	}
	return all, nil
}

// output returns the path in the scratch directory of a file that the owner
// may see: a standard stream, or one that TransferOutput names.
func (t Target) output(name string) (string, error) {
	for _, s := range [...]struct{ attr, file string }{{"Out", t.Stdout}, {"Err", t.Stderr}} {
		if s.file == "" {
			continue
		}
		for _, attr := range [...]string{s.attr, "Original" + s.attr} {
			if text, ok := t.Job.EvalString(attr, nil); ok && text == name {
				return s.file, nil
			}
		}
		if name == s.file {
			return s.file, nil
		}
	}
	list, _ := t.Job.EvalString("TransferOutput", nil)
	named := slices.Contains(strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' }), name) ||
		slices.ContainsFunc(strings.Split(list, ","), func(s string) bool { return strings.TrimSpace(s) == name })
	if name == "" || !named {
		return "", fmt.Errorf("the file %s is no standard stream and not in TransferOutput, so it is not shown", shown(name))
	}
	path := name
	if filepath.IsAbs(path) {
		var err error
		if path, err = filepath.Rel(t.Scratch, path); err != nil {
			return "", fmt.Errorf("the file %s is outside the scratch directory", shown(name))
		}
	}
	if path = filepath.Clean(path); !filepath.IsLocal(path) {
		return "", fmt.Errorf("the file %s is outside the scratch directory", shown(name))
	}
	return path, nil
}

// open opens the file. One that is there and cannot be read is no error, but
// one that leads out of the scratch directory is, and one that is not there.
func (g *peekedFile) open(t Target) error {
	f, err := t.openRegular(g.name)
	if errors.Is(err, os.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return err
	}
	g.file, g.size = f, info.Size()
	return nil
}

// toOpen is how long a file may take to open: a regular one takes no time, but
// the job may put a pipe in its place at any moment, and that waits.
const toOpen = 5 * time.Second

// openRegular opens a regular file for reading, as the job's user would.
func (t Target) openRegular(name string) (*os.File, error) {
	regular := func(info os.FileInfo, err error) error {
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("the file %s is not a regular one", shown(name))
		}
		return err
	}
	if err := t.as(func() error { return regular(t.Root.Stat(name)) }); err != nil {
		return nil, err
	}
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		var f *os.File
		err := t.as(func() (err error) {
			f, err = t.Root.Open(name)
			return err
		})
		done <- opened{f, err}
	}()
	late := time.NewTimer(toOpen)
	defer late.Stop()
	var f *os.File
	select {
	case o := <-done:
		if o.err != nil {
			return nil, o.err
		}
		f = o.file
	case <-late.C:
		go func() {
			if o := <-done; o.file != nil {
				_ = o.file.Close()
			}
		}()
		return nil, fmt.Errorf("the file %s cannot be opened at once, so it is not a regular one", shown(name))
	}
	if err := regular(f.Stat()); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// portion decides what of each file is sent so that all together are at most
// so many bytes, negative for no limit.
func portion(all []*peekedFile, most int64) {
	limited, left := most >= 0, most
	for _, g := range all {
		switch {
		case !limited:
			g.from = min(max(g.offset, 0), g.size)
			g.size -= g.from
		case g.offset < 0:
			n := min(g.size, left)
			g.from, g.size = g.size-n, n
			left -= n
		default:
			g.from = min(g.offset, g.size)
			g.size = min(g.size-g.from, left)
			left -= g.size
		}
	}
}

// sendPeek sends the answer and the files. Each that was announced is sent,
// one that cannot be read as an empty one.
func (cs *CommandSocket) sendPeek(ctx context.Context, conn *cedar.Conn, all []*peekedFile) error {
	names, offsets := make([]*classad.Expr, len(all)), make([]*classad.Expr, len(all))
	for i, g := range all {
		names[i], offsets[i] = g.label, classad.Literal(classad.Int(g.from))
	}
	ad := classad.NewAd()
	ad.SetBool(attrResult, true)
	ad.SetValue("TransferFiles", classad.List(names...))
	ad.SetValue("TransferOffsets", classad.List(offsets...))
	conn.PutAd(ad, cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		return err
	}
	count := int64(0)
	for _, g := range all {
		if g.file == nil {
			if err := conn.PutEmptyFile(); err != nil {
				return err
			}
			continue
		}
		if err := conn.PutFile(ctx, io.NewSectionReader(g.file, g.from, g.size), g.size); err != nil {
			return err
		}
		count++
	}
	conn.PutInt(count)
	return conn.EndMessage()
}
