// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package root

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/integration/realpool"
)

// stay keeps a job running, where the test finds it, until the test lets it go.
const stay = `: > here-$1; while [ ! -e go ]; do sleep 0.1; done
`

// A job cannot have root send it what it cannot read.
func TestNoSecretLeaves(t *testing.T) {
	w := newWorld(t)
	w.round("")
	for _, tt := range []struct {
		name string
		lay  func(path string) error
	}{
		{"soft", func(path string) error { return os.Symlink(w.secret, path) }},
		{"hard", func(path string) error { return os.Link(w.secret, path) }}, // as where hard links are not protected
		{"climbing", func(path string) error { return os.Symlink("../../../../../secret", path) }},
	} {
		j := w.submit(tt.name, strings.ReplaceAll(stay, "$1", tt.name+"1"), "transfer_output_files = result")
		dir := j.scratch()
		w.must(tt.lay(filepath.Join(dir, "result")))
		if out, err := w.pool.Run(t.Context(), "condor_tail", "-no-auto-retry", j.id, "result"); strings.Contains(out, "business") {
			t.Errorf("%s: condor_tail shows %q, %v", tt.name, out, err)
		}
		w.must(os.WriteFile(filepath.Join(dir, "go"), nil, 0o644))
		j.until("Job was held.")
		if got := j.file("result"); strings.Contains(got, "business") {
			t.Errorf("%s: the result is %q", tt.name, got)
		}
		if log := j.file("log"); !strings.Contains(log, "result: ") || strings.Contains(log, "business") {
			t.Errorf("%s: the log says\n%s", tt.name, log)
		}
		j.remove()
	}
	if b, err := os.ReadFile(w.secret); err != nil || string(b) != secretText || of(w.secret) != "0 -rw-------" {
		t.Errorf("the secret is %q of %s, %v", b, of(w.secret), err)
	}
	w.idle()
}

// snoop tries what is in the sandboxes of others.
const snoop = `cd ../..
for f in dir_*/scratch/in dir_*/scratch/here-* dir_*/user/.chirp.config dir_*/htcondor/new; do
	case $f in $(basename $(dirname $PWD))*) continue;; esac
	cat $f 2>/dev/null && echo "READ $f"
	(echo x >> $f) 2>/dev/null && echo "WROTE $f"
done
ls dir_*/user dir_*/scratch 2>/dev/null | grep -c here-victim
kill -9 -1 2>/dev/null
true
`

// A job of one user reaches neither the files nor the processes of a job of
// another.
func TestSandboxesAreApart(t *testing.T) {
	w := newWorld(t)
	w.round("")
	victim := w.submit("victim", strings.ReplaceAll(stay, "$1", "victim1"), "")
	dir := victim.scratch()
	spy := w.submit("spy", "cd $_CONDOR_SCRATCH_DIR\n"+strings.Replace(snoop, "kill -9 -1", "pkill -9 -f here-victim", 1), "+RunAsOwner = false")
	out := spy.done()
	if strings.Contains(out, "dir_") && strings.Contains(out, filepath.Base(filepath.Dir(dir))) || strings.Contains(out, "input of victim") {
		t.Errorf("the spy has\n%s", out)
	}
	if !strings.Contains(out, "input of spy") {
		t.Errorf("the spy could not even read its own files:\n%s%s", out, spy.file("err"))
	}
	w.must(os.WriteFile(filepath.Join(dir, "go"), nil, 0o644))
	victim.done()
	w.idle()
}

// Nothing that a job started outlives it, wherever it hides, and nothing that it
// made keeps its directory from being removed.
func TestNothingIsLeft(t *testing.T) {
	w := newWorld(t)
	w.round("")
	word := fmt.Sprintf("98765%d", os.Getpid()%10000)
	j := w.submit("lurker", `(setsid sh -c '(env -i sleep `+word+`.1 &) ; sleep `+word+`.2' >/dev/null 2>&1 </dev/null &)
(trap '' TERM HUP INT; env -i setsid setsid sleep `+word+`.3 >/dev/null 2>&1 &)
mkdir -p locked/deep; ln -s / locked/deep/root; mkfifo pipe; chmod 0 locked/deep locked
sleep 0.3
`, "transfer_output_files = in")
	j.done()
	w.pool.Eventually("its processes are gone", soon, func(context.Context) error {
		if left := w.processes("sleep\x00" + word); len(left) > 0 {
			return fmt.Errorf("%d are left", left)
		}
		return nil
	})
	w.idle()
}

// plugin begins a plugin for tale://x/got.
const plugin = `#!/bin/sh
if [ "$1" = -classad ]; then
	echo 'MultipleFileSupport = true'; echo 'PluginType = "FileTransfer"'; echo 'SupportedMethods = "tale"'; echo 'ProtocolVersion = 2'
	exit
fi
while [ $# -gt 0 ]; do case $1 in -outfile) out=$2; shift;; esac; shift; done
`

// plugged is its end.
const plugged = `echo "plugin $(id -u) $(id -G) eff $(grep -c '^CapEff.*[1-9a-f]' /proc/self/status)" > got
echo '[ TransferSuccess = true; TransferUrl = "tale://x/got"; TransferProtocol = "tale"; TransferTotalBytes = 1; ]' > $out
`

// Plugins of the machine's owner run as the job's user, or as root if he wants;
// what they bring is the user's.
func TestPluginOfTheOwner(t *testing.T) {
	w := newWorldOf(t, func(w *world) {
		program := filepath.Join(w.ep.Dir, "tale_plugin")
		w.base += "FILETRANSFER_PLUGINS = " + program + "\n"
		w.must(errors.Join(os.WriteFile(program, []byte(plugin+plugged), 0o755), os.Chmod(program, 0o755),
			os.WriteFile(filepath.Join(w.ep.Dir, "condor_config"), []byte(w.base), 0o644)))
	})
	for settings, uid := range map[string]string{"": w.owner.Uid, "RUN_FILETRANSFER_PLUGINS_WITH_ROOT = true\n": "0"} {
		w.round(settings)
		own := filepath.Join(w.jobs, fmt.Sprintf("plugin%d", w.rounds))
		w.pool.Write(own, strings.ReplaceAll(plugin+plugged, "tale", "saga"), 0o755)
		out := w.submit("fetched", "cat got; stat -c 'of %u' got; echo more >> got && tail -n 1 got\n", "transfer_input_files = in, tale://x/got").done()
		if want := "plugin " + uid + " "; !strings.HasPrefix(out, want) || !strings.HasSuffix(out, "of "+w.owner.Uid+"\nmore\n") {
			t.Errorf("%q: want %q in\n%s", settings, want, out)
		}
		out = w.submit("own", "cat got\n", "transfer_plugins = saga="+own+"\ntransfer_input_files = in, saga://x/got").done()
		if want := "plugin " + w.owner.Uid + " "; !strings.HasPrefix(out, want) {
			t.Errorf("%q: the job's own plugin: want %q in\n%s", settings, want, out)
		}
	}
	w.idle()
}

// The plugin of a job runs as its user, and cannot lead the starter to write
// elsewhere what comes after it.
func TestPluginOfAJob(t *testing.T) {
	w := newWorld(t)
	w.round("")
	victim := w.submit("victim", strings.ReplaceAll(stay, "$1", "victim1"), "")
	dir := victim.scratch()
	target := filepath.Join(filepath.Dir(dir), "htcondor", "starter.record")
	var before []byte
	w.pool.Eventually("the record names the job", realpool.Patience, func(context.Context) error {
		var err error
		if before, err = os.ReadFile(target); err == nil && !strings.Contains(string(before), `"job":`) {
			err = fmt.Errorf("it is %q", before) // the job runs before it is in there
		}
		return err
	})
	j := w.submit("plugged", "id -u; cat got; ls -l\n", "")
	w.pool.Write(filepath.Join(j.dir, "plugin"), plugin+`ln -s `+filepath.Join("..", "..", filepath.Base(filepath.Dir(dir)), "htcondor", "starter.record")+` ../user/.chirp.config
ln -s ../../`+filepath.Base(filepath.Dir(dir))+`/htcondor/starter.record .job.ad
`+plugged, 0o755)
	j.remove()
	k := w.submit("plug", "id -u; cat got; ls -l\n", "transfer_plugins = tale="+filepath.Join(j.dir, "plugin")+"\ntransfer_input_files = in, tale://x/got")
	out := k.done()
	if want := fmt.Sprintf("plugin %s ", w.owner.Uid); !strings.Contains(out, want) || !strings.Contains(out, "eff 0") {
		t.Errorf("want %q in\n%s", want, out)
	}
	after, err := os.ReadFile(target)
	w.must(err)
	if string(after) != string(before) {
		t.Errorf("the record of another sandbox is now %q", after)
	}
	w.must(os.WriteFile(filepath.Join(dir, "go"), nil, 0o644))
	victim.done()
	w.idle()
}

// A program and files that its user cannot reach are not reached for it.
func TestWhatTheUserCannotReach(t *testing.T) {
	w := newWorld(t)
	w.round("")
	program := filepath.Join(w.pool.Dir, "program")
	w.must(errors.Join(os.WriteFile(program, []byte("#!/bin/sh\nid -u\n"), 0o700), os.Chmod(program, 0o700)))
	for _, tt := range []struct{ name, lines string }{
		{"program", "+Cmd = \"" + program + "\"\ntransfer_executable = false"},
		{"input", "when_to_transfer_output =\n+In = \"" + w.secret + "\"\ntransfer_input_files =\nshould_transfer_files = NO\n+TransferIn = false"},
		{"output", "when_to_transfer_output =\n+Out = \"" + w.secret + "\"\ntransfer_input_files =\nshould_transfer_files = NO\n+TransferOut = false"},
	} {
		j := w.submit(tt.name, "cat\n", tt.lines)
		j.until("Job was held.")
		if log := j.file("log"); !strings.Contains(log, "errno=13") && !strings.Contains(log, "errno 13") || strings.Contains(log, "business") {
			t.Errorf("%s: the log says\n%s", tt.name, log)
		}
		j.remove()
	}
	if b, err := os.ReadFile(w.secret); err != nil || string(b) != secretText {
		t.Errorf("the secret is %q, %v", b, err)
	}
}
