// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/google/go-cmp/cmp"
)

const absent = "(absent)"

// Commands of one job and attributes that follow from them.
func TestAttributes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		lines string
		want  map[string]string // attribute to expression, in the old syntax
	}{
		{"", map[string]string{
			"MyType": `"Job"`, "TargetType": `"Machine"`, "ClusterId": "7", "ProcId": "0", "Owner": `"ann"`, "User": `"ann@example.org"`,
			"GlobalJobId": `"ap.example.org#7.0#1795183256"`, "QDate": "1795183256", "EnteredCurrentStatus": "1795183256",
			"JobUniverse": "5", "JobStatus": "1", "Cmd": `"/home/ann/prog"`, "Arguments": `""`, "Args": absent, "Environment": `""`, "Env": absent,
			"Iwd": `"/home/ann"`, "In": `"/dev/null"`, "Out": `"/dev/null"`, "Err": `"/dev/null"`, "TransferIn": "false", "TransferOut": "false", "TransferErr": "false",
			"RequestCpus": "1", "RequestMemory": "128", "RequestDisk": "MAX({ 1024,(TransferInputSizeMB + 1) * 1.25 }) * 1024", "RequestGPUs": absent,
			"Rank": "0.0", "JobPrio": "0", "JobNotification": "0", "JobLeaseDuration": "2400", "MinHosts": "1", "MaxHosts": "1", "CurrentHosts": "0",
			"ShouldTransferFiles": `"IF_NEEDED"`, "WhenToTransferOutput": `"ON_EXIT"`, "LeaveJobInQueue": "false", "NumJobStarts": "0", "CompletionDate": "0",
			"KillSig": absent, "UserLog": absent, "ExecutableSize": "5", "ImageSize": "5", "DiskUsage": "5", "TransferInputSizeMB": "1", "FileSystemDomain": `"ap.example.org"`,
			"Requirements": `(TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk)) && ` +
				`(TARGET.Memory >= RequestMemory) && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer))`,
		}},
		{"executable = /bin/sh\ntransfer_executable = false", map[string]string{"Cmd": `"/bin/sh"`, "TransferExecutable": "false"}},
		{"executable = bin//x\ntransfer_executable = False", map[string]string{"Cmd": `"bin//x"`}},
		{"executable = ./bin//x", map[string]string{"Cmd": `"/home/ann/./bin/x"`, "TransferExecutable": absent}},
		{"shell = echo 'a b' | cat", map[string]string{"Cmd": `"/bin/sh"`, "Arguments": `"-c echo' '''a' 'b''' '|' 'cat"`, "TransferExecutable": "false"}},

		{"arguments = a  b", map[string]string{"Args": `"a b"`, "Arguments": absent}},
		{`arguments = "a 'b c'"`, map[string]string{"Arguments": `"a b' 'c"`, "Args": absent}},
		{`arguments2 = "a"`, map[string]string{"Arguments": `"a"`}},
		{"environment = A=1;B=2", map[string]string{"Environment": `"A=1 B=2"`, "Env": absent}},
		{`environment = "A='1 2'"`, map[string]string{"Environment": `"A=1' '2"`}},
		{"env = B=2;A=1", map[string]string{"Env": `"A=1;B=2"`, "EnvDelim": `";"`, "Environment": absent}},
		{"getenv = true", map[string]string{"Environment": `"EMPTY= HOME=/home/ann LANG=C"`}},
		{"getenv = false", map[string]string{"Environment": `""`}},
		{"getenv = h*, LANG, !*O*", map[string]string{"Environment": `"LANG=C"`}},
		{`getenv = HOME` + "\n" + `environment = "HOME=/else"`, map[string]string{"Environment": `"HOME=/else"`}},

		{"initialdir = sub/\nlog = the.log\noutput = o\nerror = /dev/null\ninput = e.dat", map[string]string{
			"Iwd": `"/home/ann/sub"`, "UserLog": `"/home/ann/sub/the.log"`, "Out": `"o"`, "StreamOut": "false", "TransferOut": absent,
			"Err": `"/dev/null"`, "TransferErr": "false", "In": `"e.dat"`, "TransferIn": absent, "StreamIn": "false", "DiskUsage": "7"}},
		{"initialdir = /opt/data\nlog = /var/l", map[string]string{"Iwd": `"/opt/data"`, "UserLog": `"/var/l"`, "Cmd": `"/home/ann/prog"`}},
		{"initialdir = $Fp(SUBMIT_FILE)", map[string]string{"Iwd": `"/home/ann"`, "JobSubmitFile": `"t.sub"`}},
		{"output = o\nstream_output = true\ntransfer_error = false\nerror = e", map[string]string{"StreamOut": "true", "Err": `"e"`, "TransferErr": "false", "StreamErr": absent}},
		{"stdin = a.dat\nstdout = x\nstderr = y", map[string]string{"In": `"a.dat"`, "Out": `"x"`, "Err": `"y"`}},

		{"request_memory = 2 GB\nrequest_disk = 1.5M\nrequest_cpus = 3", map[string]string{"RequestMemory": "2048", "RequestDisk": "1536", "RequestCpus": "3"}},
		{"request_memory = 1000K\nrequest_disk = 2t", map[string]string{"RequestMemory": "1", "RequestDisk": "2147483648"}},
		{"request_memory = TARGET.Memory / 2\nRequestDisk = 7", map[string]string{"RequestMemory": "TARGET.Memory / 2", "RequestDisk": "7"}},
		{"request_memory = undefined\nrequest_cpus = Undefined", map[string]string{"RequestMemory": absent, "RequestCpus": absent}},
		{"request_foo = 2\nrequest_bar = 0\nrequest_tag = \"x.*\"\nrequest_gpus = 1\nrequire_gpus = Capability > 5", map[string]string{
			"Requestfoo": "2", "Requestbar": "0", "RequestGPUs": "1", "RequireGPUs": "Capability > 5", "Requesttag": `"x.*"`,
			"Requirements": `(TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk)) && ` +
				`(TARGET.Memory >= RequestMemory) && (TARGET.foo >= Requestfoo) && (countMatches(MY.RequireGPUs,TARGET.AvailableGPUs) >= RequestGPUs) && ` +
				`regexp(Requesttag,TARGET.tag) && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer))`}},
		{"requirements = OpSysAndVer == \"Debian12\" && Arch != \"x\" && TARGET.Disk > 5\nshould_transfer_files = YES\nrequest_cpus = 2", map[string]string{
			"Requirements": `(OpSysAndVer == "Debian12" && Arch != "x" && TARGET.Disk > 5) && (TARGET.Disk >= RequestDisk) && (TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus) && (TARGET.HasFileTransfer)`}},
		{"requirements = MY.Iwd =?= 1 && HasFileTransfer && stringListMember(\"OpSys\", \"Disk\")\nrequest_disk = 0", map[string]string{
			"Requirements": `(MY.Iwd =?= 1 && HasFileTransfer && stringListMember("OpSys","Disk")) && (TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (TARGET.Memory >= RequestMemory)`}},
		{"+Requirements = Memory > 5", map[string]string{"Requirements": "Memory > 5"}},
		{"should_transfer_files = no", map[string]string{"ShouldTransferFiles": `"NO"`, "WhenToTransferOutput": absent,
			"Requirements": `(TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk)) && (TARGET.Memory >= RequestMemory) && (TARGET.FileSystemDomain == MY.FileSystemDomain)`}},
		{"when_to_transfer_output = on_exit_or_evict", map[string]string{"ShouldTransferFiles": `"YES"`, "WhenToTransferOutput": `"ON_EXIT_OR_EVICT"`}},
		{"transfer_input_files = a.dat , sub/, b.dat\ntransfer_output_files = x,y\ntransfer_output_remaps = \"x = out/x.$(Process);y=z\"", map[string]string{
			"TransferInput": `"a.dat,sub/,b.dat"`, "TransferOutput": `"x,y"`, "TransferOutputRemaps": `"x = out/x.0;y=z"`, "DiskUsage": "12"}},
		{`transfer_output_files = ""`, map[string]string{"TransferOutput": `""`}},

		{"kill_sig = 10\nremove_kill_sig = sigint\nhold_kill_sig = SIGQUIT\nkill_sig_timeout = 5", map[string]string{
			"KillSig": `"SIGUSR1"`, "RemoveKillSig": `"SIGINT"`, "HoldKillSig": `"SIGQUIT"`, "KillSigTimeout": "5"}},
		{"priority = 5\ncoresize = -1\nstack_size = 1024 * 256\ndescription = two words\nbatch_name = \"b n\"", map[string]string{
			"JobPrio": "5", "CoreSize": "-1", "StackSize": "1024 * 256", "JobDescription": `"two words"`, "JobBatchName": `"b n"`}},
		{"job_max_vacate_time = 30\nmax_job_retirement_time = 60*60\njob_lease_duration = 5\nnotification = ERROR", map[string]string{
			"JobMaxVacateTime": "30", "MaxJobRetirementTime": "60 * 60", "JobLeaseDuration": "20", "JobNotification": "3"}},
		{"hold = true", map[string]string{"JobStatus": "5", "HoldReasonCode": "15", "HoldReason": `"submitted on hold at user's request"`}},
		{"periodic_hold = NumJobStarts > 3\nperiodic_hold_reason = \"too often\"\non_exit_remove = ExitCode == 0\non_exit_hold = ExitBySignal\nleave_in_queue = true", map[string]string{
			"PeriodicHold": "NumJobStarts > 3", "PeriodicHoldReason": `"too often"`, "OnExitRemove": "ExitCode == 0", "OnExitHold": "ExitBySignal", "LeaveJobInQueue": "true", "PeriodicRemove": absent}},
		{"max_retries = 5", map[string]string{"JobMaxRetries": "5", "OnExitRemove": "NumJobCompletions > JobMaxRetries || ExitCode =?= 0", "OnExitHold": "false"}},
		{"retry_until = 3\nsuccess_exit_code = 1\non_exit_remove = A ? B : C", map[string]string{"JobMaxRetries": "2", "JobSuccessExitCode": "1",
			"OnExitRemove": "NumJobCompletions > JobMaxRetries || ExitCode =?= JobSuccessExitCode || ExitCode =?= 3 || (A ? B : C)"}},
		{"nice_user = true", map[string]string{"AccountingGroup": `"nice-user.ann"`, "AcctGroup": `"nice-user"`, "AcctGroupUser": `"ann"`, "MaxJobRetirementTime": "0"}},
		{"accounting_group = g.sub\naccounting_group_user = bob", map[string]string{"AccountingGroup": `"g.sub.bob"`}},
		{"concurrency_limits = X:2, a", map[string]string{"ConcurrencyLimits": `"a,x:2"`}},
		{"rank = Memory\nimage_size = 2M", map[string]string{"Rank": "Memory", "ImageSize": "2048"}},
		{"+Text = \"x $(Process)\"\nMY.Number = 1 + 1\n+Nothing =\n-Gone = 5\n+RequestCpus = 9\n+ProcId = 55", map[string]string{
			"Text": `"x 0"`, "Number": "1 + 1", "Nothing": "undefined", "Gone": "undefined", "RequestCpus": "9", "ProcId": "0"}},
		{"arguments = $(Year)-$(Month)-$(Day) $(SUBMIT_TIME) $(Arch) $(OpSys)", map[string]string{"Args": `"2026-11-20 1795183256 X86_64 LINUX"`}},
		{"arguments = $(DOLLAR)(x) $$x $ENV(HOME) $Fn(log)", map[string]string{"Args": `"$(x) $$x /home/ann log"`}},
		{"description @=end\none\n  two\n@end", map[string]string{"JobDescription": "\"one\ntwo\""}},
		{"arguments = a \\\n  # a comment between\n  b \\\n  c", map[string]string{"Args": `"a b c"`}},
	} {
		text := "executable = prog\n" + tt.lines + "\nqueue\n"
		d, err := Parse("t.sub", text, options())
		if err != nil {
			t.Errorf("%s\n%v", text, err)
			continue
		}
		jobs, err := d.Jobs()
		if err != nil {
			t.Errorf("%s\n%v", text, err)
			continue
		}
		got := map[string]string{}
		for name := range tt.want {
			got[name] = absent
			if e, ok := jobs[0].Lookup(name); ok {
				got[name] = e.Text(classad.Old)
			}
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s\n%s", text, d)
		}
	}
}

// What the configuration says is used where the description is silent.
func TestConfig(t *testing.T) {
	t.Parallel()
	o := options()
	o.Arch, o.OpSys, o.DirFS = "AARCH64", "WINDOWS", nil
	o.Config = func(name string) string {
		return map[string]string{
			"JOB_DEFAULT_REQUESTMEMORY": "2G", "JOB_DEFAULT_REQUESTCPUS": "2", "JOB_DEFAULT_NOTIFICATION": "Always", "APPEND_REQUIREMENTS": "TARGET.Cpus > 0",
			"DEFAULT_RANK": "Memory", "APPEND_RANK_VANILLA": "Disk", "SUBMIT_DEFAULT_SHOULD_TRANSFER_FILES": "no", "FILESYSTEM_DOMAIN": "fs",
		}[name]
	}
	d, err := Parse("t.sub", "executable = x\nqueue\n", o)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := d.Jobs()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"RequestMemory": "2048", "RequestCpus": "2", "JobNotification": "1", "Rank": "(Memory) + (Disk)", "ShouldTransferFiles": `"NO"`, "FileSystemDomain": `"fs"`,
		"Requirements": `(TARGET.Cpus > 0) && (TARGET.Arch == "AARCH64") && (TARGET.OpSys == "WINDOWS") && (TARGET.Memory >= RequestMemory) && (TARGET.FileSystemDomain == MY.FileSystemDomain)`,
	} {
		e, ok := jobs[0].Lookup(name)
		if !ok || e.Text(classad.Old) != want {
			t.Errorf("%s: %v, want %s", name, e, want)
		}
	}
	if _, ok := jobs[0].Lookup("JobLeaseDuration"); ok {
		t.Error("a lease duration that the configuration does not have")
	}
	o.Config = func(name string) string {
		if name == "DEFAULT_UNIVERSE" {
			return "grid"
		}
		return ""
	}
	if _, err := Parse("t.sub", "executable = x\nqueue\n", o); err == nil || !strings.Contains(err.Error(), "DEFAULT_UNIVERSE") {
		t.Errorf("DEFAULT_UNIVERSE = grid: %v", err)
	}
}

// A job with the default requests matches a machine that has what it needs, and
// no other.
func TestMatches(t *testing.T) {
	t.Parallel()
	machine := func(change string) *classad.Ad {
		ad, err := classad.ParseAd("Requirements = true\nArch = \"X86_64\"\nOpSys = \"LINUX\"\nMemory = 1024\nCpus = 2\nDisk = 5000000\nHasFileTransfer = true\n"+
			"CondorVersion = \"$CondorVersion: 25.14.0 2026-08-21 $\"\n"+change, classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		return ad
	}
	for _, tt := range []struct {
		change string
		want   bool
	}{
		{"", true},
		{"Memory = 100\n", false},
		{"Arch = \"AARCH64\"\n", false},
		{"Cpus = 1\n", false},
		{"HasFileTransfer = false\n", false},
		{"CondorVersion = \"$CondorVersion: 25.11.0 2026-01-01 $\"\n", true},
		{"CondorVersion = \"$CondorVersion: 25.11.0 2026-01-01 $\"\nDisk = 5\n", false},
	} {
		d, err := Parse("t.sub", "executable = prog\nrequest_cpus = 2\nqueue\n", options())
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := d.Jobs()
		if err != nil {
			t.Fatal(err)
		}
		if got := classad.Match(machine(tt.change), jobs[0], nil); got.OK() != tt.want {
			t.Errorf("%q: match %v, want %v (%+v)", tt.change, got.OK(), tt.want, got)
		}
	}
}
