// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

const (
	openToAll = "no security" // a pool in which nobody is asked who he is

	// overUDP has updates go over UDP, and the collector say how they came.
	overUDP = "UPDATE_COLLECTOR_WITH_TCP = False\nSEC_USE_FAMILY_SESSION = False\nCOLLECTOR_DEBUG = D_SECURITY:1 D_NETWORK D_COMMAND\nMAX_COLLECTOR_LOG = 100000000\n"
)

const required = "SEC_DEFAULT_AUTHENTICATION = REQUIRED\nSEC_DEFAULT_ENCRYPTION = REQUIRED\nSEC_DEFAULT_INTEGRITY = REQUIRED\n"

// large makes ads that need many datagrams.
var large = "STARTD_ATTRS = $(STARTD_ATTRS) Large\nLarge = \"" + strings.Repeat("0123456789", 3000) + "\"\n"

// The collector shows what we tell it over UDP, in clear and encrypted, in one
// datagram and in many, and that it is gone at the end.
func TestDatagrams(t *testing.T) {
	t.Parallel()
	open := "SEC_DEFAULT_AUTHENTICATION = NEVER\nSEC_DEFAULT_ENCRYPTION = NEVER\nSEC_DEFAULT_INTEGRITY = NEVER\nSEC_DEFAULT_NEGOTIATION = NEVER\nALLOW_ADVERTISE_STARTD = *\nALLOW_READ = *\n"
	for _, tt := range []struct {
		name, lines string
		way         int
		user        string
		hidden      bool
	}{
		{"no security", open, 0, "unauthenticated user", false},
		{"no security, many datagrams", open + large + "UDP_LOOPBACK_FRAGMENT_SIZE = 1000\n", 0, "unauthenticated user", false},
		{"FS", required, 0, "", true},
		{"FS, many datagrams", required + large + "UDP_LOOPBACK_FRAGMENT_SIZE = 1000\n", 0, "", true},
		{"FS, 3DES", required + "FIPS = True\n", 0, "", true},
		{"IDTOKENS, many datagrams", required + ways[3].lines + large + "UDP_LOOPBACK_FRAGMENT_SIZE = 2000\n", 3, "", true},
		{"PASSWORD", required + ways[4].lines, 4, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newCondor(t, overUDP+tt.lines)
			c.begin()
			way := ways[tt.way]
			if tt.user == "" {
				tt.user = way.user
			}
			if way.token {
				token := c.Tool("condor_token_create", "-identity", way.user, "-authz", "ADVERTISE_STARTD", "-authz", "READ")
				c.Must(os.WriteFile(filepath.Join(c.Dir, "ep-tokens.d", "pool"), []byte(token), 0o600))
			}
			if key, err := os.ReadFile(filepath.Join(c.Dir, "passwords.d", "POOL")); err == nil {
				c.Must(os.WriteFile(filepath.Join(c.Dir, "ep-passwords.d", "KEY"), key, 0o600))
			}
			e := newEP(t, c, slots, nil)
			c.shows(names...)
			for _, ad := range c.ads() {
				checkShown(t, e, ad)
				if large, _ := ad.EvalString("Large", nil); strings.Contains(tt.lines, "Large") && len(large) != 30_000 {
					t.Errorf("Large has %d characters", len(large))
				}
			}
			private := c.Tool("condor_status", "-any", "-constraint", `MyType == "Machine"`, "-af", "Name")
			if n := len(strings.Fields(private)); n != 3 {
				t.Errorf("%d slots", n)
			}
			told := e.pool.Collectors()[0]
			if !told.Datagrams || told.Updates < 3 || told.Refused > 0 || told.Failures > 0 {
				t.Errorf("%+v", told)
			}
			log := c.Log("CollectorLog")
			for _, want := range []string{
				`received UDP packet from <127\.0\.0\.1:\d+>`,
				`PERMISSION GRANTED to \S*` + tt.user + ` from host \S+ for command 0 \(UPDATE_STARTD_AD\)`,
			} {
				if !regexp.MustCompile(want).MatchString(log) {
					t.Errorf("the collector's log has no %s", want)
				}
			}
			if got := regexp.MustCompile(`packet from \S+ uses crypto session`).MatchString(log); got != tt.hidden {
				t.Errorf("encrypted: %v", got)
			}
			if strings.Contains(log, "PERMISSION DENIED") || regexp.MustCompile(`TCP.*UPDATE_STARTD_AD|NOT FOUND; this session`).MatchString(log) {
				t.Error("the collector refused something, or was told over TCP")
			}
			if err := e.pool.Withdraw(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.shows()
		})
	}
}

// What cannot go over UDP goes over TCP, without a setting more: the original
// collector would end if it were sent a secret under a session that does not
// encrypt.
func TestDatagramsThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string]string{
		"a key, but no encryption": "SEC_DEFAULT_AUTHENTICATION = NEVER\nALLOW_ADVERTISE_STARTD = *\nALLOW_READ = *\n",
		"AES alone":                required + "SEC_DEFAULT_CRYPTO_METHODS = AES\n",
		"named":                    required + "TCP_UPDATE_COLLECTORS = other, 127.0.0.*\n",
		"it says so":               required + "STARTD.COLLECTOR_HOST = $(COLLECTOR_HOST)?noUDP\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCondor(t, overUDP+lines)
			if strings.Contains(lines, "NEVER") {
				c.NeedVersion(t, keyAlone, "a session that is not authenticated has a key")
			}
			c.begin()
			e := newEP(t, c, slots, nil)
			c.shows(names...)
			if told := e.pool.Collectors()[0]; told.Datagrams || told.Updates < 3 || told.Failures > 0 {
				t.Errorf("%+v", told)
			}
			if strings.Contains(c.Log("CollectorLog"), "received UDP packet") {
				t.Error("something came over UDP")
			}
			if err := e.pool.Withdraw(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.shows()
		})
	}
}

// The negotiator finds the claim ids of slots that were told over UDP.
func TestMatchedOverUDP(t *testing.T) {
	t.Parallel()
	c := newMaster(t, overUDP+required+"CLAIM_PARTITIONABLE_LEFTOVERS = True\n")
	c.Must(os.WriteFile(filepath.Join(c.Dir, "job.sub"), []byte("executable = /bin/true\nrequest_memory = 100\nrequest_disk = 1\nlog = job.log\nqueue 2\n"), 0o644))
	c.Submit(c.Dir, "job.sub")
	eventually(t, "two jobs are over", func() error {
		b, err := os.ReadFile(filepath.Join(c.Dir, "job.log"))
		if n := strings.Count(string(b), "(return value 0)"); err == nil && n < 2 {
			err = fmt.Errorf("%d are", n)
		}
		return err
	})
	if !strings.Contains(c.Log("StartLog"), "telling the collector over UDP") {
		t.Error("the collector was not told over UDP")
	}
}

// A collector that is started again is told again: where this machine did not
// say that nobody listened, when the session is over that it has forgotten.
func TestCollectorOfDatagramsRestarted(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string]string{"FS": required + "SEC_CLIENT_SESSION_DURATION = 3\n", "no security": "SEC_DEFAULT_AUTHENTICATION = NEVER\nSEC_DEFAULT_NEGOTIATION = NEVER\nALLOW_ADVERTISE_STARTD = *\nALLOW_READ = *\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCondor(t, overUDP+lines+"UPDATE_INTERVAL = 5\n")
			c.begin()
			newEP(t, c, slots, nil)
			c.shows(names...)
			c.stop("condor_collector", syscall.SIGKILL)
			c.begin()
			c.shows(names...)
		})
	}
}

// The negotiator tells our startd of a match over UDP, under a session that it
// made over TCP, and the schedd that it needs a claim no more, under that of the
// claim. Neither puts a digest into its datagram, so both count as nobody.
func TestToldOverUDP(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string]string{
		"FS":       required,
		"FS, 3DES": required + "FIPS = True\n",
		openToAll:  "SEC_DEFAULT_AUTHENTICATION = NEVER\nSEC_DEFAULT_ENCRYPTION = NEVER\nSEC_DEFAULT_INTEGRITY = NEVER\nSEC_DEFAULT_NEGOTIATION = NEVER\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newMaster(t, overUDP+lines+"NEGOTIATOR_INFORM_STARTD = True\nSCHEDD_SEND_VACATE_VIA_TCP = False\nCLAIM_PARTITIONABLE_LEFTOVERS = True\n")
			if at := c.Tool("condor_status", "-af", "MyAddress", "-limit", "1"); strings.Contains(at, "noUDP") {
				t.Errorf("MyAddress = %s", at)
			}
			c.Must(os.WriteFile(filepath.Join(c.Dir, "job.sub"), []byte("executable = /bin/sleep\narguments = 0\nrequest_memory = 100\nrequest_disk = 1\nlog = log/job.log\nqueue\n"), 0o644))
			c.Submit(c.Dir, "job.sub")
			c.says("job.log", `return value 0`)
			if name == openToAll {
				c.says("StartLog", `command allowed.*MATCH_INFO.*datagram`)
				c.says("StartLog", `command allowed.*RELEASE_CLAIM.*unauthenticated@unmapped.*datagram`)
				return
			}
			c.says("StartLog", `datagram refused.*MATCH_INFO.*carries no digest`)
			c.says("StartLog", `datagram refused.*RELEASE_CLAIM.*carries no digest`)
		})
	}
}

// A static slot is Matched from the negotiator's message on, until the schedd
// that it was matched for claims it.
//
// row: S0-105, S0-140, S1-001
func TestMatchedByTheNegotiator(t *testing.T) {
	t.Parallel()
	c := newMaster(t, overUDP+"SEC_DEFAULT_AUTHENTICATION = NEVER\nSEC_DEFAULT_ENCRYPTION = NEVER\nSEC_DEFAULT_INTEGRITY = NEVER\nSEC_DEFAULT_NEGOTIATION = NEVER\nNEGOTIATOR_INFORM_STARTD = True\n")
	c.Must(os.WriteFile(filepath.Join(c.Dir, "job.sub"), []byte("executable = /bin/sleep\narguments = 0\nrequest_memory = 100\nrequest_disk = 1\nrequirements = TARGET.SlotType == \"Static\"\nlog = log/job.log\nqueue\n"), 0o644))
	c.Submit(c.Dir, "job.sub")
	c.says("job.log", `return value 0`)
	c.says("StartLog", `(?s)slot(\d): Changing state: Unclaimed -> Matched.*slot\d: Changing state: Matched -> Claimed`)
}

// Below a condor_master the session of its family is there from the beginning.
// It always encrypts, whatever policy says of others.
func TestFamilyOverUDP(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string]string{"encryption required": required, "encryption never": "SEC_DEFAULT_ENCRYPTION = NEVER\nSEC_DEFAULT_INTEGRITY = NEVER\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newMaster(t, strings.Replace(overUDP, "SEC_USE_FAMILY_SESSION = False\n", "", 1)+lines)
			if !strings.Contains(c.Log("StartLog"), "telling the collector over UDP") {
				t.Error("the collector is not told over UDP")
			}
			if log := c.Log("CollectorLog"); !strings.Contains(log, "uses crypto session family:") || strings.Contains(log, "ERROR \"") {
				t.Error("the collector was not told under the session of the family, or failed")
			}
		})
	}
}
