// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
)

// slots are what most tests divide the machine into: a partitionable slot of
// six processors and two static ones.
const slots = `
NUM_CPUS = 8
MEMORY = 16384
STARTD_DETECT_GPUS = false
SLOT_TYPE_1 = cpus=6,mem=75%,disk=75%
SLOT_TYPE_1_PARTITIONABLE = true
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_2 = cpus=1,mem=10%,disk=10%
SLOT_TYPE_2_PARTITIONABLE = false
NUM_SLOTS_TYPE_2 = 2
STARTD_ATTRS = $(STARTD_ATTRS), Hall, Mips, KFlops
Hall = "north"
Mips = 9000
KFlops = 1000000
`

// noFamily says to daemons that no condor_master started that none did: older
// ones take others at the same place for relatives, and are refused.
const noFamily = "SEC_USE_FAMILY_SESSION = False\n"

var names = []string{"slot1@" + ourHost, "slot2@" + ourHost, "slot3@" + ourHost}

// shows waits until condor_status shows the slots, and nothing else.
func (c *condor) shows(want ...string) {
	c.TB.Helper()
	eventually(c.TB, fmt.Sprintf("condor_status shows %q", want), func() error {
		out, err := c.run("condor_status", "-af", "Name")
		if err != nil {
			return err
		}
		got := strings.Fields(out)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("it shows %q", got)
		}
		return nil
	})
}

// ads reads what condor_status -long prints.
func (c *condor) ads(args ...string) []*classad.Ad {
	c.TB.Helper()
	var all []*classad.Ad
	for text := range strings.SplitSeq(c.Tool("condor_status", append(args, "-long")...), "\n\n") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		ad, err := classad.ParseAd(text, classad.Old)
		if err != nil {
			c.TB.Fatalf("%v in\n%s", err, text)
		}
		all = append(all, ad)
	}
	return all
}

// Each way of security that an EP and a collector can have.
var ways = []struct {
	name, lines string
	token       bool
	user        string // how the collector's log names us
}{
	{"FS", "SEC_DEFAULT_AUTHENTICATION_METHODS = FS\n", false, "@execpoint.test"},
	{"unauthenticated, the collector's port in a file", "SEC_DEFAULT_AUTHENTICATION = OPTIONAL\nCOLLECTOR_HOST = 127.0.0.1:0\n", false, "unauthenticated@unmapped"},
	{"FS, encryption and integrity required", "SEC_DEFAULT_AUTHENTICATION_METHODS = FS\nSEC_READ_AUTHENTICATION = REQUIRED\nSEC_CLIENT_AUTHENTICATION = REQUIRED\nSEC_DEFAULT_ENCRYPTION = REQUIRED\nSEC_DEFAULT_INTEGRITY = REQUIRED\n", false, "@execpoint.test"},
	{"IDTOKENS", "STARTD.SEC_CLIENT_AUTHENTICATION_METHODS = IDTOKENS\nSTARTD.SEC_TOKEN_DIRECTORY = $(LOCAL_DIR)/ep-tokens.d\nSTARTD.SEC_TOKEN_SYSTEM_DIRECTORY = $(LOCAL_DIR)/ep-tokens.d\n" +
		"STARTD.SEC_PASSWORD_DIRECTORY = $(LOCAL_DIR)/ep-passwords.d\nSTARTD.SEC_TOKEN_POOL_SIGNING_KEY_FILE = $(LOCAL_DIR)/ep-passwords.d/POOL\n", true, "node17@execpoint.test"},
	{"PASSWORD", "STARTD.SEC_CLIENT_AUTHENTICATION_METHODS = PASSWORD\nSEC_DEFAULT_AUTHENTICATION_METHODS = FS, PASSWORD\nSEC_PASSWORD_FILE = $(LOCAL_DIR)/passwords.d/POOL\nSTARTD.SEC_PASSWORD_FILE = $(LOCAL_DIR)/ep-passwords.d/KEY\n", false, "condor@password"},
}

// row: S0-002
func TestSlotsAreShown(t *testing.T) {
	t.Parallel()
	for _, tt := range ways {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newCondor(t, tt.lines)
			c.begin()
			if tt.token {
				token := c.Tool("condor_token_create", "-identity", tt.user, "-authz", "ADVERTISE_STARTD", "-authz", "READ")
				path := filepath.Join(c.Dir, "ep-tokens.d", "pool")
				c.Must(os.WriteFile(path, []byte(token), 0o600))
			}
			key, err := os.ReadFile(filepath.Join(c.Dir, "passwords.d", "POOL"))
			c.Must(err)
			c.Must(os.WriteFile(filepath.Join(c.Dir, "ep-passwords.d", "KEY"), key, 0o600))
			e := newEP(t, c, slots, nil)
			c.shows(names...)
			for _, ad := range c.ads() {
				checkShown(t, e, ad)
			}
			if tt.name == "PASSWORD" && !c.Version.AtLeast(23, 9, 0) {
				tt.user = "condor_pool@execpoint.test" // as it was called before
			}
			if log := c.Log("CollectorLog"); !regexp.MustCompile(`PERMISSION GRANTED to \S*` + tt.user + ` from host \S+ for command 0 \(UPDATE_STARTD_AD\)`).MatchString(log) {
				t.Errorf("the collector's log does not grant UPDATE_STARTD_AD to %s", tt.user)
			} else if strings.Contains(log, "Could not make hashkey") || strings.Contains(log, "PERMISSION DENIED") {
				t.Errorf("the collector complains:\n%s", log)
			}
			if err := e.pool.Withdraw(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.shows()
			if out := c.Tool("condor_status", "-any", "-constraint", `MyType == "StartD" || MyType == "Machine"`, "-af", "Name"); strings.TrimSpace(out) != "" {
				t.Errorf("after the end the collector still has %s", out)
			}
		})
	}
}

func checkShown(t *testing.T, e *execPoint, ad *classad.Ad) {
	t.Helper()
	for name, want := range map[string]string{
		"MyAddress": e.address.String(), "StartdIpAddr": e.address.String(), "Machine": ourHost, "Hall": "north", "State": "Unclaimed", "Activity": "Idle",
		"Arch": "X86_64", "OpSys": "LINUX",
	} {
		if got, _ := ad.EvalString(name, nil); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"ClaimId", "Capability", "ChildClaimIds", "_condor_PrivRemoteAdminCapability"} {
		if _, ok := ad.Lookup(name); ok {
			t.Errorf("condor_status shows %s", name)
		}
	}
}

func TestCondorStatus(t *testing.T) {
	t.Parallel()
	c := newCondor(t, "")
	c.begin()
	e := newEP(t, c, slots, nil)
	c.shows(names...)

	out := c.Tool("condor_status")
	for _, want := range []string{"slot1@" + ourHost, "LINUX", "X86_64", "Unclaimed", "Idle", "Total     3     0       0         3"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("condor_status does not show %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "[?") {
		t.Errorf("condor_status does not know everything:\n%s", out)
	}
	for _, args := range [][]string{{"-compact"}, {"-state"}, {"-run"}, {"-claimed"}, {"-server"}, {"-total"}, {"-startd"}} {
		out := c.Tool("condor_status", args...)
		quiet := args[0] == "-run" || args[0] == "-claimed" || args[0] == "-total"
		if !quiet && !strings.Contains(out, "ep.execpoint.te") {
			t.Errorf("condor_status %v:\n%s", args, out)
		}
		if strings.Contains(out, "[?") || strings.Contains(out, "undefined") {
			t.Errorf("condor_status %v does not know everything:\n%s", args, out)
		}
	}
	if out := strings.Fields(c.Tool("condor_status", "-startd", "-af", "Name")); !slices.Equal(out, []string{ourHost}) && !slices.Equal(out, names) {
		t.Errorf("condor_status -startd names %q", out)
	}
	daemons := c.ads("-any", "-constraint", `MyType == "StartD"`)
	if len(daemons) != 1 {
		t.Fatalf("%d daemon ads, want one", len(daemons))
	}
	if n, _ := daemons[0].EvalInt("TotalSlots", nil); n != 3 {
		t.Errorf("the daemon ad has %d slots; is it ours?\n%s", n, daemons[0].Text(classad.Old))
	}

	// Asked directly, we say what the collector was told.
	direct := c.ads("-direct", ourHost)
	told := c.ads()
	if len(direct) != len(told) || len(told) != 3 {
		t.Fatalf("%d ads directly, %d from the collector", len(direct), len(told))
	}
	for i, ad := range direct {
		for name := range told[i].All() {
			if _, ok := ad.Lookup(name); !ok && !slices.Contains([]string{"AuthenticatedIdentity", "AuthenticationMethod", "UpdateSequenceNumber", "UpdatesHistory", "UpdatesLost", "UpdatesSequenced", "UpdatesTotal"}, name) {
				t.Errorf("%s: only the collector has %s", names[i], name)
			}
		}
		checkSame(t, names[i], ad, told[i], "Name", "MyAddress", "Cpus", "Memory", "Start", "Requirements", "DaemonStartTime", "CondorVersion", "Hall")
	}
	if out := c.Tool("condor_status", "-direct", ourHost, "-constraint", `PartitionableSlot =?= true`, "-af", "Name", "Cpus"); strings.TrimSpace(out) != names[0]+" 6" {
		t.Errorf("asked directly for the partitionable slot: %q", out)
	}
	if out := c.Tool("condor_status", "-direct", ourHost, "-limit", "2", "-af", "Name"); len(strings.Fields(out)) != 2 {
		t.Errorf("asked directly for two: %q", out)
	}
	if out := c.Tool("condor_status", "-startd", "-direct", ourHost, "-af", "MyType"); strings.TrimSpace(out) == "" {
		t.Error("asked directly for the daemon: nothing")
	}
	_ = e
}

func checkSame(t *testing.T, what string, a, b *classad.Ad, attrs ...string) {
	t.Helper()
	for _, name := range attrs {
		x, ok := a.Lookup(name)
		y, ok2 := b.Lookup(name)
		if !ok || !ok2 || x.Text(classad.Old) != y.Text(classad.Old) {
			t.Errorf("%s: %s is %v directly and %v at the collector", what, name, x, y)
		}
	}
}

// A collector that is started again has forgotten us and our session; it is
// told of us again long before the next UPDATE_INTERVAL.
func TestCollectorRestarted(t *testing.T) {
	t.Parallel()
	c := newCondor(t, "UPDATE_INTERVAL = 300\n")
	c.begin()
	newEP(t, c, slots, nil)
	c.shows(names...)
	c.stop("condor_collector", syscall.SIGKILL)
	c.begin()
	c.shows(names...)
}

// Beside the original, with the same configuration, our ads have what its ads
// have, and the tools show both alike.
func TestBesideTheOriginal(t *testing.T) {
	t.Parallel()
	c := newCondor(t, slots+noFamily+"RunBenchmarks = False\nSTARTD_NAME = original\n")
	c.begin("condor_startd")
	newEP(t, c, "STARTD_NAME = ours\n", nil)
	host := c.FullHost()
	var want []string
	for _, n := range []string{"slot1", "slot2", "slot3"} {
		want = append(want, n+"@original@"+host, n+"@ours@"+ourHost)
	}
	c.shows(want...)
	ads := make(map[string]*classad.Ad)
	for _, ad := range c.ads() {
		name, _ := ad.EvalString("Name", nil)
		ads[name] = ad
	}
	for i := 0; i < len(want); i += 2 {
		original, ours := ads[want[i]], ads[want[i+1]]
		for name := range original.All() {
			if _, ok := ours.Lookup(name); ok {
				continue
			}
			if !slices.ContainsFunc(absent[:], func(pattern string) bool { ok, _ := filepath.Match(pattern, name); return ok }) {
				t.Errorf("%s lacks %s", want[i+1], name)
			}
		}
		if c.atLeast(expressions) {
			checkSame(t, want[i+1], ours, original, "Requirements", "WithinResourceLimits")
		}
		checkSame(t, want[i+1], ours, original, "MyType", "TargetType", "Cpus", "Memory", "State", "Activity", "SlotType", "SlotTypeID", "SlotID", "TotalSlots",
			"Start", "Rank", "SlotWeight", "OpSys", "OpSysAndVer", "Arch", "TotalCpus", "TotalMemory", "HasStartDaemonAd", "HasFileTransfer", "Hall")
	}
}

// What the original's ads have besides: of jobs that our starter does not run
// for a pool yet, of statistics, of the console and of power, which
// nobody looks at in this test.
var absent = [...]string{
	"Has*", "Java*", "MappingMethod",
	"*JobStarts", "*Requests", "*Preemptions", "*NewDSlotNotMatch", "MonitorSelf*", "*DutyCycle", "NumDynamicSlotsTime", "TotalTime*",
	"ConsoleIdle", "CanHibernate", "Hibernation*", "HardwareAddress", "Wake*", "IsWake*", "SubnetMask", "TimeToLive",
}

// A condor_master runs the pool behind one shared port; we stand beside it.
func TestBesideAMaster(t *testing.T) {
	t.Parallel()
	c := newCondor(t, slots+"USE_SHARED_PORT = True\nDAEMON_LIST = MASTER SHARED_PORT COLLECTOR NEGOTIATOR SCHEDD\nSHARED_PORT_PORT = @PORT@\n")
	c.start("condor_master")
	eventually(t, "the collector answers", func() error { return c.CollectorAnswers(t.Context()) })
	e := newEP(t, c, fmt.Sprintf("COLLECTOR_HOST = 127.0.0.1:%d?sock=collector\n", c.Port), nil)
	c.shows(names...)
	if err := e.pool.Withdraw(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.shows()
	if log := c.Log("SharedPortLog"); !strings.Contains(log, "STARTD "+e.address.String()) {
		t.Errorf("the shared port has not heard of us:\n%s", log)
	}
}

// The negotiator finds our claim ids and hands them to the schedd, which claims
// a part of the partitionable slot and is given the rest for more.
func TestMatched(t *testing.T) {
	t.Parallel()
	c := newCondor(t, slots+noFamily)
	c.begin("condor_negotiator", "condor_schedd")
	newEP(t, c, "", nil)
	c.shows(names...)
	file := filepath.Join(c.Dir, "job.sub")
	c.Must(os.WriteFile(file, []byte("executable = /bin/sleep\narguments = 1\nlog = job.log\nrequest_cpus = 2\nrequest_memory = 64\nrequest_disk = 1024\nqueue\n"), 0o644))
	c.Submit(c.Dir, file)
	eventually(t, "the job is matched", func() error {
		log := c.Log("NegotiatorLog")
		if strings.Contains(log, "has no claim id") {
			t.Fatalf("the negotiator does not find our claim ids:\n%s", log)
		}
		if !strings.Contains(log, "Successfully matched with slot1@"+ourHost) {
			return fmt.Errorf("NegotiatorLog says nothing of it")
		}
		return nil
	})
	// The activation is granted; there is no starter behind this engine.
	for _, want := range []string{
		"Received match from startd, leftover slot ad slot1@" + ourHost,
		"Started shadow for job 1.0 on slot1_1@" + ourHost,
	} {
		eventually(t, want, func() error {
			log := c.Log("SchedLog")
			if !c.Version.AtLeast(25, 0, 0) { // these name the claim's first slot
				log = strings.ReplaceAll(log, "on slot1@", "on slot1_1@")
			}
			if !strings.Contains(log, want) {
				return fmt.Errorf("SchedLog does not say so")
			}
			return nil
		})
	}
}

// A connection that is cut is made again under the session that there is.
func TestConnectionCut(t *testing.T) {
	t.Parallel()
	// FS would notice that somebody stands between.
	c := newCondor(t, slots+"SEC_DEFAULT_AUTHENTICATION = OPTIONAL\n")
	c.begin()
	p := newProxy(t, c.Port)
	newEP(t, c, fmt.Sprintf("COLLECTOR_HOST = 127.0.0.1:%d\n", p.port), nil)
	c.shows(names...)
	heard := func() string { return c.Tool("condor_status", "-af", "UpdateSequenceNumber") }
	before := heard()
	p.cut()
	eventually(t, "the ads are sent again", func() error {
		if heard() == before {
			return fmt.Errorf("the numbers of the updates are still %q", before)
		}
		return nil
	})
	made := regexp.MustCompile(`added incoming session id \S+ .*return address is <127`).FindAllString(c.Log("CollectorLog"), -1)
	if len(made) != 1 {
		t.Errorf("%d sessions were made with us, want one: %q", len(made), made)
	}
}

// Who may administrate the pool gets the right to administrate us from the
// collector: nobody is in our own list.
func TestAdministrationByTheCollector(t *testing.T) {
	t.Parallel()
	c := newCondor(t, slots+"STARTD.ALLOW_ADMINISTRATOR = somebody@else\nPOLLING_INTERVAL = 1\n")
	c.begin()
	newEP(t, c, "", nil)
	c.shows(names...)
	if out := c.Tool("condor_status", "-af", "_condor_PrivRemoteAdminCapability", "RemoteAdminCapability"); strings.Contains(out, "admin_") {
		t.Error("condor_status shows the capability")
	}
	c.NeedVersion(t, cedar.Version{Major: 25}, "condor_drain asks the collector for the capability")
	out := c.Tool("condor_drain", "-fast", "-reason", "dust", ourHost)
	if !strings.Contains(out, "Sent request to drain") {
		t.Errorf("condor_drain: %s", out)
	}
	eventually(t, "all slots are drained", func() error {
		out := c.Tool("condor_status", "-af", "State", "DrainReason")
		if got := strings.Join(strings.Fields(out), " "); got != "Drained dust Drained dust Drained dust" {
			return fmt.Errorf("the slots are %q", got)
		}
		return nil
	})
}

// row: S4-062
func TestSecondExecutionPoint(t *testing.T) {
	t.Parallel()
	c := newCondor(t, "")
	c.begin()
	newEP(t, c, slots, nil)
	newEP(t, c, "STARTD_NAME = second\n", nil)
	c.shows("slot1@"+ourHost, "slot1@second@"+ourHost, "slot2@"+ourHost, "slot3@"+ourHost)
}

// row: S4-044, S4-045
func TestDaemonAd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ knob, want string }{
		{"True", "true"},
		{"Auto", "true"},
		{"False", "undefined"}, // the collector then makes an ad of slot1's
	} {
		t.Run(tt.knob, func(t *testing.T) {
			t.Parallel()
			c := newCondor(t, "")
			c.begin()
			newEP(t, c, slots+"ENABLE_STARTD_DAEMON_AD = "+tt.knob+"\n", nil)
			c.shows(names...)
			if out := c.Tool("condor_status", "-af", "HasStartDaemonAd"); strings.TrimSpace(out) != strings.TrimSpace(strings.Repeat(tt.want+"\n", 3)) {
				t.Errorf("HasStartDaemonAd is %q", out)
			}
			log := c.Log("CollectorLog")
			if own := strings.Contains(log, "StartDaemonAd: Inserting"); !own {
				t.Errorf("the collector has no daemon ad")
			}
		})
	}
}

// Ten thousand slots are told to a real collector, and taken back.
func TestTenThousandSlots(t *testing.T) {
	c := newCondor(t, "COLLECTOR_DEBUG =\nNUM_CPUS = 10000\nMEMORY = 10000000\nDISK = 10000000000\nSLOT_TYPE_1 = cpus=1\nSLOT_TYPE_1_PARTITIONABLE = false\nNUM_SLOTS_TYPE_1 = 10000\n")
	c.begin()
	began := time.Now()
	e := newEP(t, c, "", nil)
	t.Logf("the engine began within %v", time.Since(began))
	count := func(want int) {
		t.Helper()
		eventually(t, fmt.Sprintf("the collector has %d slots", want), func() error {
			out, err := c.run("condor_status", "-af", "SlotID")
			if got := len(strings.Fields(out)); err != nil || got != want {
				return fmt.Errorf("it has %d, %v", got, err)
			}
			return nil
		})
	}
	count(10000)
	t.Logf("condor_status shows all after %v; they were sent within %v", time.Since(began), e.pool.Collectors()[0].LastTook)
	began = time.Now()
	if err := e.pool.Withdraw(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("all were taken back within %v", time.Since(began))
	count(0)
}
