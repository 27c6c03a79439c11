// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/config"
)

func parseConfig(t *testing.T, text string) *config.Snapshot {
	t.Helper()
	cfg, err := config.Parse("cron.conf", text, config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// row: S0-241
func TestCronFrom(t *testing.T) {
	t.Parallel()
	c, problems := CronFrom(parseConfig(t, `
STARTD_CRON_JOBLIST = temp, disk
STARTD_CRON_CONFIG_VAL = /bin/condor_config_val
STARTD_CRON_MAX_JOB_LOAD = 0.5
STARTD_CRON_LOG_NON_ZERO_EXIT = true
STARTD_CRON_AUTOPUBLISH = if_changed
STARTD_CRON_temp_EXECUTABLE = /opt/temp
STARTD_CRON_temp_ARGS = "-v 'two words'"
STARTD_CRON_temp_ENV = A=1;B=2
STARTD_CRON_temp_CWD = /tmp
STARTD_CRON_temp_PERIOD = 10m
STARTD_CRON_temp_PREFIX = t_
STARTD_CRON_temp_SLOTS = 1, 3
STARTD_CRON_temp_JOB_LOAD = 0.2
STARTD_CRON_temp_KILL = true
STARTD_CRON_temp_RECONFIG = true
STARTD_CRON_temp_RECONFIG_RERUN = true
STARTD_CRON_temp_METRICS = SUM:Heat, peak:HeatMemory
STARTD_CRON_disk_EXECUTABLE = /opt/disk
STARTD_CRON_disk_MODE = waitforexit
STARTD_CRON_disk_PERIOD = 2H
`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for i := range c.Jobs {
		if c.Jobs[i].Origin.Line == 0 {
			t.Errorf("%s has no origin", c.Jobs[i].Name)
		}
		c.Jobs[i].Origin = config.Origin{}
	}
	val := "STARTD_CRON_CONFIG_VAL=/bin/condor_config_val"
	want := Cron{Family: "STARTD_CRON", MaxLoad: 0.5, LogFailures: true, AutoPublish: IfChanged, Jobs: []Job{
		{Name: "temp", Period: 10 * time.Minute, Path: "/opt/temp", Args: []string{"temp", "-v", "two words"}, Env: []string{"A=1", "B=2", val},
			Dir: "/tmp", Prefix: "t_", Slots: []int{1, 3}, Load: 0.2, Kill: true, Hup: true, Rerun: true, Metrics: []Metric{{Resource: "Heat"}, {Resource: "HeatMemory", Peak: true}}},
		{Name: "disk", Mode: WaitForExit, Period: 2 * time.Hour, Path: "/opt/disk", Args: []string{"disk"}, Env: []string{val}, Load: 0.01},
	}}
	if d := cmp.Diff(want, c); d != "" {
		t.Error(d)
	}
}

func TestCronProblems(t *testing.T) {
	t.Parallel()
	const sound = "STARTD_CRON_JOBLIST = j\nSTARTD_CRON_j_EXECUTABLE = /x\nSTARTD_CRON_j_PERIOD = 5\n"
	for _, c := range []struct {
		text string
		want string // of the first problem
		runs bool   // the job is kept all the same
	}{
		{"STARTD_CRON_JOBLIST = j\nSTARTD_CRON_j_PERIOD = 5", "cron.conf:1:1: knob STARTD_CRON_j_EXECUTABLE: the job j has no program", false},
		{sound + "STARTD_CRON_j_PERIOD = 5d", `cron.conf:4:1: knob STARTD_CRON_j_PERIOD: not a period; the job is left out (value "5d"`, false},
		{sound + "STARTD_CRON_j_PERIOD = -5", "not a period", false},
		{sound + "STARTD_CRON_j_PERIOD = 99999999999999999h", "not a period", false},
		{sound + "STARTD_CRON_j_PERIOD = 0", "switches the job off", false},
		{sound + "STARTD_CRON_j_MODE = Often", "unknown mode", false},
		{sound + "STARTD_CRON_j_MODE = Continuous", "WaitForExit", false},
		{sound + "STARTD_CRON_j_SLOTS = one", "not a list of slot numbers", false},
		{sound + "STARTD_CRON_j_PREFIX = 1-", "no attribute can begin", false},
		{sound + "STARTD_CRON_j_CONDITION = 1 +", "STARTD_CRON_j_CONDITION", false},
		{sound + "STARTD_CRON_j_ARGS = \"it's", "STARTD_CRON_j_ARGS", false},
		{sound + "STARTD_CRON_j_ENV = novalue", "STARTD_CRON_j_ENV", false},
		{sound + "STARTD_CRON_j_JOB_LOAD = much", "0.01 is used", true},
		{sound + "STARTD_CRON_j_JOB_LOAD = 7", "never runs", true},
		{sound + "STARTD_CRON_MAX_JOB_LOAD = 0", "0.1 is used", true},
		{sound + "STARTD_CRON_j_KILL = perhaps", "not a boolean", true},
		{sound + "STARTD_CRON_j_METRICS = MEAN:Heat", "MEAN:Heat is no metric", true},
		{sound + "STARTD_CRON_AUTOPUBLISH = often", "Never, Always or If_Changed", true},
		{sound + "STARTD_CRON_JOBLIST = j J", "listed twice", true},
	} {
		cron, problems := CronFrom(parseConfig(t, c.text))
		if len(problems) == 0 || !strings.Contains(problems[0].Error(), c.want) {
			t.Errorf("%s\nproblems %v, want %q", c.text, problems, c.want)
		}
		if runs := len(cron.Jobs) == 1; runs != c.runs {
			t.Errorf("%s\nthe job runs: %v", c.text, runs)
		}
	}
}

func TestBenchmarksProblems(t *testing.T) {
	t.Parallel()
	c, problems := BenchmarksFrom(parseConfig(t, "BENCHMARKS_JOBLIST = mips\nBENCHMARKS_MIPS_EXECUTABLE=/m\nBENCHMARKS_MIPS_MODE = Periodic\nBENCHMARKS_MIPS_PERIOD = 5\n"))
	if len(c.Jobs) != 0 || len(problems) != 1 || !strings.Contains(problems[0].Error(), "only when asked for") {
		t.Errorf("jobs %v, problems %v", c.Jobs, problems)
	}
	c, problems = BenchmarksFrom(parseConfig(t, "BENCHMARKS_JOBLIST = mips\nBENCHMARKS_MIPS_EXECUTABLE=/m\nBENCHMARKS_MIPS_RECONFIG_RERUN = True\n"))
	if len(c.Jobs) != 1 || c.Jobs[0].Rerun || len(problems) != 1 || !strings.Contains(problems[0].Error(), "taken for False") {
		t.Errorf("jobs %v, problems %v", c.Jobs, problems)
	}
}
