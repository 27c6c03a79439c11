// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/execpoint/execpoint/lib/machine/proctext"
	"github.com/execpoint/execpoint/platform/linux"
)

// groups are the control groups this process lives in: for each controller
// the directories from its own group up to the mount point. Limits hold from
// every level, so that the tightest of the chain counts.
type groups struct {
	unified []string            // version 2
	legacy  map[string][]string // version 1, by controller
}

// maxDepth bounds the levels that are looked at; control groups nest a few
// levels deep, a hostile name may pretend thousands.
const maxDepth = 64

// groupsOf reads where this process lives. A machine without control groups
// has none, which is no error.
func groupsOf(root linux.Root) (groups, error) {
	g := groups{legacy: make(map[string][]string)}
	procFS, err := procfs.NewFS(root.Proc)
	if err != nil {
		return g, err
	}
	self, err := procFS.Self()
	if err != nil {
		return g, err
	}
	member, err := self.Cgroups()
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err != nil {
		return g, broken(filepath.Join(root.Proc, "self/cgroup"), err)
	}
	hybrid := slices.ContainsFunc(member, func(c procfs.Cgroup) bool { return len(c.Controllers) > 0 })
	for _, m := range member {
		switch {
		case len(m.Controllers) == 0 && hybrid:
			g.unified = chain(filepath.Join(root.Cgroup, "unified"), m.Path)
		case len(m.Controllers) == 0:
			g.unified = chain(root.Cgroup, m.Path)
		default:
			for _, c := range m.Controllers {
				// Controllers mounted together have a directory of their
				// joined names and usually a link from each single name.
				dirs := chain(filepath.Join(root.Cgroup, c), m.Path)
				if joined := strings.Join(m.Controllers, ","); joined != c {
					dirs = append(dirs, chain(filepath.Join(root.Cgroup, joined), m.Path)...)
				}
				g.legacy[c] = dirs
			}
		}
	}
	return g, nil
}

// chain returns the directories of group below mount, innermost first, mount
// last. A group outside the mount (seen from within a namespace as /../…, or
// named relative to the host in a container that mounts only its own part)
// leads to directories that are not there, and the mount itself remains.
func chain(mount, group string) []string {
	var dirs []string
	for p := path.Clean("/" + group); p != "/" && len(dirs) < maxDepth; p = path.Dir(p) {
		dirs = append(dirs, filepath.Join(mount, p))
	}
	return append(dirs, mount)
}

// each calls use with every file called name that exists in dirs. Reading goes
// on after a broken one; its error is returned.
func each(dirs []string, name string, use func(path string, text []byte) error) error {
	var problems []error
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		text, err := readText(maxText, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			problems = append(problems, err)
		default:
			if err := use(path, text); err != nil {
				problems = append(problems, broken(path, err))
			}
		}
	}
	return errors.Join(problems...)
}

type quota struct {
	cores float64
	path  string // "" when there is no quota
}

// cpuQuota returns the tightest processor quota.
func (g groups) cpuQuota() (quota, error) {
	var q quota
	tighten := func(cores float64, path string) {
		if q.path == "" || cores < q.cores {
			q = quota{cores, path}
		}
	}
	err2 := each(g.unified, "cpu.max", func(path string, text []byte) error {
		cores, limited, err := proctext.CPUMax(text)
		if limited {
			tighten(cores, path)
		}
		return err
	})
	err1 := each(g.legacy["cpu"], "cpu.cfs_quota_us", func(path string, text []byte) error {
		micros, limited, err := proctext.Limit(text)
		if !limited || micros == 0 {
			return err
		}
		period, limited, err := readLimit(filepath.Dir(path), "cpu.cfs_period_us")
		if err != nil || !limited || period == 0 {
			return err
		}
		tighten(float64(micros)/float64(period), path)
		return nil
	})
	return q, errors.Join(err2, err1)
}

func readLimit(dir, name string) (int64, bool, error) {
	text, err := readText(maxText, dir, name)
	if err != nil {
		return 0, false, err
	}
	return proctext.Limit(text)
}

// cpuset returns the processors the innermost group that says so may use; the
// kernel has already applied the outer ones to it. The path is "" when no
// group says.
func (g groups) cpuset() (proctext.CPUSet, string, error) {
	var set proctext.CPUSet
	source := ""
	take := func(path string, text []byte) error {
		if source != "" || len(strings.TrimSpace(string(text))) == 0 {
			return nil
		}
		s, err := proctext.ParseCPUSet(text)
		if err != nil {
			return err
		}
		set, source = s, path
		return nil
	}
	err := errors.Join(
		each(g.unified, "cpuset.cpus.effective", take),
		each(g.legacy["cpuset"], "cpuset.effective_cpus", take),
		each(g.legacy["cpuset"], "cpuset.cpus", take))
	return set, source, err
}

type memoryLimit struct {
	bytes int64
	path  string // "" when there is no limit
}

// memory returns the tightest memory limit. memory.high counts as well: a
// group above it is slowed down to a crawl (phys_mem.cpp looks at both).
func (g groups) memory() (memoryLimit, error) {
	var m memoryLimit
	tighten := func(path string, text []byte) error {
		bytes, limited, err := proctext.Limit(text)
		if limited && (m.path == "" || bytes < m.bytes) {
			m = memoryLimit{bytes, path}
		}
		return err
	}
	err := errors.Join(
		each(g.unified, "memory.max", tighten),
		each(g.unified, "memory.high", tighten),
		each(g.legacy["memory"], "memory.limit_in_bytes", tighten))
	return m, err
}
