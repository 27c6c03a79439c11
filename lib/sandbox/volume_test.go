// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/execpoint/execpoint/lib/host"
)

// mounter notes what is asked of it. What is mounted it keeps elsewhere.
type mounter struct {
	fails bool
	did   []string
	fill  host.Fill
}

var errMount = errors.New("no")

func (m *mounter) Mount(device string, parent *os.File, name string, hidden bool) error {
	if m.fails {
		return errMount
	}
	m.did = append(m.did, "mount "+device+" "+filepath.Base(filepath.Clean(parent.Name()))+"/"+name)
	return os.WriteFile(filepath.Join(parent.Name(), name, "mounted"), nil, 0o600)
}

func (m *mounter) Unmount(parent *os.File, name string) error {
	if m.fails {
		return errMount
	}
	m.did = append(m.did, "unmount "+filepath.Base(filepath.Clean(parent.Name()))+"/"+name)
	return nil
}

func (m *mounter) Fill(*os.File, string) (host.Fill, error) {
	if m.fails {
		return host.Fill{}, errMount
	}
	return m.fill, nil
}

// The scratch directory of a sandbox with a volume is what is mounted there; what the
// volume says is its usage, and before the directory goes it is taken away.
//
// row: S0-083, S0-092
func TestVolume(t *testing.T) {
	t.Parallel()
	execute := t.TempDir()
	m := &mounter{fill: host.Fill{UsedBytes: 5000, Files: 3, Full: true}}
	spec := Spec{Execute: execute, Starter: host.ProcID{PID: 7, Start: 1}, Mode: 0o750, Volume: &host.Volume{Device: "/dev/v"}, Mounter: m}
	s, err := Create(spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Root().Stat("mounted"); err != nil {
		t.Errorf("the scratch directory is not what was mounted: %v", err)
	}
	if info, err := os.Stat(s.Scratch()); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("%v, %v", info, err)
	}
	if u := s.Usage(); u != (Usage{KiB: 5, Files: 3, Full: true}) {
		t.Errorf("%+v", u)
	}
	if err := errors.Join(s.RemoveJob(), s.Remove()); err != nil {
		t.Error(err)
	}
	if want := []string{"mount /dev/v dir_7/scratch", "unmount dir_7/scratch"}; !slices.Equal(m.did, want) {
		t.Errorf("%q", m.did)
	}
	m.fails = true
	if s, err := Create(spec); !errors.Is(err, errMount) {
		t.Errorf("%v, %v", s, err)
	}
	if left, err := os.ReadDir(execute); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// What a dead starter left mounted is taken away before its directory.
func TestVolumeOfADeadStarter(t *testing.T) {
	t.Parallel()
	execute := t.TempDir()
	m := &mounter{}
	s, err := Create(Spec{Execute: execute, Starter: host.ProcID{PID: 7, Start: 1}, Mode: 0o700, Volume: &host.Volume{Device: "/dev/v"}, Mounter: m})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Record(Record{Boot: "another", Starter: host.ProcID{PID: 7, Start: 1}, Volume: "slot1+1_1"}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	w := Sweeper{Census: &census{}, Mounter: m}
	m.did = nil
	if swept, err := w.Sweep(execute); err != nil || len(swept.Removed) != 1 || !slices.Equal(m.did, []string{"unmount dir_7/scratch"}) {
		t.Errorf("%+v, %v, %q", swept, err, m.did)
	}
}
