// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
)

// submit queues a job of so many seconds, with more lines.
func (c *condor) submit(lines string) {
	c.TB.Helper()
	path := filepath.Join(c.Dir, "attach.sub")
	c.Must(os.WriteFile(path, []byte("executable = /bin/sleep\narguments = 600\nrequest_memory = 100\nrequest_disk = 1\nrequest_cpus = 1\n"+lines+"\nqueue\n"), 0o644))
	c.Submit(c.Dir, path)
}

// The real schedd claims slots that are offered to it: no negotiator is there.
// With a submitter named only jobs of that one are run.
//
// row: S4-151, S4-152
func TestDirectAttach(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, lines string
		claimed     bool
	}{
		{"anybody", "", true},
		{"the submitter", "STARTD_DIRECT_ATTACH_SCHEDD_SUBMITTER = @USER@\n", true},
		{"somebody else", "STARTD_DIRECT_ATTACH_SCHEDD_SUBMITTER = somebody\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newCondor(t, slots+noFamily+"SCHEDD_NAME = ap@\n")
			if tt.claimed {
				c.NeedVersion(t, cedar.Version{Major: 24, Minor: 12}, "a schedd has others' jobs run on the slots that a user offers, too")
			}
			c.begin("condor_schedd")
			name := ""
			eventually(t, "the schedd is known", func() error {
				out, err := c.run("condor_status", "-schedd", "-af", "Name")
				if name = strings.TrimSpace(out); err == nil && name == "" {
					err = errors.New("it is not")
				}
				return err
			})
			c.submit("")
			user := strings.TrimSpace(c.Tool("condor_q", "-af", "Owner"))
			newEP(t, c, slots+"STARTD_DIRECT_ATTACH_SCHEDD_NAME = "+name+"\nSTARTD_DIRECT_ATTACH_INTERVAL = 2\n"+strings.ReplaceAll(tt.lines, "@USER@", user), nil)
			if !tt.claimed {
				// The offers arrive, and nothing is made of them.
				eventually(t, "the schedd has been offered slots twice", func() error {
					if n := strings.Count(c.Log("SchedLog"), "Got DIRECT_ATTACH"); n < 2 {
						return fmt.Errorf("%d times", n)
					}
					return nil
				})
				if out := c.Tool("condor_status", "-af", "State"); strings.Contains(out, "Claimed") {
					t.Errorf("the slots are %q", out)
				}
				return
			}
			eventually(t, "a slot is claimed", func() error {
				out, err := c.run("condor_status", "-af", "State", "RemoteUser")
				if err == nil && !strings.Contains(out, "Claimed "+user) {
					err = fmt.Errorf("%q", out)
				}
				return err
			})
		})
	}
}

// condor_ep rehome moves our EP to a real schedd that it did not know, and
// back.
//
// row: S4-151
func TestRehomeByTool(t *testing.T) {
	t.Parallel()
	c := newMaster(t, "ENABLE_PERSISTENT_CONFIG = true\nPERSISTENT_CONFIG_DIR = $(LOCAL_DIR)/spool\nSTARTD_DIRECT_ATTACH_INTERVAL = 2\nSCHEDD_NAME = ap@\n"+
		"SETTABLE_ATTRS_ADMINISTRATOR = Hall\nENABLE_RUNTIME_CONFIG = true\nSTARTD_ATTRS = Hall\nHall = \"north\"\n")
	tool := filepath.Join(c.Dir, "condor_ep")
	if out, err := exec.Command("go", "build", "-o", tool, "github.com/execpoint/execpoint/bin/condor_ep").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	name := c.slot()
	machine := strings.TrimSpace(c.Tool("condor_status", "-af", "Machine", "-limit", "1"))
	schedd := ""
	eventually(t, "the schedd is known", func() error {
		if schedd = strings.TrimSpace(c.Tool("condor_status", "-schedd", "-af", "Name")); schedd == "" {
			return errors.New("it is not")
		}
		return nil
	})
	for _, tt := range []struct{ args, want string }{
		{"rehome " + machine + " nobody@nowhere", "cannot reach schedd nobody@nowhere"},
		{"rehome no.such.host " + schedd, "no collector knows it"},
		{"rehome --reboot " + machine + " " + schedd, "error code 0: Reboot on rehome not permitted by STARTD_REHOME_ALLOW_REBOOT"},
	} {
		if out, err := c.run(tool, strings.Fields(tt.args)...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("condor_ep %s: %q, %v; want %q", tt.args, out, err, tt.want)
		}
	}
	if out := c.Tool(tool, "rehome", machine, schedd, "--timeout", "600"); out != "Sent rehome command to "+machine+"\n" {
		t.Errorf("condor_ep rehome: %q", out)
	}
	c.says("StartLog", `slots were offered to the access point`)
	if out, err := c.run(tool, "rehome", machine, schedd); err == nil || !strings.Contains(err.Error(), "Already attached to this schedd") {
		t.Errorf("condor_ep rehome again: %q, %v", out, err)
	}
	kept, err := os.ReadFile(filepath.Join(c.Dir, "spool", ".config.STARTD.rehome"))
	if err != nil || string(kept) != "STARTD_DIRECT_ATTACH_SCHEDD_NAME = "+schedd+"\n" {
		t.Errorf("kept %q, %v", kept, err)
	}
	if out := c.Tool(tool, "rehome", "--cancel", machine, schedd); out != "Sent rehome cancel command to "+machine+"\n" {
		t.Errorf("condor_ep rehome --cancel: %q", out)
	}

	// What the real condor_config_val sets from afar.
	hall := func(want string) {
		t.Helper()
		c.Tool("condor_reconfig", "-startd", name)
		eventually(t, "Hall is "+want, func() error {
			out, err := c.run("condor_status", "-direct", name, "-af", "Hall")
			if err == nil && strings.Fields(out)[0] != want {
				err = fmt.Errorf("%q", out)
			}
			return err
		})
	}
	for _, step := range []struct{ option, text, want string }{
		{"-set", `Hall = "south"`, "south"}, {"-rset", `Hall = "west"`, "west"}, {"-runset", "Hall", "south"}, {"-unset", "Hall", "north"},
	} {
		if out := c.Tool("condor_config_val", "-startd", "-name", name, step.option, step.text); !strings.Contains(out, "Successfully") {
			t.Errorf("condor_config_val %s: %q", step.option, out)
		}
		hall(step.want)
	}
	if out, err := c.run("condor_config_val", "-startd", "-name", name, "-set", "START = false"); err == nil || !strings.Contains(err.Error(), "failed") {
		t.Errorf("a knob that nobody may set: %q, %v", out, err)
	}
}

// The real condor_history reads what ran here.
func TestRealHistory(t *testing.T) {
	t.Parallel()
	c := newMaster(t, "STARTD_HISTORY = $(SPOOL)/startd_history\n")
	name := c.slot()
	var text strings.Builder
	for i := range 3 {
		ad := classad.NewAd()
		ad.SetInt("ClusterId", int64(i+1))
		ad.SetInt("ProcId", 0)
		ad.SetString("Owner", "alice")
		ad.SetString("Cmd", "/bin/sleep")
		ad.SetInt("JobStatus", 4)
		ad.SetInt("CompletionDate", int64(1_700_000_000+i))
		at := text.Len()
		text.WriteString(ad.Text(classad.Old))
		if !strings.HasSuffix(text.String(), "\n") {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "*** Offset = %d ClusterId = %d ProcId = 0 Owner = \"alice\" CompletionDate = %d\n", at, i+1, 1_700_000_000+i)
	}
	c.Must(os.WriteFile(filepath.Join(c.Dir, "spool", "startd_history"), []byte(text.String()), 0o644))
	for _, tt := range []struct {
		args string
		want string
	}{
		{"", "3 2 1"},
		{"-limit 2", "3 2"},
		{"-constraint ClusterId<3", "2 1"},
		{"-constraint ClusterId>3", ""},
		{"-since 1.0", "3 2"},
		{"-since CompletionDate<=1700000001 -constraint ClusterId>1", "3"},
		{"-scanlimit 1", "3"},
	} {
		args := append([]string{"-startd", "-name", name, "-af", "ClusterId", "Owner"}, strings.Fields(tt.args)...)
		out, err := c.run("condor_history", args...)
		if err != nil {
			t.Error(err)
		}
		var got []string
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) == 2 && f[1] == "alice" {
				got = append(got, f[0])
			} else {
				t.Errorf("condor_history %s: %q", tt.args, line)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("condor_history %s shows %v, want %s", tt.args, got, tt.want)
		}
	}
}
