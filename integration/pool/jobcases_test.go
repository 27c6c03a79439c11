// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"os"
	"path/filepath"
)

// sandbox lists what the job sees in its directory, but for the ads, which
// ours does not let the job write.
const sandbox = `find . -mindepth 1 ! -name '.*.ad' | LC_ALL=C sort | while read f; do stat -c '%A %N' "$f"; [ -f "$f" ] && case "$f" in ./.*|./_condor*) ;; *) cksum "$f"; esac; done; `

// jobCases are jobs that come to their end by themselves.
var jobCases = []jobCase{
	// What the job is given.
	{
		name: "arguments", submit: `arguments = "one 'two words' ""quoted"" '' it''s $HOME *"`,
		script: `for a in "${0##*/}" "$@"; do echo "<$a>"; done`, want: "001 005",
	},
	{name: "attributes of the standard universe", submit: "+CkptArch = \"X86_64\"\n+CkptOpSys = \"LINUX\"\n+LastCkptServer = \"ckpt.example.org\"\n+LastCkptTime = 1\n+LastCheckpointPlatform = \"LINUX X86_64\"\n+NumCkpts = 3\n+NumRestarts = 2\n+NumGlobusSubmits = 1", script: "echo ran", want: "001 005"},
	{name: "old arguments", submit: `arguments = a b\"c $x`, script: `for a in "$@"; do echo "<$a>"; done`},
	{
		name: "environment", varies: true, submit: `environment = "A=1 B='two words' C='it''s' D=""q"" E="` + "\nMY.Foo = 3",
		script: `echo "<$A><$B><$C><$D><$E>"; env | LC_ALL=C sort | grep -v '^\(_CONDOR_ANCESTOR\|PWD=\|SHLVL=\|_=\|_CONDOR_JOB_PIDS\)'`,
	},
	{name: "old environment", submit: `environment = A=1;B=two words;C=3`, script: `echo "<$A><$B><$C>"`},
	{name: "getenv", known: "the job gets a HOME", knownBefore: &withHome, submit: "getenv = CONDOR_CO*, LD_LIB*", script: `echo "<${LD_LIBRARY_PATH:+set}><${HOME:+set}>"`},
	{name: "stdin", submit: "input = in.txt", script: "cat; echo end", files: map[string]string{"in.txt": "a line\nno end"}, output: map[string]string{"out": "a line\nno endend\n"}},
	{name: "both to one", submit: "output = both\nerror = both", script: "echo one; echo two >&2; echo three", output: map[string]string{"both": "one\ntwo\nthree\n"}},
	{name: "no streams", submit: "output = \nerror = /dev/null", script: "echo one; ls -l /proc/self/fd | grep -c null"},
	{name: "output elsewhere", submit: "output = @DIR@/sub/out.txt\nerror = sub/err.txt", script: "echo one; echo two >&2", files: map[string]string{"sub/": ""}, output: map[string]string{"sub/out.txt": "one\n", "sub/err.txt": "two\n"}},
	{name: "limits", submit: "stack_size = 4096\ncore_size = 0", script: "ulimit -s; ulimit -c; umask; echo $(nice)"},
	{
		name: "parts of the machine", varies: true, submit: "request_cpus = 2\nrequest_memory = 200\nrequest_disk = 2048\nMY.Seen = \"$$(Cpus) $$(TotalCpus)\"",
		script: `grep -iE '^(Cpus|Memory|TotalSlotCpus|TotalSlotMemory|SlotType|DynamicSlot) ' .machine.ad | LC_ALL=C sort; grep -iE '^(RequestCpus|CpusProvisioned|MemoryProvisioned|Out|Err|Iwd|OrigIwd|Cmd|OriginalOut|RemoteHost|JobStatus|Seen|JobState) ' .job.ad | LC_ALL=C sort; echo $OMP_NUM_THREADS`,
	},
	// OSHomeDir is what HOME is already, and not in our ad.
	{name: "names in the job ad", script: `sed 's/ = .*//' .job.ad | LC_ALL=C sort | grep -vx 'LastRej.*\|FirstJobMatchDate\|OSHomeDir'; ls .machine.ad`},
	{name: "execute event", submit: "ulog_execute_attrs = Cpus, Memory", script: "true"},

	// Input.
	{
		name: "input files", submit: "transfer_input_files = a, dir, inside/, link, empty, sparse, tool, secret, dir/sub/b",
		script: sandbox + "test -x tool && ./tool",
		files: map[string]string{
			"a": "a\n", "dir/x": "x\n", "dir/sub/b": "b\n", "dir/sub/none/": "", "dir/in": "->x", "inside/y": "y\n", "inside/z/q": "q\n",
			"link": "->a", "empty": "", "tool": "#!/bin/sh\necho tool\n", "secret": "s\n",
		},
		more: func(c *condor, dir string) {
			modes(map[string]os.FileMode{"secret": 0o600, "dir/x": 0o444, "dir/sub": 0o750})(c, dir)
			sparse(c, filepath.Join(dir, "sparse"), 3<<20)
		},
		says: []string{"(return value 0)"},
	},
	{name: "names with blanks", submit: "transfer_input_files = a file, b'c\ntransfer_output_files = an other", script: sandbox + "cat a\\ file > 'an other'", files: map[string]string{"a file": "x\n", "b'c": "y"}, output: map[string]string{"an other": "x\n"}},
	{name: "relative paths", submit: "preserve_relative_paths = true\ntransfer_input_files = a/b/c, a/d, e\ntransfer_output_files = a/b/out1, e", script: sandbox + "echo 1 > a/b/out1; echo 2 >> e", files: map[string]string{"a/b/c": "c", "a/d": "d", "e": "e\n"}, output: map[string]string{"a/b/out1": "1\n", "e": "e\n2\n"}},
	{name: "same names", submit: "transfer_input_files = a/f, b/f", script: sandbox, files: map[string]string{"a/f": "1\n", "b/f": "2\n"}},
	{name: "not transferred", submit: "executable = /bin/echo\ntransfer_executable = false\narguments = a b", output: map[string]string{"out": "a b\n"}},
	{name: "executable elsewhere", submit: "executable = bin/tool.sh", files: map[string]string{"bin/tool.sh": "#!/bin/sh\necho $0\nls\n"}},
	{name: "not executable", submit: "executable = tool", files: map[string]string{"tool": "#!/bin/sh\necho ran\n"}, more: modes(map[string]os.FileMode{"tool": 0o644}), output: map[string]string{"out": "ran\n"}},
	{name: "large", submit: "transfer_input_files = large\ntransfer_output_files = back", script: "cp large back; cksum back", more: func(c *condor, dir string) { sparse(c, filepath.Join(dir, "large"), 40<<20) }},
	{name: "encrypted", submit: "transfer_input_files = a, b\nencrypt_input_files = a\ndont_encrypt_input_files = b\nencrypt_output_files = c\ndont_encrypt_output_files = d\ntransfer_output_files = c, d", script: "cp a c; cp b d", files: map[string]string{"a": "1\n", "b": "2\n"}, output: map[string]string{"c": "1\n", "d": "2\n"}},
	{name: "over http", submit: "transfer_input_files = @HTTP@/file/x, @HTTP@/file/y", script: "cat x y", output: map[string]string{"out": "the content of x\nthe content of y\n"}},
	// The list is cut at the comma that any such address has: none can be asked for.
	{name: "data in the name", known: "files for failures are sent", knownBefore: &failureFiles, submit: "transfer_input_files = data://text/plain,a%20word/greeting\nskip_filechecks = true", script: "cat greeting", says: []string{"a%20word/greeting", "No such file"}},
	{name: "over http, not there", known: "files for failures are sent", knownBefore: &failureFiles, submit: "transfer_input_files = @HTTP@/none", script: "cat none", want: "021 004 012"},
	{
		name: "plugin of the job", submit: "transfer_plugins = tale=plugin.sh\ntransfer_input_files = tale://once/upon", script: "cat upon",
		files: map[string]string{"plugin.sh": talePlugin}, output: map[string]string{"out": "a tale of tale://once/upon\n"},
	},
	{name: "missing input", known: "files for failures are sent", knownBefore: &failureFiles, submit: "skip_filechecks = true\ntransfer_input_files = nowhere", script: "true", want: "021 004 012"},
	{name: "too much input", submit: "transfer_input_files = big\nmax_transfer_input_mb = 1", script: "true", more: func(c *condor, dir string) { sparse(c, filepath.Join(dir, "big"), 3<<20) }},

	// Output.
	{
		name: "output files", submit: "transfer_input_files = in, kept",
		script: `echo new > new; echo more >> in; : > empty; echo hidden > .hidden; mkdir dir; echo d > dir/f; ln -s new link; ln -s /nowhere broken; ln -s dir dirlink; echo x > tool; chmod 4755 tool; echo y > secret; chmod 600 secret; echo r > ro; chmod 444 ro`,
		files:  map[string]string{"in": "in\n", "kept": "kept\n"}, output: map[string]string{"new": "new\n", "in": "in\nmore\n"},
	},
	{
		name: "output list", submit: "transfer_output_files = a, dir, inside/, link, deep/er/f\ntransfer_output_remaps = \"a=got/b ; f = g\"",
		script: `mkdir -p dir/sub inside/z deep/er; echo a > a; echo f > deep/er/f; echo x > dir/x; echo y > dir/sub/y; ln -s x dir/l; echo q > inside/z/q; echo p > inside/p; ln -s a link; chmod 750 dir/sub; mkdir dir/none; echo no > no`,
		files:  map[string]string{"got/": ""}, output: map[string]string{"got/b": "a\n", "dir/sub/y": "y\n", "p": "p\n", "g": "f\n"},
	},
	{name: "output files and a pipe", since: &noPipes, script: "echo new > new; mkfifo pipe", output: map[string]string{"new": "new\n"}},
	{name: "nothing", submit: "transfer_output_files = \"\"", script: "echo a > a; echo out"},
	{name: "nothing, empty", submit: "transfer_output_files =", script: "echo a > a; echo out"},
	{name: "sparse output", submit: "transfer_output_files = s", script: "truncate -s 5M s; echo end >> s"},
	{name: "missing output", submit: "transfer_output_files = a, nowhere", script: "echo a > a; echo out", want: "001 021 004 012"},
	{name: "missing directory of output", submit: "transfer_output_files = a\ntransfer_output_remaps = \"a=none/a\"", script: "echo a > a"},
	{name: "unreadable output", submit: "transfer_output_files = a", script: "echo a > a; chmod 000 a"},
	{name: "too much output", submit: "transfer_output_files = a\nmax_transfer_output_mb = 1", script: "truncate -s 3M a"},
	{name: "output to a url", submit: "transfer_output_files = a\ntransfer_output_remaps = \"a=@HTTP@/put/a\"", script: "echo a > a"},
	{name: "output destination", submit: "transfer_output_files = a, b\noutput_destination = @HTTP@/put/", script: "echo a > a; echo b > b"},
	{name: "streams", submit: "stream_output = true\nstream_error = true\nstream_input = true\ninput = in", script: "echo one; cat; echo two >&2; echo three", files: map[string]string{"in": "in\n"}, output: map[string]string{"out": "one\nin\nthree\n", "err": "two\n"}},
	{name: "spooled", submit: "transfer_input_files = a, d\ntransfer_output_files = b, e", script: "cat a; cp a b; cp -r d e; ls", files: map[string]string{"a": "a\n", "d/x": "x\n"}, spool: true, output: map[string]string{"out": "a\n_condor_stderr\n_condor_stdout\na\nb\nd\ne\njob.sh\n"}},
	{name: "spooled, all output", submit: "transfer_input_files = a", script: "cat a; cp a b", files: map[string]string{"a": "a\n"}, spool: true},

	// Without file transfer.
	{name: "no transfer", submit: "executable = @DIR@/tool.sh\nshould_transfer_files = NO\ninput = in", files: map[string]string{"tool.sh": "#!/bin/sh\npwd; cat; echo x > made; echo e >&2\n", "in": "in\n"}, want: "001 005"},
	{name: "if needed", submit: "should_transfer_files = IF_NEEDED\nwhen_to_transfer_output = ON_EXIT\nexecutable = @DIR@/tool.sh", files: map[string]string{"tool.sh": "#!/bin/sh\npwd; echo x > made\n"}},
	{
		name: "no transfer, no directory", submit: "executable = /bin/true\ninitialdir = @DIR@/gone\noutput = out\nshould_transfer_files = NO\nhold = true", files: map[string]string{"gone/": ""},
		after: func(j *job) {
			j.side.rig.Must(os.Remove(filepath.Join(j.dir, "gone")))
			j.tool("condor_release", j.id())
		},
	},
	{name: "no transfer, bad streams", submit: "executable = /bin/true\nshould_transfer_files = NO\noutput = /nowhere/out\nskip_filechecks = true"},
	{name: "no transfer, no executable", submit: "executable = @DIR@/gone\ntransfer_executable = false\nshould_transfer_files = NO"},

	// Ends.
	{name: "exit code", submit: "", script: "exit 3", says: []string{"(return value 3)"}},
	{name: "signal", submit: "", script: "kill -KILL $$", says: []string{"Abnormal termination (signal 9)"}},
	{name: "signal and output", submit: "transfer_output_files = a", script: "echo a > a; kill -TERM $$", says: []string{"(signal 15)"}, output: map[string]string{"a": "a\n"}},
	{name: "core", submit: "core_size = 100000000", script: "kill -QUIT $$", says: []string{"(signal 3)"}},
	{name: "bad interpreter", submit: "executable = tool", files: map[string]string{"tool": "#!/nonexistent/interpreter\n"}},
	{name: "not a program", submit: "executable = tool", files: map[string]string{"tool": "\x7fELF nonsense\n"}},
	{name: "children left", submit: "", script: "(sleep 1000 &) ; sleep 1000 & echo done", output: map[string]string{"out": "done\n"}},
	{name: "hold on exit", submit: "on_exit_hold = ExitCode == 4\non_exit_hold_reason = \"as told\"\non_exit_hold_subcode = 77", script: "echo x > made; exit 4", says: []string{"as told", "Code 3 Subcode 77"}},
	{name: "twice", submit: "on_exit_remove = NumJobStarts >= 2", script: "exit 1"},
	{name: "retries", submit: "max_retries = 2", script: "exit 5", says: []string{"(return value 5)"}},
	{name: "success code", submit: "max_retries = 3\nsuccess_exit_code = 7", script: "exit 7", says: []string{"(return value 7)"}},
	{name: "on success", submit: "when_to_transfer_output = ON_SUCCESS\nsuccess_exit_code = 7\ntransfer_output_files = a", script: "echo a > a; exit 7", output: map[string]string{"a": "a\n"}},
	{name: "on success, failed", submit: "when_to_transfer_output = ON_SUCCESS\ntransfer_output_files = a, nowhere", script: "echo a > a; echo out; exit 7", output: map[string]string{"out": "out\n"}},
	{name: "held by the clock", differ: clocked, submit: "periodic_hold = JobStatus == 2 && time() - JobCurrentStartExecutingDate > 0\nperiodic_hold_reason = \"enough\"\nperiodic_hold_subcode = 5", script: "exec sleep 1000", says: []string{"enough"}},
	{name: "removed by the clock", submit: "periodic_remove = JobStatus == 2 && time() - JobCurrentStartExecutingDate > 0", script: "exec sleep 1000"},
	{name: "allowed time", differ: clocked, submit: "allowed_execute_duration = 1", script: "exec sleep 1000", says: []string{"Code 47"}},
	{name: "at a time", submit: "deferral_time = QDate + 5\ndeferral_window = 100", script: "true"},
	{name: "before and after", known: "programs before and after a job are run", knownBefore: &noPrePost, submit: "MY.PreCmd = \"pre.sh\"\nMY.PreArgs = \"x y\"\nMY.PostCmd = \"post.sh\"\ntransfer_input_files = pre.sh, post.sh", script: "cat pre.out", files: map[string]string{"pre.sh": "#!/bin/sh\necho $* > pre.out\n", "post.sh": "#!/bin/sh\necho post > post.out\n"}},
	{
		name: "own checkpoint", submit: "checkpoint_exit_code = 85\ntransfer_checkpoint_files = ckpt\ntransfer_output_files = ckpt, result",
		script: "if [ -f ckpt ]; then echo again >> ckpt; cp ckpt result; exit 0; fi; echo first > ckpt; exit 85", output: map[string]string{"result": "first\nagain\n"},
	},
	{name: "manifest", submit: "manifest = true\nmanifest_dir = told\ntransfer_output_files = a", script: "echo a > a", varies: true},

	// What the job says itself.
	{
		name: "chirp", submit: "MY.WantIOProxy = true\nMY.WantRemoteUpdates = true\nMY.Told = 1",
		script: `chirp=@CHIRP@
$chirp get_job_attr Told; $chirp set_job_attr Told 42; $chirp get_job_attr Told; $chirp get_job_attr Nothing
$chirp ulog "a word from the job"; $chirp set_job_attr_delayed ChirpMine '"later"'
$chirp fetch @DIR@/there here && cat here; echo put > mine; $chirp put mine @DIR@/put; $chirp put -mode cwa mine @DIR@/put2
$chirp remove @DIR@/put2; echo removed $?; $chirp remove @DIR@/nowhere; echo $?
$chirp whoami; $chirp access @DIR@/there rw; echo $?; $chirp access @DIR@/nowhere r; echo $?; $chirp link @DIR@/there @DIR@/hard; $chirp link -s there @DIR@/soft; $chirp readlink @DIR@/soft 100; echo
$chirp truncate @DIR@/hard 3; $chirp chmod @DIR@/put 600; mkdir -p here.d; $chirp getdir @DIR@ | LC_ALL=C sort; $chirp read -offset 1 @DIR@/there 2; echo; $chirp write -offset 1 mine @DIR@/put; $chirp utime @DIR@/there 1 2; $chirp rmdir @DIR@/empty; echo $?; $chirp stat @DIR@/put | grep -c .; $chirp constrain x 2>&1 | head -1`,
		files: map[string]string{"there": "there\n", "empty/": ""},
	},
	{name: "chirp, forbidden", submit: "MY.Told = 1", script: `chirp=@CHIRP@
$chirp set_job_attr Told 42; echo $?; $chirp fetch @DIR@/job.sh here; echo $?; $chirp set_job_attr_delayed ChirpMine 1; echo $?; $chirp ulog no; echo $?; test -r "$_CONDOR_CHIRP_CONFIG"; echo $?`},

	// Many. With 23.9.6 one of the original's hundred sometimes had no final ad
	// within three minutes (two runs of five).
	{name: "a hundred", since: &lts24, submit: "arguments = $(Process)\noutput = out.$(Process)\nerror = /dev/null\ntransfer_input_files = in", queue: "queue 100", script: "cat in; echo $1; exit $(($1 % 5))", files: map[string]string{"in": "in\n"}},
}

// clocked are attributes in which a job differs that schedd and shadow may
// both hold: who is first is a matter of luck.
var clocked = []string{"NumHolds", "NumHoldsByReason", "NumVacates", "NumVacatesByReason"}

// talePlugin is a multi-file plugin.
const talePlugin = `#!/bin/sh
if [ "$1" = -classad ]; then
	echo 'MultipleFileSupport = true'; echo 'PluginType = "FileTransfer"'; echo 'PluginVersion = "1"'; echo 'SupportedMethods = "tale"'
	exit 0
fi
while [ $# -gt 0 ]; do
	case "$1" in -infile) in=$2; shift;; -outfile) out=$2; shift;; esac
	shift
done
url=$(sed -n 's/.*Url *= *"\([^"]*\)".*/\1/p' "$in"); to=$(sed -n 's/.*LocalFileName *= *"\([^"]*\)".*/\1/p' "$in")
echo "a tale of $url" > "$to"
echo "[ TransferUrl = \"$url\"; TransferSuccess = true; TransferFileName = \"$to\"; TransferProtocol = \"tale\"; TransferFileBytes = 10; TransferTotalBytes = 10; TransferType = \"download\"; ]" > "$out"
`
