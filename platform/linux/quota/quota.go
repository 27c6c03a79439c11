// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package quota

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// Projects implements host.Quotas. Only root's process has it count: nobody else may
// read the books.
type Projects struct{}

// Count implements host.Quotas. A directory that is in a project already is left there:
// the owner of the machine has put EXECUTE into it, and may have limited that.
func (Projects) Count(dir *os.File) (host.Counter, error) {
	const op = "quota.Count"
	if os.Geteuid() != 0 {
		return nil, errs.E(op, errs.Unsupported, dir.Name(), errors.New("only root reads what projects use"))
	}
	k, err := open(dir)
	if err != nil {
		return nil, errs.E(op, errs.Unsupported, dir.Name(), err)
	}
	return k.count()
}

// count puts the directory into a project.
func (k *kernel) count() (host.Counter, error) {
	const op = "quota.Count"
	dir := k.dir
	a, err := k.attributes()
	switch {
	case err != nil:
		return nil, errs.E(op, errs.Unsupported, dir.Name(), err)
	case a.project() != 0:
		return nil, errs.E(op, errs.Unsupported, dir.Name(), fmt.Errorf("it is in the project %d", a.project()))
	}
	id, err := choose(k, func() uint32 { return rand.Uint32N(64) })
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOTTY), errors.Is(err, unix.EOPNOTSUPP):
		return nil, errs.E(op, errs.Unsupported, dir.Name(), err)
	case err != nil:
		return nil, errs.E(op, errs.Other, dir.Name(), err)
	}
	return &counter{kernel: k, id: id}, nil
}

// counter is one directory that is counted.
type counter struct {
	*kernel
	id uint32
}

// Name implements host.Counter.
func (c *counter) Name() string { return fmt.Sprintf("project %d of its file system", c.id) }

// Used implements host.Counter.
func (c *counter) Used() (host.Fill, error) {
	e, err := c.read(c.id)
	if err != nil {
		return host.Fill{}, errs.E("quota.Used", errs.Broken, c.Name(), err)
	}
	return host.Fill{UsedBytes: int64(min(e.bytes, 1<<62)), Files: int(max(min(e.files, 1<<31), 1) - 1)}, nil
}

// Close implements host.Counter.
func (c *counter) Close() error { return c.dir.Close() }
