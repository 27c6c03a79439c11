// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
)

// documented is the example of the documents.
const documented = `ENABLE_BACKFILL = TRUE
BACKFILL_SYSTEM = BOINC
LOCAL_DIR = /var/lib/condor
BOINC_HOME = $(LOCAL_DIR)/boinc
BOINC_Executable = /usr/local/bin/boinc_client
BOINC_Universe = vanilla
BOINC_InitialDir = $(BOINC_HOME)
BOINC_Output = $(BOINC_HOME)/boinc.out
BOINC_Error = $(BOINC_HOME)/boinc.err
`

const documentedJob = `ClusterId = 1
Cmd = "/usr/local/bin/boinc_client"
Err = "/var/lib/condor/boinc/boinc.err"
Iwd = "/var/lib/condor/boinc"
JobUniverse = 5
MyType = "Job"
Out = "/var/lib/condor/boinc/boinc.out"
ProcId = 0
ShouldTransferFiles = "NO"
`

func settings(t testing.TB, text string) *config.Snapshot {
	t.Helper()
	s, err := config.Parse("ep.conf", text, config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBackfillFrom(t *testing.T) {
	t.Parallel()
	const required = "ENABLE_BACKFILL = true\nBACKFILL_SYSTEM = boinc\nBOINC_Cmd = /b\nBOINC_Iwd = /d\nBOINC_JobUniverse = 5\n"
	minimal := strings.NewReplacer("/usr/local/bin/boinc_client", "/b", "/var/lib/condor/boinc\"", "/d\"",
		"Err = \"/var/lib/condor/boinc/boinc.err\"\n", "", "Out = \"/var/lib/condor/boinc/boinc.out\"\n", "").Replace(documentedJob)
	for _, tt := range []struct {
		name, text string
		root       bool
		owner      string
		job        string // "" where there is no backfill
		problems   string
	}{
		{"the example of the documents", documented, false, "", documentedJob, ""},
		{"and its owner", documented + "BOINC_Owner = nobody\n", true, "nobody",
			strings.Replace(documentedJob, "ProcId", "Owner = \"nobody\"\nProcId", 1), ""},
		{"an owner of no use", documented + "BOINC_Owner = nobody\n", false, "", documentedJob,
			`ep.conf:10:1: warning: knob BOINC_Owner: not used: only an Execution Point that runs as root can run the client as somebody else (value "nobody")`},
		{"the names of job attributes", required, false, "", minimal, ""},
		{"both names", required + "BOINC_Executable = /other\nBOINC_InitialDir = /other\nBOINC_Universe = vanilla\n", false, "", minimal, ""},
		{"old arguments", required + `BOINC_Arguments = --attach_project http://einstein.phys.uwm.edu it's \"1\"`, false, "",
			strings.Replace(minimal, "ClusterId", `Args = "--attach_project http://einstein.phys.uwm.edu it's \"1\""`+"\nClusterId", 1), ""},
		{"new arguments", required + `BOINC_Arguments = "--dir '/a b' x"`, false, "",
			strings.Replace(minimal, "ClusterId", `Arguments = "--dir /a' 'b x"`+"\nClusterId", 1), ""},
		{"old environment", required + "BOINC_Environment = B=2;A=1 and more", false, "",
			strings.Replace(minimal, "Iwd", `Environment = "A=1' 'and' 'more B=2"`+"\nIwd", 1), ""},
		{"new environment", required + `BOINC_Environment = "A='1 and more' B=2"`, false, "",
			strings.Replace(minimal, "Iwd", `Environment = "A=1' 'and' 'more B=2"`+"\nIwd", 1), ""},

		// row: S0-192
		{"not enabled", "BACKFILL_SYSTEM = SETI\nBOINC_Universe = java\nBOINC_Arguments = \"", true, "", "", ""},
		{"disabled", "ENABLE_BACKFILL = false\nBACKFILL_SYSTEM = SETI\nBOINC_Universe = java\n", true, "", "", ""},
		{"neither", "ENABLE_BACKFILL = perhaps\n", false, "", "",
			`ep.conf:1:1: knob ENABLE_BACKFILL: not a boolean; there is no backfill (value "perhaps", want True or False)`},
		// row: S4-085
		{"another system", strings.Replace(documented, "= BOINC", "= SETI", 1), false, "", "",
			`ep.conf:2:1: warning: knob BACKFILL_SYSTEM: unknown backfill system; there is no backfill (value "SETI", want BOINC)`},
		{"no system", strings.Replace(documented, "= BOINC", "=", 1), false, "", "",
			`ep.conf:2:1: warning: knob BACKFILL_SYSTEM: backfill is enabled without a system to do it; there is no backfill (want BOINC)`},
		{"nothing that is needed", "ENABLE_BACKFILL = true\nBACKFILL_SYSTEM = BOINC\n", true, "", "", `ep.conf:1:1: knob BOINC_Executable: not set, and needed; there is no backfill (want the full path of the client)
ep.conf:1:1: knob BOINC_InitialDir: not set, and needed; there is no backfill (want the full path of the directory that the client works in)
ep.conf:1:1: knob BOINC_Universe: not set, and needed; there is no backfill (want vanilla)
ep.conf:1:1: knob BOINC_Owner: not set, and needed where the Execution Point runs as root; there is no backfill (want a user who may write to BOINC_InitialDir)`},
		{"relative paths", "ENABLE_BACKFILL = true\nBACKFILL_SYSTEM = BOINC\nBOINC_Cmd = boinc\nBOINC_InitialDir = here\nBOINC_Universe = vanilla\n", false, "", "",
			`ep.conf:3:1: knob BOINC_Cmd: not a full path; there is no backfill (value "boinc", want the full path of the client)
ep.conf:4:1: knob BOINC_InitialDir: not a full path; there is no backfill (value "here", want the full path of the directory that the client works in)`},
		// row: S0-199
		{"another universe", strings.Replace(documented, "vanilla", "java", 1), false, "", "",
			`ep.conf:6:1: knob BOINC_Universe: the client can run in no such universe; there is no backfill (value "java", want vanilla)`},
		{"bad arguments", documented + `BOINC_Arguments = "a 'b"`, false, "", "",
			`ep.conf:10:1: knob BOINC_Arguments: the single quote that starts here is not closed: "'b" (at character 4); there is no backfill (value "\"a 'b\"", want words between blanks, or the new syntax in double quotes)`},
		{"bad environment", documented + `BOINC_Environment = A`, false, "", "",
			`ep.conf:10:1: knob BOINC_Environment: expected NAME=value, found "A" (at character 1); there is no backfill (value "A", want NAME=value with ; between, or the new syntax in double quotes)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, problems := BackfillFrom(settings(t, tt.text), tt.root)
			if diff := cmp.Diff(strings.Split(tt.problems, "\n"), strings.Split(problems.Error(), "\n")); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			job := ""
			if b.Job != nil {
				job = b.Job.Text(classad.Old)
			}
			if diff := cmp.Diff(tt.job, job); diff != "" || b.On != (tt.job != "") || b.Owner != tt.owner {
				t.Errorf("on %v, owner %q (-want +got):\n%s", b.On, b.Owner, diff)
			}
		})
	}
}

func FuzzBackfillFrom(f *testing.F) {
	f.Add("/usr/bin/boinc", "vanilla", "--attach_project http://x y", "A=1;B=2", true)
	f.Add("", "5", `"a 'b c'"`, `"A='1 2'"`, false)
	f.Add("boinc", "java", `"a 'b`, "A", true)
	f.Fuzz(func(t *testing.T, executable, universe, args, env string, root bool) {
		for _, v := range []string{executable, universe, args, env} {
			if strings.ContainsAny(v, "\n\r\\$") {
				return // another line, or another meaning
			}
		}
		cfg, err := config.Parse("ep.conf", "ENABLE_BACKFILL = true\nBACKFILL_SYSTEM = BOINC\nBOINC_InitialDir = /d\nBOINC_Executable = "+executable+
			"\nBOINC_Universe = "+universe+"\nBOINC_Arguments = "+args+"\nBOINC_Environment = "+env+"\n", config.Options{Subsystem: "STARTD"})
		if err != nil {
			return
		}
		b, problems := BackfillFrom(cfg, root)
		if b.On == problems.Failed() || b.On != (b.Job != nil) {
			t.Fatalf("on %v with %v", b.On, problems)
		}
		if b.On {
			if _, err := classad.ParseAd(b.Job.TextAll(classad.Old), classad.Old); err != nil {
				t.Errorf("the job cannot be handed on: %v", err)
			}
		}
	})
}
