// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
)

// rowKnobs are the knobs that the documents' rows name.
func rowKnobs(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "row-knobs.txt"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) < 130 {
		t.Fatalf("only %d names", len(lines))
	}
	return lines[1:]
}

// samples are a good and a bad value of each type; what has no bad value is
// any text.
var samples = map[string]struct{ good, bad, message string }{
	TypeBool:     {"True", "maybe so", "is not a boolean"},
	TypeInt:      {"7", "seven", "is not an integer"},
	TypeFloat:    {"0.5", "half", "is not a number"},
	TypeDuration: {"70", "a while", "is not a time"},
	TypeExpr:     {"KeyboardIdle > 5", "KeyboardIdle >", "is not an expression"},
	TypeString:   {"text", "", ""},
	TypePath:     {"/a/path", "", ""},
	TypeList:     {"a, b", "", ""},
}

// TestRowKnobs reads every knob that the rows name: it is in the table, has a
// type, a good value is read back, and a bad one is found with its place.
func TestRowKnobs(t *testing.T) {
	t.Parallel()
	for _, name := range rowKnobs(t) {
		k, ok := LookupKnob(name)
		if !ok {
			t.Errorf("%s is not in the table", name)
			continue
		}
		if k.Doc == "" || k.Platform == "" {
			t.Errorf("%s lacks a document or a platform: %+v", name, k)
		}
		v, ok := samples[k.Type]
		if !ok {
			t.Errorf("%s has the type %q", name, k.Type)
			continue
		}
		s := mustParse(t, "\n"+name+" = "+v.good+"\n")
		if got := mustLookup(t, s, name); got.Value != v.good || got.Origin.Line != 2 {
			t.Errorf("%s reads as %+v", name, got)
		}
		if ps := s.Check(); len(ps) > 0 {
			t.Errorf("%s: %v", name, ps)
		}
		if v.bad == "" {
			continue
		}
		ps := mustParse(t, "\n"+name+" = "+v.bad+"\n").Check()
		if len(ps) != 1 || ps[0].Line != 2 || ps[0].Knob != name || ps[0].Value != v.bad || !strings.HasPrefix(ps[0].Message, v.message) || ps[0].Want == "" {
			t.Errorf("%s = %s: %v", name, v.bad, ps)
		}
	}
}

// TestPlatformFile sets in the file of a platform what the shared file set
// before it.
//
// row: S3-004
func TestPlatformFile(t *testing.T) {
	t.Parallel()
	files := memoryFiles{
		"/shared/condor_config": "RELEASE_DIR = /usr\nMAIL = /bin/mail\nCONSOLE_DEVICES = mouse\nDAEMON_LIST = MASTER, STARTD\nBIN = $(RELEASE_DIR)/bin\n" +
			"LOCAL_CONFIG_FILE = /shared/condor_config.$(ARCH).$(OPSYS)\n",
		"/shared/condor_config.X86_64.LINUX":   "RELEASE_DIR = /opt/condor\nMAIL = /usr/bin/mailx\nCONSOLE_DEVICES = mouse, console\nDAEMON_LIST = $(DAEMON_LIST), KBDD\n",
		"/shared/condor_config.X86_64.WINDOWS": "",
	}
	for opsys, want := range map[string]map[string]string{
		"LINUX":   {"RELEASE_DIR": "/opt/condor", "BIN": "/opt/condor/bin", "MAIL": "/usr/bin/mailx", "CONSOLE_DEVICES": "mouse, console", "DAEMON_LIST": "MASTER, STARTD, KBDD"},
		"WINDOWS": {"RELEASE_DIR": "/usr", "BIN": "/usr/bin", "MAIL": "/bin/mail", "CONSOLE_DEVICES": "mouse", "DAEMON_LIST": "MASTER, STARTD"},
	} {
		s, err := Load(Options{Root: "/shared/condor_config", ReadFile: files.read, Facts: map[string]string{"ARCH": "X86_64", "OPSYS": opsys}})
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range want {
			if got := s.String(name); got != value {
				t.Errorf("%s: %s = %q, want %q", opsys, name, got, value)
			}
		}
	}
}

// TestLaterFileWins puts a file that anybody may write before one that only
// the owner of the machine may.
//
// row: S3-006
func TestLaterFileWins(t *testing.T) {
	t.Parallel()
	files := memoryFiles{
		"/etc/condor_config": "START = False\nLOCAL_CONFIG_FILE = /pool/users.conf, /etc/machine.conf\n",
		"/pool/users.conf":   "START = True\nMAX_JOBS = 100\nSUSPEND = KeyboardIdle < 1\n",
		"/etc/machine.conf":  "START = KeyboardIdle > 600\n",
	}
	s, err := Load(Options{Root: "/etc/condor_config", ReadFile: files.read})
	if err != nil {
		t.Fatal(err)
	}
	if set := mustLookup(t, s, "START"); set.Value != "KeyboardIdle > 600" || set.Origin.String() != "/etc/machine.conf:1" {
		t.Errorf("START is %q from %s", set.Value, set.Origin)
	}
	if set := mustLookup(t, s, "SUSPEND"); set.Origin.String() != "/pool/users.conf:3" {
		t.Errorf("SUSPEND is from %s", set.Origin)
	}
}

// TestPersonalScheduler names the dedicated scheduler of one person.
//
// row: S3-022
func TestPersonalScheduler(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"DedicatedScheduler@front.example.org", "DedicatedScheduler@alice@front.example.org"} {
		s := mustParse(t, fmt.Sprintf("DedicatedScheduler = %q\nSTARTD_ATTRS = $(STARTD_ATTRS), DedicatedScheduler\nRANK = Scheduler =?= $(DedicatedScheduler)\n", name))
		if ps := append(s.Check(), problems(s.Warnings())...); len(ps) > 0 {
			t.Errorf("%v", ps)
		}
		rank, err := s.Expr("RANK")
		if err != nil {
			t.Fatal(err)
		}
		job := classad.NewAd()
		job.SetString("Scheduler", name)
		if !rank.Eval(&classad.Env{My: classad.NewAd(), Target: job}).IsTrue() {
			t.Errorf("%s does not rank its own job", name)
		}
	}
}

func problems(list []Problem) (out Problems) {
	for i := range list {
		out = append(out, &list[i])
	}
	return out
}

// TestDefaultsOfRows is what the documents say of values that nobody sets.
//
// row: S4-134
func TestDefaultsOfRows(t *testing.T) {
	t.Parallel()
	s := mustParse(t, "SPOOL = /var/spool\n")
	for name, want := range map[string]string{
		"NUM_CPUS": "8", "LVM_VOLUME_GROUP_NAME": "", "LVM_BACKING_FILE": "/var/spool/startd_disk.img", "LVM_BACKING_FILE_SIZE_MB": "10240",
		"SLOT_TYPE_1_PARTITIONABLE": "false", "SLOT_TYPE_7_PARTITIONABLE": "false", "DOCKER": "/usr/bin/docker", "DOCKER_IMAGE_CACHE_SIZE": "8",
	} {
		if got := s.String(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if k, _ := LookupKnob("NUM_CPUS"); k.Default != "$(DETECTED_CPUS_LIMIT)" {
		t.Errorf("NUM_CPUS has the default %s", k.Default)
	}
	if k, _ := LookupKnob("LVM_VOLUME_GROUP_NAME"); k.HasDefault {
		t.Errorf("LVM_VOLUME_GROUP_NAME has a default")
	}
	want := []Change{{Name: "NUM_CPUS", Before: "8", After: "2", Reconfig: ReconfigRestarts}}
	if d := cmp.Diff(want, s.Changes(mustParse(t, "SPOOL = /var/spool\nNUM_CPUS = 2\n"))); d != "" {
		t.Error(d)
	}
}

// TestRequestDefaults evaluates the expressions that round what a job asks for.
//
// row: S4-111, S4-113
func TestRequestDefaults(t *testing.T) {
	t.Parallel()
	s := mustParse(t, "")
	for _, tt := range []struct {
		knob, attr string
		ask, want  int64
	}{
		{"MODIFY_REQUEST_EXPR_REQUESTMEMORY", "RequestMemory", 1, 128}, {"MODIFY_REQUEST_EXPR_REQUESTMEMORY", "RequestMemory", 129, 256},
		{"MODIFY_REQUEST_EXPR_REQUESTCPUS", "RequestCpus", 3, 3},
	} {
		e, err := s.Expr(tt.knob)
		if err != nil || e == nil {
			t.Fatal(tt.knob, err)
		}
		job := classad.NewAd()
		job.SetInt(tt.attr, tt.ask)
		if got, ok := e.Eval(&classad.Env{My: classad.NewAd(), Target: job}).AsInt(); !ok || got != tt.want {
			t.Errorf("%s of %d is %d", tt.knob, tt.ask, got)
		}
	}
}

// TestBackfillSwitch is a boolean and no policy: attributes mean nothing in it.
//
// row: S4-084
func TestBackfillSwitch(t *testing.T) {
	t.Parallel()
	if on, err := mustParse(t, "").Bool("ENABLE_BACKFILL"); on || err != nil {
		t.Errorf("by default %v, %v", on, err)
	}
	if on, err := mustParse(t, "ENABLE_BACKFILL = 1 + 1 == 2\n").Bool("ENABLE_BACKFILL"); !on || err != nil {
		t.Errorf("a constant is %v, %v", on, err)
	}
	_, err := mustParse(t, "ENABLE_BACKFILL = KeyboardIdle > 60\n").Bool("ENABLE_BACKFILL")
	if p := (*Problem)(nil); !errors.As(err, &p) || p.Error() != `test.conf:1:1: knob ENABLE_BACKFILL: is not a boolean (value "KeyboardIdle > 60", want True or False)` {
		t.Errorf("a policy: %v", err)
	}
}

// TestReloadClasses takes the two classes from the table, also for families
// and for names with a prefix.
func TestReloadClasses(t *testing.T) {
	t.Parallel()
	before, after := "", ""
	want := map[string]Reconfig{
		"START": ReconfigApplies, "NUM_SLOTS": ReconfigRestarts, "SLOT_TYPE_3": ReconfigRestarts, "SLOT_TYPE_3_START": ReconfigApplies,
		"STARTD.UPDATE_INTERVAL": ReconfigApplies, "STARTD.NUM_CPUS": ReconfigRestarts, "OWN_NAME": ReconfigUnknown,
	}
	for name := range want {
		before += name + " = 1\n"
		after += name + " = 2\n"
	}
	changes := mustParse(t, before).Changes(mustParse(t, after))
	got := map[string]Reconfig{}
	for _, c := range changes {
		got[c.Name] = c.Reconfig
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestBadBytes reads what is no configuration. Each is refused with one clear
// problem at its place, or with few, and says little of what it met.
func TestBadBytes(t *testing.T) {
	t.Parallel()
	junk := make([]byte, 1<<20)
	for i := range junk {
		junk[i] = byte(i*i>>3 ^ i)
	}
	elf := append([]byte("\x7fELF\x02\x01\x01\x00"), bytes.Repeat([]byte{0, 1, 2, '\n'}, 5000)...)
	for _, tt := range []struct {
		name, text, first string
	}{
		{"one line of 10 MB", "A = 1\nB = " + strings.Repeat("x", 10<<20) + "\nC = 3\n", "a.conf:2:5: knob B: the name or the value is too long"},
		{"one name of 10 MB", strings.Repeat("x", 10<<20) + " = 1\n", "a.conf:1:"},
		{"10 MB without an end", strings.Repeat("x", 10<<20), "a.conf:1:"},
		{"10 MB in a here-document", "H @=end\n" + strings.Repeat("line\n", 2<<20) + "@end\n", "a.conf:"},
		{"a here-document without end", "A = 1\nH @=end\nB = 2\n", "a.conf:2:1: knob H: the value never ends (want a line @end)"},
		{"a program", string(elf), "a.conf:1:"},
		{"junk", string(junk), "a.conf:"},
		{"zeros", strings.Repeat("\x00", 1<<20), "a.conf:1:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, err := Parse("a.conf", tt.text, Options{})
			var ps Problems
			if s != nil || !errors.As(err, &ps) {
				t.Fatalf("got %v, %v", s, err)
			}
			if first := ps[0].Error(); !strings.HasPrefix(first, tt.first) {
				t.Errorf("first problem %.200q", first)
			}
			if len(ps) > 2*maxProblems+1 || len(err.Error()) > 300<<10 {
				t.Errorf("%d problems in %d bytes", len(ps), len(err.Error()))
			}
		})
	}
}
