// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
)

// sayPlugin does what its URLs say: say://nothing/… makes no file and is content,
// say://code/N fails with the code N, say://mute/… reports nothing, say://slow/…
// takes its time, say://hang/… never ends, say://env/… writes what it finds in its environment.
const sayPlugin = `#!/bin/sh
if [ "$1" = -classad ]; then
	echo 'MultipleFileSupport = true'; echo 'PluginType = "FileTransfer"'; echo 'PluginVersion = "1"'; echo 'SupportedMethods = "say"'
	exit 0
fi
type=download
while [ $# -gt 0 ]; do
	case "$1" in -infile) in=$2; shift;; -outfile) out=$2; shift;; -upload) type=upload;; esac
	shift
done
url=$(sed -n 's/.*Url *= *"\([^"]*\)".*/\1/p' "$in"); name=$(sed -n 's/.*LocalFileName *= *"\([^"]*\)".*/\1/p' "$in")
well=true; code=0
echo "asked for $url"
case "$url" in
	say://code/*) well=false; code=${url##*/};;
	say://mute/*) exit 0;;
	say://slow/*) sleep 4;;
	say://hang/*) exec sleep 600;;
	say://env/*) { echo "<$SAY_WORD><$OTHER>"; grep -ci '^ClusterId = ' "$_CONDOR_JOB_AD"; grep -ci '^Cpus = ' "$_CONDOR_MACHINE_AD"; } > "$name";;
	say://take/*) cat "$name" > "/${url#say://take/}";;
esac
echo "[ TransferUrl = \"$url\"; TransferSuccess = $well; TransferError = \"as was said\"; TransferFileName = \"${name##*/}\"; TransferProtocol = \"say\"; TransferFileBytes = 10; TransferTotalBytes = 10; TransferType = \"$type\"; ]" > "$out"
exit $code
`

var pluginCases = []jobCase{
	{name: "a plugin that makes no file", submit: "transfer_input_files = say://nothing/x", script: "ls x || echo none", want: "001 005", output: map[string]string{"out": "none\n"}},
	{name: "its environment", submit: "transfer_input_files = say://env/e\nenvironment = \"SAY_WORD=hello OTHER=no\"", script: "cat e", output: map[string]string{"out": "<hello><>\n1\n1\n"}},
	{name: "a slow one", submit: "transfer_input_files = say://slow/x", script: "true", want: "001 005"},
	{name: "missing output with a URL", submit: "transfer_output_files = none\ntransfer_output_remaps = \"none=say://code/17\"", script: "true", want: "001 021 004 012"},
	{name: "missing output that nobody misses", submit: "transfer_output_files = none\ntransfer_output_remaps = \"none=say://nothing/x\"", script: "true", want: "001 005"},
	{name: "output elsewhere on the machine", submit: "transfer_output_files = @DIR@/there/f, own", script: "echo own > own", files: map[string]string{"there/f": "elsewhere\n"}, output: map[string]string{"f": "elsewhere\n", "own": "own\n"}},
	{name: "a directory elsewhere", submit: "transfer_output_files = @DIR@/there/dir", script: "true", files: map[string]string{"there/dir/f": "f\n", "there/dir/sub/g": "g\n"}, output: map[string]string{"dir/f": "f\n", "dir/sub/g": "g\n"}},
	{name: "output elsewhere that is not there", submit: "transfer_output_files = @DIR@/there/none", script: "true", files: map[string]string{"there/f": ""}, want: "001 021 004 012"},
	{name: "output elsewhere that may not be read", submit: "transfer_output_files = /etc/shadow", script: "true", want: "001 021 004 012", known: "a file that may not be read leaves no empty one"},
	{name: "output elsewhere with a URL", submit: "transfer_output_files = @DIR@/there/f\ntransfer_output_remaps = \"@DIR@/there/f=say://take/@DIR@/taken\"", script: "true", files: map[string]string{"there/f": "elsewhere\n"}, output: map[string]string{"taken": "elsewhere\n"}},
}

// requeued are jobs that a plugin sends elsewhere: their second run needs none.
var requeued = []struct {
	jobCase
	subcode string
}{
	{jobCase{name: "no plugin for input", submit: "MY.TransferInput = NumShadowStarts > 1 ? \"\" : \"nobody://x/y\"\nrequirements = TARGET.Rig == MY.Rig", script: "true"}, "-1001"},
	{jobCase{name: "no plugin for output", submit: "transfer_output_files = f\nMY.TransferOutputRemaps = NumJobStarts > 0 ? \"\" : \"f=nobody://x/y\"\nrequirements = TARGET.Rig == MY.Rig && TARGET.HasFileTransferPluginMethods =!= undefined", script: "echo f > f"}, "-1001"},
	{jobCase{name: "a plugin that reports nothing", submit: "MY.TransferInput = NumShadowStarts > 1 ? \"\" : \"say://mute/y\"", script: "true"}, "-1004"},
}

// failing are jobs whose plugins print what the others do not.
var failing = []jobCase{
	{name: "a plugin that never ends", submit: "transfer_input_files = say://hang/x", script: "true"},
	{name: "a plugin that fails", submit: "transfer_input_files = say://code/3", script: "true"},
	{name: "a plugin that cannot be executed", submit: "transfer_plugins = tell=bad_plugin\ntransfer_input_files = tell://x/y", script: "true", files: map[string]string{"bad_plugin": "#!/no/such/program\n"}},
}

// missingRows are the rows of docs/logs.md about files of which nothing is in the
// logs of both sides.
func missingRows(t *testing.T, r *rig) (missing []string) {
	t.Helper()
	rows, err := readLogRows("../../docs/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, row := range rows {
		if row.section != aboutFiles {
			continue
		}
		n++
		for _, s := range r.sides {
			if !row.pattern().MatchString(row.logs(s)) {
				missing = append(missing, fmt.Sprintf("%q in a StarterLog of %s, which %s looks for", row.line, s.name, row.who))
			}
		}
	}
	if n < 5 {
		t.Fatalf("docs/logs.md has %d lines about files", n)
	}
	return missing
}

// TestPlugins has plugins of the machine's owner do and report what plugins do,
// at both sides: what becomes of the jobs, what the owner finds in the log and in
// FILE_TRANSFER_STATS_LOG.
func TestPlugins(t *testing.T) {
	t.Parallel()
	// It is asked for its methods when the startds begin.
	dir := t.TempDir()
	plugin := filepath.Join(dir, "say_plugin")
	for _, err := range []error{os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755), os.WriteFile(plugin, []byte(sayPlugin), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r := newRig(t, "FILETRANSFER_PLUGINS = "+plugin+"\nSTARTER_DEBUG = D_FULLDEBUG D_TEST\nMY_POPEN_KEEPALIVE_INTERVAL = 1\nMAX_FILE_TRANSFER_PLUGIN_LIFETIME = 20\n"+
		"LOG_FILETRANSFER_PLUGIN_STDOUT_ON_SUCCESS = D_ALWAYS\nJOB_EPOCH_HISTORY = $(SPOOL)/epochs\n")
	r.NeedVersion(t, failureFiles, "a file for failures is sent")
	var jobs [][2]*job
	for i := range pluginCases {
		var both [2]*job
		for k, s := range r.sides {
			both[k] = pluginCases[i].submit1(t, s, "")
		}
		jobs = append(jobs, both)
	}
	for i, tt := range pluginCases {
		t.Run(tt.name, func(t *testing.T) {
			var bad []string
			for _, j := range jobs[i] {
				j.t = t
				j.over()
				bad = append(bad, tt.check(j)...)
			}
			judge(t, bad, "")
			judge(t, tt.compare(jobs[i][0], jobs[i][1]), tt.known)
		})
	}
	for i := range requeued {
		tt := &requeued[i]
		t.Run(tt.name, func(t *testing.T) {
			var logs [2]string
			for k, s := range r.sides {
				j := tt.submit1(t, s, "")
				j.over()
				logs[k] = j.log()
				if j.count(5) != 1 {
					t.Errorf("%s: it did not end well:\n%s", s.name, j.log())
				}
				epochs := j.tool("condor_history", "-epochs", "-constraint", fmt.Sprintf("ClusterId == %d", j.cluster), "-af", "VacateReasonCode", "VacateReasonSubCode")
				if !strings.Contains(epochs, " "+tt.subcode) {
					t.Errorf("%s: its runs ended with %q, want the subcode %s; the log:\n%s", s.name, epochs, tt.subcode, j.log())
				}
			}
			if d := gocmp.Diff(logs[0], logs[1]); d != "" {
				t.Errorf("event log (-original +ours):\n%s", d)
			}
		})
	}
	t.Run("the log", func(t *testing.T) {
		for _, s := range r.sides {
			log := starterLogs(t, s)
			for _, words := range []string{
				"FILETRANSFER: invoking: " + plugin + " -infile ", "FILETRANSFER: with plugin input: [", "say_plugin exit=0 stdout: asked for say://nothing/x",
				"wait_for_output() callback (multi)", "say_plugin: exit_code 17 exit_by_signal: 0 exit_signal: 0", "say_plugin exit=17 stdout: asked for say://code/17", "plugin for type nobody not found!",
			} {
				if !strings.Contains(log, words) {
					t.Errorf("%s: no %q in its StarterLogs", s.name, words)
				}
			}
		}
	})
	t.Run("the statistics", func(t *testing.T) {
		if d := gocmp.Diff(statistics(t, r.sides[0]), statistics(t, r.sides[1])); d != "" {
			t.Errorf("FILE_TRANSFER_STATS_LOG (-original +ours):\n%s", d)
		}
	})
	t.Run("every line", func(t *testing.T) {
		var failed []*job
		for i := range failing {
			for _, s := range r.sides {
				failed = append(failed, failing[i].submit1(t, s, ""))
			}
		}
		r.Eventually("all lines about files in the logs of both sides", 2*patience, func(context.Context) error {
			if missing := missingRows(t, r); len(missing) > 0 {
				return errors.New("there is no " + strings.Join(missing, ", no "))
			}
			return nil
		})
		for _, j := range failed { // one of them is tried again and again
			j.remove()
		}
	})
}

// starterLogs are the logs of all starters of a side.
func starterLogs(t *testing.T, s *side) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(s.dir, "log", "StarterLog*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no StarterLog: %v", err)
	}
	var b strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String()
}

// statistics are the records of a side's FILE_TRANSFER_STATS_LOG: what each is of,
// and what it tells of that.
func statistics(t *testing.T, s *side) []string {
	t.Helper()
	var all []string
	for i, text := range strings.Split(s.log("transfer_history"), "***\n") {
		ad, err := classad.ParseAd(text, classad.Old)
		if err != nil || (i == 0) != (ad.Len() == 0) {
			t.Fatalf("%s: record %d: %v\n%s", s.name, i, err, text)
		}
		if i == 0 {
			continue
		}
		str := func(name string) string { v, _ := ad.EvalString(name, nil); return v }
		names := ad.Names()
		slices.Sort(names)
		well, _ := ad.EvalBool("TransferSuccess", nil)
		bytes, _ := ad.EvalInt("TransferTotalBytes", nil)
		file := str("TransferFileName")
		url := strings.ReplaceAll(str("TransferUrl"), "/"+s.name+"/", "/SIDE/")
		all = append(all, fmt.Sprintln(str("TransferType"), str("TransferProtocol"), file, url, well, bytes, str("JobOwner"), strings.Join(names, " ")))
	}
	slices.Sort(all)
	return all
}
