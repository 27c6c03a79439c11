// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/platform/linux/bound"
)

// said takes what a program writes while somebody reads it.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// The configuration of the README: nothing is said about a shared port, there is
// no condor_master, and none of the directories is there.
func TestStartedByHand(t *testing.T) {
	t.Parallel()
	s := newSite(t, "USE_SHARED_PORT =\nFILETRANSFER_PLUGINS = /none/curl_plugin, /none/box_plugin.py, /none/stash_plugin\n")
	for _, dir := range []string{"log", "execute", "lock", "spool"} {
		s.must(os.Remove(s.path(dir)))
	}
	s.running()
	c := s.client()
	eventually(t, "the slot is there", func() error {
		at, err := s.address()
		if err != nil {
			return err
		}
		if at.Port == 0 || at.SockID != "" {
			return fmt.Errorf("the address is %s", at)
		}
		ads, err := slots(c, at)
		if err == nil && len(ads) != 1 {
			err = errors.New("no slot yet")
		}
		return err
	})
	eventually(t, "the log says which plugins are missing", func() error { // they are asked beside
		if log := s.log(); !strings.Contains(log, "stash_plugin") {
			return errors.New(log)
		}
		return nil
	})
	log := s.log()
	for _, want := range []string{"a port of our own is taken", "/none/curl_plugin, /none/box_plugin.py, /none/stash_plugin", "config=" + s.path("condor_config")} {
		if strings.Count(log, want) != 1 {
			t.Errorf("the log does not say %q once", want)
		}
	}
	if strings.Count(log, "stash_plugin") != 1 || strings.Contains(log, "WARNING: machine") || strings.Contains(log, "could not be made") {
		t.Error("the log complains of what nobody asked for")
	}
	if t.Failed() {
		t.Log(log)
	}
}

// Whatever the start waits for is said within a second, and an order to end is
// obeyed meanwhile.
func TestStartThatWaits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, lines, env string
		want             string
		log              bool // the log is known by then
	}{
		{name: "command", lines: "include command : $(LOCAL_DIR)/slow\n", want: "waiting for the configuration"},
		{name: "inventory", lines: "MACHINE_RESOURCE_INVENTORY_Cogs = $(LOCAL_DIR)/slow\n", want: "waiting for the programs that say what the machine has", log: true},
		{name: "shared port", lines: "USE_SHARED_PORT = True\n", env: "CONDOR_INHERIT=4711 <127.0.0.1:1> 0 0", want: "waiting for condor_shared_port", log: true},
		{name: "broker", lines: "CCB_ADDRESS = 127.0.0.1:1\n", want: "waiting for a broker", log: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, tt.lines)
			s.must(os.WriteFile(s.path("slow"), []byte("#!/bin/sh\nexec sleep 60\n"), 0o755))
			cmd := s.command("-f")
			var out said
			cmd.Stdout, cmd.Stderr = &out, &out
			if tt.env != "" {
				cmd.Env = append(cmd.Env, tt.env)
			}
			began := time.Now()
			s.must(bound.Start(cmd))
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			eventually(t, "it says what it waits for", func() error {
				text := out.String()
				if tt.log {
					b, _ := os.ReadFile(s.path("log/StartLog"))
					text = string(b)
				}
				if !strings.Contains(text, tt.want) {
					return errors.New(text)
				}
				return nil
			})
			t.Logf("said after %v", time.Since(began))
			s.must(cmd.Process.Signal(syscall.SIGTERM))
			told := time.Now()
			select {
			case err := <-ended:
				var status *exec.ExitError
				if errors.As(err, &status) || err != nil {
					t.Errorf("%v, want status 0\n%s", err, out.String())
				}
			case <-time.After(20 * time.Second):
				t.Fatal("SIGTERM did not end it")
			}
			t.Logf("ended after %v", time.Since(told))
			if log := s.log(); tt.log && (!strings.Contains(log, "told to end during the start") || !strings.HasSuffix(log, " EXITING WITH STATUS 0\n")) {
				t.Errorf("log:\n%s", log)
			}
			if !tt.log && !strings.Contains(out.String(), "told to end during the start") {
				t.Errorf("it says %q", out.String())
			}
		})
	}
}

// A directory that is relative, or below a LOCAL_DIR that nobody has set, is
// refused before anything is written anywhere.
func TestPlacesThatNobodyMeant(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, lines, want string }{
		{"relative", "LOCAL_DIR = execpoint\n", "condor_config:1: knob LOCAL_DIR: the path is relative"},
		{"missing", "", "knob LOG: LOCAL_DIR is not set"},
		{"empty", "LOCAL_DIR =\n", "knob LOG: LOCAL_DIR is not set"},
		{"empty and used", "LOCAL_DIR =\nLOG = @/log\nEXECUTE = @/execute\nLOCK = $(LOCAL_DIR)/lock\n", "knob LOCK: LOCAL_DIR is not set"},
		{"relative LOG", "LOCAL_DIR = @\nLOG = log\n", "condor_config:2: knob LOG: the path is relative"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := user.Lookup("condor"); err == nil && tt.name == "missing" {
				t.Skip("LOCAL_DIR is the home of the user condor here, as HTCondor has it")
			}
			s := newSite(t, "")
			s.must(os.WriteFile(s.path("condor_config"), []byte(strings.ReplaceAll(tt.lines, "@", s.dir)+common), 0o644))
			cmd := s.command("-f")
			cmd.Dir = s.dir
			late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
			defer late.Stop()
			out, err := cmd.CombinedOutput()
			var status *exec.ExitError
			if !errors.As(err, &status) || status.ExitCode() != 4 || !strings.Contains(string(out), tt.want) {
				t.Errorf("%v, want exit status 4 and something about %q\n%s", err, tt.want, out)
			}
		})
	}
}

// STARTER names the program of a starter; HTCondor's own is not meant.
func TestStarterOfTheConfiguration(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, script, want string }{
		{"ours", "exit 2", "jobs are run by what STARTER names"},
		{"HTCondor's", "echo 'IsDaemonCore = True'; echo 'HasReconnect = True'", "STARTER is HTCondor's own"},
		{"none", "", "STARTER = "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "STARTER = $(LOCAL_DIR)/starter\n")
			if tt.script == "" {
				if status, stderr := s.fails(); status != 4 || !strings.Contains(stderr, tt.want+s.path("starter")) {
					t.Errorf("exit status %d: %s", status, stderr)
				}
				return
			}
			s.must(os.WriteFile(s.path("starter"), []byte("#!/bin/sh\n"+tt.script+"\n"), 0o755))
			s.serves(s.running())
			if log := s.log(); !strings.Contains(log, tt.want) {
				t.Errorf("the log does not say %q:\n%s", tt.want, log)
			}
		})
	}
}

// STARTER names our condor_starter, as most configurations have it: it would only
// execute the startd's own program, which the startd can do itself. A script around
// condor_starter is executed, and what condor_starter executes for it is again the
// startd's own program.
func TestStarterIsThisProgram(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, script, want string }{
		{"itself", "", "jobs are run by this program, which is what STARTER would execute"},
		{"in a script", "exec $0.real \"$@\"\n", "jobs are run by what STARTER names"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "STARTER = $(LOCAL_DIR)/condor_starter\nENABLE_BACKFILL = True\nBACKFILL_SYSTEM = BOINC\nSTART_BACKFILL = True\nEVICT_BACKFILL = False\nRunBenchmarks = False\nPOLLING_INTERVAL = 1\nUPDATE_INTERVAL = 1\n"+
				"BOINC_Executable = $(LOCAL_DIR)/client.sh\nBOINC_InitialDir = /\nBOINC_Universe = vanilla\nBOINC_Owner = nobody\n")
			s.reachable()
			exe := s.path("condor_starter")
			if tt.script != "" {
				exe += ".real"
				s.program("condor_starter", tt.script)
			}
			build := exec.Command("go", "build", "-o", exe, "github.com/execpoint/execpoint/bin/condor_starter")
			build.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			s.program("client.sh", "echo $PPID >"+s.path("ran")+".new\nmv "+s.path("ran")+".new "+s.path("ran")+"\nwhile :; do sleep 0.1; done\n")
			s.must(os.Chmod(s.dir, 0o777))
			self, err := os.Executable()
			s.must(err)
			l := s.live()
			eventually(t, "a starter runs the client", func() error {
				ran, err := os.ReadFile(s.path("ran"))
				if err != nil {
					return err
				}
				proc := "/proc/" + strings.TrimSpace(string(ran))
				program, err := os.Readlink(proc + "/exe")
				s.must(err)
				name, err := os.ReadFile(proc + "/comm")
				s.must(err)
				if program != self || string(name) != "condor_starter\n" {
					t.Errorf("the client's parent is %s, called %q; want %s, condor_starter", program, name, self)
				}
				return nil
			})
			if log := l.log(); !strings.Contains(log, tt.want) {
				t.Errorf("the log does not say %q:\n%s", tt.want, log)
			}
			l.end()
		})
	}
}

// The program that STARTER names runs what the daemon has run, and after a
// reconfig another one does.
//
// row: S4-020
func TestStarterIsSpawned(t *testing.T) {
	t.Parallel()
	s := newSite(t, "STARTER = $(LOCAL_DIR)/first\nENABLE_BACKFILL = True\nBACKFILL_SYSTEM = BOINC\nSTART_BACKFILL = Off =!= True\nEVICT_BACKFILL = Off =?= True\nRunBenchmarks = False\nPOLLING_INTERVAL = 1\nUPDATE_INTERVAL = 1\n"+
		"BOINC_Executable = $(LOCAL_DIR)/client.sh\nBOINC_InitialDir = /\nBOINC_Universe = vanilla\nBOINC_Owner = nobody\n")
	s.reachable()
	self, err := os.Executable()
	s.must(err)
	for _, name := range []string{"first", "second"} {
		s.program(name, "if [ \"$1\" = -classad ]; then exit 0; fi\necho $$ $0 >>"+s.path("spawned")+"\nexec "+self+" "+protocol.Command+"\n")
	}
	s.program("client.sh", "echo $PPID. >>"+s.path("ran")+"\nwhile :; do sleep 0.1; done\n")
	s.must(os.WriteFile(s.path("ran"), nil, 0o666))
	s.must(os.Chmod(s.path("ran"), 0o666))
	l := s.live()
	ran := func(n int, program string) {
		t.Helper()
		eventually(t, program+" runs it", func() error {
			runs, _ := os.ReadFile(s.path("ran"))
			spawned, _ := os.ReadFile(s.path("spawned"))
			lines := strings.Split(string(runs), ".\n")
			if len(lines) != n+1 || !strings.Contains("\n"+string(spawned), "\n"+lines[n-1]+" "+s.path(program)+"\n") {
				return fmt.Errorf("runs %q, spawned %q\n%s", runs, spawned, l.log())
			}
			return nil
		})
	}
	ran(1, "first")
	l.moves("Changing activity: Idle -> Busy")
	l.reconfigured(1, "Off = True\nSTARTD_ATTRS = Off\nSTARTER = $(LOCAL_DIR)/second\n")
	l.moves("Changing state: Owner -> Unclaimed")
	l.reconfigured(2, "Off = False\n")
	ran(2, "second")
	l.end()
}

// The configuration is found where HTCondor finds it, and the environment and
// -local-name count in it.
func TestWhereTheConfigurationIs(t *testing.T) {
	t.Parallel()
	s := newSite(t, "STARTD.big.NUM_CPUS = 7\n")
	text, err := os.ReadFile(s.path("condor_config"))
	s.must(err)
	var env []string
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " ="); ok {
			env = append(env, "_CONDOR_"+name+"="+strings.TrimSpace(value))
		}
	}
	for _, tt := range []struct {
		name string
		args []string
		env  []string
		cpus int64
	}{
		{"local name", []string{"-local-name", "big"}, nil, 7},
		{"environment", nil, []string{"_CONDOR_NUM_CPUS=6"}, 6},
		{"only the environment", nil, append([]string{"CONDOR_CONFIG=ONLY_ENV"}, env...), 4},
		{"a command", []string{"-c", "/bin/cat " + s.path("condor_config") + " |"}, []string{"CONDOR_CONFIG=/none"}, 4},
	} {
		cmd := s.command(append([]string{"-f"}, tt.args...)...)
		cmd.Env = append(cmd.Env, tt.env...)
		var out said
		cmd.Stdout, cmd.Stderr = &out, &out
		s.must(bound.Start(cmd))
		c := s.client()
		eventually(t, tt.name, func() error {
			at, err := s.address()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out.String())
			}
			ads, err := slots(c, at)
			if err != nil || len(ads) != 1 {
				return fmt.Errorf("%d slots, %w", len(ads), err)
			}
			if n, _ := ads[0].EvalInt("Cpus", nil); n != tt.cpus {
				return fmt.Errorf("%d cpus", n)
			}
			return nil
		})
		s.must(cmd.Process.Signal(syscall.SIGTERM))
		s.must(cmd.Wait())
	}
}
