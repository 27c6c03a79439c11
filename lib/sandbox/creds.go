// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// CredsDir is the directory in the scratch directory in which a job finds
// credentials.
const CredsDir = ".condor_creds"

// credFile is the name of the file for a service, an error if that can be none.
func credFile(service string) (string, error) {
	name := strings.ReplaceAll(service, "*", "_") + ".use"
	if service == "" || strings.ContainsAny(name, "/\\\x00") || !filepath.IsLocal(name) || name[0] == '.' {
		return "", fmt.Errorf("the service %.80q cannot be the name of a file", service)
	}
	return name, nil
}

// WriteCreds writes the credentials of the services, each into a file that only
// the job's user can read and which is there whole at any time, and returns the
// path of their directory.
func (s *Sandbox) WriteCreds(creds map[string][]byte) (string, error) {
	dir := filepath.Join(s.Scratch(), CredsDir)
	err := s.as(func() error {
		if _, err := s.credsDir(); err != nil {
			return err
		}
		for service, data := range creds {
			name, err := credFile(service)
			if err == nil {
				name = filepath.Join(CredsDir, name)
				err = s.replace(name+".tmp", name, data)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", errs.E("sandbox.WriteCreds", kindOf(err), dir, err)
	}
	return dir, nil
}

// credsDir has the directory of credentials be there, in place of anything else that
// the job has put there. made says that it was not.
func (s *Sandbox) credsDir() (made bool, err error) {
	info, err := s.scratch.Lstat(CredsDir)
	switch {
	case err == nil && info.IsDir():
		return false, nil
	case err == nil:
		err = s.scratch.Remove(CredsDir)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err == nil {
		err = s.scratch.Mkdir(CredsDir, 0o700)
	}
	return err == nil, err
}

// WritePrivate writes a credential that has a name of its own in the scratch
// directory, as WriteCreds writes others. Until it is whole it lies beside those, where
// what is new in the scratch directory is not looked for.
func (s *Sandbox) WritePrivate(name string, file []byte) error {
	err := s.as(func() error {
		made, err := s.credsDir()
		if err != nil {
			return err
		}
		err = s.replace(filepath.Join(CredsDir, name+".tmp"), name, file)
		if made {
			err = errors.Join(err, s.scratch.RemoveAll(CredsDir))
		}
		return err
	})
	if err != nil {
		return errs.E("sandbox.WritePrivate", kindOf(err), name, err)
	}
	return nil
}

// replace puts a file of mode 0600 in place of what is at a name in the scratch
// directory. It is next until it is whole.
func (s *Sandbox) replace(next, name string, data []byte) error {
	if err := s.scratch.RemoveAll(next); err != nil {
		return err
	}
	f, err := s.scratch.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.scratch.Rename(next, name)
	}
	if err != nil {
		err = errors.Join(err, s.scratch.Remove(next))
	}
	return err
}
