// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
)

// newMaster makes a pool whose condor_master runs our condor_startd.
func newMaster(t *testing.T, lines string) *condor {
	t.Helper()
	if !realpool.Find(t).Version.AtLeast(25, 0, 0) {
		lines = "STARTD_NAME = here\n" + lines // with an @, so that older tools need not resolve it
	}
	c := newCondor(t, slots+"DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD STARTD\nSTARTD = $(LOCAL_DIR)/condor_startd\nSTARTER = $(LOCAL_DIR)/condor_starter\n"+
		"MASTER_NAME = here@\nSTARTD_DEBUG = D_FULLDEBUG\n"+lines)
	c.Install(c.Dir)
	if strings.Contains(lines, "ep-tokens.d") { // the collector makes the key of the pool's tokens
		c.begin()
		token := c.Tool("condor_token_create", "-identity", "node17@execpoint.test", "-authz", "ADVERTISE_STARTD", "-authz", "READ", "-authz", "DAEMON")
		path := filepath.Join(c.Dir, "ep-tokens.d", "pool")
		c.Write(path, token, 0o600)
		c.stop("condor_collector", syscall.SIGTERM)
	}
	c.start("condor_master")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("StartLog:\n%s", c.Log("StartLog"))
		}
	})
	c.shown()
	return c
}

// shown waits until the collector shows our three slots.
func (c *condor) shown() {
	c.TB.Helper()
	eventually(c.TB, "condor_status shows three slots", func() error {
		out, err := c.run("condor_status", "-af", "Name")
		if err != nil {
			return err
		}
		if n := len(strings.Fields(out)); n != 3 {
			return fmt.Errorf("it shows %q", out)
		}
		return nil
	})
}

// firstSlot is the name of our first slot, by which newer tools find our daemon,
// and condor_drain of any version does.
func (c *condor) firstSlot() string {
	c.TB.Helper()
	return strings.Fields(c.Tool("condor_status", "-af", "Name", "-sort", "Name"))[0]
}

// slot is a name by which tools find our daemon. Those of 24.0 want its own.
func (c *condor) slot() string {
	c.TB.Helper()
	name := c.firstSlot()
	if _, daemon, ok := strings.Cut(name, "@"); ok && c.Version.AtLeast(23, 2, 0) && !c.Version.AtLeast(25, 0, 0) {
		return daemon
	}
	return name
}

// says waits until a log matches.
func (c *condor) says(log, pattern string) {
	c.TB.Helper()
	want := regexp.MustCompile(pattern)
	eventually(c.TB, fmt.Sprintf("%s says %s", log, pattern), func() error {
		if !want.MatchString(c.Log(log)) {
			return errors.New("it does not")
		}
		return nil
	})
}

// A condor_master starts condor_startd, however it is reached and secured.
func TestDaemonUnderMaster(t *testing.T) {
	t.Parallel()
	secure := "SEC_DEFAULT_ENCRYPTION = REQUIRED\nSEC_DEFAULT_INTEGRITY = REQUIRED\n"
	for _, tt := range []struct{ name, lines, address string }{
		{"IDTOKENS, through CCB", secure + ways[3].lines + "STARTD.CCB_ADDRESS = $(COLLECTOR_HOST)\n", `CCBID=127\.0\.0\.1:`},
		{"FS, encryption and integrity", secure, `^<127\.0\.0\.1:[1-9]\d*\?addrs=[^&]*&alias=[^&]*>$`},
		{"PASSWORD", secure + "SEC_DEFAULT_AUTHENTICATION_METHODS = FS, PASSWORD\nSTARTD.SEC_CLIENT_AUTHENTICATION_METHODS = PASSWORD\nSEC_PASSWORD_FILE = $(LOCAL_DIR)/passwords.d/POOL\nWANT_UDP_COMMAND_SOCKET = False\n", "noUDP"},
		{"shared port", "USE_SHARED_PORT = True\nSHARED_PORT_PORT = 0\nDAEMON_SOCKET_DIR = $(LOCAL_DIR)/run\nCOLLECTOR_HOST = 127.0.0.1:0\n", `sock=`},
		{"CCB", "STARTD.CCB_ADDRESS = $(COLLECTOR_HOST)\nSTARTD.PRIVATE_NETWORK_NAME = elsewhere\n", `CCBID=127\.0\.0\.1:`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newMaster(t, tt.lines)
			if got := strings.TrimSpace(c.Tool("condor_status", "-af", "MyAddress", "-limit", "1")); !regexp.MustCompile(tt.address).MatchString(got) {
				t.Errorf("MyAddress = %s, want %s", got, tt.address)
			}
			name := c.slot()
			if out := c.Tool("condor_status", "-direct", name, "-af", "State", "Activity"); !strings.Contains(out, "Unclaimed Idle") {
				t.Errorf("condor_status -direct: %q", out)
			}
			c.says("MasterLog", `Setting ready state 'Ready' for STARTD`)
			if out := c.Tool("condor_ping", "-type", "STARTD", "-name", name, "READ"); !strings.Contains(out, "succeeded") {
				t.Errorf("condor_ping: %q", out)
			}
		})
	}
}

// The negotiator matches jobs to our slots, the schedd claims them, and they
// run, each below a starter of its own.
//
// row: S0-001
func TestJobsAreMatchedAndClaimed(t *testing.T) {
	t.Parallel()
	c := newMaster(t, "START = TARGET.ClusterId > 0\nCLAIM_PARTITIONABLE_LEFTOVERS = True\n")
	long := fmt.Sprintf("60.%d", os.Getpid()) // seconds, and nobody else's
	c.Must(os.WriteFile(filepath.Join(c.Dir, "job.sub"), []byte("executable = /bin/sleep\narguments = "+long+"\nrequest_memory = 100\nrequest_disk = 1\nlog = job.log\nrequirements = Cpus > 1\nqueue 3\n"), 0o644))
	c.Submit(c.Dir, "job.sub")
	c.says("SchedLog", `Negotiation ended: \d jobs matched`)
	c.says("StartLog", `slot1_1@\S+ claim granted`)
	c.says("StartLog", `slot1_2@\S+ claim granted`)
	c.says("SchedLog", `Started shadow for job 1\.1 on slot1(_\d+)?@`) // older ones name the claim's first slot
	eventually(t, "two jobs run", func() error {
		out, err := c.run("condor_q", "-af", "JobStatus")
		if err == nil && strings.Count(out, "2") < 2 {
			err = fmt.Errorf("their states are %q", strings.Fields(out))
		}
		return err
	})
	eventually(t, "the processes are where they belong", func() error { return checkTree(t, long, 2) })
	c.Tool("condor_rm", "-all")
	eventually(t, "the claimed slots are gone", func() error {
		out, err := c.run("condor_status", "-direct", c.slot(), "-af", "Name", "State")
		if err == nil && strings.Contains(out, "Claimed") {
			err = fmt.Errorf("%q", out)
		}
		return err
	})
	if log := c.Log("StartLog"); strings.Contains(log, "secret") || regexp.MustCompile(`#\d+#\d+#[0-9a-f]`).MatchString(log) {
		t.Error("the log shows secrets of claims")
	}
}

// What an administrator's tools do.
func TestAdministration(t *testing.T) {
	t.Parallel()
	c := newMaster(t, "")
	name := c.slot()
	state := func(want string) {
		t.Helper()
		eventually(t, "the slots are "+want, func() error {
			out, err := c.run("condor_status", "-direct", name, "-af", "State")
			if err != nil {
				return err
			}
			for line := range strings.Lines(out) {
				if strings.TrimSpace(line) != want {
					return fmt.Errorf("%q", out)
				}
			}
			return nil
		})
	}
	c.Tool("condor_drain", c.firstSlot())
	state("Drained")
	c.Tool("condor_drain", "-cancel", c.firstSlot())
	state("Unclaimed")
	c.Tool("condor_vacate", name)
	if out := strings.TrimSpace(c.Tool("condor_config_val", "-startd", "-name", name, "NUM_CPUS")); out != "8" {
		t.Errorf("condor_config_val -startd NUM_CPUS: %q, want 8", out)
	}
	if out := c.Tool("condor_fetchlog", "-startd", name, "STARTD"); !strings.Contains(out, "STARTING UP") {
		t.Errorf("condor_fetchlog: %q", out)
	}
	f, err := os.OpenFile(c.Config, os.O_APPEND|os.O_WRONLY, 0)
	c.Must(err)
	_, err = f.WriteString("Hall = \"south\"\n")
	c.Must(errors.Join(err, f.Close()))
	c.Tool("condor_reconfig", "-startd", name)
	eventually(t, "the new value is shown", func() error {
		out, err := c.run("condor_status", "-direct", name, "-af", "Hall")
		if err == nil && strings.Fields(out)[0] != "south" {
			err = fmt.Errorf("%q", out)
		}
		return err
	})
	c.refusedReconfig(t, name)
	c.orders(t)
	for i, how := range [...]string{"-peaceful", "-graceful", "-fast"} {
		before := strings.Count(c.Log("StartLog"), "EXITING WITH STATUS 0")
		c.Tool("condor_off", how, "-subsystem", "startd")
		eventually(t, "condor_off "+how, func() error {
			if got := strings.Count(c.Log("StartLog"), "EXITING WITH STATUS 0"); got != before+1 {
				return fmt.Errorf("%d ends, want %d", got, before+1)
			}
			return nil
		})
		c.Tool("condor_on", "-subsystem", "startd")
		c.shown()
		if got := strings.Count(c.Log("StartLog"), "STARTING UP"); got != i+2 {
			t.Errorf("started %d times, want %d", got, i+2)
		}
	}
	c.Tool("condor_restart", "-subsystem", "startd")
	eventually(t, "condor_restart", func() error {
		if got := strings.Count(c.Log("StartLog"), "STARTING UP"); got != 5 {
			return fmt.Errorf("started %d times, want 5", got)
		}
		return nil
	})
}

// refusedReconfig gives condor_reconfig a configuration of which one setting cannot
// be used: condor_status and condor_config_val go on to show the old one.
func (c *condor) refusedReconfig(t *testing.T, name string) {
	t.Helper()
	good, err := os.ReadFile(c.Config)
	c.Must(err)
	defer func() { c.Must(os.WriteFile(c.Config, good, 0o644)) }()
	c.Must(os.WriteFile(c.Config, append(good[:len(good):len(good)], "Hall = \"north\"\nENABLE_STARTD_DAEMON_AD = perhaps\n"...), 0o644))
	before := strings.Count(c.Log("StartLog"), "configuration taken over")
	c.Tool("condor_reconfig", "-startd", name)
	eventually(t, "the log says what cannot be used", func() error {
		for line := range strings.Lines(c.Log("StartLog")) {
			if strings.Contains(line, "the configuration was not taken over, the old one stays") && strings.Contains(line, "ENABLE_STARTD_DAEMON_AD") && strings.Contains(line, "perhaps") {
				return nil
			}
		}
		return errors.New(realpool.Last(c.Log("StartLog"), 10))
	})
	if got := strings.Count(c.Log("StartLog"), "configuration taken over"); got != before {
		t.Errorf("the log says that it was taken over")
	}
	if out := strings.TrimSpace(c.Tool("condor_config_val", "-startd", "-name", name, "Hall")); out != `"south"` {
		t.Errorf("condor_config_val -startd Hall: %s, want the old value", out)
	}
	if out := strings.Fields(c.Tool("condor_status", "-direct", name, "-af", "Hall")); len(out) == 0 || out[0] != "south" {
		t.Errorf("condor_status shows Hall = %q, want the old value", out)
	}
}

// order is the line of an order that is carried out.
var order = regexp.MustCompile(`order peer=\S+ command=DC_RECONFIG `)

// orders has a client of HTCondor's give three orders without a payload one
// after the other. It takes its session up again for the second and third, and
// fails the order if the session is refused.
func (c *condor) orders(t *testing.T) {
	t.Helper()
	const script = `import htcondor2
ad = htcondor2.Collector().query(htcondor2.AdType.Startd)[0]
ad["MyType"] = "Scheduler"  # a kind of daemon that send_command knows; the address is ours
for i in range(3):
    htcondor2.send_command(ad, htcondor2.DaemonCommand.Reconfig, None)
`
	if out, err := c.run("python3", "-c", "import htcondor2"); err != nil {
		t.Logf("HTCondor's Python bindings are not here, so no client gives more than one order: %s", out)
		return
	}
	heeded := func() int { return len(order.FindAllString(c.Log("StartLog"), -1)) }
	before := heeded()
	c.Tool("python3", "-c", script)
	eventually(t, "three orders of one client", func() error {
		if got := heeded() - before; got != 3 {
			return fmt.Errorf("%d orders in the log:\n%s", got, realpool.Last(c.Log("StartLog"), 10))
		}
		return nil
	})
}

// One without the level is refused, and the log says who and why.
func TestAdministrationIsRefused(t *testing.T) {
	t.Parallel()
	c := newMaster(t, "STARTD.ALLOW_ADMINISTRATOR = somebody@elsewhere\nSEC_ENABLE_REMOTE_ADMINISTRATION = False\n")
	if out, err := c.run("condor_drain", c.firstSlot()); err == nil {
		t.Fatalf("condor_drain: %q, want a refusal", out)
	}
	c.says("StartLog", `refused .*DRAIN_JOBS .*ALLOW_ADMINISTRATOR`)
}

// Without a condor_master, by hand, with a port and a name of its own.
func TestDaemonAlone(t *testing.T) {
	t.Parallel()
	c := newMaster(t, "")
	port := realpool.FreePort(t)
	dir := filepath.Join(c.Dir, "second")
	for _, sub := range []string{"", "log", "execute", "lock"} {
		c.Mkdir(filepath.Join(dir, sub))
	}
	second := c.NewDaemon(c.Config, filepath.Join(c.Dir, "condor_startd"), "-p", strconv.Itoa(port), "-n", "second")
	for _, kv := range []string{"LOG=" + dir + "/log", "EXECUTE=" + dir + "/execute", "LOCK=" + dir + "/lock", "STARTD_ADDRESS_FILE=" + dir + "/address"} {
		second.Env = append(second.Env, "_CONDOR_"+kv)
	}
	second.Start()
	eventually(t, "the second one is shown", func() error {
		out, err := c.run("condor_status", "-af", "Name", "MyAddress", "-constraint", `regexp("second", Name)`)
		if err == nil && strings.Count(out, fmt.Sprintf("<127.0.0.1:%d?", port)) != 3 {
			err = fmt.Errorf("%q", out)
		}
		return err
	})
	b, err := os.ReadFile(filepath.Join(dir, "address"))
	c.Must(err)
	if !strings.HasPrefix(string(b), fmt.Sprintf("<127.0.0.1:%d?", port)) || !strings.Contains(string(b), "$CondorVersion: ") {
		t.Errorf("the address file has %q", b)
	}
	second.Stop(syscall.SIGTERM, 20*time.Second)
	c.shown()
}
