// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/platform/linux/bound"
)

// lets has everybody administrate the daemon.
const lets = `ALLOW_ADMINISTRATOR = *
ENABLE_PERSISTENT_CONFIG = true
PERSISTENT_CONFIG_DIR = $(LOCAL_DIR)/persistent
`

// life is a daemon that runs.
type life struct {
	*site
	cmd   *exec.Cmd
	ended chan error
	c     *security.Client
	at    cedar.Sinful
	told  int // how far moves has read the log
}

// live starts the daemon and waits until it answers.
func (s *site) live() *life {
	s.t.Helper()
	l := &life{site: s, cmd: s.command("-f"), ended: make(chan error, 1), c: s.client()}
	s.must(bound.Start(l.cmd))
	go func() { l.ended <- l.cmd.Wait() }()
	s.t.Cleanup(func() { _ = l.cmd.Process.Kill() })
	eventually(s.t, "the slot is there", func() (err error) {
		if l.at, err = s.address(); err != nil {
			return err
		}
		ads, err := slots(l.c, l.at)
		if err == nil && len(ads) == 0 {
			err = errors.New("no slot yet")
		}
		return err
	})
	return l
}

// end has it go, as the system asks for it.
func (l *life) end() {
	l.t.Helper()
	l.must(l.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-l.ended:
		l.must(err)
	case <-time.After(30 * time.Second):
		l.t.Fatal("SIGTERM did not end it")
	}
}

// ask sends a command, and hands the reply to get.
func (l *life) ask(command int, put func(*cedar.Conn), get func(*cedar.Conn) error) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	conn, _, err := l.c.Command(ctx, l.at, command, security.Options{})
	l.must(err)
	defer func() { _ = conn.Close() }()
	put(conn)
	l.must(conn.EndMessage())
	l.must(errors.Join(get(conn), conn.EndOfMessage()))
}

func (l *life) rehome(ad string) (done bool, why string) {
	l.t.Helper()
	l.ask(562, func(c *cedar.Conn) {
		a, err := classad.ParseAd(ad, classad.Old)
		l.must(err)
		c.PutAd(a, cedar.AdOptions{})
	}, func(c *cedar.Conn) error {
		reply, err := c.Ad(cedar.AdOptions{})
		if err == nil {
			done, _ = reply.EvalBool("Result", nil)
			why, _ = reply.EvalString("ErrorString", nil)
		}
		return err
	})
	return done, why
}

// value is a setting as the daemon has it.
func (l *life) value(name string) string {
	l.t.Helper()
	var value string
	l.ask(457, func(c *cedar.Conn) { c.PutString(name) }, func(c *cedar.Conn) (err error) {
		value, err = c.String()
		return err
	})
	return value
}

func (l *life) becomes(name, want string) {
	l.t.Helper()
	eventually(l.t, name, func() error {
		if got := l.value(name); got != want {
			return fmt.Errorf("%q, want %q", got, want)
		}
		return nil
	})
}

// A move is kept on disk before the machine is rebooted, by a command that runs
// as who we are; another life begins in the new home, until it is taken back.
//
// row: S4-153, S4-154
func TestRehomeAndReboot(t *testing.T) {
	t.Parallel()
	s := newSite(t, lets+"STARTD_REHOME_ALLOW_REBOOT = Cpus == 4 && AllowIt\nSTARTD_ATTRS = AllowIt\nAllowIt = false\n"+
		"STARTD_REBOOT_COMMAND = (id -u; cat $(LOCAL_DIR)/persistent/.config.STARTD.rehome; echo end) > $(LOCAL_DIR)/rebooted\n")
	s.must(os.Mkdir(s.path("persistent"), 0o755))
	l := s.live()
	if done, why := l.rehome("ScheddName = \"<127.0.0.1:2>\"\nReboot = true"); done || why != "Reboot on rehome not permitted by STARTD_REHOME_ALLOW_REBOOT" {
		t.Fatalf("%v, %s", done, why)
	}
	for _, path := range []string{"persistent/.config.STARTD", "rebooted"} {
		if _, err := os.Stat(s.path(path)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after a refusal %s: %v", path, err)
		}
	}
	text, err := os.ReadFile(s.path("condor_config"))
	s.must(err)
	s.must(os.WriteFile(s.path("condor_config"), []byte(strings.Replace(string(text), "AllowIt = false", "AllowIt = true", 1)), 0o644))
	s.must(l.cmd.Process.Signal(syscall.SIGHUP))
	l.becomes("AllowIt", "true")
	eventually(t, "the reboot is allowed", func() error {
		if done, why := l.rehome("ScheddName = \"<127.0.0.1:2>\"\nScheddPool = \"127.0.0.1:3\"\nReboot = true"); !done {
			return errors.New(why)
		}
		return nil
	})
	want := strconv.Itoa(os.Geteuid()) + "\nSTARTD_DIRECT_ATTACH_SCHEDD_NAME = <127.0.0.1:2>\nSTARTD_DIRECT_ATTACH_SCHEDD_POOL = 127.0.0.1:3\nend\n"
	eventually(t, "the reboot", func() error {
		got, err := os.ReadFile(s.path("rebooted"))
		if err == nil && string(got) != want {
			err = fmt.Errorf("it saw %q, want %q", got, want)
		}
		return err
	})
	l.becomes("STARTD_DIRECT_ATTACH_SCHEDD_NAME", "<127.0.0.1:2>")
	l.end()

	l = s.live()
	if got := l.value("STARTD_DIRECT_ATTACH_SCHEDD_NAME") + " " + l.value("STARTD_DIRECT_ATTACH_SCHEDD_POOL"); got != "<127.0.0.1:2> 127.0.0.1:3" {
		t.Errorf("another life begins at %s", got)
	}
	if done, why := l.rehome(`ScheddName = "<127.0.0.1:2>"`); done || why != "Already attached to this schedd" {
		t.Errorf("%v, %s", done, why)
	}
	if done, why := l.rehome("ScheddName = \"<127.0.0.1:2>\"\nCancel = true"); !done {
		t.Error(why)
	}
	l.becomes("STARTD_DIRECT_ATTACH_SCHEDD_NAME", "Not defined")
	if left, err := os.ReadDir(s.path("persistent")); len(left) != 0 || err != nil {
		t.Errorf("%v, %v are left", left, err)
	}
	l.end()
}

// Without a place for it nothing is kept, and nothing is evicted.
func TestRehomeIsNotKept(t *testing.T) {
	t.Parallel()
	l := newSite(t, strings.Replace(lets, "ENABLE_PERSISTENT_CONFIG = true", "", 1)).live()
	if done, why := l.rehome(`ScheddName = "ap"`); done || why != "Failed to set persistent config" {
		t.Errorf("%v, %s", done, why)
	}
	l.end()
	out, err := newSite(t, "ENABLE_PERSISTENT_CONFIG = true\n").command("-t").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "PERSISTENT_CONFIG_DIR") {
		t.Errorf("%v: %s", err, out)
	}
}
