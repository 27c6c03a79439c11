// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package root

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
)

func TestMain(m *testing.M) { os.Exit(realpool.Main(m)) }

// cpus is how many jobs run at a time.
const cpus = 8

// slotUser is an account that every system has and that owns nothing.
const slotUser = "games"

// world is a pool of a user with an Execution Point of root.
type world struct {
	t      *testing.T
	pool   *realpool.Pool
	ep     *realpool.EP
	owner  *user.User // who submits the jobs
	jobs   string     // the directory from which they are submitted
	secret string     // a file of root's
	base   string     // of the Execution Point's configuration
	rounds int
}

// newWorld starts it, or skips the test where it cannot be.
func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, func(*world) {})
}

// newWorldOf is newWorld with an Execution Point that was changed before it
// starts.
func newWorldOf(t *testing.T, change func(*world)) *world {
	t.Helper()
	realpool.NeedRoot(t)
	owner := realpool.JobUser(t)
	t.Setenv("EXECPOINT_TEST_USER", owner.Username)
	// The Execution Point proves who it is by a token.
	w := &world{t: t, owner: owner, pool: realpool.New(t, "SCHEDD_DEBUG = D_FULLDEBUG\nSHADOW_DEBUG = D_FULLDEBUG\nMAX_JOBS_RUNNING = 1000\nSEC_USE_FAMILY_SESSION = False\nKEEP_DATA_CLAIM_IDLE = 3\n")}
	w.pool.Begin()
	w.jobs = filepath.Join(w.pool.Dir, "jobs")
	w.pool.Mkdir(w.jobs)
	w.secret = filepath.Join(w.pool.Dir, "secret")
	w.must(os.WriteFile(w.secret, []byte(secretText), 0o600))
	w.ep = w.pool.NewEP(realpool.Ours, cpus, "SEC_CLIENT_AUTHENTICATION_METHODS = IDTOKENS\nSTARTER_DEBUG = D_FULLDEBUG\nSTARTD_DEBUG = D_FULLDEBUG\nKILLING_TIMEOUT = 5\n")
	w.ep.AsRoot = true
	token := w.pool.Tool("condor_token_create", "-identity", "node17@execpoint.test", "-authz", "ADVERTISE_STARTD", "-authz", "READ", "-authz", "DAEMON")
	w.must(os.WriteFile(filepath.Join(w.ep.Dir, "tokens.d", "pool"), []byte(token), 0o600))
	w.must(filepath.WalkDir(w.ep.Dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, 0, 0)
	}))
	text, err := os.ReadFile(filepath.Join(w.ep.Dir, "condor_config"))
	w.must(err)
	w.base = string(text)
	change(w)
	w.ep.Begin()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("StartLog:\n%s", realpool.Last(w.ep.Log("StartLog"), 60))
		}
	})
	return w
}

// secretText is what no job and no submitter may see.
const secretText = "nobody's business\n"

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// round gives the Execution Point other settings.
func (w *world) round(lines string) {
	w.t.Helper()
	w.rounds++
	text := fmt.Sprintf("%s\nRound = %d\nSTARTD_ATTRS = $(STARTD_ATTRS), Round\n%s", w.base, w.rounds, lines)
	w.must(os.WriteFile(filepath.Join(w.ep.Dir, "condor_config"), []byte(text), 0o644))
	w.ep.Signal(syscall.SIGHUP)
	w.pool.Eventually("the settings hold", realpool.Patience, func(ctx context.Context) error {
		out, err := w.pool.Run(ctx, "condor_status", "-constraint", fmt.Sprintf("PartitionableSlot && Round == %d", w.rounds), "-af", "Name")
		if err == nil && !strings.Contains(out, "slot1@") {
			err = fmt.Errorf("condor_status shows %q", out)
		}
		return err
	})
}

// job is one that was submitted.
type job struct {
	*world
	dir string
	id  string
}

// submit submits a job that is a shell script, from a directory of its own.
func (w *world) submit(name, script, lines string) *job {
	w.t.Helper()
	j := &job{world: w, dir: filepath.Join(w.jobs, fmt.Sprintf("%s%d", name, w.rounds))}
	w.pool.Mkdir(j.dir)
	w.pool.Write(filepath.Join(j.dir, "script"), "#!/bin/sh\n"+script, 0o755)
	w.pool.Write(filepath.Join(j.dir, "in"), "input of "+name+"\n", 0o640)
	w.pool.Write(filepath.Join(j.dir, "submit"), fmt.Sprintf(`initialdir = %s
executable = %s/script
output = out
error = err
log = log
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
transfer_input_files = in
requirements = Rig == "ours" && Round == %d
%s
queue
`, j.dir, j.dir, w.rounds, lines), 0o644)
	out := w.pool.Submit(j.dir, "-terse", "submit")
	j.id, _, _ = strings.Cut(strings.TrimSpace(out), " ")
	return j
}

// file is one that came back, or why there is none.
func (j *job) file(name string) string {
	b, err := os.ReadFile(filepath.Join(j.dir, name))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// until waits until the log of the job matches.
func (j *job) until(event string) *job {
	j.t.Helper()
	j.pool.Eventually("the job "+j.id+" says "+event, realpool.Patience, func(context.Context) error {
		if log := j.file("log"); !strings.Contains(log, event) {
			return fmt.Errorf("its log is\n%s", log)
		}
		return nil
	})
	return j
}

// done waits until the job has ended well, and returns its output.
func (j *job) done() string {
	j.t.Helper()
	j.until("Job terminated.")
	return j.file("out")
}

// remove takes a job that is held or runs out of the queue.
func (j *job) remove() {
	j.t.Helper()
	j.pool.Tool("condor_rm", j.id)
	j.until("Job was aborted")
}

// scratch is the directory in which a job runs that wrote there the file
// called here.
func (j *job) scratch() string {
	j.t.Helper()
	var found string
	j.pool.Eventually("the job "+j.id+" runs", realpool.Patience, func(context.Context) error {
		marks, err := filepath.Glob(filepath.Join(j.ep.Dir, "execute", "dir_*", "scratch", "here-"+filepath.Base(j.dir)))
		if err == nil && len(marks) == 0 {
			return fmt.Errorf("there is no mark of it; its log is\n%s", j.file("log"))
		}
		if err == nil {
			found = filepath.Dir(marks[0])
		}
		return err
	})
	return found
}

// idle waits until nothing of any job is left.
func (w *world) idle() {
	w.t.Helper()
	w.pool.Eventually("nothing is left in EXECUTE", realpool.Patience, func(context.Context) error {
		if left := w.ep.Scratch(); len(left) > 0 {
			return fmt.Errorf("%q", left)
		}
		return nil
	})
}

// uid is the number of a user.
func (w *world) uid(name string) string {
	w.t.Helper()
	u, err := user.Lookup(name)
	w.must(err)
	return u.Uid
}

// of says whose a file is, as uid and mode.
func of(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return err.Error()
	}
	return strconv.FormatUint(uint64(info.Sys().(*syscall.Stat_t).Uid), 10) + " " + info.Mode().String()
}

// processes are those of a user that were started with a word in their command
// line.
func (w *world) processes(word string) []int {
	var found []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		line, err := os.ReadFile(dir + "/cmdline")
		if err == nil && strings.Contains(string(line), word) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			found = append(found, pid)
		}
	}
	return found
}

// soon is how long a job may take to notice something.
const soon = 20 * time.Second
