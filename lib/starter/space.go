// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// What a job and the programs before and after it see of the machine:
// MOUNT_UNDER_SCRATCH, MOUNT_PRIVATE_DEV_SHM, PER_JOB_NAMESPACES, USE_PID_NAMESPACES and
// NO_JOB_NETWORKING. The family's own processes are the only ones that see it so: the
// starter opens standard files, moves files and looks at the job's from outside.

// shmDir is where the system has its shared memory, and tmpDir what programs take for
// temporary files.
const (
	shmDir  = "/dev/shm"
	tmpDir  = "/tmp"
	shmMode = 0o1777
)

// room is what the processes of an activation see.
type room struct {
	space *host.Space // nil is what the starter sees
	temp  string      // TMPDIR, "" for the scratch directory
	said  bool        // the log has the lines of it
}

// makeRoom finds out what the job sees and makes the directories for it in the scratch
// directory. It is asked before each program starts, for the one before may have changed
// what is there. It returns why the job is held; an error is the machine's fault.
func (a *activation) makeRoom() (*protocol.Hold, error) {
	r := room{said: a.room.said}
	defer func() { r.said = true; a.room = r }()
	set := &a.plan.Settings.Space
	if err := a.host.canSpace(); err != nil {
		return nil, a.withoutRoom(set, err, r.said)
	}
	machine, err := classad.ParseAd(a.plan.MachineAd, classad.Old)
	if err != nil {
		return nil, err
	}
	dirs, err := set.Dirs(a.job.Ad, machine, time.Now())
	if err != nil {
		return a.holds.From(reason.FailedToCreateProcess, 0, err.Error()), nil
	}
	if set.Encrypt && !r.said && a.log != nil {
		a.log.Warn("ENCRYPT_EXECUTE_DIRECTORY has no effect: this Execution Point cannot encrypt, put EXECUTE on an encrypted file system. The scratch directory is not encrypted")
	}
	space := host.Space{NoNetwork: set.NoNetwork}
	if set.PerJob {
		space.PIDs = set.PIDs
		hold, err := a.mountUnderScratch(&space, a.mountable(dirs, r.said))
		if hold != nil || err != nil {
			return hold, err
		}
		if set.PrivateShm && isDir(shmDir) && hiding(space.Mounts, shmDir) == "" {
			space.Mounts = append(space.Mounts, host.Mount{Target: shmDir, Mode: shmMode})
		}
	}
	if !space.IsZero() {
		r.space = &space
	}
	if hiding(space.Mounts, tmpDir) == tmpDir {
		r.temp = tmpDir
	}
	return nil, nil
}

// withoutRoom is a starter that can give jobs no room of their own, and why. HTCondor
// leaves out mounts and process numbers there, as this does; but a job that is to have no
// network does not run with one.
func (a *activation) withoutRoom(set *protocol.SpaceSettings, why error, said bool) error {
	if set.NoNetwork {
		return errs.E("starter.room", errs.Unsupported, a.plan.Activation, fmt.Errorf("%w: NO_JOB_NETWORKING: %w", errMachine, why))
	}
	if set.PIDs && !said && a.log != nil {
		a.log.Warn("USE_PID_NAMESPACES has no effect here: the job sees the processes of the machine", "err", why)
	}
	return nil
}

// canSpace says why no family can have a space of its own; nil is that it can.
func (h *Host) canSpace() error {
	if h.Space == nil {
		return errs.E("starter.room", errs.Unsupported, "", errors.New("this starter gives jobs no mounts and namespaces of their own"))
	}
	return h.Space()
}

// mountable are those of dirs that can be replaced: directories of the machine which are
// not where the job's own files are.
func (a *activation) mountable(dirs []string, said bool) []string {
	log := func(msg string, args ...any) {
		if a.log != nil && !said {
			a.log.Info(msg, args...)
		}
	}
	var kept []string
	for _, dir := range dirs {
		clean := filepath.Clean(dir)
		switch scratch := a.box.Scratch(); {
		case !filepath.IsAbs(dir):
			log(fmt.Sprintf("Unable to add mapping %s -> %s because %s is no absolute path.", scratch, dir, dir))
		case slices.Contains(kept, clean):
		case !isDir(clean):
			log(fmt.Sprintf("Unable to add mapping %s -> %s because %s doesn't exist.", scratch, dir, dir))
		case within(real(clean), real(a.plan.Execute)) != "" || within(real(a.plan.Execute), real(clean)) != "":
			log(fmt.Sprintf("Can't bind mount %s under execute dir %s -- skipping MOUNT_UNDER_SCRATCH", dir, filepath.Join(scratch, clean)))
		case a.worksBelow(clean):
			// The files of who runs jobs with condor_ep run are where he stands, often in /tmp.
			log(fmt.Sprintf("Not mounting %s under the scratch directory: the job's own files are there", dir))
		default:
			kept = append(kept, clean)
		}
	}
	return kept
}

// worksBelow reports whether a job of the embedded access point has its program or its
// directory below dir, in place.
func (a *activation) worksBelow(dir string) bool {
	if !a.local() || a.job.Moves {
		return false
	}
	dir = real(dir)
	return within(dir, real(a.job.Cmd)) != "" || within(dir, real(a.job.RunDir(a.box.Scratch()))) != ""
}

// mountUnderScratch makes a directory for each of dirs below the scratch directory, as
// the job's user and for him alone, and adds its mount.
func (a *activation) mountUnderScratch(space *host.Space, dirs []string) (hold *protocol.Hold, err error) {
	for _, dir := range dirs {
		name := strings.TrimPrefix(dir, "/")
		err := a.asUser(func() error {
			if err := a.box.Root().MkdirAll(name, 0o700); err != nil {
				return err
			}
			return a.plainDirs(name)
		})
		if n, text, ok := a.errno(err); ok && slices.Contains(diskErrnos, n) {
			return nil, errs.E("starter.room", errs.Broken, dir, fmt.Errorf("%w: %s", errMachine, text))
		}
		if err != nil { // what the job has brought is in the way
			return a.holds.From(reason.FailedToCreateProcess, 0, fmt.Sprintf(
				"Failed to make the directory %s in the scratch directory, which the job is to see at %s (MOUNT_UNDER_SCRATCH): %v", name, dir, err)), nil
		}
		space.Mounts = append(space.Mounts, host.Mount{Source: filepath.Join(a.box.Scratch(), name), Target: dir})
	}
	return nil, nil
}

// plainDirs refuses a link on the way to name: links of the job are not followed with
// the rights of root.
func (a *activation) plainDirs(name string) error {
	for at := name; at != "."; at = filepath.Dir(at) {
		info, err := a.box.Root().Lstat(at)
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "mkdir", Path: at, Err: errors.New("a file or link of that name is there")}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hiding is the place of the mount that hides path, "" for none.
func hiding(mounts []host.Mount, path string) string {
	for _, m := range mounts {
		if path == m.Target || within(m.Target, path) != "" {
			return m.Target
		}
	}
	return ""
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// real is path without links, or as it is where that cannot be told.
func real(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return path
}
