// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
)

// cells are all ways. Those that always run have every value of every
// dimension, and each method once.
func cells() []cell {
	quick := []cell{
		{method: "FS"},
		{method: "IDTOKENS", master: true, shared: true, broker: true},
		{method: "PASSWORD", master: true, broker: true},
		{method: "SSL", shared: true},
	}
	var all []cell
	for _, method := range [...]string{"FS", "IDTOKENS", "PASSWORD", "SSL"} {
		for bits := range 8 {
			m := cell{method: method, master: bits&1 != 0, shared: bits&2 != 0, broker: bits&4 != 0}
			m.quick = slices.Contains(quick, m)
			all = append(all, m)
		}
	}
	return all
}

// TestMatrix puts the original and ours side by side into a real pool, in
// every way in which an Execution Point is run, secured and reached. The tools
// must show both alike, and a job of each be run and be reached while it runs.
//
// With EXECPOINT_TEST_LONG set the whole product runs, not only one cell of
// each kind.
func TestMatrix(t *testing.T) {
	t.Parallel()
	for _, m := range cells() {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			if !m.quick {
				realpool.NeedLong(t)
			}
			a := newArena(t, m)
			a.reached()
			a.same("while nothing runs", [][]string{{}, {"-compact"}, {"-state"}, {"-startd"}, {"-server"}, {"-direct"}, {"-run"}, {"-claimed"}})
			a.ads()
			jobs := a.submit()
			a.same("while a job runs", [][]string{{}, {"-run"}, {"-claimed"}, {"-state"}, {"-compact"}, {"-direct"}})
			a.visit(jobs)
			if m.broker {
				a.rejoin(jobs)
			}
			a.finish(jobs)
			a.secured()
		})
	}
}

// reached looks at the addresses.
func (a *arena) reached() {
	a.TB.Helper()
	for _, e := range a.sides {
		out := a.Tool("condor_status", "-af", "MyAddress", "-constraint", fmt.Sprintf("Rig == %q", e.Name))
		a.address(e.Name, strings.TrimSpace(out))
	}
}

// address tells whether one is of the cell.
func (a *arena) address(whose, text string) {
	a.TB.Helper()
	if strings.Contains(text, "sock=") != a.shared || strings.Contains(text, "CCBID=") != a.broker || !strings.HasPrefix(text, "<127.0.0.1:") {
		a.TB.Errorf("%s is reached at %s", whose, text)
	}
}

// of is the constraint for one side's ads, the daemon's too.
func of(e *realpool.EP) string { return fmt.Sprintf(`regexp("(^|@)%s@", Name)`, e.Name) }

// same has condor_status print tables of both and compares them by columns.
func (a *arena) same(when string, tables [][]string) {
	a.TB.Helper()
	for _, args := range tables {
		var rows [2][][]string
		compare := func(ctx context.Context) error {
			for i, e := range a.sides {
				all := slices.Clone(args)
				if slices.Contains(all, "-direct") {
					all = append(all, e.Host())
				} else {
					all = append(all, "-constraint", of(e))
				}
				out, err := a.Run(ctx, "condor_status", all...)
				if err != nil {
					return err
				}
				rows[i] = table(strings.ReplaceAll(out, e.Name+"@", "@"))
			}
			return differ(a.Version, args, rows)
		}
		if err := realpool.Until(a.TB.Context(), 20*time.Second, 200*time.Millisecond, compare); err != nil {
			a.TB.Errorf("%s, condor_status %v: %v", when, args, err)
		}
	}
}

// table splits what a tool printed into words.
func table(text string) [][]string {
	var rows [][]string
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 0 {
			rows = append(rows, f)
		}
	}
	return rows
}

// lasts are words that tell how long something has lasted, and load those of
// a slot's load: they were measured at different moments.
var (
	lasts = regexp.MustCompile(`^\d+\+\d\d:\d\d:\d\d$`)
	load  = regexp.MustCompile(`^\d+\.\d{3}$`)
)

// builds are the words that condor_status adds to the version of an original: of
// a release, of a build from source, and of Debian's package.
var builds = [...]string{"", ".PRE", ".PackageID:"}

// May two words of a column differ? No machine here has GPUs, so that column
// of -compact is no word.
func mayDiffer(real cedar.Version, args []string, column int, original, ours string) bool {
	switch {
	case lasts.MatchString(original) && lasts.MatchString(ours), load.MatchString(original) && load.MatchString(ours):
		return true
	case slices.Contains(args, "-compact"):
		return column == 7 || column == 9 // CpuLoad; Jobs/Min, which depends on how long it lives
	case slices.Contains(args, "-startd"):
		// Each the name of its build; the original may have another number, too.
		build, ok := strings.CutPrefix(original, real.String())
		return column == 2 && ok && slices.Contains(builds[:], build) && ours == "25.14.0.execpoint"
	}
	return false
}

// differ compares two tables.
func differ(real cedar.Version, args []string, rows [2][][]string) error {
	original, ours := rows[0], rows[1]
	show := func() string { return fmt.Sprintf("\noriginal:\n%s\nours:\n%s", text(original), text(ours)) }
	if len(original) != len(ours) {
		return fmt.Errorf("%d and %d rows%s", len(original), len(ours), show())
	}
	for i, row := range original {
		if len(row) != len(ours[i]) {
			return fmt.Errorf("row %d has %d and %d columns%s", i+1, len(row), len(ours[i]), show())
		}
		for k, word := range row {
			other := ours[i][k]
			if word != other && !mayDiffer(real, args, k, word, other) {
				return fmt.Errorf("row %d column %d: %q and %q%s", i+1, k+1, word, other, show())
			}
		}
	}
	return nil
}

func text(rows [][]string) string {
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(strings.Join(row, " ") + "\n")
	}
	return b.String()
}

// ads compares the ads of both, at the collector and asked directly.
func (a *arena) ads() {
	a.TB.Helper()
	for _, kind := range []struct {
		name string
		args []string
	}{
		{"slots at the collector", []string{"-constraint", `MyType == "Machine"`}},
		{"daemon at the collector", []string{"-any", "-constraint", `MyType == "StartD"`}},
		{"slots directly", []string{"-direct"}},
		{"daemon directly", []string{"-startd", "-direct"}},
	} {
		if kind.name == "daemon directly" && !a.Version.AtLeast(25, 0, 0) {
			continue // these tools and daemons do not have it
		}
		var both [2]*classad.Ad
		for i, e := range a.sides {
			args := slices.Clone(kind.args)
			if slices.Contains(args, "-direct") {
				args = append(args, e.Host())
			} else {
				args = append(args, "-constraint", of(e))
			}
			out := a.Tool("condor_status", append(args, "-long")...)
			ad, err := classad.ParseAd(strings.TrimSpace(out), classad.Old)
			if err != nil {
				a.TB.Fatalf("%s of %s: %v in\n%s", kind.name, e.Name, err, out)
			}
			both[i] = ad
		}
		for _, d := range adsDiffer(both[0], both[1]) {
			if name, _, _ := strings.Cut(d, ":"); !a.Version.AtLeast(25, 0, 0) && slices.Contains(strings.Fields(unlikeOlder), name) {
				continue
			}
			a.TB.Errorf("%s: %s", kind.name, d)
		}
	}
}

// unlike are the attributes in which the ads differ, each with the reason.
var unlike = map[string]string{
	// Two daemons at one host, which began and were asked at different moments.
	"AddressV1 MyAddress StartdIpAddr Name Rig":                                                             "each has its own; see reached for what the addresses have",
	"DaemonStartTime DaemonLastReconfigTime EnteredCurrent* MyCurrentTime Update* TotalTime* LastHeardFrom": "measured by each",
	"ConsoleIdle KeyboardIdle *LoadAvg LastUpdate ClockMin":                                                 "measured by each",
	"JobStarts RecentJobStarts ClaimRequests RecentClaimRequests *ActivationRequests":                       "jobs of each",
	// What our starter is.
	"Has* StarterAbilityList MappingMethod":         "not all that the original's starter can do; those for s3 and gs have no plugin here",
	"CondorVersion CondorPlatform ExecpointVersion": "who made it",
	"ExecpointNotContained":                         "HTCondor's startd does not say what it cannot keep jobs from",
	// Allowed differences.
	"DetectedDisk":                                                           "ours is that of the volume; the original repeats DISK",
	"ExpectedMachine*DrainingCompletion":                                     "with nothing to drain ours is now, and the original's since when there has been nothing",
	"DaemonCore* RecentDaemonCore* MonitorSelf*":                             "measured by each; ours keeps MonitorSelf to the ad of the daemon",
	"CanHibernate Hibernation* HardwareAddress SubnetMask IsWake* WakeOn*":   "ours advertises power states only where it could use them",
	"TimeToLive NewDSlotNotMatch RecentNewDSlotNotMatch NumDynamicSlotsTime": "statistics that ours does not keep",
	"ExecuteVolumes": "ours names volumes only where slots have their own",
	"JobBusyTimeCount RecentJobBusyTimeCount JobDurationCount RecentJobDurationCount": "the original shows them once there was a job",
	"PrivateNetworkName": "the original's direct answer leaves it out, its updates have it",
	"UpdatesHistory UpdatesLost AuthenticatedIdentity": "the collector's",
}

// unlikeOlder are attributes in which ours does as newer originals do: those of
// 24.0 count no bytes of files and name no volume, write two expressions in other
// words, and do not tell the swap space of a slot.
const unlikeOlder = "ExecuteVolume Requirements WithinResourceLimits VirtualMemory TotalVirtualMemory TotalDisk AvgTransferInputMB AvgTransferOutputMB TotalTransferInputMB TotalTransferOutputMB"

// expected says why an attribute may differ, "" if it may not.
func expected(name string) string {
	for patterns, why := range unlike {
		for _, pattern := range strings.Fields(patterns) {
			if ok, _ := filepath.Match(pattern, name); ok {
				return why
			}
		}
	}
	return ""
}

// adsDiffer compares two ads.
func adsDiffer(original, ours *classad.Ad) []string {
	var all []string
	add := func(name, format string, args ...any) {
		if expected(name) == "" {
			all = append(all, name+": "+fmt.Sprintf(format, args...))
		}
	}
	for name, e := range original.All() {
		if x, ok := ours.Lookup(name); !ok {
			add(name, "ours lacks it, the original has %s", e.Text(classad.Old))
		} else if y := x.Text(classad.Old); y != asOursSays(e.Text(classad.Old)) {
			add(name, "the original has %s, ours %s", e.Text(classad.Old), y)
		}
	}
	for name, e := range ours.All() {
		if _, ok := original.Lookup(name); !ok {
			add(name, "only ours has it: %s", e.Text(classad.Old))
		}
	}
	slices.Sort(all)
	return all
}

// asOursSays has what ours says in other words: negotiators of 23.9 read HTCondor's own
// of 25.14 as something else (lib/ad, newElvis).
func asOursSays(text string) string {
	return strings.ReplaceAll(text, `MappingMethod ?: "" != "Copy"`, `MappingMethod =!= "Copy"`)
}

// matrixJob says that it runs, and copies its input when it is told to go on.
const matrixJob = `#!/bin/sh
echo begun
touch @DIR@/ready
while [ ! -f @DIR@/go ]; do sleep 0.1; done
tr a-z A-Z < input > output
`

// submitted is a job that runs at one side.
type submitted struct {
	id, dir string
}

// submit has a job run at each side.
func (a *arena) submit() [2]submitted {
	a.TB.Helper()
	var jobs [2]submitted
	for i, e := range a.sides {
		jobs[i] = a.submitTo(e)
	}
	for i, j := range jobs {
		a.running(a.sides[i], j)
	}
	return jobs
}

// submitTo submits a job that only one side can run.
func (a *arena) submitTo(e *realpool.EP) submitted {
	a.TB.Helper()
	dir := filepath.Join(a.Dir, "job-"+e.Name)
	a.Mkdir(dir)
	a.Write(filepath.Join(dir, "job.sh"), strings.ReplaceAll(matrixJob, "@DIR@", dir), 0o755)
	a.Write(filepath.Join(dir, "input"), "what came with the job\n", 0o644)
	a.Write(filepath.Join(dir, "job.sub"), fmt.Sprintf("executable = job.sh\ntransfer_input_files = input\ntransfer_output_files = output\nshould_transfer_files = YES\noutput = out\nerror = err\nlog = job.log\n"+
		"request_disk = 1024\nrequest_memory = 64\nrequirements = TARGET.Rig == %q\nqueue\n", e.Name), 0o644)
	out := a.Submit(dir, "job.sub")
	m := regexp.MustCompile(`submitted to cluster (\d+)\.`).FindStringSubmatch(out)
	if m == nil {
		a.TB.Fatalf("condor_submit said %s", out)
	}
	return submitted{id: m[1] + ".0", dir: dir}
}

// running waits until the job runs.
func (a *arena) running(e *realpool.EP, j submitted) {
	a.TB.Helper()
	a.Eventually("the job of "+e.Name+" runs", realpool.Patience, func(ctx context.Context) error {
		if exists(filepath.Join(j.dir, "ready")) {
			return nil
		}
		events, _ := os.ReadFile(filepath.Join(j.dir, "job.log"))
		return fmt.Errorf("its log:\n%s\nStartLog:\n%s\nStarterLog:\n%s", events, realpool.Last(e.Log("StartLog"), 25), realpool.Last(e.Log("StarterLog"), 25))
	})
}

// visit has the tools of the job's owner reach into the running jobs.
func (a *arena) visit(jobs [2]submitted) {
	a.TB.Helper()
	for i, j := range jobs {
		e := a.sides[i]
		if out, err := a.Run(a.TB.Context(), "condor_tail", j.id); err != nil || out != "begun\n" {
			a.TB.Errorf("condor_tail of the job of %s: %q, %v\n%s", e.Name, out, err, realpool.Last(e.Log("StarterLog"), 6))
		}
		a.through(e)
		a.t.Run("ssh to "+e.Name, func(t *testing.T) {
			a.NeedSSH(t)
			out, err := a.Run(t.Context(), "condor_ssh_to_job", j.id, "cat", "input")
			if err != nil || !strings.Contains(out, "what came with the job") {
				t.Errorf("condor_ssh_to_job of the job of %s: %q, %v\n%s", e.Name, out, err, realpool.Last(e.Log("StarterLog"), 6))
			}
			// As an ordinary user the visitor enters the job's user namespace, where there is one.
			if a.master && e.Name == "ours" && strings.Contains(e.Log("StartLog"), "starters begin in a user namespace") {
				if out, err := a.Run(t.Context(), "condor_ssh_to_job", j.id, "cat", "/proc/1/comm"); err != nil || !strings.Contains(out, "condor_pid_ns_i") {
					t.Errorf("the visitor is not where the job is: %q, %v", out, err)
				}
				t.Log("the job has a user namespace")
			}
		})
	}
}

// rejoin ends the schedd and its shadows without a word. Those that follow find
// the starters, through the broker, and go on with the jobs.
func (a *arena) rejoin(jobs [2]submitted) {
	a.TB.Helper()
	a.schedd.Stop(syscall.SIGKILL, 20*time.Second)
	for _, p := range a.Processes() {
		if p.Name == "condor_shadow" {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	a.schedd.Start()
	a.ScheddAnswers()
	for i, j := range jobs {
		e := a.sides[i]
		a.Eventually("the new shadow finds the starter of "+e.Name, realpool.Patience, func(context.Context) error {
			events, err := os.ReadFile(filepath.Join(j.dir, "job.log"))
			if err == nil && !strings.Contains(string(events), "\n023 (") {
				err = fmt.Errorf("the job's log:\n%s\nStarterLog:\n%s", events, realpool.Last(e.Log("StarterLog"), 6))
			}
			return err
		})
		a.through(e)
	}
}

// through tells whether the starter was come to as the cell says.
func (a *arena) through(e *realpool.EP) {
	a.TB.Helper()
	if a.shared {
		// Ours is called starter_…, the original's after its slot. The shared
		// port writes its line when it has seen that the socket was taken, and by
		// then the visitor may have his answer.
		passed := regexp.MustCompile(`passed socket to (starter|slot1_1)_`)
		a.Eventually("the shared port of "+e.Name+" says whom it led to the starter", realpool.Patience, func(context.Context) error {
			if log := e.Log("SharedPortLog"); !passed.MatchString(log) {
				return fmt.Errorf("nobody came to the starter through the shared port, whose log is\n%s", realpool.Last(log, 6))
			}
			return nil
		})
	}
	b, err := os.ReadFile(filepath.Join(a.Dir, "log", "CollectorLog"))
	a.Must(err)
	// Behind a shared port that is whom the broker leads to.
	reached := make(map[string]bool)
	for _, m := range regexp.MustCompile(`CCB: received 'success' from target daemon STARTER (<\S+>)`).FindAllSubmatch(b, -1) {
		reached[string(m[1])] = true
	}
	if want := 1 + slices.Index(a.sides[:], e); a.broker && !a.shared && len(reached) < want {
		a.TB.Errorf("nobody came to the starter of %s through the broker", e.Name)
	}
	if !a.broker && a.ap == "" && strings.Contains(string(b), "CCB: received 'success'") {
		a.TB.Errorf("somebody came through the broker, where there should be none")
	}
}

// finish lets the jobs end and looks at what came back.
func (a *arena) finish(jobs [2]submitted) {
	a.TB.Helper()
	for _, j := range jobs {
		a.Write(filepath.Join(j.dir, "go"), "", 0o644)
	}
	for i, j := range jobs {
		a.ended(a.sides[i], j)
	}
}

// ended waits until the job has ended and looks at what came back.
func (a *arena) ended(e *realpool.EP, j submitted) {
	a.TB.Helper()
	a.Eventually("the job of "+e.Name+" ends", realpool.Patience, func(context.Context) error {
		events, err := os.ReadFile(filepath.Join(j.dir, "job.log"))
		if err == nil && !strings.Contains(string(events), "\n005 (") {
			err = errors.New(string(events))
		}
		return err
	})
	if out, err := os.ReadFile(filepath.Join(j.dir, "output")); string(out) != "WHAT CAME WITH THE JOB\n" {
		a.TB.Errorf("the output of the job of %s: %q, %v", e.Name, out, err)
	}
	if out, err := os.ReadFile(filepath.Join(j.dir, "out")); string(out) != "begun\n" {
		a.TB.Errorf("the job of %s printed %q, %v", e.Name, out, err)
	}
}

// secured looks into the collector's log for how we came in, and at the
// broker's count.
func (a *arena) secured() {
	a.TB.Helper()
	b, err := os.ReadFile(filepath.Join(a.Dir, "log", "CollectorLog"))
	a.Must(err)
	log := string(b)
	who := map[string]string{"IDTOKENS": "ours@execpoint.test", "PASSWORD": "condor@password", "SSL": "node@execpoint.test", "FS": `\S+@execpoint.test`}[a.method]
	if !regexp.MustCompile(`PERMISSION GRANTED to ` + who + ` from host \S+ for command 0 \(UPDATE_STARTD_AD\)`).MatchString(log) {
		a.TB.Errorf("the collector's log does not grant UPDATE_STARTD_AD to %s", who)
	}
	if strings.Contains(log, "PERMISSION DENIED") {
		a.TB.Errorf("the collector refuses something:\n%s", log)
	}
	log = a.sides[1].Log("StartLog")
	if regexp.MustCompile(`#\d+#\d+#[0-9a-f]`).MatchString(log) {
		a.TB.Error("our log shows secrets of claims")
	}
}
