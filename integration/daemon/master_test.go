// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/observe"
)

// asDaemon makes the test binary a daemon that condor_master starts.
const asDaemon = "EXECPOINT_TEST_AS_DAEMON"

func TestMain(m *testing.M) {
	if root := os.Getenv(asDaemon); root != "" {
		os.Exit(child(root))
	}
	os.Exit(realpool.Main(m))
}

// child is the main program of a daemon under a real condor_master.
func child(root string) int {
	debug, _ := observe.ParseDebug("D_FULLDEBUG D_PID")
	file, err := observe.OpenLog(filepath.Join(filepath.Dir(root), "log", "StartLog"), observe.LogLimit{Bytes: 1 << 20}, 1, time.Now)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return daemon.ExitError
	}
	defer file.Close()
	log := slog.New(observe.NewDebugHandler(file, debug, os.Getpid()))
	if err := childOf(root, log); err != nil {
		log.Error("the daemon failed", "err", err)
		return daemon.ExitError
	}
	return daemon.ExitOK
}

func childOf(root string, log *slog.Logger) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP)
	in, err := daemon.ParseInherit(os.Getenv(daemon.InheritVariable), os.Getenv(daemon.PrivateInheritVariable))
	if err != nil {
		return err
	}
	if in.Parent == nil || in.Family == nil {
		return errors.New("the master handed down no sessions")
	}
	c, err := assemble(root, in, os.Getenv(daemon.CookieVariable), log)
	if err != nil {
		return err
	}
	c.down = make(chan daemon.Mode, 4)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := c.door.Open(ctx); err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- c.door.Serve(ctx) }()
	to, err := cedar.ParseSinful(in.ParentAddress)
	if err != nil {
		return err
	}
	parent := &daemon.Parent{
		Address: to, PID: os.Getpid(), Silence: func() time.Duration { return 93 * time.Second }, Log: log,
		Send: func(ctx context.Context, to cedar.Sinful, command int) (*cedar.Conn, error) {
			conn, session, err := c.client.Command(ctx, to, command, security.Options{})
			if err == nil {
				log.Info("parent", "command", command, "session", session.Peer.User)
			}
			return conn, err
		},
	}
	lives := make(chan struct{})
	go func() { parent.KeepAlive(ctx); close(lives) }()
	parent.Ready(ctx)
	for {
		select {
		case s := <-signals:
			switch s {
			case syscall.SIGHUP:
				c.orderly.Hangup()
			case syscall.SIGQUIT:
				c.orderly.Quit()
			default:
				c.orderly.Terminate()
			}
			log.Info("signal", "signal", s.String(), "ordered", c.ordered())
		case m := <-c.down:
			log.Info("going down", "mode", m.String())
			cancel()
			<-lives
			return <-served
		}
	}
}

// copyBinary puts this test's program where anybody may run it.
func (s *site) copyBinary(to string) {
	s.TB.Helper()
	self, err := os.Executable()
	s.Must(err)
	from, err := os.Open(self)
	s.Must(err)
	defer from.Close()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	s.Must(err)
	_, err = io.Copy(f, from)
	s.Must(errors.Join(err, f.Close()))
}

// waitFor waits until a log has a text.
func (s *site) waitFor(log, text string) {
	s.TB.Helper()
	s.eventually(text, func() error {
		if !strings.Contains(s.Log(log), text) {
			return fmt.Errorf("%s has:\n%s", log, s.Log(log))
		}
		return nil
	})
}

// A real condor_master starts a daemon of ours, hears that it lives and is
// ready, and has it go down: with a port of its own, and behind the shared
// port that the master runs.
func TestRealMaster(t *testing.T) {
	t.Parallel()
	for name, shared := range map[string]string{"own port": "false", "shared port": "true"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "DAEMON_LIST = MASTER STARTD\nSTARTD = $(LOCAL_DIR)/citizen\nSTARTD_ARGS =\nMASTER_DEBUG = D_DAEMONCORE D_COMMAND\nMASTER_LOG = $(LOG)/MasterLog\n"+
				"MASTER_ADDRESS_FILE = $(LOG)/.master_address\nSHARED_PORT_PORT = 0\nUSE_SHARED_PORT = "+shared+"\nMASTER_UPDATE_INTERVAL = 3000\n")
			s.copyBinary(filepath.Join(s.Dir, "citizen"))
			s.Must(os.WriteFile(s.Config, fmt.Appendf(nil, "%sSTARTD_ENVIRONMENT = \"%s=%s\"\n", must(os.ReadFile(s.Config)), asDaemon, s.Config), 0o644))
			s.Start("condor_master")
			s.waitFor("MasterLog", "received childalive")
			s.waitFor("MasterLog", "Setting ready state 'Ready' for STARTD")
			s.waitFor("StartLog", "session=condor@parent")

			text, err := os.ReadFile(filepath.Join(s.Dir, "log", ".startd_address"))
			s.Must(err)
			at, err := daemon.ReadAddress(string(text))
			s.Must(err)
			if lines := strings.Split(string(text), "\n"); len(lines) != 4 || lines[1] != version || !strings.HasPrefix(lines[2], "$CondorPlatform: ") {
				t.Errorf("the address file has %q", text)
			}
			if (at.SockID != "") != (shared == "true") {
				t.Errorf("the address is %s", at)
			}
			out, err := s.tool("condor_ping", "-verbose", "-type", "STARTD", "ADMINISTRATOR")
			has(t, "condor_ping", out, err, "Authorized:", "TRUE")

			out, err = s.tool("condor_reconfig", "-master")
			has(t, "condor_reconfig", out, err, "Sent")
			s.waitFor("StartLog", "signal=hangup")
			out, err = s.tool("condor_off", "-startd", "-fast")
			has(t, "condor_off -startd -fast", out, err, "Sent")
			s.waitFor("StartLog", "going down mode=fast")
			s.waitFor("MasterLog", "exited with status 0")
			if log := s.Log("StartLog"); strings.Contains(log, "ERROR") {
				t.Errorf("our log has errors:\n%s", log)
			}
			if _, err := os.Stat(filepath.Join(s.Dir, "log", ".startd_address")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the address file is left: %v", err)
			}
		})
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
