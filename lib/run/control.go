// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// Names of what a daemon leaves for condor_ep to find it by.
const (
	controlPrefix = ".execpoint_" // RUN/.execpoint_<hash of the name>.ctl: its control socket
	controlSuffix = ".ctl"
	daemonPrefix  = "startd-" // BASE/startd-<hash of the log>.json: its record

	mostControlPath = 100 // bytes of a socket's path; systems take a few more
	mostDaemons     = 1000
)

// ControlPath is where the control socket of a daemon of that name is: in RUN.
func ControlPath(s *config.Snapshot, name string) (string, error) {
	path := filepath.Join(s.String("RUN"), controlPrefix+short(name)+controlSuffix)
	if !filepath.IsAbs(path) || len(path) > mostControlPath {
		return "", errs.E("run.ControlPath", errs.Invalid, "RUN", fmt.Errorf("%s is no path for a socket: want an absolute one of at most %d bytes", path, mostControlPath))
	}
	return path, nil
}

// ControlSockets are the control sockets of all daemons that have this RUN.
func ControlSockets(s *config.Snapshot) []string {
	dir := s.String("RUN")
	if !filepath.IsAbs(dir) {
		return nil
	}
	entries, _ := os.ReadDir(dir) // who may not look there finds nothing
	var all []string
	for _, e := range entries {
		if e.Type()&fs.ModeSocket != 0 && strings.HasPrefix(e.Name(), controlPrefix) && strings.HasSuffix(e.Name(), controlSuffix) && len(all) < mostDaemons {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all
}

// short is a name of eight letters for any text.
func short(text string) string {
	h := fnv.New32a()
	_, _ = io.WriteString(h, text) // never fails
	return fmt.Sprintf("%08x", h.Sum32())
}

// Daemon is what a daemon tells its own user: where it is found, and what stays
// of it when it has ended.
type Daemon struct {
	Proc    host.ProcID `json:"proc"`
	Socket  string      `json:"socket,omitempty"`  // its control socket
	Config  string      `json:"config,omitempty"`  // the root of its configuration
	Log     string      `json:"log,omitempty"`     // its log; "" if that is no file
	History string      `json:"history,omitempty"` // STARTD_HISTORY
}

// Record writes the daemon's record below base, beside those of runs without a
// pool. It stays when the daemon has ended, and is replaced by the next one of the
// same log, or without one of the same socket.
//
// Records of others whose log and socket are gone are removed.
func (d Daemon) Record(dirs host.PrivateDirs, base string) error {
	const op = "run.Record"
	if err := os.MkdirAll(base, 0o700); err != nil {
		return errs.E(op, errs.Denied, base, err)
	}
	root, err := openBase(dirs, base)
	if err != nil {
		return err
	}
	defer root.Close()
	prune(root)
	b, err := json.Marshal(d)
	if err != nil {
		return errs.E(op, errs.Internal, base, err)
	}
	if err := replaceFile(root, daemonPrefix+short(cmp.Or(d.Log, d.Socket))+".json", b); err != nil {
		return errs.E(op, errs.Broken, base, err)
	}
	return nil
}

// Daemons are the daemons that this user has started, as far as they are
// recorded below base. A record that cannot be read counts for nothing.
func Daemons(dirs host.PrivateDirs, base string) ([]Daemon, error) {
	root, err := openBase(dirs, base)
	if errs.Is(err, errs.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, errs.E("run.Daemons", errs.KindOf(err), base, err)
	}
	var all []Daemon
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), daemonPrefix) || !e.Type().IsRegular() || len(all) == mostDaemons {
			continue
		}
		if d, err := readDaemon(root, e.Name()); err == nil {
			all = append(all, d)
		}
	}
	return all, nil
}

// prune removes records that lead to nothing any more.
func prune(base *os.Root) {
	entries, _ := fs.ReadDir(base.FS(), ".")
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), daemonPrefix) || !e.Type().IsRegular() {
			continue
		}
		d, err := readDaemon(base, e.Name())
		if err == nil && missing(d.Log) && missing(d.Socket) {
			_ = base.Remove(e.Name()) // it does no harm
		}
	}
}

// missing reports whether nothing is at a path, which is so if there is no path.
func missing(path string) bool {
	if path == "" {
		return true
	}
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func readDaemon(base *os.Root, name string) (d Daemon, err error) {
	f, err := base.Open(name)
	if err != nil {
		return Daemon{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostRecord))
	if err == nil {
		err = json.Unmarshal(b, &d)
	}
	if err == nil && d.Proc.PID <= 0 {
		err = errors.New("no process")
	}
	return d, err
}
