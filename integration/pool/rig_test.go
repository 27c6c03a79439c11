// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/classad"
)

// selfCheck, set to a prefix under which HTCondor is, puts a second original
// where ours would stand: whatever then differs is the fault of the tests.
const selfCheck = "EXECPOINT_TEST_SELF_CHECK"

// roomy is one large partitionable slot that starts whatever comes.
const roomy = `
NUM_CPUS = 64
MEMORY = 65536
DISK = 1048576000
STARTD_DETECT_GPUS = false
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = true
NUM_SLOTS_TYPE_1 = 1
STARTD_ATTRS = $(STARTD_ATTRS), Rig
RunBenchmarks = False
START = True
SUSPEND = False
PREEMPT = False
JOB_DEFAULT_REQUESTMEMORY = 64
JOB_DEFAULT_REQUESTDISK = 1024
NEGOTIATOR_INTERVAL = 2
NEGOTIATOR_MIN_INTERVAL = 1
SCHEDD_INTERVAL = 2
SCHEDD_MIN_INTERVAL = 1
UPDATE_INTERVAL = 3
PERIODIC_EXPR_INTERVAL = 2
SEC_USE_FAMILY_SESSION = False
SCHEDD.MAX_JOBS_RUNNING = 1000
JOB_START_DELAY = 0
SCHEDD_CLUSTER_INITIAL_VALUE = 700001
SHADOW_DEBUG = D_FULLDEBUG
STARTER_DEBUG = D_FULLDEBUG D_COMMAND
STARTD_DEBUG = D_FULLDEBUG D_COMMAND
MAX_SHADOW_LOG = 100000000
MAX_HISTORY_LOG = 100000000
COLLECTOR_DEBUG =
NEGOTIATOR_DEBUG = D_MATCH
SCHEDD_DEBUG = D_FULLDEBUG
`

// rig is a pool with the original and ours side by side. Each advertises its
// name as Rig, by which the jobs choose.
type rig struct {
	*condor
	sides [2]*side
}

// side is an Execution Point of a rig, with a directory of its own.
type side struct {
	rig    *rig
	name   string // of the same length for both: it is in what jobs print
	dir    string
	config string
	startd string // the program
	master bool   // condor_master starts it
}

// newRig starts a pool and waits until both sides are shown. The lines are the
// pool's, the access point's included.
func newRig(t *testing.T, lines string) *rig {
	t.Helper()
	return newRigBelow(t, lines, false)
}

// newRigBelow is newRig; each side may have a condor_master of its own.
func newRigBelow(t *testing.T, lines string, master bool) *rig {
	t.Helper()
	r := &rig{condor: newCondor(t, roomy+lines)}
	for i, name := range [...]string{"orig", "ours"} {
		s := &side{rig: r, name: name, dir: filepath.Join(r.Dir, name), master: master, startd: "condor_startd"}
		r.sides[i] = s
		for _, sub := range []string{"", "log", "execute", "lock", "run", "spool", "tokens.d", "passwords.d"} {
			r.Mkdir(filepath.Join(s.dir, sub))
		}
		text := "include : " + r.Config + "\nLOCAL_DIR = " + s.dir + "\nSTARTD_NAME = " + name + "\nRig = \"" + name + "\"\nMASTER_NAME = " + name + "\nDAEMON_LIST = MASTER, STARTD\n"
		if name == "ours" && os.Getenv(selfCheck) == "" {
			s.startd = filepath.Join(s.dir, "condor_startd")
			text += "STARTD = " + s.startd + "\nSTARTER = " + filepath.Join(s.dir, "condor_starter") + "\n"
			r.Install(s.dir)
		}
		s.config = filepath.Join(s.dir, "condor_config")
		r.Must(os.WriteFile(s.config, []byte(text), 0o644))
	}
	r.begin("condor_negotiator", "condor_schedd")
	for _, s := range r.sides {
		s.start()
	}
	for _, s := range r.sides {
		s.shown()
	}
	eventually(t, "the schedd answers", func() error { _, err := r.run("condor_q", "-totals"); return err })
	return r
}

func TestMain(m *testing.M) {
	if signal.Ignored(os.Interrupt) {
		// Started in the background; jobs would inherit it, and could not trap it.
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	os.Exit(realpool.Main(m))
}

// start starts the side's condor_startd.
func (s *side) start() {
	s.rig.TB.Helper()
	program := s.startd
	if s.master {
		program = "condor_master"
	}
	d := s.rig.NewDaemon(s.config, program)
	d.Start()
	s.rig.running[s.name] = d
}

// ended waits until the side's condor_startd is gone by itself.
func (s *side) ended() {
	s.rig.TB.Helper()
	d := s.rig.running[s.name]
	delete(s.rig.running, s.name)
	if !d.Wait(patience) {
		s.rig.TB.Errorf("the startd of %s did not end within %v", s.name, patience)
	}
}

// shown waits until the side's partitionable slot is in the collector.
func (s *side) shown() {
	s.rig.TB.Helper()
	eventually(s.rig.TB, s.name+" is shown", func() error {
		out, err := s.rig.run("condor_status", "-constraint", `Rig == "`+s.name+`"`, "-af", "Name")
		if err == nil && !strings.Contains(out, "slot1@") {
			err = fmt.Errorf("condor_status shows %q", out)
		}
		return err
	})
}

// slots are the side's slots as it says itself.
func (s *side) slots() []*classad.Ad {
	s.rig.TB.Helper()
	return s.rig.ads("-direct", s.host(), "-constraint", `Rig == "`+s.name+`"`, "-sort", "Name")
}

// host is a name by which tools find the side's daemon: that of its first slot
// or, for those of 24.0, its own.
func (s *side) host() string {
	s.rig.TB.Helper()
	if !s.rig.Version.AtLeast(23, 2, 0) || s.rig.Version.AtLeast(25, 0, 0) {
		return s.firstSlot()
	}
	return s.name + "@" + s.rig.FullHost()
}

// firstSlot is the name of the side's first slot, by which condor_drain finds
// its daemon in all versions.
func (s *side) firstSlot() string {
	s.rig.TB.Helper()
	return "slot1@" + s.name + "@" + s.rig.FullHost()
}

// idle waits until the side has nothing but its partitionable slot, which is
// whole again.
func (s *side) idle() {
	s.rig.TB.Helper()
	eventually(s.rig.TB, s.name+" has its slot back", func() error {
		out, err := s.rig.run("condor_status", "-direct", s.host(), "-constraint", `Rig == "`+s.name+`"`, "-af", "Cpus", "State")
		if err == nil && strings.Join(strings.Fields(out), " ") != "64 Unclaimed" {
			err = fmt.Errorf("its slots are %q", out)
		}
		return err
	})
}

// scratch are the directories of jobs in the side's EXECUTE.
func (s *side) scratch() []string {
	s.rig.TB.Helper()
	list, err := os.ReadDir(filepath.Join(s.dir, "execute"))
	s.rig.Must(err)
	var names []string
	for _, e := range list {
		if strings.HasPrefix(e.Name(), "dir_") {
			names = append(names, e.Name())
		}
	}
	return names
}

// log returns a log of the side.
func (s *side) log(name string) string { return realpool.ReadLog(s.dir, name) }

// blame says where to look when a side disappoints.
func (s *side) blame() string {
	var b strings.Builder
	for line := range strings.Lines(s.log("StartLog")) {
		if strings.Contains(line, "ERROR") || strings.Contains(line, "WARN") || strings.Contains(line, "refused") {
			b.WriteString(line)
		}
	}
	return fmt.Sprintf("%s\nmore in %s/log", realpool.Last(b.String(), 5), s.dir)
}

// files makes files below a directory, for the user of the daemons. A name
// that ends in a slash is an empty directory; content "->x" is a symbolic link
// to x; content "#!…" makes a program.
func (c *condor) files(dir string, all map[string]string) {
	c.TB.Helper()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		path, content := filepath.Join(dir, name), all[name]
		if strings.HasSuffix(name, "/") {
			c.Mkdir(path)
			continue
		}
		c.Must(os.MkdirAll(filepath.Dir(path), 0o755))
		if to, ok := strings.CutPrefix(content, "->"); ok {
			c.Must(os.Symlink(to, path))
			continue
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		c.Must(os.WriteFile(path, []byte(content), mode))
	}
	c.OwnAll(dir)
}
