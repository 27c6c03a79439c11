// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/eventlog"
)

// checkpointed is a job that saves what it has done at its first run, waits at its
// second one until it is evicted, and ends at the one that follows. Every run says
// what it finds.
const checkpointed = `#!/bin/sh
echo "run with $(cat state 2>/dev/null || echo nothing), manifests $(ls | grep -c MANIFEST)"
echo "trouble of that run" >&2
if [ ! -f state ]; then echo something > state; exit 85; fi
if [ -f @DIR@/evicted ]; then exit 0; fi
touch @DIR@/ready
exec sleep 1000
`

// patient saves what it has done twice, and is not evicted.
const patient = `#!/bin/sh
n=$(cat state 2>/dev/null || echo 0)
echo "run with $n"
if [ $n = 2 ]; then exit 0; fi
echo $(($n + 1)) > state
exit 85
`

// storing is a plugin for keep://, which keeps files below @STORE@. It fails at
// the files of a checkpoint that has a file FAIL.number there: by its report, and
// by its end with the number that FAIL.number holds.
const storing = `#!/bin/sh
if [ "$1" = -classad ]; then
	echo 'MultipleFileSupport = true'; echo 'PluginType = "FileTransfer"'; echo 'SupportedMethods = "keep"'; exit 0
fi
in=; out=; way=down; code=0
while [ $# -gt 0 ]; do
	case $1 in -infile) in=$2; shift ;; -outfile) out=$2; shift ;; -upload) way=up ;; esac
	shift
done
: > $out
tr '\n' ' ' < $in | sed 's/\[/\n[/g' | grep Url > $out.list
while read -r ad; do
	url=$(echo "$ad" | sed 's/.*Url = "\([^"]*\)".*/\1/')
	file=$(echo "$ad" | sed 's/.*LocalFileName = "\([^"]*\)".*/\1/')
	there=@STORE@/${url#keep://}
	number=$(basename $(dirname $there))
	mkdir -p $(dirname $there)
	well=true
	if [ $way = up ] && [ -f @STORE@/FAIL.$number ]; then
		well=false; code=$(cat @STORE@/FAIL.$number)
	elif [ $way = up ]; then
		cp $file $there || well=false
	else
		mkdir -p $(dirname $file); cp $there $file # it promises what it does not keep
	fi
	echo "[ TransferUrl = \"$url\"; TransferFileName = \"$file\"; TransferProtocol = \"keep\"; TransferTotalBytes = 1; TransferSuccess = $well; TransferError = \"told to\" ]" >> $out
done < $out.list
rm $out.list
exit $code
`

// TestCheckpoints has jobs that save their state at both sides, into the spool and
// at a URL, and compares all that they leave. CLAIM_WORKLIFE would end each claim
// at the first checkpoint; CHECK_REACTIVATE_AFTER_CHECKPOINT says that nobody asks.
//
// row: S3-050
// row: S3-051
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	r := newRig(t, "CLAIM_WORKLIFE = 0\nCHECK_REACTIVATE_AFTER_CHECKPOINT = FALSE\n")
	const goesBack = "the shadow goes back to the checkpoint before, and does not send the same again and again"
	// A schedd counts a vacate as one before execution if the shadow was born in a
	// later second than the program of the run before it began.
	secondsApart := []string{"NumVacatesPreExecution", "NumVacatesByReasonPreExecution"}
	const atURL = "transfer_checkpoint_files = state\ntransfer_output_files =\ncheckpoint_destination = keep://store\ntransfer_plugins = keep=plug.sh\n"
	for _, tt := range []struct {
		name, submit, script string
		fail                 map[string]string // what the plugin fails at
		// spoil changes what is stored of the checkpoint before the job comes back.
		spoil  func(file string) error
		evict  bool
		want   string // codes of the event log
		says   string
		output string
		differ []string
		new    string // what the original does so only since 24.1
	}{
		{name: "what changed, in the spool", new: "the shadow counts the bytes of such a job so", script: checkpointed, evict: true, want: "001 004 001 005",
			output: "run with nothing, manifests 0\nrun with something, manifests 0\n"},
		{name: "what is listed, streamed", submit: "transfer_checkpoint_files = state\nstream_output = true\nstream_error = true\n", script: checkpointed, evict: true, want: "001 004 001 005",
			output: "run with nothing, manifests 0\nrun with something, manifests 0\nrun with something, manifests 0\n"},
		{name: "at a URL", submit: atURL, script: checkpointed, evict: true, want: "001 004 001 005",
			output: "run with nothing, manifests 0\nrun with something, manifests 0\n"},
		{name: "at a URL, changed there", new: goesBack, submit: atURL, script: checkpointed, evict: true, want: "001 004 021 004 001 005",
			spoil: func(file string) error { return os.WriteFile(file, []byte("another\n"), 0o644) }, says: "Checkpoint file 'state' did not have expected checksum", differ: secondsApart},
		{name: "at a URL, lost there", new: goesBack, submit: atURL, script: checkpointed, evict: true, spoil: os.Remove, differ: secondsApart},
		{name: "at a URL that fails once", new: "what plugins read and wrote does not come back with the output", submit: atURL, script: patient, fail: map[string]string{"FAIL.0000": "0"}, want: "001 005",
			output: "run with 0\nrun with 1\nrun with 2\n"},
		{name: "at a URL that fails for good", submit: atURL, script: patient, fail: map[string]string{"FAIL.0000": "1"}, want: "001 021 004 012",
			says: "Starter failed to upload checkpoint", differ: []string{"MemoryUsage", "ResidentSetSize", "ResidentSetSize_RAW"}}, // by the clock, which the original's transfers take longer than
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.new != "" {
				r.NeedVersion(t, lts24, tt.new)
			}
			name := strings.ReplaceAll(tt.name, " ", "-")
			var jobs [2]*job
			var stores [2]string
			for i, s := range r.sides {
				stores[i] = filepath.Join(s.dir, "store-"+name)
				r.Mkdir(stores[i])
				r.files(stores[i], tt.fail)
				description := "executable = job.sh\noutput = out\nerror = err\nshould_transfer_files = YES\ncheckpoint_exit_code = 85\n" + tt.submit
				jobs[i] = s.submit(t, name, description, "", func(dir string) {
					fill := strings.NewReplacer("@DIR@", dir, "@STORE@", stores[i])
					r.files(dir, map[string]string{"job.sh": fill.Replace(tt.script), "plug.sh": fill.Replace(storing)})
				})
			}
			for i, j := range jobs {
				if !tt.evict {
					break
				}
				j.made("ready")
				if tt.spoil != nil {
					files, err := filepath.Glob(filepath.Join(stores[i], "store/*/0000/state"))
					if err != nil || len(files) != 1 {
						t.Fatalf("%s: stored are %q, %v", j.side.name, files, err)
					}
					r.Must(tt.spoil(files[0]))
				}
				j.told("evicted")
				j.say("condor_vacate_job", j.id())
				j.wait(eventlog.CodeEvicted, 1)
			}
			for _, j := range jobs {
				j.over()
				if got := j.codes(); tt.want != "" && got != tt.want {
					t.Errorf("%s: events %s, want %s; the log:\n%s", j.side.name, got, tt.want, j.log())
				}
				if log := j.log(); !strings.Contains(log, tt.says) {
					t.Errorf("%s: the event log does not say %q:\n%s", j.side.name, tt.says, log)
				}
				if tt.output == "" {
					continue
				}
				if got := j.content("out"); got != tt.output {
					t.Errorf("%s: the output is %q, want %q", j.side.name, got, tt.output)
				}
			}
			judge(t, compareJobs(jobs[0], jobs[1], tt.differ), "")
			for _, j := range jobs {
				j.remove()
			}
		})
	}
}
