// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

const adminKnob = "RUNTIME_CONFIG_ADMIN"

// RemoteConfig keeps the settings that were made over the wire: by condor_config_val
// -set in files, by -rset until the process ends. A set of lines is known by
// the name of who made it, mostly that of the knob. Methods may be called from
// any goroutine.
type RemoteConfig struct {
	persistent, runtime bool
	path                string // of the list of names; a name's own file is path.NAME
	owned               func(path string) error

	mu     sync.Mutex
	kept   []string // names with a file, in order
	lively map[string]string
}

// NewRemoteConfig reads what is kept. s is the configuration without it: what
// is allowed must not be allowed by itself, so ENABLE_PERSISTENT_CONFIG and
// ENABLE_RUNTIME_CONFIG hold until a restart. owned says why a file may not be
// trusted; nil trusts every one.
func NewRemoteConfig(s *config.Snapshot, subsystem string, owned func(path string) error) (*RemoteConfig, error) {
	const op = "daemon.NewRemoteConfig"
	r := &RemoteConfig{owned: owned, lively: make(map[string]string)}
	var bad [2]error
	r.persistent, bad[0] = s.Bool("ENABLE_PERSISTENT_CONFIG")
	r.runtime, bad[1] = s.Bool("ENABLE_RUNTIME_CONFIG")
	if err := errors.Join(bad[:]...); err != nil {
		return nil, err
	}
	if !r.persistent {
		return r, nil
	}
	if r.path = s.String(subsystem + "_CONFIG"); r.path == "" {
		dir := s.String("PERSISTENT_CONFIG_DIR")
		if dir == "" {
			return nil, errs.E(op, errs.Invalid, "ENABLE_PERSISTENT_CONFIG",
				fmt.Errorf("it is true, but neither %s_CONFIG nor PERSISTENT_CONFIG_DIR says where settings are kept", subsystem))
		}
		r.path = filepath.Join(dir, ".config."+subsystem)
	}
	text, err := os.ReadFile(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = r.trusted(r.path)
	}
	if err != nil {
		return nil, errs.E(op, errs.Broken, r.path, err)
	}
	list, err := config.Parse(r.path, string(text), harmless())
	if err != nil {
		return nil, err
	}
	for _, name := range list.List(adminKnob) {
		if !remoteName(name) {
			return nil, errs.E(op, errs.Invalid, r.path, fmt.Errorf("%s has %.80q; want names of settings", adminKnob, name))
		}
		if !slices.Contains(r.kept, name) {
			r.kept = append(r.kept, name)
		}
	}
	return r, nil
}

// harmless reads a text without opening a file or running anything.
func harmless() config.Options {
	return config.Options{
		Subsystem: "STARTD",
		ReadFile:  func(string) ([]byte, error) { return nil, fs.ErrNotExist },
		ReadDir:   func(string) ([]string, error) { return nil, fs.ErrNotExist },
	}
}

func (r *RemoteConfig) trusted(path string) error {
	if r.owned == nil {
		return nil
	}
	return r.owned(path)
}

// Texts returns what was set, to be read after all else: what is kept in files
// before what is not. A file that is gone or that another user owns is an
// error.
func (r *RemoteConfig) Texts() ([]config.Text, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []config.Text
	if len(r.kept) > 0 {
		all = append(all, config.Text{Name: r.path, Text: r.list(r.kept)})
	}
	for _, name := range r.kept {
		path := r.path + "." + name
		text, err := os.ReadFile(path)
		if err == nil {
			err = r.trusted(path)
		}
		if err != nil {
			return nil, errs.E("daemon.RemoteConfig", errs.Broken, path, err)
		}
		all = append(all, config.Text{Name: path, Text: string(text)})
	}
	for _, name := range slices.Sorted(maps.Keys(r.lively)) {
		all = append(all, config.Text{Name: "<runtime>", Text: r.lively[name]})
	}
	return all, nil
}

func (*RemoteConfig) list(names []string) string {
	return adminKnob + " = " + strings.Join(names, ", ") + "\n"
}

// Persist keeps lines under a name in place of those kept before, "" for none.
// They are on disk when it returns, and in force when the configuration is read
// next.
func (r *RemoteConfig) Persist(name, lines string) error {
	const op = "daemon.Persist"
	if !r.persistent {
		return errs.E(op, errs.Denied, name, errors.New("ENABLE_PERSISTENT_CONFIG is false"))
	}
	if err := sound(op, name, lines); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	path := r.path + "." + name
	i := slices.Index(r.kept, name)
	if lines == "" {
		if i < 0 {
			return nil // nothing was set
		}
		kept := slices.Delete(slices.Clone(r.kept), i, i+1)
		if len(kept) > 0 {
			if err := replace(r.path, r.list(kept)); err != nil {
				return errs.E(op, errs.Broken, r.path, err)
			}
		} else if err := os.Remove(r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errs.E(op, errs.Broken, r.path, err)
		}
		r.kept = kept
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errs.E(op, errs.Broken, path, err)
		}
		return nil
	}
	if i < 0 && len(r.kept) >= mostRemote {
		return errs.E(op, errs.Exhausted, name, fmt.Errorf("%d settings are kept already", len(r.kept)))
	}
	if err := replace(path, lines); err != nil {
		return errs.E(op, errs.Broken, path, err)
	}
	if i >= 0 {
		return nil
	}
	kept := append(slices.Clone(r.kept), name)
	if err := replace(r.path, r.list(kept)); err != nil {
		return errs.E(op, errs.Broken, r.path, errors.Join(err, os.Remove(path)))
	}
	r.kept = kept
	return nil
}

// Set holds lines under a name until the process ends, in place of those held
// before; "" for none.
func (r *RemoteConfig) Set(name, lines string) error {
	const op = "daemon.Set"
	if !r.runtime {
		return errs.E(op, errs.Denied, name, errors.New("ENABLE_RUNTIME_CONFIG is false"))
	}
	if err := sound(op, name, lines); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if lines == "" {
		delete(r.lively, name)
		return nil
	}
	if _, ok := r.lively[name]; !ok && len(r.lively) >= mostRemote {
		return errs.E(op, errs.Exhausted, name, fmt.Errorf("%d settings are held already", len(r.lively)))
	}
	r.lively[name] = lines
	return nil
}

// mostRemote bounds how many settings are kept in files, and how many are held
// without.
const mostRemote = 1000

// sound says why lines cannot be settings, before they keep the daemon from
// reading its configuration again.
func sound(op, name, lines string) error {
	if !remoteName(name) {
		return errs.E(op, errs.Invalid, fmt.Sprintf("%.80q", name), errors.New("want a name of letters, digits, dots and underscores"))
	}
	if _, err := config.Parse("<"+name+">", lines, harmless()); err != nil {
		return errs.E(op, errs.Invalid, name, err)
	}
	return nil
}

// remoteName reports whether a name may be that of a setting, or of a template
// as $CATEGORY.OPTION; it is a part of a file's name.
func remoteName(name string) bool {
	name = strings.TrimPrefix(name, "$")
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.':
		default:
			return false
		}
	}
	return name != "" && len(name) <= 200
}

// replace writes a file at once, in such a way that it survives the end of the
// machine.
func replace(path, text string) error {
	fresh := path + "~" // which no name has
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	return nil
}
