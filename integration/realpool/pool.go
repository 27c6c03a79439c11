// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package realpool

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Patience is how long anything in a pool may take that is not said to take
// its time.
const Patience = 60 * time.Second

// settings are those of New, before what a test adds.
const settings = `LOCAL_DIR = @DIR@
LOCAL_CONFIG_FILE =
LOCAL_CONFIG_DIR =
LOG = $(LOCAL_DIR)/log
SPOOL = $(LOCAL_DIR)/spool
EXECUTE = $(LOCAL_DIR)/execute
LOCK = $(LOCAL_DIR)/lock
RUN = $(LOCAL_DIR)/run
SEC_PASSWORD_DIRECTORY = $(LOCAL_DIR)/passwords.d
SEC_TOKEN_SYSTEM_DIRECTORY = $(LOCAL_DIR)/tokens.d
CONDOR_HOST = 127.0.0.1
BIND_ALL_INTERFACES = False
NETWORK_INTERFACE = 127.0.0.1
use ROLE : Personal
COLLECTOR_HOST = 127.0.0.1:@PORT@
COLLECTOR_ADDRESS_FILE = @DIR@/log/.collector_address
TRUST_DOMAIN = execpoint.test
UID_DOMAIN = execpoint.test
USE_SHARED_PORT = False
ALLOW_READ = *
ALLOW_WRITE = *
ALLOW_DAEMON = *
ALLOW_ADVERTISE_STARTD = *
ALLOW_ADVERTISE_SCHEDD = *
ALLOW_ADVERTISE_MASTER = *
ALLOW_NEGOTIATOR = *
ALLOW_ADMINISTRATOR = *
ALLOW_CONFIG = *
ALLOW_CLIENT = *
SEC_DEFAULT_AUTHENTICATION_METHODS = FS, IDTOKENS
SEC_DEFAULT_AUTHENTICATION = REQUIRED
SEC_READ_AUTHENTICATION = OPTIONAL
SEC_CLIENT_AUTHENTICATION = OPTIONAL
CONDOR_FSYNC = False
RunBenchmarks = False
STARTD_DETECT_GPUS = false
START = True
SUSPEND = False
PREEMPT = False
NEGOTIATOR_INTERVAL = 2
NEGOTIATOR_MIN_INTERVAL = 1
NEGOTIATOR_CYCLE_DELAY = 1
SCHEDD_INTERVAL = 2
SCHEDD_MIN_INTERVAL = 1
UPDATE_INTERVAL = 5
JOB_START_DELAY = 0
JOB_DEFAULT_REQUESTMEMORY = 64
JOB_DEFAULT_REQUESTDISK = 1024
STARTD_ATTRS = $(STARTD_ATTRS), Rig
MAX_HISTORY_LOG = 1000000000
`

// Pool is a directory with a configuration, and the daemons that a test starts
// with it. A method that fails ends the test.
type Pool struct {
	TB testing.TB
	// Installation is where the daemons and the original are.
	Installation
	Dir    string // everything of the pool, removed at the end unless the test failed or EXECPOINT_TEST_KEEP is set
	Config string // the file
	Port   int    // the collector's, or for whatever the configuration has @PORT@
	lines  string
	user   string // of the daemons, where they are not the test's own
	cred   *syscall.Credential
}

// New is Make with settings by which a collector, a negotiator and a schedd
// serve jobs without delay, and lines added to them.
func New(tb testing.TB, lines string) *Pool {
	tb.Helper()
	if !Find(tb).Version.AtLeast(25, 0, 0) {
		// Older ones take others at the same place for relatives, though no
		// condor_master started them, and are refused.
		lines = "SEC_USE_FAMILY_SESSION = False\n" + lines
	}
	return Make(tb, settings+lines)
}

// Make makes the directory and the configuration of a pool, in which @DIR@ and
// @PORT@ are replaced by the directory and by a port that is free. Where HTCondor
// is stands before the lines. Nothing runs yet.
func Make(tb testing.TB, lines string) *Pool {
	tb.Helper()
	in := Find(tb)
	dir := shortDir(tb)
	p := &Pool{TB: tb, Installation: in, Dir: dir, Config: filepath.Join(dir, "condor_config")}
	tb.Cleanup(func() {
		if tb.Failed() || os.Getenv("EXECPOINT_TEST_KEEP") != "" {
			tb.Logf("what the daemons left is in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	p.Must(os.Chmod(dir, 0o755))
	p.lowerRights()
	p.Own(dir)
	p.lines = p.knobs() + Older(p.Version) + lines
	p.folders(dir)
	p.listen()
	return p
}

// shortDir makes a directory. Not tb.TempDir: its name may be too long for a
// socket. Not os.MkdirTemp: its names vary in length, and with them the size of
// files in which they are.
func shortDir(tb testing.TB) string {
	tb.Helper()
	for {
		dir := filepath.Join(os.TempDir(), fmt.Sprintf("eppool%010d", rand.Uint32()))
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			return dir
		}
		if !errors.Is(err, os.ErrExist) {
			tb.Fatal(err)
		}
	}
}

// listen chooses a port and writes the configuration.
func (p *Pool) listen() {
	p.TB.Helper()
	p.Port = FreePort(p.TB)
	p.Write(p.Config, strings.NewReplacer("@DIR@", p.Dir, "@PORT@", strconv.Itoa(p.Port)).Replace(p.lines), 0o644)
}

// folders makes what a daemon with LOCAL_DIR there needs.
func (p *Pool) folders(dir string) {
	p.TB.Helper()
	for _, sub := range []string{"log", "spool", "execute", "lock", "run", "passwords.d", "tokens.d"} {
		p.Mkdir(filepath.Join(dir, sub))
		if strings.HasSuffix(sub, "s.d") {
			p.Must(os.Chmod(filepath.Join(dir, sub), 0o700))
		}
	}
}

// Must fails the test for an error.
func (p *Pool) Must(err error) {
	p.TB.Helper()
	if err != nil {
		p.TB.Fatal(err)
	}
}

// lowerRights finds the user to run the daemons as.
func (p *Pool) lowerRights() {
	p.TB.Helper()
	if os.Geteuid() != 0 {
		return
	}
	u, err := user.Lookup(cmp.Or(os.Getenv(userKnob), "nobody"))
	p.Must(err)
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	p.Must(err)
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	p.Must(err)
	p.user = u.Username
	p.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// Mkdir makes a directory that belongs to the user of the daemons.
func (p *Pool) Mkdir(path string) {
	p.TB.Helper()
	p.Must(os.MkdirAll(path, 0o755))
	p.Own(path)
}

// Own gives a file to the user of the daemons.
func (p *Pool) Own(path string) {
	p.TB.Helper()
	if p.cred != nil {
		p.Must(os.Lchown(path, int(p.cred.Uid), int(p.cred.Gid)))
	}
}

// OwnAll gives everything in a directory to the user of the daemons.
func (p *Pool) OwnAll(dir string) {
	p.TB.Helper()
	p.Must(filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			p.Own(path)
		}
		return err
	}))
}

// Write makes a file that belongs to the user of the daemons.
func (p *Pool) Write(path, text string, mode os.FileMode) {
	p.TB.Helper()
	p.Must(os.WriteFile(path, []byte(text), mode))
	p.Must(os.Chmod(path, mode))
	p.Own(path)
}

// FreePort is a port of the loopback interface that is free, below those that
// the system gives out by itself: hardly anybody gets it before it is used.
func FreePort(tb testing.TB) int {
	tb.Helper()
	for range 100 {
		l, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(10000+rand.IntN(20000)))
		if err != nil {
			continue
		}
		defer func() { _ = l.Close() }()
		return l.Addr().(*net.TCPAddr).Port
	}
	tb.Fatal("no port is free")
	return 0
}

// Command is a program with the pool's configuration, in its directory. A name
// without a slash is HTCondor's, if it has such a program.
func (p *Pool) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	if path := p.Program(name); path != "" && !strings.Contains(name, "/") {
		name = path
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(append(os.Environ(), "CONDOR_CONFIG="+p.Config, "HOME="+p.Dir), p.Env()...)
	cmd.Dir = p.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.cred}
	return cmd
}

// Run runs a tool and returns what it printed.
func (p *Pool) Run(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	cmd := p.Command(ctx, name, args...)
	var out, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &bad
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out.String(), bad.String())
	}
	return out.String(), nil
}

// Tool runs a tool that must succeed.
func (p *Pool) Tool(name string, args ...string) string {
	p.TB.Helper()
	out, err := p.Run(context.Background(), name, args...)
	p.Must(err)
	return out
}

// notYet is what condor_submit says of a schedd that may take jobs later.
var notYet = regexp.MustCompile(`Failed to connect to local queue manager|Can't find address of local schedd`)

// Submit runs condor_submit in a directory until the schedd has taken the jobs,
// and returns what it printed. One that has just begun is not found yet, and one
// that is busy lets condor_submit wait at its door for longer than
// authentication may take; both are tried again.
func (p *Pool) Submit(dir string, args ...string) string {
	p.TB.Helper()
	var out []byte
	p.Eventually("condor_submit", Patience, func(ctx context.Context) error {
		cmd := p.Command(ctx, "condor_submit", args...)
		cmd.Dir = dir
		var err error
		if out, err = cmd.CombinedOutput(); err == nil {
			return nil
		}
		if err = fmt.Errorf("condor_submit: %w\n%s", err, out); !notYet.Match(out) {
			p.TB.Fatal(err)
		}
		return err
	})
	return string(out)
}

// Begin starts the collector, the negotiator and the schedd, and waits until
// they answer. The schedd is returned, for it may be restarted.
func (p *Pool) Begin() *Daemon {
	p.TB.Helper()
	return p.BeginWith(func() {})
}

// BeginWith does the same, with more started once the collector answers and
// before the schedd.
func (p *Pool) BeginWith(more func()) *Daemon {
	p.TB.Helper()
	p.Collector()
	p.Start("condor_negotiator")
	more()
	schedd := p.Start("condor_schedd")
	p.ScheddAnswers()
	return schedd
}

// Collector starts the collector and waits until it answers. If another process
// was faster to take the port, it gets another one, and the configuration is
// written anew.
func (p *Pool) Collector() *Daemon {
	p.TB.Helper()
	for tries := 0; ; tries++ {
		var args []string
		if !strings.Contains(p.lines, "COLLECTOR_HOST = 127.0.0.1:0") {
			args = []string{"-p", strconv.Itoa(p.Port)} // which condor_master would say
		}
		collector := p.Start("condor_collector", args...)
		p.Must(Until(p.TB.Context(), Patience, 100*time.Millisecond, func(ctx context.Context) error {
			if collector.Ended() {
				return nil
			}
			return p.CollectorAnswers(ctx)
		}))
		if !collector.Ended() {
			return collector
		}
		if tries == 5 {
			p.TB.Fatalf("the collector ends by itself; more in %s/log/CollectorLog", p.Dir)
		}
		p.listen()
	}
}

// CollectorAnswers says why it does not.
func (p *Pool) CollectorAnswers(ctx context.Context) error {
	_, err := p.Run(ctx, "condor_status", "-collector", "-af", "Name")
	return err
}

// ScheddAnswers waits until it does.
func (p *Pool) ScheddAnswers() {
	p.TB.Helper()
	p.Eventually("the schedd answers", Patience, func(ctx context.Context) error {
		_, err := p.Run(ctx, "condor_q", "-totals")
		return err
	})
}

// Log returns a log of the pool's daemons, or why there is none.
func (p *Pool) Log(name string) string { return ReadLog(p.Dir, name) }

// ReadLog returns a log of the daemons whose LOCAL_DIR is dir, or why there is
// none.
func ReadLog(dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, "log", name))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// FullHost is what the real daemons take for the name of this machine.
func (p *Pool) FullHost() string {
	p.TB.Helper()
	return strings.TrimSpace(p.Tool("condor_config_val", "FULL_HOSTNAME"))
}

// Eventually asks again and again until there is no error.
func (p *Pool) Eventually(what string, limit time.Duration, ask func(context.Context) error) {
	p.TB.Helper()
	if err := Until(p.TB.Context(), limit, 100*time.Millisecond, ask); err != nil {
		p.TB.Fatalf("%s: not within %v: %v", what, limit, err)
	}
}

// Until asks again every step until there is no error, and returns the last
// one when the limit has passed.
func Until(ctx context.Context, limit, step time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(step)
	defer tick.Stop()
	var last error
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // an end in the middle of asking says nothing
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-tick.C:
		}
	}
}
