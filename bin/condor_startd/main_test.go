// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/platform/linux/bound"
)

// beDaemon makes the test program the daemon.
const beDaemon = "EXECPOINT_TEST_BE_STARTD"

func TestMain(m *testing.M) {
	if os.Getenv(beDaemon) != "" {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args        string
		status      int
		out, errOut string
	}{
		{"-v", 0, commands.CondorVersion + "\n$CondorPlatform: ", ""},
		{"-version", 0, commands.CondorVersion + "\n$CondorPlatform: ", ""},
		{"-h", 0, commands.Startd.Help(""), ""},
		{"-help", 0, "Usage: condor_startd", ""},
		{"-q", 1, "", "condor_startd: unknown option -q\n\nUsage: condor_startd"},
		{"-local-nam x", 1, "", "condor_startd: unknown option -local-nam; did you mean -local-name?\n"},
		{"-p", 1, "", "condor_startd: -p wants a value"},
		{"-p 70000", 1, "", "condor_startd: -p 70000: want a port from 0 to 65535"},
		{"-f -p x", 1, "", "condor_startd: -p x: want a port from 0 to 65535"},
		{"-c /nonexistent/condor_config", 4, "", "/nonexistent/condor_config"},
	} {
		var out, errOut bytes.Buffer
		if got := run(strings.Fields(tt.args), &out, &errOut); got != tt.status {
			t.Errorf("%s: exit status %d, want %d", tt.args, got, tt.status)
		}
		if !strings.HasPrefix(out.String(), tt.out) || !strings.Contains(errOut.String(), tt.errOut) {
			t.Errorf("%s: %q and %q, want %q and %q", tt.args, out.String(), errOut.String(), tt.out, tt.errOut)
		}
	}
}

// site is a directory with the configuration of one daemon.
type site struct {
	t   *testing.T
	dir string
}

// common is a configuration without rights and without a collector that is there.
const common = `CONDOR_HOST = 127.0.0.1
COLLECTOR_HOST = 127.0.0.1:1
USE_SHARED_PORT = False
NETWORK_INTERFACE = 127.0.0.1
BIND_ALL_INTERFACES = False
NUM_CPUS = 4
MEMORY = 4096
STARTD_DETECT_GPUS = false
ALLOW_READ = *
ALLOW_DAEMON = nobody@nowhere
SEC_DEFAULT_AUTHENTICATION = OPTIONAL
SEC_CLIENT_AUTHENTICATION_METHODS = CLAIMTOBE
STARTD_NAME = here
`

func newSite(t *testing.T, lines string) *site {
	t.Helper()
	s := &site{t, t.TempDir()}
	for _, sub := range []string{"log", "execute", "lock", "spool"} {
		s.must(os.Mkdir(filepath.Join(s.dir, sub), 0o755))
	}
	s.must(os.WriteFile(s.path("condor_config"), []byte("LOCAL_DIR = "+s.dir+"\nLOG = $(LOCAL_DIR)/log\nEXECUTE = $(LOCAL_DIR)/execute\nLOCK = $(LOCAL_DIR)/lock\nSPOOL = $(LOCAL_DIR)/spool\nSTARTD_ADDRESS_FILE = $(LOG)/.startd_address\n"+common+lines), 0o644))
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) command(args ...string) *exec.Cmd {
	self, err := os.Executable()
	s.must(err)
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), beDaemon+"=1", "CONDOR_CONFIG="+s.path("condor_config"), "EXECPOINT_RUNTIME_DIR="+s.path("runs"))
	return cmd
}

// eventually asks again until there is no error.
func eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	end := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %v", what, err)
		}
		<-tick.C
	}
}

// client speaks to the daemon as a tool would.
func (s *site) client() *security.Client {
	s.t.Helper()
	conf, err := config.Load(config.Options{Root: s.path("condor_config"), ReadFile: os.ReadFile, Subsystem: "TOOL"})
	s.must(err)
	settings, err := security.SettingsFrom(conf, security.Sources{Subsystem: "TOOL", ReadFile: os.ReadFile})
	s.must(err)
	methods, err := authn.SettingsFrom(conf, "TOOL")
	s.must(err)
	system := clock.System()
	dialer := &listen.Dialer{Name: func() string { return "test" }}
	c := &security.Client{
		Sessions: security.NewSessions(system, 10), Clock: system, Dial: dialer.Dial, Subsystem: "TOOL", PID: os.Getpid(),
		Version: "$CondorVersion: 25.14.0 2026-11-20 test $", Address: func() string { return "" },
	}
	c.Configure(settings, &authn.Client{Settings: methods, System: authn.System{User: "someone"}})
	return c
}

// slots asks the daemon for the ads of its slots.
func slots(c *security.Client, at cedar.Sinful) ([]*classad.Ad, error) {
	return query(c, at, 5, "Machine")
}

func daemonAds(c *security.Client, at cedar.Sinful) ([]*classad.Ad, error) {
	return query(c, at, 53, "StartD")
}

// query asks the daemon for the ads of a type.
func query(c *security.Client, at cedar.Sinful, command int, kind string) ([]*classad.Ad, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, _, err := c.Command(ctx, at, command, security.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	question, err := classad.ParseAd("MyType = \"Query\"\nTargetType = \""+kind+"\"\nRequirements = true\n", classad.Old)
	if err != nil {
		return nil, err
	}
	conn.PutAd(question, cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		return nil, err
	}
	var all []*classad.Ad
	for {
		more, err := conn.Int()
		if err != nil || more == 0 {
			return all, err
		}
		ad, err := conn.Ad(cedar.AdOptions{})
		if err != nil {
			return nil, err
		}
		all = append(all, ad)
	}
}

// address reads the file that tools on this machine look into.
func (s *site) address() (cedar.Sinful, error) {
	b, err := os.ReadFile(s.path("log/.startd_address"))
	if err != nil {
		return cedar.Sinful{}, err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return cedar.ParseSinful(line)
}

func TestDaemon(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	cmd := s.command("-f", "-n", "named")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	s.must(bound.Start(cmd))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	c := s.client()
	var at cedar.Sinful
	var ads []*classad.Ad
	eventually(t, "the slot is there", func() (err error) {
		if at, err = s.address(); err == nil {
			ads, err = slots(c, at)
		}
		if err == nil && len(ads) != 1 {
			err = errors.New("no slot yet")
		}
		return err
	})
	if name, _ := ads[0].EvalString("Name", nil); !strings.HasPrefix(name, "slot1@named") {
		t.Errorf("Name = %q, want slot1@named", name)
	}
	for _, secret := range []string{"ClaimId", "Capability", "ClaimIdList"} {
		if _, ok := ads[0].Lookup(secret); ok {
			t.Errorf("a query shows %s", secret)
		}
	}

	// Nobody may give orders here: DC_OFF_FAST is refused.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if conn, _, err := c.Command(ctx, at, 60006, security.Options{}); err == nil {
		_ = conn.Close()
		t.Error("whoever asks may send DC_OFF_FAST")
	}

	// A port that somebody opens and says nothing at, or nonsense, holds up
	// nobody.
	for _, nonsense := range []string{"", "GET / HTTP/1.0\r\n\r\n", strings.Repeat("\xff", 4096)} {
		nc, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", at.Port))
		s.must(err)
		defer func() { _ = nc.Close() }()
		_, err = nc.Write([]byte(nonsense))
		s.must(err)
	}
	if _, err := slots(c, at); err != nil {
		t.Fatal(err)
	}

	// SIGHUP takes a new configuration over, but not one that is wrong.
	file, err := os.OpenFile(s.path("condor_config"), os.O_APPEND|os.O_WRONLY, 0)
	s.must(err)
	_, err = file.WriteString("STARTD_ATTRS = Hall\nHall = \"south\"\n")
	s.must(err)
	s.must(cmd.Process.Signal(syscall.SIGHUP))
	hall := func() error {
		ads, err := slots(c, at)
		if err == nil {
			if got, _ := ads[0].EvalString("Hall", nil); got != "south" {
				err = errors.New("Hall = " + got)
			}
		}
		return err
	}
	eventually(t, "the new configuration", hall)
	_, err = file.WriteString("Hall = \"north\"\nPOLLING_INTERVAL = never\n")
	s.must(errors.Join(err, file.Close()))
	s.must(cmd.Process.Signal(syscall.SIGHUP))
	eventually(t, "the log names what is wrong", func() error {
		b, err := os.ReadFile(s.path("log/StartLog"))
		if err == nil && !bytes.Contains(b, []byte("POLLING_INTERVAL")) {
			err = errors.New("it does not")
		}
		return err
	})
	if err := hall(); err != nil {
		t.Errorf("after a wrong configuration: %v", err)
	}

	s.must(cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("%v\n%s", err, said.String())
		}
	case <-time.After(30 * time.Second):
		t.Fatal("SIGTERM did not end it")
	}
	if _, err := os.Stat(s.path("log/.startd_address")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the address file stays: %v", err)
	}
	b, err := os.ReadFile(s.path("log/StartLog"))
	s.must(err)
	if !bytes.Contains(b, []byte(" EXITING WITH STATUS 0")) {
		t.Errorf("the log does not say how it ended:\n%s", b)
	}
}

// What is wrong at the start ends it, with the line and the knob.
func TestBadConfiguration(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ lines, want string }{
		{"POLLING_INTERVAL = never\n", "POLLING_INTERVAL"},
		{"EXECUTE = /dev/null/x\n", "EXECUTE"},
		{"SEC_DEFAULT_ENCRYPTION = XYZ\n", "SEC_DEFAULT_ENCRYPTION"},
		{"NETWORK_INTERFACE = 192.0.2.7\n", "NETWORK_INTERFACE"},
		{"COLLECTOR_HOST = 127.0.0.1:x\n", "COLLECTOR_HOST"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			t.Parallel()
			cmd := newSite(t, tt.lines).command("-t")
			late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
			defer late.Stop()
			out, err := cmd.CombinedOutput()
			var status *exec.ExitError
			if !errors.As(err, &status) || status.ExitCode() != 4 {
				t.Fatalf("%v, want exit status 4\n%s", err, out)
			}
			if !strings.Contains(string(out), tt.want) {
				t.Errorf("%s\nwant something about %s", out, tt.want)
			}
		})
	}
}
