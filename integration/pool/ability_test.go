// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/classad"
)

// scriptCases are jobs with programs before and after them, and jobs that begin in
// a directory of the machine.
var scriptCases = []jobCase{
	{
		name: "around the job", submit: "MY.PreCmd = \"pre.sh\"\nMY.PreArguments = \"x 'y z'\"\nMY.PreEnvironment = \"WHO=pre\"\nMY.PostCmd = \"post.sh\"\nMY.PostArgs = \"p q\"\nMY.PostEnv = \"WHO=post\"\n" +
			"environment = \"WHO=job\"\ntransfer_input_files = pre.sh, post.sh",
		script: "cat pre.out; exit 3", files: map[string]string{"pre.sh": scriptTells("pre") + "exit 7\n", "post.sh": scriptTells("post") + "exit 8\n"},
		says: []string{"(return value 3)"}, varies: true,
	},
	{
		name: "as wanted", submit: "MY.PreCmd = \"pre.sh\"\nMY.SuccessPreExitCode = 7\nMY.PostCmd = \"pre.sh\"\nMY.SuccessPostExitCode = 7\ntransfer_input_files = pre.sh",
		script: "true", files: map[string]string{"pre.sh": "#!/bin/sh\nexit 7\n"},
	},
	{
		name: "before failed", submit: "MY.PreCmd = \"pre.sh\"\nMY.SuccessPreExitCode = 0\ntransfer_input_files = pre.sh",
		script: "echo ran", files: map[string]string{"pre.sh": "#!/bin/sh\necho x > made\nexit 7\n"}, want: "021 004 012", says: []string{"Pre script failed.", "Code 43 Subcode 0"},
	},
	{
		name: "after failed", differ: []string{"ExecuteDirWasEncrypted", "ExitCode"}, // ours tells more with the end of the job's program
		submit: "MY.PostCmd = \"post.sh\"\nMY.SuccessPostExitCode = 0\ntransfer_input_files = post.sh",
		script: "echo ran", files: map[string]string{"post.sh": "#!/bin/sh\nkill -9 $$\n"}, says: []string{"Post script failed.", "Code 44 Subcode 0"},
	},
	{name: "nothing before", submit: "MY.PreCmd = \"none.sh\"\nMY.PreArgs = \"a b\"", script: "true", says: []string{"Code 6 Subcode 2"}},
	{
		name: "without transfer", submit: "executable = @DIR@/job.sh\nMY.PreCmd = \"@DIR@/pre.sh\"\nMY.PostCmd = \"@DIR@/post.sh\"\nshould_transfer_files = NO",
		script: "cat pre.out", files: map[string]string{"pre.sh": "#!/bin/sh\npwd > pre.out\n", "post.sh": "#!/bin/sh\npwd > post.out\n"},
	},
	{name: "a directory there", submit: "remote_initialdir = /tmp\ntransfer_input_files = in", script: "pwd; echo $_CONDOR_JOB_IWD; ls $_CONDOR_SCRATCH_DIR; echo x > $_CONDOR_SCRATCH_DIR/made", files: map[string]string{"in": "in\n"}},
	{name: "a directory of its own", submit: "remote_initialdir = sub\ntransfer_input_files = sub", script: "ls; echo x > made", files: map[string]string{"sub/in": "in\n"}},
	{name: "a program there", submit: "executable = sh\narguments = -c pwd\ntransfer_executable = false\nremote_initialdir = /bin", says: []string{"(return value 0)"}},
	{name: "no directory there", submit: "remote_initialdir = /nowhere/at/all", script: "pwd", says: []string{"Code 6 Subcode 2"}},
	{name: "a directory without transfer", submit: "executable = /bin/pwd\nremote_initialdir = /tmp\nshould_transfer_files = NO", output: map[string]string{"out": "/tmp\n"}},
	{
		name: "a directory and scripts", submit: "remote_initialdir = /tmp\nMY.PreCmd = \"pre.sh\"\nMY.PostCmd = \"post.sh\"\ntransfer_input_files = pre.sh, post.sh",
		script: "pwd; cat $_CONDOR_SCRATCH_DIR/pre.out", files: map[string]string{"pre.sh": scriptTells("pre"), "post.sh": scriptTells("post")}, varies: true,
	},
}

// scriptTells is a program that writes what it was given. Each side names its
// ancestors in its own way, and older originals say in _CONDOR_HOW_CODE who ended
// the job.
func scriptTells(name string) string {
	return "#!/bin/sh\n{ echo \"$#: $*\"; pwd; ulimit -c; nice; env | grep -v '^_CONDOR_ANCESTOR_\\|^_CONDOR_HOW_CODE=\\|^_=\\|_PID=\\|^PWD=\\|^OLDPWD=\\|^SHLVL=' | sed 's/=.*PATH.*//' | LC_ALL=C sort; } > " + name + ".out\n"
}

// TestScriptsAlike runs programs before and after jobs, and jobs in directories of
// the machine, with both.
func TestScriptsAlike(t *testing.T) {
	t.Parallel()
	runJobs(t, newRig(t, "STARTER_ALLOW_JOB_PRE_AND_POST_CMD = MY.Cpus > 0 && TARGET.ProcId =?= 0\n"), scriptCases)
}

// runtimes writes an Apptainer, a Docker and a Java that answer a probe.
func runtimes(p *realpool.Pool) (lines string) {
	dir := filepath.Join(p.Dir, "runtimes")
	p.Mkdir(dir)
	for name, text := range map[string]string{
		"apptainer": "case \"$1\" in --version) echo apptainer version 1.3.6;; *) exit 37;; esac\n",
		"docker":    "case \"$1\" in -v) echo 'Docker version 27.1.1, build 6312585';; info) echo Client:;; *) exit 1;; esac\n",
		"java":      "echo 'java.version=17'; echo 'java.vendor=V'; echo 'java.specification.version=17'; echo '    java.version = 17' >&2\n",
	} {
		p.Write(filepath.Join(dir, name), "#!/bin/sh\n"+text, 0o755)
		lines += fmt.Sprintf("%s = %s\n", map[string]string{"apptainer": "SINGULARITY", "docker": "DOCKER", "java": "JAVA"}[name], filepath.Join(dir, name))
	}
	return lines + "DOCKER_PERFORM_TEST = false\n"
}

// TestOnlyWhatRunsIsAdvertised shows a container runtime, a Docker and a Java to
// both. The original runs their jobs and advertises them; ours does not, so a job
// that asks for one is not matched with ours.
func TestOnlyWhatRunsIsAdvertised(t *testing.T) {
	t.Parallel()
	p := realpool.New(t, "")
	p.Begin()
	lines := runtimes(p)
	for _, kind := range []string{realpool.Original, realpool.Ours} {
		p.NewEP(kind, 2, lines).Begin()
	}
	show := func(ctx context.Context, kind string) (*classad.Ad, error) {
		out, err := p.Run(ctx, "condor_status", "-constraint", fmt.Sprintf("PartitionableSlot && Rig == %q", kind), "-long")
		if err != nil {
			return nil, err
		}
		return classad.ParseAd(strings.TrimSpace(out), classad.Old)
	}
	p.Eventually("the original advertises what it runs", realpool.Patience, func(ctx context.Context) error {
		ad, err := show(ctx, realpool.Original)
		if err != nil {
			return err
		}
		for _, name := range []string{"HasSingularity", "HasContainer", "HasSIF", "HasDocker", "HasDockerURL"} {
			if has, _ := ad.EvalBool(name, nil); !has {
				return fmt.Errorf("no %s in\n%s", name, ad.Text(classad.Old))
			}
		}
		return nil
	})
	ad, err := show(t.Context(), realpool.Ours)
	p.Must(err)
	list, _ := ad.EvalString("StarterAbilityList", nil)
	if !strings.Contains(list, "HasFileTransfer") {
		t.Errorf("abilities %q", list)
	}
	for _, name := range []string{"HasSingularity", "SingularityVersion", "HasContainer", "HasSIF", "HasSandboxImage", "HasDocker", "DockerVersion", "HasDockerURL", "HasJava", "JavaVersion", "HasVM"} {
		if e, there := ad.Lookup(name); there || strings.Contains(list, name) {
			t.Errorf("ours advertises %s = %v, abilities %s", name, e, list)
		}
	}
}

// TestRefusedJobsAreHeld gives ours jobs that ask for what it does not offer, past
// its own ad: the owner says that it can, or the job asks for it with an attribute
// of its own. Each is held with the reason, after one shadow, and nothing of it ran.
func TestRefusedJobsAreHeld(t *testing.T) {
	t.Parallel()
	p := realpool.New(t, "")
	p.Begin()
	can := []string{"HasDocker", "HasContainer", "HasSingularity", "HasJava", "HasSIF", "HasDockerURL", "HasEncryptExecuteDirectory", "HasTDP"}
	lines := "STARTD_ATTRS = $(STARTD_ATTRS) " + strings.Join(can, " ") + "\n"
	for _, name := range can {
		lines += name + " = true\n"
	}
	p.NewEP(realpool.Ours, 4, lines).Begin()
	dir := filepath.Join(p.Dir, "jobs")
	p.Mkdir(dir)
	p.Write(filepath.Join(dir, "ran.sh"), "#!/bin/sh\ntouch "+dir+"/ran.$1\n", 0o755)
	p.Write(filepath.Join(dir, "a.sif"), "image", 0o644)
	type held struct{ submit, code, asks string }
	cases := []held{
		{"universe = docker\ndocker_image = centos", "35", "a Docker container (DockerImage)"},
		{"universe = container\ncontainer_image = a.sif", "35", "a container (ContainerImage)"},
		{"universe = container\ncontainer_image = docker://centos", "35", "a container (ContainerImage)"},
		{"MY.SingularityImage = \"/cvmfs/image\"", "35", "a container (SingularityImage)"},
		{"MY.DockerImage = \"centos\"", "35", "a Docker container (DockerImage)"},
		{"universe = java", "6", "the java universe (JobUniverse 10)"},
		{"encrypt_execute_directory = true", "6", "an encrypted scratch directory (EncryptExecuteDirectory)"},
		{"tool_daemon_cmd = ran.sh", "6", "a tool daemon (ToolDaemonCmd)"},
	}
	ids := make([]string, len(cases))
	for i, c := range cases {
		name := fmt.Sprintf("submit.%d", i)
		p.Write(filepath.Join(dir, name), c.submit+fmt.Sprintf("\nexecutable = ran.sh\narguments = %d\nlog = log.%d\nshould_transfer_files = YES\nrequest_disk = 1024\nrequest_memory = 64\nqueue\n", i, i), 0o644)
		out := p.Submit(dir, "-terse", name)
		ids[i], _, _ = strings.Cut(strings.TrimSpace(out), " ")
	}
	for i, c := range cases {
		p.Eventually("the job is held: "+c.submit, realpool.Patience, func(ctx context.Context) error {
			out, err := p.Run(ctx, "condor_q", ids[i], "-af:,", "JobStatus", "HoldReasonCode", "NumShadowStarts", "NumJobStarts ?: 0", "HoldReason")
			want := fmt.Sprintf("5, %s, 1, 0, Error from slot", c.code)
			if err == nil && (!strings.HasPrefix(out, want) || !strings.Contains(out, "The job asks for "+c.asks+", which this Execution Point does not offer")) {
				err = fmt.Errorf("it shows %q, want %s… %s", out, want, c.asks)
			}
			return err
		})
	}
	if ran, err := filepath.Glob(filepath.Join(dir, "ran.[0-9]")); err != nil || len(ran) > 0 {
		t.Errorf("these ran: %q, %v", ran, err)
	}
}
