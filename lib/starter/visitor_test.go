// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"slices"
	"testing"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/runner"
)

// What is started for a visitor has the job's user and limits, whatever was
// asked for, and a mark that neither the job nor another visitor has.
func TestSpawnedForVisitors(t *testing.T) {
	t.Parallel()
	m := hosttest.New()
	for _, path := range []string{"/bin/job", "/usr/sbin/sshd"} {
		m.Install(path, func(*hosttest.Process) host.ExitStatus { return host.ExitStatus{Exited: true} })
	}
	user := &host.Identity{Name: "alice", UID: 1000, GID: 1000}
	ready, err := runner.All(runner.Machine{Spawner: m})[0].Prepare(t.Context(), runner.Task{User: user, Marker: "MARK=job"})
	if err != nil {
		t.Fatal(err)
	}
	a := &activation{host: Host{Spawner: m}, plan: &protocol.Plan{RunAs: user}}
	if a.spawner() != nil {
		t.Error("a visitor of a job that does not run")
	}
	if a.family, err = ready.Start(runner.Program{Path: "/bin/job"}); err != nil {
		t.Fatal(err)
	}
	job := host.Family(m.Families()[0])
	env := []string{"MARK=job"}
	for range 2 {
		if _, err := a.spawner()(host.SpawnSpec{Path: "/usr/sbin/sshd", Env: env, User: &host.Identity{}, Bond: host.Independent}); err != nil {
			t.Fatal(err)
		}
	}
	all := m.Families()
	for _, f := range all[1:] {
		s := f.Spec
		if s.User != user || s.Bond != host.Bound || s.Beside != job || !slices.Contains(s.Env, s.Marker) || s.Marker == "MARK=job" {
			t.Errorf("%+v", s)
		}
	}
	if len(all) != 3 || all[1].Spec.Marker == all[2].Spec.Marker || len(env) != 1 {
		t.Errorf("%d families, marks %q", len(all), all[1].Spec.Marker)
	}
}
