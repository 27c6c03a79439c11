// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lvm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/platform/linux/mount"
)

// Manager makes and removes volumes. It is safe for concurrent use.
type Manager struct {
	Settings
	programs *programs
	device   string // the loop device of File

	mu     sync.Mutex
	number int64
}

// busyFor is how long leftovers that are in use are waited for: those who have them
// are being ended, the starters of an earlier life among them, all at once.
const (
	busyFor  = time.Minute
	busyLook = 500 * time.Millisecond
)

// Open finds the volume group, or makes it on its file, and removes what an earlier
// life left in it. leftovers says of what that was so and of what could not be.
func Open(ctx context.Context, s Settings) (m *Manager, removed []string, err error) {
	const op = "lvm.Open"
	p, err := findPrograms(s.Limit)
	if err != nil {
		return nil, nil, errs.E(op, errs.Unsupported, "STARTD_ENFORCE_DISK_LIMITS", err)
	}
	m = &Manager{Settings: s, programs: p, number: s.FirstName}
	if s.File != "" {
		if err := m.openFile(ctx); err != nil {
			return nil, nil, errs.E(op, errs.Broken, "LVM_BACKING_FILE "+s.File, err)
		}
	}
	removed, err = m.clean(ctx)
	if err != nil {
		return nil, removed, errs.E(op, errs.Broken, s.Group, err)
	}
	if _, err := m.Space(ctx); err != nil {
		return nil, removed, err
	}
	return m, removed, nil
}

// openFile attaches the file and makes the group on it, unless it has one. What is on
// it is removed before, as HTCondor does: it may lack the pool, or be of other sizes.
func (m *Manager) openFile(ctx context.Context) error {
	// The group's own data need room beside that of volumes: HTCondor adds 2 %.
	size := m.FileMiB << 20
	size += size / 50
	f, err := backing(m.File, size)
	if err != nil {
		return err
	}
	defer f.Close()
	if m.device, err = attach(f); err != nil {
		return err
	}
	groups, err := m.groups(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(groups, func(g Group) bool { return g.Name == m.Group }) {
		if on, err := m.deviceOf(ctx); err != nil {
			return err
		} else if on != m.Group {
			return fmt.Errorf("the volume group %s is there, and not on this file (its device is %s): choose another LVM_AUTO_VG_NAME", m.Group, m.device)
		}
		volumes, err := m.volumes(ctx)
		if err != nil {
			return err
		}
		if _, pool := m.pool(volumes); pool == m.Thin() && m.onlyOurs(volumes) {
			return nil // it is as it would be made
		}
		if _, err := m.clean(ctx); err != nil {
			return err
		}
		for _, c := range m.removeGroup(m.device) {
			if _, err := m.programs.do(ctx, c); err != nil {
				return err
			}
		}
	}
	for _, c := range m.makeGroup(m.device) {
		if _, err := m.programs.do(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// onlyOurs reports whether the group has nothing but volumes of jobs and the pool.
func (m *Manager) onlyOurs(volumes []Volume) bool {
	return !slices.ContainsFunc(volumes, func(v Volume) bool { return v.Group == m.Group && !v.Ours() && v.Name != m.Pool })
}

// deviceOf is the group on the loop device.
func (m *Manager) deviceOf(ctx context.Context) (string, error) {
	out, err := m.programs.do(ctx, listDevices())
	if err != nil {
		return "", err
	}
	devices, err := ParseDevices(out)
	return devices[m.device], err
}

func (m *Manager) groups(ctx context.Context) ([]Group, error) {
	out, err := m.programs.do(ctx, listGroups())
	if err != nil {
		return nil, err
	}
	return ParseGroups(out)
}

func (m *Manager) volumes(ctx context.Context) ([]Volume, error) {
	out, err := m.programs.do(ctx, m.listVolumes())
	if err != nil {
		return nil, err
	}
	return ParseVolumes(out)
}

// clean removes the volumes of jobs that an earlier life left.
func (m *Manager) clean(ctx context.Context) (removed []string, err error) {
	groups, err := m.groups(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(groups, func(g Group) bool { return g.Name == m.Group }) {
		return nil, fmt.Errorf("there is no volume group %s (LVM_VOLUME_GROUP_NAME)", m.Group)
	}
	volumes, err := m.volumes(ctx)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(busyFor)
	for _, name := range m.leftovers(volumes) {
		err := m.Remove(ctx, name)
		for ; err != nil && time.Now().Before(until); err = m.Remove(ctx, name) {
			select {
			case <-time.After(busyLook):
			case <-ctx.Done():
				return removed, ctx.Err()
			}
		}
		if err != nil {
			return removed, err
		}
		removed = append(removed, name)
	}
	return removed, nil
}

// Space measures what there is for jobs.
func (m *Manager) Space(ctx context.Context) (Space, error) {
	const op = "lvm.Space"
	groups, err := m.groups(ctx)
	if err != nil {
		return Space{}, errs.E(op, errs.Broken, m.Group, err)
	}
	volumes, err := m.volumes(ctx)
	if err != nil {
		return Space{}, errs.E(op, errs.Broken, m.Group, err)
	}
	is, err := m.space(groups, volumes)
	if err != nil {
		return Space{}, errs.E(op, errs.NotFound, "LVM_VOLUME_GROUP_NAME", err)
	}
	return is, nil
}

// Exhausted implements host.Volumes.
func (m *Manager) Exhausted(ctx context.Context) (bool, error) {
	if !m.Thin() {
		return false, nil
	}
	volumes, err := m.volumes(ctx)
	if err != nil {
		return false, errs.E("lvm.Exhausted", errs.Broken, m.Backing(), err)
	}
	pool, _ := m.pool(volumes)
	return pool.Full(), nil
}

// Hidden implements host.Volumes.
func (m *Manager) Hidden() bool { return m.Hide }

// BreakSlots implements host.Volumes.
func (m *Manager) BreakSlots() bool { return m.Settings.BreakSlots }

// Unique implements host.Volumes.
func (m *Manager) Unique() bool { return m.UniqueNames }

// Volume implements host.Volumes.
func (m *Manager) Volume(name string, shareKiB int64) host.Volume {
	return host.Volume{
		Name: name, Device: m.Device(name), LimitKiB: m.limitKiB(shareKiB), Hidden: m.Hidden(),
	}
}

// Make makes a volume with a file system for a slot's share of disk, and returns its
// name. What fails leaves nothing.
func (m *Manager) Make(ctx context.Context, slot string, shareKiB int64) (name string, err error) {
	const op = "lvm.Make"
	m.mu.Lock()
	number := m.number
	m.number++
	m.mu.Unlock()
	name = m.VolumeName(slot, os.Getpid(), number)
	if !m.UniqueNames { // an earlier job's may be there
		if err := m.Remove(ctx, name); err != nil {
			return "", err
		}
	}
	if _, err := m.programs.do(ctx, m.makeVolume(name, shareKiB)); err != nil {
		return "", errs.E(op, errs.Exhausted, name, err)
	}
	if err := m.programs.format(ctx, m.Device(name)); err != nil {
		return "", errs.E(op, errs.Broken, name, errors.Join(err, m.Remove(context.WithoutCancel(ctx), name)))
	}
	return name, nil
}

// Remove takes a volume of ours away, and the mounts of it that are seen here. It is
// no error if it is gone.
func (m *Manager) Remove(ctx context.Context, name string) error {
	const op = "lvm.Remove"
	if why := badName(name); why != "" || name == m.Pool {
		return errs.E(op, errs.Invalid, name, errors.New("it is no volume of a job"))
	}
	volumes, err := m.volumes(ctx)
	if err != nil {
		return errs.E(op, errs.Broken, name, err)
	}
	at := slices.IndexFunc(volumes, func(v Volume) bool { return v.Group == m.Group && v.Name == name })
	switch {
	case at < 0:
		return nil
	case !volumes[at].Ours():
		return errs.E(op, errs.Denied, name, errors.New("it does not have the tag "+Tag))
	}
	if err := unmount(m.Device(name)); err != nil {
		return errs.E(op, errs.Broken, name, err)
	}
	if _, err := m.programs.do(ctx, m.removeVolume(name)); err != nil && !missing(err) {
		return errs.E(op, errs.Broken, name, err)
	}
	return nil
}

// unmount takes away the mounts of a device that this process sees.
func unmount(device string) error {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer f.Close()
	var points []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if p, ok := mount.ParsePoint(lines.Text()); ok && p.Source == device {
			points = append(points, p.Dir)
		}
	}
	err = lines.Err()
	for _, point := range slices.Backward(points) {
		if uerr := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); uerr != nil {
			err = errors.Join(err, &os.PathError{Op: "umount", Path: point, Err: uerr})
		}
	}
	return err
}
