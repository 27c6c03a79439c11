// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar"
)

// bothKinds are the Execution Points that a test compares, the original first.
var bothKinds = [...]string{realpool.Original, realpool.Ours}

// TestPortZero has the original and ours in a pool whose collector has a port by
// chance, which only its address file tells. Both advertise there, are reached
// through the broker that the collector is, and offer their slots to the schedd of
// the machine, without a negotiator. That one goes by the machine's name only as
// long as its own address file is read: its ad is that of tester@host. Then the
// collector gets another port.
//
// row: S4-151
func TestPortZero(t *testing.T) {
	t.Parallel()
	realpool.Patient(t)
	p := realpool.New(t, "COLLECTOR_HOST = 127.0.0.1:0\nPRIVATE_NETWORK_NAME = the-pool\nSCHEDD_ADDRESS_FILE = @DIR@/spool/.schedd_address\n"+
		"SEC_USE_FAMILY_SESSION = False\nDEAD_COLLECTOR_MAX_AVOIDANCE_TIME = 5\n") // no condor_master: each daemon is a family of its own
	p.NeedVersion(t, cedar.Version{Major: 24, Minor: 12}, "a schedd has others' jobs run on the slots that a user offers, too")
	collector := p.Collector()
	p.Start("condor_schedd")
	p.ScheddAnswers()
	eps := map[string]*realpool.EP{}
	for _, kind := range bothKinds {
		eps[kind] = p.NewEP(kind, 2, "PRIVATE_NETWORK_NAME = "+kind+"\nCCB_ADDRESS = $(COLLECTOR_HOST)\nCCB_RECONNECT_TIME = 2\n"+
			"STARTD_DIRECT_ATTACH_SCHEDD_NAME = "+p.FullHost()+"\nSTARTD_DIRECT_ATTACH_INTERVAL = 2\n")
		eps[kind].Begin()
	}
	for _, kind := range bothKinds {
		behindBroker(p, kind, "")
		p.Write(filepath.Join(p.Dir, kind+".sub"), fmt.Sprintf("executable = /bin/echo\narguments = ran\ntransfer_executable = false\noutput = %s.out\nerror = %[1]s.err\nlog = %[1]s.log\n"+
			"should_transfer_files = YES\nrequest_cpus = 1\nrequest_memory = 64\nrequest_disk = 1024\nrequirements = TARGET.Rig == \"%[1]s\"\nqueue\n", kind), 0o644)
		p.Submit(p.Dir, kind+".sub")
	}
	for _, kind := range bothKinds {
		p.Eventually("the job of "+kind, realpool.Patience, func(context.Context) error {
			out, err := os.ReadFile(filepath.Join(p.Dir, kind+".out"))
			if err == nil && string(out) != "ran\n" {
				err = fmt.Errorf("it has printed %q", out)
			}
			return err
		})
	}

	// A starter asks its broker again after CCB_RECONNECT_TIME, as its startd does.
	starters := func() (text string) {
		logs, err := filepath.Glob(filepath.Join(eps[realpool.Ours].Dir, "log", "StarterLog.slot1_*"))
		p.Must(err)
		for _, path := range logs {
			b, err := os.ReadFile(path)
			p.Must(err)
			text += string(b)
		}
		return text
	}
	registrations := func() int { return strings.Count(starters(), "registered with the broker") }
	earlier := registrations()
	p.Write(filepath.Join(p.Dir, "long.sub"), "executable = /bin/sleep\narguments = 600\ntransfer_executable = false\nlog = long.log\n"+
		"should_transfer_files = YES\nrequest_cpus = 1\nrequest_memory = 64\nrequest_disk = 1024\nrequirements = TARGET.Rig == \""+realpool.Ours+"\"\nqueue\n", 0o644)
	p.Submit(p.Dir, "long.sub")
	p.Eventually("the starter of a long job registers with the broker", realpool.Patience, func(context.Context) error {
		if registrations() == earlier {
			return errors.New(realpool.Last(starters(), 20))
		}
		return nil
	})

	file := filepath.Join(p.Dir, "log", ".collector_address")
	before, err := os.ReadFile(file)
	p.Must(err)
	collector.Stop(syscall.SIGQUIT, 20*time.Second)
	again := regexp.MustCompile(`the connection to the broker failed.*retry\W+2s`)
	p.Eventually("the starter is to ask the broker again in CCB_RECONNECT_TIME", realpool.Patience, func(context.Context) error {
		if !again.MatchString(starters()) {
			return errors.New(realpool.Last(starters(), 5))
		}
		return nil
	})
	p.Collector()
	p.Eventually("the collector has another port", realpool.Patience, func(context.Context) error {
		now, err := os.ReadFile(file)
		if err == nil && string(now) == string(before) {
			err = errors.New("the file has not changed")
		}
		return err
	})
	broker, _, _ := strings.Cut(string(before), ">")
	behindBroker(p, realpool.Ours, broker)
}

// behindBroker waits until the collector shows the slots of an Execution Point
// of a kind at an address behind a broker other than before, and a tool reaches it
// there.
func behindBroker(p *realpool.Pool, kind, before string) {
	p.TB.Helper()
	before = strings.TrimPrefix(before, "<")
	p.Eventually(kind+" is reached through the broker", realpool.Patience, func(ctx context.Context) error {
		out, err := p.Run(ctx, "condor_status", "-constraint", `Rig == "`+kind+`" && PartitionableSlot`, "-af", "MyAddress")
		if err != nil {
			return err
		}
		at, err := cedar.ParseSinful(strings.TrimSpace(out))
		if err != nil {
			return err
		}
		if len(at.CCB) != 1 || before != "" && strings.HasPrefix(at.CCB[0].Address, strings.SplitN(before, "?", 2)[0]) {
			return fmt.Errorf("it is at %s", at)
		}
		out, err = p.Run(ctx, "condor_status", "-direct", kind+"@"+p.FullHost(), "-constraint", "PartitionableSlot", "-af", "Rig")
		if err == nil && strings.TrimSpace(out) != kind {
			err = fmt.Errorf("it shows %q", out)
		}
		return err
	})
}

// TestOneMachine has condor_master start a whole pool behind a shared port, at a
// collector whose address is port 0: once with the original Execution Point, and
// once with ours. The owner of a job comes to it by ssh: nothing refuses the schedd
// or the owner on the way, which -auto-retry would not try again.
func TestOneMachine(t *testing.T) {
	t.Parallel()
	var said [len(bothKinds)]string
	for i, kind := range bothKinds {
		t.Run(kind, func(t *testing.T) {
			said[i] = oneMachine(t, kind)
		})
	}
	if said[0] != said[1] {
		t.Errorf("with the original the owner sees\n%s\nwith ours\n%s", said[0], said[1])
	}
}

// oneMachine is TestOneMachine with one kind. It returns what the owner of the
// job sees.
func oneMachine(t *testing.T, kind string) string {
	realpool.Patient(t)
	// A schedd of 25.14 that wants to speak with a starter loses the name of the
	// claim's session on the way, by chance. Without that session it always comes
	// with that of the family.
	lines := "COLLECTOR_HOST = 127.0.0.1:0?sock=collector\nUSE_SHARED_PORT = True\nSHARED_PORT_PORT = 0\nDAEMON_LIST = MASTER SHARED_PORT COLLECTOR NEGOTIATOR SCHEDD STARTD\n" +
		"SCHEDD.SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION = False\nNUM_CPUS = 2\nMEMORY = 4096\nDISK = 1048576\nSLOT_TYPE_1 = 100%\nSLOT_TYPE_1_PARTITIONABLE = true\nNUM_SLOTS_TYPE_1 = 1\nRig = \"here\"\n"
	if kind == realpool.Ours {
		lines += "STARTD = $(LOCAL_DIR)/condor_startd\nSTARTER = $(LOCAL_DIR)/condor_starter\n"
	}
	p := realpool.New(t, lines)
	p.NeedSSH(t)
	if kind == realpool.Ours {
		p.Install(p.Dir)
	}
	p.Start("condor_master")
	p.Eventually("the slot is shown", realpool.Patience, func(ctx context.Context) error {
		out, err := p.Run(ctx, "condor_status", "-af", "Rig")
		if err == nil && strings.TrimSpace(out) != "here" {
			err = fmt.Errorf("condor_status shows %q\n%s", out, realpool.Last(p.Log("StartLog"), 5))
		}
		return err
	})
	p.Write(filepath.Join(p.Dir, "wait.sub"), "executable = /bin/sleep\narguments = 600\ntransfer_executable = false\nlog = wait.log\nshould_transfer_files = YES\n"+
		"request_cpus = 1\nrequest_memory = 64\nrequest_disk = 1024\nqueue\n", 0o644)
	p.Submit(p.Dir, "wait.sub")
	p.Eventually("the job runs", realpool.Patience, func(ctx context.Context) error {
		out, err := p.Run(ctx, "condor_q", "-af", "JobStatus", "JobCurrentStartExecutingDate")
		if f := strings.Fields(out); err == nil && (len(f) != 2 || f[0] != "2" || f[1] == "undefined") {
			err = fmt.Errorf("condor_q shows %q", out)
		}
		return err
	})
	out, err := p.Run(t.Context(), "condor_ssh_to_job", "-auto-retry", "1.0",
		"echo in the job; test -f .job.ad && echo beside its files; env | grep -ci family; grep -rlsi family: . | wc -l")
	if err != nil {
		t.Errorf("%v\n%s", err, realpool.Last(p.Log("SchedLog"), 20))
	}
	return out
}
