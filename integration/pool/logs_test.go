// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/eventlog"
)

// logRow is a row of docs/logs.md: a line of a log that others look for.
type logRow struct {
	section string // the heading above its table
	line    string // as it is written there, "…" for what varies
	who     string // looks for it
}

// aboutFiles is the section that TestPlugins holds.
const aboutFiles = "File transfer"

// readLogRows reads the rows of all tables whose first column is Line.
func readLogRows(path string) (rows []logRow, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	section, in := "", false
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		text := strings.TrimSpace(lines.Text())
		if heading, ok := strings.CutPrefix(text, "## "); ok {
			section = heading
		}
		cells := strings.Split(strings.Trim(text, "|"), "|")
		switch first := strings.TrimSpace(cells[0]); {
		case !strings.HasPrefix(text, "|"):
			in = false
		case first == "Line":
			in = true
		case !in || strings.Trim(first, "-: ") == "":
		case len(first) < 3 || first[0] != '`' || first[len(first)-1] != '`' || len(cells) < 3 || strings.TrimSpace(cells[len(cells)-1]) == "":
			return nil, fmt.Errorf("%s: %q: want | `line` | when | who looks for it |", path, text)
		default:
			rows = append(rows, logRow{section, first[1 : len(first)-1], strings.TrimSpace(cells[len(cells)-1])})
		}
	}
	return rows, lines.Err()
}

// pattern finds the line behind the header of date and time, the category, and
// the slot with its job.
func (r logRow) pattern() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\d\d/\d\d/\d\d \d\d:\d\d:\d\d (\([^)]*\) )*(slot[0-9_]+(@\S+)?(\[[0-9.]+\])?: )?` +
		strings.ReplaceAll(regexp.QuoteMeta(r.line), "…", ".*"))
}

// logs are those of a side in which the row's line has to be.
func (r logRow) logs(s *side) string {
	starters, _ := filepath.Glob(filepath.Join(s.dir, "log", "StarterLog*"))
	names := map[string][]string{"StartLog": {filepath.Join(s.dir, "log", "StartLog")}, "StarterLog": starters}[r.section]
	if names == nil {
		names = starters // what a starter does with files, with guidance
	}
	var all strings.Builder
	for _, name := range names {
		b, err := os.ReadFile(name)
		s.rig.Must(err)
		all.Write(b)
	}
	return all.String()
}

// wordy is a rig whose sides do what prints the lines: jobs that retire for a
// while or not at all, one whose job the machine prefers, and drains.
const wordy = `
RANK = TARGET.Better =?= True
PREEMPTION_REQUIREMENTS = False
MAXJOBRETIREMENTTIME = ifthenelse(TARGET.Retires =?= True, 300, 0)
MachineMaxVacateTime = 5
POLLING_INTERVAL = 2
STARTD_DEBUG = D_FULLDEBUG D_COMMAND D_PROTOCOL:1
SHADOW_WORKLIFE = 0
FILETRANSFER_PLUGINS = $(LIBEXEC)/curl_plugin
`

// guided is since when a shadow can be told in the job's ad what to answer.
var guided = cedar.Version{Major: 25, Minor: 0, Patch: 0}

// TestLogLines: whoever looks for a line of docs/logs.md in a log of HTCondor's
// finds it in ours, when the same has happened. Each row must be printed by what
// happens here. Before 25.14 HTCondor printed others.
func TestLogLines(t *testing.T) {
	t.Parallel()
	rows, err := readLogRows("../../docs/logs.md")
	if err != nil || len(rows) < 20 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	lines := wordy
	in := realpool.Find(t)
	if in.Version.AtLeast(guided.Major, guided.Minor, guided.Patch) {
		lines += "SHADOW = @DIR@/guided/shadow\n"
	}
	r := newRig(t, lines)
	r.files(filepath.Join(r.Dir, "guided"), map[string]string{"shadow": "#!/bin/sh\nexec " + in.Program("condor_shadow") + " --use-guidance-in-job-ad \"$@\"\n"})
	known := r.atLeast(cedar.Version{Major: 25, Minor: 14})
	web := newWeb(t)
	var both sync.WaitGroup
	for _, s := range r.sides {
		both.Go(func() { s.printLines(t, web) })
	}
	both.Wait()
	if t.Failed() {
		return
	}
	for _, s := range r.sides { // the last lines are those of the end
		d := r.running[s.name]
		delete(r.running, s.name)
		d.Stop(syscall.SIGTERM, patience)
	}
	for i, s := range r.sides {
		for _, row := range rows {
			switch {
			case row.section == aboutFiles: // held by TestPlugins
			case row.section == "Guidance about common files": // held by HTCondor's own tests (integration/peer)
			case i == 0 && !known:
			case row.section == "Guidance" && !r.atLeast(guided):
			case !row.pattern().MatchString(row.logs(s)):
				t.Errorf("nothing that happened here printed %q of %q in docs/logs.md in a log of %s: %s looks for it", row.line, row.section, s.name, row.who)
			}
		}
	}
}

// printLines has a side do what prints the lines.
func (s *side) printLines(t *testing.T, web string) {
	s.finishes(t, web)
	// condor_who learns from StartLog which process the daemon is.
	who := s.rig.Tool("condor_who", "-log", filepath.Join(s.dir, "log"), "-daemons")
	if pid := s.rig.running[s.name].PID(); !regexp.MustCompile(fmt.Sprintf(`(?m)^Startd +yes +%d\b`, pid)).MatchString(who) {
		t.Errorf("%s is process %d; condor_who says\n%s", s.name, pid, who)
	}
	s.isPreferred(t)
	s.drains(t)
	if s.rig.atLeast(guided) {
		s.isGuided(t, web)
	}
}

// finishes runs a job that ends by itself, with input from a web server, and one
// that a signal ends.
func (s *side) finishes(t *testing.T, web string) {
	const sub = "executable = job.sh\nshould_transfer_files = YES\noutput = out\nerror = err\n"
	one := s.script(t, "ends", sub+"transfer_input_files = "+web+"/file/a\n", "", "cat a; exit 3")
	two := s.script(t, "dies", sub, "", "kill -9 $$")
	// The second process runs under the claim of the first.
	again := s.script(t, "again", wholeMachine, "queue 2", "true")
	for _, j := range []*job{one, two, again} {
		j.over()
	}
}

func (s *side) script(t *testing.T, name, description, queue, text string) *job {
	return s.submit(t, name, description, queue, func(dir string) {
		s.rig.files(dir, map[string]string{"job.sh": "#!/bin/sh\n" + text + "\n"})
	})
}

// wholeMachine is a job for all of the machine.
const wholeMachine = "executable = job.sh\nshould_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT\nrequest_cpus = 64\nrequirements = TARGET.Rig == MY.Rig\n"

// untilFile is a job that ends when there is a file "end" in the directory of its
// submission. It does not leave when it is asked to.
const untilFile = `trap "" TERM; while [ ! -e %s/end ]; do sleep 0.2; done`

// isPreferred has a job take the slot of another by the machine's RANK.
func (s *side) isPreferred(t *testing.T) {
	plain := s.script(t, "plain", wholeMachine, "", "sleep 600")
	plain.wait(eventlog.CodeExecute, 1)
	better := s.script(t, "better", wholeMachine+"+Better = True\n", "", "sleep 1")
	better.over()
	plain.remove()
	s.idle()
}

// drains empties the machine while a job may stay, lets another in meanwhile,
// and lets the first end.
func (s *side) drains(t *testing.T) {
	const half = "executable = job.sh\nshould_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT\nrequest_cpus = 32\nrequirements = TARGET.Rig == MY.Rig\n"
	waiting := func(name, more string) *job {
		return s.submit(t, name, half+more, "", func(dir string) {
			s.rig.files(dir, map[string]string{"job.sh": "#!/bin/sh\n" + fmt.Sprintf(untilFile, dir) + "\n"})
		})
	}
	first := waiting("first", "+Retires = True\n")
	first.wait(eventlog.CodeExecute, 1)
	s.rig.Tool("condor_drain", "-graceful", "-start", "TARGET.Filler =?= True", s.firstSlot())
	filler := waiting("filler", "+Filler = True\n+Retires = True\n")
	filler.wait(eventlog.CodeExecute, 1)
	s.rig.files(first.dir, map[string]string{"end": ""})
	first.over()
	began := time.Now()
	filler.wait(eventlog.CodeEvicted, 1)
	// The vacate time, and not the time until the next look at the policy as well.
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("%s: the job that the drain let in left after %v", s.name, took)
	}
	filler.remove()
	s.rig.Tool("condor_drain", "-cancel", s.firstSlot())
	s.idle()
}

// isGuided has the shadow answer, as it is told in the job's ad, what to do
// about input that is gone.
func (s *side) isGuided(t *testing.T, web string) {
	sub := "executable = job.sh\nshould_transfer_files = YES\noutput = out\ntransfer_input_files = " + web + "/none\n"
	var jobs []*job
	for name, commands := range map[string]string{
		"carries-on": `[Command = "CarryOn"]`, "aborts": `[Command = "Abort"]`, "sings": `[Command = "Sing"]`,
		"retries":   `[Command = "RetryReqest"; RetryDelay = 2], [Command = "RetryTransfer"], [Command = "CarryOn"]`,
		"diagnoses": `[Command = "RunDiagnostic"; Diagnostic = "unknown"], [Command = "CarryOn"]`,
	} {
		jobs = append(jobs, s.script(t, name, sub+"+_condor_guidance_test_case = {"+commands+"}\n", "", "true"))
	}
	for _, j := range jobs {
		j.over()
		j.remove()
	}
}

// TestReadLogRows takes rows of any section, and refuses what is none.
func TestReadLogRows(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "logs.md")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("# Logs\n\n| Other | table |\n|---|---|\n| `x` | y |\n\n## StartLog\n\n| Line | When | Who looks for it |\n|---|---|---|\n| `a … b` | now | me |\n\n## File transfer\n| Line | Where | When | Who |\n|---|---|:--|---|\n| `c` | d | e | f |\n")
	rows, err := readLogRows(path)
	if got := fmt.Sprint(rows); err != nil || got != "[{StartLog a … b me} {File transfer c f}]" {
		t.Errorf("%s, %v", got, err)
	}
	for line, want := range map[string]bool{
		"11/23/26 10:00:00 a (x) b": true, "11/23/26 10:00:00 (D_ALWAYS) slot1_1[1.0]: a  b tail": true,
		"11/23/26 10:00:00 slot1_1: a b": false, "a x b": false, "11/23/26 10:00:00 said: a x b": false,
	} {
		if got := rows[0].pattern().MatchString("first\n" + line + "\nlast"); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
	for _, bad := range []string{"| a | b | c |", "| `a` | b | |", "| `a` | b"} {
		write("| Line | When | Who |\n|---|---|---|\n" + bad + "\n")
		if rows, err := readLogRows(path); err == nil {
			t.Errorf("%q: %v", bad, rows)
		}
	}
}
