// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package root

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCommonFiles has root map files that jobs share: they are links to what the data
// slot holds, with the rights of the job's user, and a job of another user can neither
// read nor link them. Where slots have users of their own each job brings them itself.
func TestCommonFiles(t *testing.T) {
	w := newWorld(t)
	share := func(name string) string {
		path := filepath.Join(w.jobs, name)
		w.pool.Write(path, "shared by jobs\n", 0o644)
		return `MY.CommonInputCatalogs = "A"` + "\n" + `MY._x_catalog_A = "` + path + `"`
	}
	const look = "cat common; cat in; stat -c '%u %h %a' common; rm -f common && echo removed\n"
	const pry = `cd $_CONDOR_SCRATCH_DIR/../..
ls dir_*/scratch/staging dir_*/scratch 2>/dev/null | grep common
cat dir_*/scratch/staging/*/common dir_*/scratch/common 2>/dev/null
for f in dir_*/scratch/staging/*/common; do ln $f $_CONDOR_SCRATCH_DIR/linked && echo linked; done
ls -d dir_*
`
	w.round("")
	user := w.submit("user", look+strings.ReplaceAll(stay, "$1", "user1"), share("common"))
	dir := user.scratch()
	spy := w.submit("spy", pry, "+RunAsOwner = false")
	if out := spy.done(); strings.Contains(out, "shared") || strings.Contains(out, "linked") || strings.Contains(out, "common") || strings.Count(out, "dir_") < 3 {
		t.Errorf("another user has\n%s", out)
	}
	w.must(os.WriteFile(filepath.Join(dir, "go"), nil, 0o644))
	if out, want := user.done(), "^shared by jobs\ninput of user\n"+w.owner.Uid+" [2-9] 444\nremoved\n"; !regexp.MustCompile(want).MatchString(out) {
		t.Errorf("it saw\n%swant %q", out, want)
	}
	w.idle()

	w.round("UID_DOMAIN = elsewhere.test\nSLOT1_1_USER = " + slotUser + "\nSLOT1_2_USER = nobody\n")
	alone := w.submit("alone", look, share("common"))
	if out, want := alone.done(), "^shared by jobs\ninput of alone\n"+w.uid(slotUser)+" 1 644\nremoved\n$"; !regexp.MustCompile(want).MatchString(out) {
		t.Errorf("in a slot with a user of its own it saw\n%swant %q", out, want)
	}
	w.idle()
}
