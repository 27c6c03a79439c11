// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package golden

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
)

// Directories below /tmp are not made private for a job that runs there, so that
// the pool is elsewhere.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		if os.Geteuid() != 0 {
			return realpool.Main(m)
		}
		dir, err := os.MkdirTemp("/var/spool", "epgolden")
		if err != nil || os.Chmod(dir, 0o755) != nil || os.Setenv("TMPDIR", dir) != nil {
			panic(err)
		}
		defer func() { _ = os.Remove(dir) }() // what a failed test left stays
		return realpool.Main(m)
	}())
}

// The accounts of the recording, which this machine need not have: Execution Points
// have files of their own that say so.
const (
	users  = "xtester2:x:1102:1102::/home/xtester2:/bin/sh\nxslot1:x:1103:1103::/nonexistent:/bin/sh\nxslot2:x:1104:1104::/nonexistent:/bin/sh\n"
	groups = "xtester2:x:1102:\nxslot1:x:1103:\nxslot2:x:1104:\nxgroup:x:1110:xtester2,xslot1\n"
)

// world is a pool of a user, with an Execution Point of root for each configuration.
type world struct {
	t     *testing.T
	pool  *realpool.Pool
	owner *user.User
	token string
	host  string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	realpool.Patient(t)
	realpool.NeedRoot(t)
	for _, program := range []string{"mount", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			realpool.Missing(t, err.Error(), "install the packages mount and util-linux of Debian")
		}
	}
	owner := realpool.JobUser(t)
	t.Setenv("EXECPOINT_TEST_USER", owner.Username)
	w := &world{t: t, owner: owner, pool: realpool.New(t, "MAX_JOBS_RUNNING = 1000\nSEC_USE_FAMILY_SESSION = False\n")}
	w.pool.Begin()
	w.host = w.pool.FullHost()
	w.token = w.pool.Tool("condor_token_create", "-identity", "node@execpoint.test", "-authz", "ADVERTISE_STARTD", "-authz", "READ", "-authz", "DAEMON")
	for _, sub := range []string{"sub", "tools", "traces"} {
		w.pool.Mkdir(filepath.Join(w.pool.Dir, sub))
	}
	w.must(os.Chmod(w.path("traces"), 0o777))
	w.tools()
	w.must(os.WriteFile(w.path("passwd"), []byte(w.read("/etc/passwd")+users), 0o644))
	w.must(os.WriteFile(w.path("group"), []byte(w.read("/etc/group")+groups), 0o644))
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.pool.Dir, name) }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(path string) string {
	w.t.Helper()
	b, err := os.ReadFile(path)
	w.must(err)
	return string(b)
}

// tools lays the programs that the recorded jobs ran, which say the same.
func (w *world) tools() {
	w.t.Helper()
	scripts, err := filepath.Glob("testdata/tools/*.sh")
	w.must(err)
	for _, path := range scripts {
		w.pool.Write(filepath.Join(w.path("tools"), filepath.Base(path)), w.read(path), 0o755)
	}
	first := filepath.Join(w.path("tools"), "probe.py")
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", first, "./testdata/tools/probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, name := range []string{"trap.py", "hog.py", "left.py"} {
		w.must(os.Link(first, filepath.Join(w.path("tools"), name)))
	}
}

// begin starts an Execution Point with the settings of a case.
func (w *world) begin(name string, cpus int, lines string) *realpool.EP {
	w.t.Helper()
	ep := w.pool.NewNamedEP(realpool.Ours, name, cpus, "SEC_CLIENT_AUTHENTICATION_METHODS = IDTOKENS\nSTARTD_DETECT_GPUS = true\n"+lines)
	ep.AsRoot = true
	real, program := filepath.Join(ep.Dir, "real"), filepath.Join(ep.Dir, "condor_startd")
	inside := "mount --bind " + w.path("passwd") + " /etc/passwd && mount --bind " + w.path("group") + " /etc/group && exec " + real + "/condor_startd -f"
	w.must(errors.Join(os.WriteFile(filepath.Join(ep.Dir, "tokens.d", "pool"), []byte(w.token), 0o600),
		os.Mkdir(real, 0o755), os.Rename(program, filepath.Join(real, "condor_startd")),
		os.WriteFile(program, []byte("#!/bin/sh\nexec unshare -m --propagation private sh -c '"+inside+"'\n"), 0o755)))
	w.must(filepath.WalkDir(ep.Dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, 0, 0)
	}))
	ep.Start()
	return ep
}

// replace puts what is here for the recording's placeholders.
func (w *world) replace(s string) string {
	return strings.NewReplacer("${TOOLS}", w.path("tools"), "${TRACES}", w.path("traces"), "${DIR}", w.pool.Dir, "${T}", strconv.FormatInt(time.Now().Unix()+8, 10)).Replace(s)
}
