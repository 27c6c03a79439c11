// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package root

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/integration/realpool"
)

// Output that a job names by an absolute path is read as its user: what that may
// not read does not come out, nor what only the starter reaches, of its own in
// /proc. Nor does a plugin with the rights of root get it.
func TestOutputElsewhere(t *testing.T) {
	w := newWorldOf(t, func(w *world) {
		// As HTCondor's packages have it, the logs' directory is another user's.
		uid, err := strconv.Atoi(realpool.JobUser(t).Uid)
		w.must(errors.Join(err, os.Chown(filepath.Join(w.ep.Dir, "log"), uid, -1)))
		program := filepath.Join(w.ep.Dir, "tale_plugin")
		w.base += "FILETRANSFER_PLUGINS = " + program + "\n"
		w.must(errors.Join(os.WriteFile(program, []byte(plugin+plugged), 0o755), os.Chmod(program, 0o755),
			os.WriteFile(filepath.Join(w.ep.Dir, "condor_config"), []byte(w.base), 0o644)))
	})
	mine := filepath.Join(w.pool.Dir, "mine")
	w.pool.Write(mine, "of the owner\n", 0o600)
	held := func(name, lines, want string) {
		t.Helper()
		j := w.submit(name, "true\n", lines)
		j.until("Job was held.")
		if log := j.file("log"); !strings.Contains(log, want) || strings.Contains(log, "business") {
			t.Errorf("%s: want %q in the log:\n%s", name, want, log)
		}
		left, err := os.ReadDir(j.dir)
		w.must(err)
		for _, e := range left {
			if b, err := os.ReadFile(filepath.Join(j.dir, e.Name())); err == nil && (strings.Contains(string(b), "business") || strings.Contains(string(b), "CONDOR")) && e.Name() != "log" {
				t.Errorf("%s: %s is %q", name, e.Name(), b)
			}
		}
		j.remove()
	}

	w.round("")
	j := w.submit("mine", "echo one > own\n", "transfer_output_files = own, "+mine)
	j.done()
	if got := j.file("mine"); got != "of the owner\n" {
		t.Errorf("the file elsewhere is %q", got)
	}
	for name, path := range map[string]string{"secret": w.secret, "environ": "/proc/self/environ", "mem": "/proc/self/mem", "maps": "/proc/thread-self/maps"} {
		held(name, "transfer_output_files = "+path, "(errno 13) Permission denied")
	}
	link := filepath.Join(w.pool.Dir, "link")
	w.must(os.Symlink("/proc/self/fd", link))
	held("descriptor", "transfer_output_files = "+link+"/5", "(errno 40)")
	held("device", "transfer_output_files = /dev/null", "(errno 22)")
	remap := "transfer_output_files = " + mine + "\ntransfer_output_remaps = \"" + mine + "=tale://x/got\""
	w.submit("stored", "true\n", remap).done()
	history := filepath.Join(w.ep.Dir, "log", "transfer_history")
	if text, err := os.ReadFile(history); err != nil || !strings.Contains(string(text), "***\n") || !strings.Contains(string(text), `TransferUrl = "tale://x/got"`) || !strings.HasPrefix(of(history), w.owner.Uid+" ") {
		t.Errorf("transfer_history of %s: %v\n%s", of(history), err, text)
	}

	w.round("RUN_FILETRANSFER_PLUGINS_WITH_ROOT = true\n")
	held("rooted", remap, "(errno 1) Operation not permitted")
	w.round("ALLOW_OUTPUT_OUTSIDE_SCRATCH = false\n")
	held("forbidden", "transfer_output_files = "+mine, "(errno 1) Operation not permitted")
	w.idle()
}
