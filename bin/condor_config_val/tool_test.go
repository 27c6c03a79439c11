// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/config"
)

// answer is what one run of the tool said.
type answer struct {
	out, err string
	exit     int
}

// asked runs the tool on a root file with this text, in a directory with these
// other files. ${DIR} stands for the directory.
func asked(t *testing.T, text string, files map[string]string, args ...string) answer {
	t.Helper()
	dir := t.TempDir()
	in := func(s string) string { return strings.ReplaceAll(s, "${DIR}", dir) }
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(in(text)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("condor_config", text)
	for name, text := range files {
		write(name, text)
	}
	for i := range args {
		args[i] = in(args[i])
	}
	var stdout, stderr bytes.Buffer
	exit := tool(args, testSystem(dir, []string{"CONDOR_CONFIG=" + in("${DIR}/condor_config"), "_CONDOR_FROM_ENV=e"}, &stdout, &stderr))
	if data, err := os.ReadFile(filepath.Join(dir, "written")); err == nil {
		stdout.WriteString("--- written\n" + string(data))
	}
	return answer{strings.ReplaceAll(stdout.String(), dir, "${DIR}"), strings.ReplaceAll(stderr.String(), dir, "${DIR}"), exit}
}

const sample = `A = 1
B = $(A) two
EMPTY =
START = true
UPDATE_INTERVAL = 5 * $(MINUTE)
UPDATE_INTERVAL = 300
HERE @=end
first
  second $(A)
@end
use POLICY : Preempt_If(A)
MAX_STARTD_LOG = 1000000
STORK = x
`

// TestAnswers is about what the vectors do not ask.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		want answer
	}{
		{"here-document", []string{"HERE"}, answer{out: "first\nsecond 1\n"}},
		{"here-document, verbose", []string{"-v", "HERE"}, answer{out: "HERE @=end\n   first\n   second 1\n@end\n # at: ${DIR}/condor_config, line 10\n # raw: \n #   HERE = first\n #   second $(A)\n\n"}},
		{"here-document in a dump", []string{"-dump", "-v", "^here$"}, answer{out: "# Configuration from machine: host.example.org\n\n# Parameters with names that match ^here$:\n" +
			"HERE @=end\n   first\n   second $(A)\n@end\n # at: ${DIR}/condor_config, line 10\n # expanded: \n #     first\n #     second 1\n"}},
		{"default in a verbose dump", []string{"-dump", "-v", "^UPDATE_INTERVAL$"}, answer{out: "# Configuration from machine: host.example.org\n\n# Parameters with names that match ^UPDATE_INTERVAL$:\n" +
			"UPDATE_INTERVAL = 300\n # at: ${DIR}/condor_config, line 6\n # expanded: 300\n # default: 300\n"}},
		{"template", []string{"-v", "PREEMPT"}, answer{out: "PREEMPT = 1 || False\n # at: ${DIR}/condor_config, line 11, use POLICY:PREEMPT_IF+4\n # raw: PREEMPT = $(A) || False\n\n"}},
		{"defined and empty", []string{"-v", "EMPTY"}, answer{out: " # at: ${DIR}/condor_config, line 3\n # raw: EMPTY = \n\n", err: "Not defined: EMPTY\n", exit: 1}},
		{"some are not defined", []string{"A", "nope", "B"}, answer{out: "1\n1 two\n", err: "Not defined: NOPE\n", exit: 1}},
		{"implied default", []string{"WANT_HOLD"}, answer{err: "Not defined: WANT_HOLD\n", exit: 1}},
		{"path", []string{"-macro:path", "/a/../$(A)//b"}, answer{out: "/1/b\n"}},
		{"macro, verbose", []string{"-macro", "-v", "$(B)!"}, answer{out: "$(B)! expands to: 1 two!\n"}},
		{"info", []string{"-info", "UPDATE_INTERVAL"}, answer{out: "UPDATE_INTERVAL = 300\n # description: Seconds between ad updates to the collector and between policy checks while nothing is claimed\n # at: ${DIR}/condor_config, line 6\n" +
			" # raw: UPDATE_INTERVAL = 300\n # expected values : DURATION from 1\n # used by: collector\n\n"}},
		{"environment", []string{"-v", "from_env"}, answer{out: "FROM_ENV = e\n # at: <Environment>\n # raw: FROM_ENV = e\n\n"}},
		{"home", []string{"-tilde"}, answer{out: "/var/lib/condor\n"}},
		{"account", []string{"-owner"}, answer{out: "root\n"}},
		{"version", []string{"-version"}, answer{out: versionLines(t)}},
		{"no argument for an option", []string{"-subsystem"}, answer{err: "-subsystem requires an argument\n", exit: 1}},
		{"both", []string{"-default", "-v", "A"}, answer{err: "-default cannot be used with -verbose\n" + usage(), exit: 1}},
		{"help", []string{"-help"}, answer{out: usage()}},
		{"what a daemon has changed", []string{"-startd", "-set", "START = TRUE"}, answer{err: "-set changes what a daemon is set to, which is not supported; HTCondor's condor_config_val does it, of daemons of this project too\n", exit: 1}},
		{"a daemon that is not looked for", []string{"-negotiator", "START"}, answer{err: "-negotiator is found by -address alone; by name a master, startd or schedd is\n", exit: 1}},
		{"a pool and no name", []string{"-pool", "x", "START"}, answer{err: "Error: you must specify -name with -pool\n", exit: 1}},
		{"category", []string{"use", "role"}, answer{out: "use ROLE accepts\n  Execute\n  Personal\n  Submit\n  CentralManager\n  get_htcondor_execute\n  get_htcondor_submit\n  get_htcondor_central_manager\n"}},
		{"no category", []string{"use", "nope"}, answer{out: "Not defined: use NOPE\n"}},
		{"template with arguments", []string{"use", "FEATURE:StartdCronOneShot(n, /x)"}, answer{out: "use FEATURE:StartdCronOneShot(n, /x) is\n\tuse FEATURE : OneShotCronHook(STARTD_CRON, n, /x)\n\n"}},
		{"expanded template", []string{"-expand", "use", "FEATURE:StartdCronOneShot(n, /x)"}, answer{out: "use FEATURE:StartdCronOneShot(n, /x) expands to\n\tif ! 1\n\terror : FEATURE:OneShotCronHook needs more arguments\n\tendif\n" +
			"\tSTARTD_CRON_JOBLIST=$(STARTD_CRON_JOBLIST) n\n\tSTARTD_CRON_n_MODE=OneShot\n\tSTARTD_CRON_n_KILL=true\n\tSTARTD_CRON_n_RECONFIG_RERUN=true\n\tSTARTD_CRON_n_EXECUTABLE=/x\n" +
			"\tif 0\n\tSTARTD_CRON_n_ARGS=\n\tendif\n\n"}},
		{"check-if", []string{"-check-if", "version >= 9.0 "}, answer{out: "# ok: \"version >= 9.0 \" \ntrue\n"}},
		{"summary", []string{"-summary"}, answer{out: "# condor_config_val " + commands.CondorVersion + "\n\n#\n# from ${DIR}/condor_config\n#\nA = 1\nB = $(A) two\nEMPTY = \n" +
			"HERE @=end\n   first\n   second $(A)\n@end\nMAXJOBRETIREMENTTIME = ifthenelse($(A),-1,0)\nPREEMPT = $(A) || False\nWANT_SUSPEND = $(A) =!= true && False\n\n#\n# from <Environment>\n#\nFROM_ENV = e\n"}},
		{"writeconfig", []string{"-writeconfig", "${DIR}/written"}, answer{out: "--- written\n\n#\n# from ${DIR}/condor_config\n#\nA = 1\nB = $(A) two\nEMPTY = \n#START = true\n#UPDATE_INTERVAL = 300\n" +
			"HERE @=end\n   first\n   second $(A)\n@end\nMAXJOBRETIREMENTTIME = ifthenelse($(A),-1,0)\nPREEMPT = $(A) || False\nWANT_SUSPEND = $(A) =!= true && False\nMAX_STARTD_LOG = 1000000\nSTORK = x\n\n#\n# from <Environment>\n#\nFROM_ENV = e\n"}},
		{"writeconfig, upgrade and sorted", []string{"-writeconfig:upgrade,sort,source", "-"}, answer{out: "A = 1\n # at: ${DIR}/condor_config, line 1\nB = $(A) two\n # at: ${DIR}/condor_config, line 2\n" +
			"EMPTY = \n # at: ${DIR}/condor_config, line 3\nFROM_ENV = e\n # at: <Environment>\nHERE @=end\n   first\n   second $(A)\n@end\n # at: ${DIR}/condor_config, line 10\n" +
			"MAXJOBRETIREMENTTIME = ifthenelse($(A),-1,0)\n # at: ${DIR}/condor_config, line 11, use POLICY:PREEMPT_IF+8\nPREEMPT = $(A) || False\n # at: ${DIR}/condor_config, line 11, use POLICY:PREEMPT_IF+4\n" +
			"WANT_SUSPEND = $(A) =!= true && False\n # at: ${DIR}/condor_config, line 11, use POLICY:PREEMPT_IF+10\n"}},
		{"writeconfig, environment only", []string{"-writeconfig:environment,only", "-"}, answer{out: "\n#\n# from <Environment>\n#\nFROM_ENV = e\n"}},
		{"writeconfig, nowhere", []string{"-writeconfig", "${DIR}/none/x"}, answer{err: "failed to create configuration file ${DIR}/none/x: open ${DIR}/none/x: no such file or directory\n", exit: 2}},
		{"summary and writeconfig", []string{"-summary", "-writeconfig", "x"}, answer{err: "-writeconfig cannot be used with -summary\n" + usage(), exit: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tt.want, asked(t, sample, nil, tt.args...), cmp.AllowUnexported(answer{})); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestSnapshot asks a running Execution Point's file, as the real tool asks a
// daemon.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	snap, err := config.Parse("/etc/c", "A = 1\nB = $(A) + 1\nSTARTD.C = 3\nE =\nH @=end\nx\ny\n@end\n", config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	if got := snap.String("B"); got != "1 + 1" {
		t.Fatal(got)
	}
	var b bytes.Buffer
	if err := snap.Save(&b); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"snap": b.String(), "bad": "x"}
	for _, tt := range []struct {
		args string
		want answer
	}{
		{"A B c", answer{out: "1\n1 + 1\n3\n"}},
		{"-raw B", answer{out: "$(A) + 1\n"}},
		{"-evaluate B", answer{out: "2\n"}},
		{"E", answer{err: "Not defined: E\n", exit: 1}},
		{"-raw E", answer{out: "\n"}},
		{"-default MINUTE A", answer{out: "60\n", err: "Not defined: A\n", exit: 1}},
		{"-v B", answer{out: "B = 1 + 1\n # at: /etc/c, line 2\n # raw: B = $(A) + 1\n\n"}},
		{"-v MINUTE", answer{out: "MINUTE = 60\n # at: <Default>\n # raw: MINUTE = 60\n # default: 60\n\n"}},
		{"-dump -used", answer{out: "# Configuration from STARTD as of ${DIR}/snap\nA = 1\nB = $(A) + 1\n"}},
		{"-dump -unused ^(A|E|H|STARTD.C)$", answer{out: "# Configuration from STARTD as of ${DIR}/snap\n\n# Parameters with names that match ^(A|E|H|STARTD.C)$:\nE = \nH @=end\n   x\n   y\n@end\nSTARTD.C = 3\n"}},
		{"-dump -expand -v ^b$", answer{out: "# Configuration from STARTD as of ${DIR}/snap\n\n# Parameters with names that match ^b$:\nB = 1 + 1\n # at: /etc/c, line 2\n # raw: $(A) + 1\n"}},
		{"-dump -v ^b$", answer{out: "# Configuration from STARTD as of ${DIR}/snap\n\n# Parameters with names that match ^b$:\nB = $(A) + 1\n # at: /etc/c, line 2\n # expanded: 1 + 1\n"}},
		{"-summary", answer{err: "-snapshot answers names and -dump; all else needs the files\n", exit: 1}},
		{"use ROLE", answer{err: "remote query not supported for use ROLE\n", exit: 1}},
		{"-snapshot ${DIR}/bad A", answer{err: "${DIR}/bad: is not a saved configuration (want a first line with format execpoint configuration 1)\n", exit: 1}},
		{"-snapshot ${DIR}/none A", answer{err: "cannot read the snapshot: open ${DIR}/none: no such file or directory\n", exit: 1}},
	} {
		args := append([]string{"-snapshot", "${DIR}/snap"}, strings.Fields(tt.args)...)
		if d := cmp.Diff(tt.want, asked(t, "", files, args...), cmp.AllowUnexported(answer{})); d != "" {
			t.Errorf("%s: %s", tt.args, d)
		}
	}
}

// TestUsedByDefaults is what -used means where no daemon runs: what some
// default refers to.
func TestUsedByDefaults(t *testing.T) {
	t.Parallel()
	used := asked(t, "MINE = 1\n", nil, "-dump", "-used", "^(MINE|MINUTE|START)$")
	unused := asked(t, "MINE = 1\n", nil, "-dump", "-unused", "^(MINE|MINUTE|START)$")
	if !strings.Contains(used.out, "MINUTE = 60\n") || strings.Contains(used.out, "MINE =") || !strings.Contains(unused.out, "MINE = 1\n") || strings.Contains(unused.out, "MINUTE =") {
		t.Errorf("used %s\nunused %s", used.out, unused.out)
	}
}
