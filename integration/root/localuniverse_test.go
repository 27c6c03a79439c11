// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package root

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/integration/realpool"
)

// A schedd of root starts our starter with the rights of root: a job of the local
// universe has none of them. It is its owner's, with the files that it makes and its
// event log, and gets nothing of what the schedd handed down.
func TestLocalUniverse(t *testing.T) {
	realpool.NeedRoot(t)
	owner := realpool.JobUser(t)
	t.Setenv("EXECPOINT_TEST_USER", owner.Username)
	w := &world{t: t, owner: owner, pool: realpool.New(t, fmt.Sprintf(
		"USE_SHARED_PORT = True\nDAEMON_LIST = MASTER, COLLECTOR, SCHEDD\nCONDOR_IDS = %s.%s\nSCHEDD_INTERVAL = 2\nPERIODIC_EXPR_INTERVAL = 2\nENABLE_KERNEL_TUNING = False\nSTARTER_LOCAL = $(LOCAL_DIR)/ours/condor_starter\n", owner.Uid, owner.Gid))}
	ours := filepath.Join(w.pool.Dir, "ours")
	w.pool.Mkdir(ours)
	w.pool.Install(ours)
	master := w.pool.NewDaemon(w.pool.Config, "condor_master")
	master.AsRoot = true
	master.Start()
	w.jobs = filepath.Join(w.pool.Dir, "jobs")
	w.pool.Mkdir(w.jobs)
	w.pool.Eventually("the schedd answers", realpool.Patience, func(ctx context.Context) error {
		_, err := w.pool.Run(ctx, "condor_q", "-totals")
		return err
	})
	submit := func(name, script, lines string) *job {
		j := &job{world: w, dir: filepath.Join(w.jobs, name)}
		w.pool.Mkdir(j.dir)
		w.pool.Write(filepath.Join(j.dir, "script"), "#!/bin/sh\n"+script, 0o755)
		w.pool.Write(filepath.Join(j.dir, "submit"), "universe = local\nexecutable = script\noutput = out\nerror = err\nlog = log\n"+lines+"\nqueue\n", 0o644)
		out := w.pool.Submit(j.dir, "-terse", "submit")
		j.id, _, _ = strings.Cut(strings.TrimSpace(out), " ")
		return j
	}
	j := submit("who", `echo "uid $(id -u) $(id -ru) gid $(id -g)"
echo made > made
grep -h '^Cap[EPAI].*[1-9a-f]$' /proc/self/status
grep -il '^claimid' "$_CONDOR_JOB_AD"
env | grep -i '_INHERIT='
`, "")
	gone := submit("gone", "touch ready; sleep 1000\n", "")
	if got, want := j.done(), fmt.Sprintf("uid %s %s gid %s\n", owner.Uid, owner.Uid, owner.Gid); got != want {
		t.Errorf("it printed\n%swant\n%s%s", got, want, j.file("err"))
	}
	for name, want := range map[string]string{"made": owner.Uid + " -rw-r--r--", "out": owner.Uid + " -rw-r--r--"} {
		if got := of(filepath.Join(j.dir, name)); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if got := of(filepath.Join(j.dir, "log")); !strings.HasPrefix(got, owner.Uid+" ") {
		t.Errorf("the event log is %s", got)
	}
	w.pool.Eventually("the other one runs", realpool.Patience, func(context.Context) error {
		_, err := os.Stat(filepath.Join(gone.dir, "ready"))
		return err
	})
	gone.remove()
	w.pool.Eventually("nothing is left in EXECUTE", realpool.Patience, func(context.Context) error {
		left, err := os.ReadDir(filepath.Join(w.pool.Dir, "spool", "local_univ_execute"))
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%v", left)
		}
		return err
	})
}
