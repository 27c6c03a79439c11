// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"

	"github.com/execpoint/execpoint/lib/host"
)

// volume is the file system of a scratch directory that has one of its own.
type volume struct {
	mounter host.Mounter // nil without one
	parent  *os.File     // the sandbox's directory
}

// mount mounts the volume on the scratch directory, which is empty, with the mode that
// it was made with.
func (s *Sandbox) mount(dir *os.Root, spec Spec) error {
	parent, err := dir.Open(".")
	if err != nil {
		return err
	}
	if err := spec.Mounter.Mount(spec.Volume.Device, parent, scratchDir, spec.Volume.Hidden); err != nil {
		parent.Close()
		return err
	}
	s.volume = volume{spec.Mounter, parent}
	return dir.Chmod(scratchDir, spec.Mode)
}

// unmount takes the volume away, with all that is in it.
func (s *Sandbox) unmount() error {
	if s.volume.mounter == nil {
		return nil
	}
	if s.scratch != nil { // an open directory keeps it in use
		s.scratch.Close()
		s.scratch = nil
	}
	err := s.volume.mounter.Unmount(s.volume.parent, scratchDir)
	if err == nil {
		s.volume.close()
	}
	return err
}

func (v *volume) close() {
	if v.parent != nil {
		v.parent.Close()
	}
	*v = volume{}
}

// usage is what the file system says of itself; false if it says nothing, or there is
// none.
func (v *volume) usage() (Usage, bool) {
	if v.mounter == nil {
		return Usage{}, false
	}
	f, err := v.mounter.Fill(v.parent, scratchDir)
	return Usage{KiB: (f.UsedBytes + 1023) / 1024, Files: f.Files, Full: f.Full}, err == nil
}
