// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package realpool

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Patience is how long anything in a pool may take that is not said to take
// its time.
const Patience = 60 * time.Second

// settings are those of every pool, before what a test adds.
const settings = `RELEASE_DIR = @PREFIX@
LOCAL_DIR = @DIR@
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

// Pool is a collector, a negotiator and a schedd, with the Execution Points
// that a test adds.
type Pool struct {
	TB     testing.TB
	Prefix string // under which HTCondor is
	Dir    string // everything of the pool, removed at the end unless the test failed or EXECPOINT_TEST_KEEP is set
	Config string // the file
	lines  string
	port   int
	cred   *syscall.Credential
}

// New makes the directory and the configuration of a pool, with lines added to
// the configuration. Nothing runs yet.
func New(tb testing.TB, lines string) *Pool {
	tb.Helper()
	path, err := exec.LookPath("condor_collector")
	if err != nil {
		tb.Skip("HTCondor is not here: condor_collector is not in PATH")
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		tb.Fatal(err)
	}
	// Not tb.TempDir: its name may be too long for a socket.
	dir, err := os.MkdirTemp("", "eprealpool")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Pool{TB: tb, Prefix: filepath.Dir(filepath.Dir(path)), Dir: dir, Config: filepath.Join(dir, "condor_config")}
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
	p.lines = lines
	p.folders(dir)
	return p
}

// listen chooses a port for the collector and writes the configuration.
func (p *Pool) listen() {
	p.TB.Helper()
	p.port = freePort(p.TB)
	text := strings.NewReplacer("@PREFIX@", p.Prefix, "@DIR@", p.Dir, "@PORT@", strconv.Itoa(p.port)).Replace(settings + p.lines)
	p.Must(os.WriteFile(p.Config, []byte(text), 0o644))
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
	name := os.Getenv("EXECPOINT_TEST_USER")
	if name == "" {
		name = "nobody"
	}
	u, err := user.Lookup(name)
	p.Must(err)
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	p.Must(err)
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	p.Must(err)
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

// Write makes a file that belongs to the user of the daemons.
func (p *Pool) Write(path, text string, mode os.FileMode) {
	p.TB.Helper()
	p.Must(os.WriteFile(path, []byte(text), mode))
	p.Must(os.Chmod(path, mode))
	p.Own(path)
}

func freePort(tb testing.TB) int {
	tb.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// Command is a program with the pool's configuration, in its directory.
func (p *Pool) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	lib := filepath.Join(p.Prefix, "lib")
	cmd.Env = append(os.Environ(), "CONDOR_CONFIG="+p.Config, "HOME="+p.Dir,
		"PATH="+filepath.Join(p.Prefix, "bin")+":"+filepath.Join(p.Prefix, "sbin")+":"+os.Getenv("PATH"),
		"LD_LIBRARY_PATH="+lib+":"+filepath.Join(lib, "condor"))
	cmd.Dir = p.Dir
	// A test that is killed takes them along.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.cred, Pdeathsig: syscall.SIGKILL}
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
	for tries := 0; ; tries++ {
		p.listen()
		collector := p.Start("condor_collector", "-p", strconv.Itoa(p.port)) // which condor_master would say
		err := Until(p.TB.Context(), Patience, 100*time.Millisecond, func(ctx context.Context) error {
			if collector.Ended() {
				return nil
			}
			_, err := p.Run(ctx, "condor_status", "-collector", "-af", "Name")
			return err
		})
		p.Must(err)
		if !collector.Ended() {
			break
		}
		if tries == 5 {
			p.TB.Fatalf("the collector ends by itself; more in %s/log/CollectorLog", p.Dir)
		}
		// Another process was faster to take the port that was free.
	}
	p.Start("condor_negotiator")
	more()
	schedd := p.Start("condor_schedd")
	p.ScheddAnswers()
	return schedd
}

// ScheddAnswers waits until it does.
func (p *Pool) ScheddAnswers() {
	p.TB.Helper()
	p.Eventually("the schedd answers", Patience, func(ctx context.Context) error {
		_, err := p.Run(ctx, "condor_q", "-totals")
		return err
	})
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
