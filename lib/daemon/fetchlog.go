// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/errs"
)

// What DC_FETCH_LOG may ask for.
const (
	logPlain = iota
	logHistory
	logHistoryDir
	logPurge
)

// What it is answered.
const (
	logOK = iota
	logNoName
	logCannotOpen
	logBadType
)

// perJobDir is where each job's ad is kept.
const perJobDir = "STARTD.PER_JOB_HISTORY_DIR"

func (a *Answers) fetchLog(ctx context.Context, c *listen.Call) error {
	kind, err := c.Conn.Int()
	if err != nil {
		return err
	}
	if kind == logPurge {
		return a.purgeLog(ctx, c)
	}
	name, err := c.Conn.String()
	if err != nil {
		return err
	}
	if err := c.Conn.EndOfMessage(); err != nil {
		return err
	}
	c.Log.Info("log asked for", "user", c.Request.Peer.User, "name", name, "type", kind)
	switch kind {
	case logPlain:
		return a.plainLog(ctx, c, name)
	case logHistory:
		return a.history(ctx, c, name)
	case logHistoryDir:
		return a.historyDir(ctx, c)
	}
	return refuseLog(c, logBadType, fmt.Errorf("there is no log of type %d", kind))
}

// refuseLog tells why there is no log.
func refuseLog(c *listen.Call, code int64, why error) error {
	c.Conn.PutInt(code)
	return errors.Join(errs.E("daemon.fetchLog", errs.NotFound, "", why), c.Conn.EndMessage())
}

// plainLog sends the file of <SUBSYSTEM>_LOG; behind a dot in the name stands
// what is put behind the file's name, as in STARTER.slot1.
func (a *Answers) plainLog(ctx context.Context, c *listen.Call, name string) error {
	subsystem, suffix, dotted := strings.Cut(name, ".")
	file := a.Config().String(subsystem + "_LOG")
	if file == "" || !isWord(subsystem) {
		return refuseLog(c, logNoName, fmt.Errorf("no setting %.80q names a log", subsystem+"_LOG"))
	}
	if dotted {
		if strings.ContainsAny(suffix, "/\\\x00:") {
			return errs.E("daemon.fetchLog", errs.Invalid, "", fmt.Errorf("%.80q leads out of the folder of logs", name))
		}
		file += "." + suffix
	}
	f, size, err := a.Files.Open(file)
	if err != nil {
		return refuseLog(c, logCannotOpen, err)
	}
	defer f.Close()
	c.Conn.PutInt(logOK)
	if err := c.Conn.PutFile(ctx, f, size); err != nil {
		return err
	}
	return c.Conn.EndMessage()
}

// history sends the history file and those it was rotated to, oldest first.
func (a *Answers) history(ctx context.Context, c *listen.Call, name string) error {
	knob := "HISTORY"
	if name == "STARTD_HISTORY" {
		knob = name
	}
	file := a.Config().String(knob)
	if file == "" {
		return refuseLog(c, logBadType, fmt.Errorf("%s is not set", knob))
	}
	dir, base := filepath.Dir(file), filepath.Base(file)
	names, err := a.Files.List(dir)
	if err != nil {
		return refuseLog(c, logCannotOpen, err)
	}
	var order []string
	current := false
	for _, n := range names {
		if n == base {
			current = true
		} else if strings.HasPrefix(n, base+".") {
			order = append(order, n)
		}
	}
	if current {
		order = append(order, base)
	}
	c.Conn.PutInt(logOK)
	for _, n := range order {
		if err := a.sendFile(ctx, c, filepath.Join(dir, n)); err != nil {
			return err
		}
	}
	return c.Conn.EndMessage()
}

// historyDir sends every file of the folder of single histories.
func (a *Answers) historyDir(ctx context.Context, c *listen.Call) error {
	dir := a.Config().String(perJobDir)
	if dir == "" {
		return refuseLog(c, logBadType, errors.New(perJobDir+" is not set"))
	}
	names, err := a.Files.List(dir)
	if err != nil {
		return refuseLog(c, logCannotOpen, err)
	}
	for _, n := range names {
		c.Conn.PutInt(1)
		c.Conn.PutString(n)
		if err := a.sendFile(ctx, c, filepath.Join(dir, n)); err != nil {
			return err
		}
	}
	c.Conn.PutInt(0)
	return c.Conn.EndMessage()
}

// sendFile sends one of several files; one that is gone is sent empty.
func (a *Answers) sendFile(ctx context.Context, c *listen.Call, name string) error {
	f, size, err := a.Files.Open(name)
	if err != nil {
		c.Log.Warn("a file is left out", "file", name, "err", err)
		return c.Conn.PutFile(ctx, strings.NewReader(""), 0)
	}
	defer f.Close()
	return c.Conn.PutFile(ctx, f, size)
}

// purgeLog removes old files from the folder of single histories.
func (a *Answers) purgeLog(_ context.Context, c *listen.Call) error {
	cutoff, err := c.Conn.Int()
	if err != nil {
		return err
	}
	if err := c.Conn.EndOfMessage(); err != nil {
		return err
	}
	c.Log.Info("purge of histories", "user", c.Request.Peer.User, "cutoff", cutoff)
	dir := a.Config().String(perJobDir)
	if dir == "" {
		c.Conn.PutInt(0)
		return errors.Join(errs.E("daemon.purgeLog", errs.NotFound, perJobDir, errors.New("it is not set")), c.Conn.EndMessage())
	}
	perr := a.Files.Purge(dir, cutoff)
	c.Conn.PutInt(1)
	return errors.Join(perr, c.Conn.EndMessage())
}

func isWord(s string) bool {
	for _, c := range []byte(s) {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return s != ""
}

// DiskFiles is the machine's own file system.
type DiskFiles struct{}

var _ Files = DiskFiles{}

// Open implements Files.
func (DiskFiles) Open(name string) (io.ReadCloser, int64, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, 0, err
	}
	if !st.Mode().IsRegular() {
		return nil, 0, errs.E("daemon.Open", errs.Invalid, name, errors.New("not a regular file"))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	// A log may grow while it is sent; what is announced is what goes.
	return f, st.Size(), nil
}

// List implements Files.
func (DiskFiles) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Purge implements Files.
func (DiskFiles) Purge(dir string, cutoff int64) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	names, err := DiskFiles{}.List(dir)
	if err != nil {
		return err
	}
	var all []error
	for _, n := range names {
		st, err := root.Lstat(n)
		if err == nil && st.Mode().IsRegular() && st.ModTime().Before(time.Unix(cutoff, 0)) {
			all = append(all, root.Remove(n))
		}
	}
	return errors.Join(all...)
}
