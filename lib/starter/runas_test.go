// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// access notes for whom what was opened, and opens it.
type access struct {
	calls  []string
	closed string // what the user may not reach
}

func (a *access) reach(what string, u *host.Identity, path string) error {
	a.calls = append(a.calls, fmt.Sprintf("%s %s %s", u.Name, what, filepath.Base(path)))
	if a.closed != "" && filepath.Base(path) == a.closed {
		return &fs.PathError{Op: what, Path: path, Err: fs.ErrPermission}
	}
	return nil
}

func (a *access) Enter(u *host.Identity, dir string) error { return a.reach("enters", u, dir) }

func (a *access) Overwrite(u *host.Identity, path string) (*os.File, error) {
	if err := a.reach("writes", u, path); err != nil {
		return nil, err
	}
	return os.Create(path)
}

func (a *access) Append(u *host.Identity, path string) (*os.File, error) {
	if err := a.reach("appends", u, path); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
}

func (a *access) Read(u *host.Identity, path string) (*os.File, error) {
	if err := a.reach("reads", u, path); err != nil {
		return nil, err
	}
	return os.Open(path)
}

func (a *access) Give(u *host.Identity, _ *os.Root, name string) error {
	return a.reach("gets", u, name)
}

// Alone says no of what is closed.
func (a *access) Alone(path string) error {
	if a.closed != "" && filepath.Base(path) == a.closed {
		return fs.ErrPermission
	}
	return nil
}

// As notes nothing: what is done is seen by who does it.
func (a *access) As(_ *host.Identity, f func() error) error { return f() }

// TestRunAs runs a job for another user, where it is.
func TestRunAs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, ad string
		access   *access // nil: the starter cannot do it
		calls    []string
		out, err string // the files that it has
		code     reason.Code
		hold     string // a part of the reason
	}{
		{name: "two files", ad: "Out = \"out\"\nErr = \"err\"\n", access: &access{},
			calls: []string{"boinc enters iwd", "boinc writes out", "boinc writes err"}, out: "out", err: "err"},
		{name: "one file", ad: "Out = \"out\"\nErr = \"out\"\n", access: &access{},
			calls: []string{"boinc enters iwd", "boinc writes out"}, out: "out", err: "out"},
		{name: "files of a checkpoint, one of which is there", ad: "Out = \"in\"\nErr = \"err\"\nWantFTOnCheckpoint = true\n", access: &access{},
			calls: []string{"boinc enters iwd", "boinc appends in", "boinc appends err", "boinc writes err"}, out: "in", err: "err"},
		{name: "a file of others, of a checkpoint", ad: "Out = \"in\"\nWantFTOnCheckpoint = true\n", access: &access{closed: "in"},
			calls: []string{"boinc enters iwd", "boinc appends in"}, code: reason.UnableToOpenOutput, hold: "as standard output"},
		{name: "no file", access: &access{}, calls: []string{"boinc enters iwd"}},
		{name: "a directory of others", access: &access{closed: "iwd"}, calls: []string{"boinc enters iwd"},
			code: reason.IwdError, hold: "Cannot access initial working directory"},
		{name: "a file of others", ad: "Out = \"out\"\nErr = \"err\"\n", access: &access{closed: "err"},
			calls: []string{"boinc enters iwd", "boinc writes out", "boinc writes err"},
			code:  reason.UnableToOpenOutput, hold: "as standard error"},
		{name: "a starter without the rights", code: reason.FailedToCreateProcess, hold: "cannot run programs for other users"},
		{name: "standard input", ad: "In = \"in\"\n", access: &access{}, calls: []string{"boinc enters iwd", "boinc reads in"}},
		{name: "standard input of others", ad: "In = \"in\"\n", access: &access{closed: "in"}, calls: []string{"boinc enters iwd", "boinc reads in"},
			code: reason.UnableToOpenInput, hold: "as standard input"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			iwd := filepath.Join(t.TempDir(), "iwd")
			if err := os.Mkdir(iwd, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(iwd, "in"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			k := newTalk(t, t.TempDir(), func(*hosttest.Process) host.ExitStatus {
				return host.ExitStatus{Exited: true}
			}, func(h *Host) {
				if tt.access != nil {
					h.Access = tt.access
				}
			})
			// One that anybody may give a directory to.
			user := &host.Identity{Name: "boinc", UID: uint32(max(os.Getuid(), 1)), GID: uint32(max(os.Getgid(), 1)), Home: "/var/lib/boinc"}
			k.plan(func(p *protocol.Plan) {
				p.RunAs = user
				p.JobAd = fmt.Sprintf("Cmd = \"/bin/job\"\nIwd = %q\nShouldTransferFiles = \"NO\"\n%s", iwd, tt.ad)
				p.Settings = configured(t, "STARTER_SETS_HOME_ENV = true\n")
			})
			var held *protocol.Hold
			for r := k.report(); r != nil; r = k.report() {
				if e, ok := r.(protocol.Ended); ok {
					held = e.Record.Held
				}
			}
			<-k.status
			if tt.hold == "" {
				spec := k.machine.Families()[0].Spec
				if out, err := base(spec.Stdout), base(spec.Stderr); out != tt.out || err != tt.err || out == err && spec.Stdout != spec.Stderr {
					t.Errorf("it writes to %q and %q", out, err)
				}
				if held != nil || !cmp.Equal(spec.User, user) || spec.Dir != iwd || !strings.Contains(strings.Join(spec.Env, "\n"), "HOME=/var/lib/boinc\n") {
					t.Errorf("held %+v, ran as %+v in %s with %q", held, spec.User, spec.Dir, spec.Env)
				}
			} else if held == nil || held.Code != int(tt.code) || !strings.Contains(held.Reason, tt.hold) || len(k.machine.Families()) != 0 {
				t.Errorf("held %+v, %d were run", held, len(k.machine.Families()))
			}
			if tt.access != nil {
				if diff := cmp.Diff(tt.calls, tt.access.calls); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// Whatever a plan says, a starter that has the rights of root keeps them to
// itself.
func TestNeverAsRoot(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		plan protocol.Plan
		host Host
		ok   bool
	}{
		{"its own user, with a shadow", protocol.Plan{Shadow: &protocol.ShadowSide{}}, Host{}, true},
		{"root, with a shadow", protocol.Plan{Shadow: &protocol.ShadowSide{}}, Host{Accounts: job.Accounts{Access: &access{}}}, false},
		{"root, of the embedded access point", protocol.Plan{}, Host{Accounts: job.Accounts{Access: &access{}}}, false},
		{"a user, with root's files", protocol.Plan{RunAs: &host.Identity{Name: "a", UID: 5, GID: 5}, Submit: protocol.SubmitSide{Own: true}}, Host{Accounts: job.Accounts{Access: &access{}}}, true},
		{"a user, with root's files by name", protocol.Plan{RunAs: &host.Identity{Name: "a", UID: 5, GID: 5}, Submit: protocol.SubmitSide{As: &host.Identity{Name: "b", GID: 5}}}, Host{Accounts: job.Accounts{Access: &access{}}}, false},
		{"a user, with a shadow", protocol.Plan{Shadow: &protocol.ShadowSide{}, RunAs: &host.Identity{Name: "a", UID: 5, GID: 5}}, Host{Accounts: job.Accounts{Access: &access{}}}, true},
		{"a user without the rights", protocol.Plan{RunAs: &host.Identity{Name: "a", UID: 5, GID: 5}}, Host{}, false},
		{"root by name", protocol.Plan{RunAs: &host.Identity{Name: "a", GID: 5}}, Host{Accounts: job.Accounts{Access: &access{}}}, false},
		{"the group of root", protocol.Plan{RunAs: &host.Identity{Name: "a", UID: 5}}, Host{Accounts: job.Accounts{Access: &access{}}}, false},
	} {
		if err := (&activation{plan: &tt.plan, host: tt.host}).canRunAs(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// base names a file, "" for none.
func base(f *os.File) string {
	if f == nil {
		return ""
	}
	return filepath.Base(f.Name())
}

// PrimaryUnixGroup takes one of the user's groups, and the one before stays among
// the others.
func TestPrimaryGroup(t *testing.T) {
	t.Parallel()
	names := map[uint32]string{100: "users", 200: "physics", 300: "chemistry"}
	nameOf := func(gid uint32) (string, error) {
		if name, ok := names[gid]; ok {
			return name, nil
		}
		return "", fs.ErrNotExist
	}
	u := &host.Identity{Name: "ann", UID: 1000, GID: 100, Groups: []uint32{7, 200}}
	for _, tt := range []struct {
		job  string
		user *host.Identity
		want string // the group and the others, or a part of the reason
	}{
		{"Owner = \"ann\"", u, "100 [7 200]"},
		{"Owner = \"ann\"\nPrimaryUnixGroup = \"users\"", u, "100 [7 200]"},
		{"Owner = \"ann\"\nPrimaryUnixGroup = \"physics\"", u, "200 [7 100]"},
		{"Owner = \"x\"\nOsUser = \"ann\"\nPrimaryUnixGroup = \"physics\"", u, "200 [7 100]"},
		{"Owner = \"ann\"\nPrimaryUnixGroup = \"chemistry\"", u, "49 Could not install primary unix group chemistry from supplmental groups"},
		{"Owner = \"ann\"\nPrimaryUnixGroup = \"nothing\"", u, "49 Could not install primary unix group nothing"},
		{"Owner = \"bob\"\nPrimaryUnixGroup = \"nothing\"", u, "100 [7 200]"}, // it runs as a user of the slot
		{"Owner = \"ann\"\nPrimaryUnixGroup = \"nothing\"", nil, "nobody"},
	} {
		ad, err := classad.ParseAd(tt.job, classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		a := &activation{host: Host{Accounts: job.Accounts{GroupName: nameOf}}, plan: &protocol.Plan{RunAs: tt.user}, holds: job.Holds{Bare: true}}
		got := "nobody"
		if h := a.primaryGroup(ad); h != nil {
			got = fmt.Sprintf("%d %s", h.Code, h.Reason)
		} else if who := a.plan.RunAs; who != nil {
			got = fmt.Sprintf("%d %v", who.GID, who.Groups)
		}
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%q: %s, want %s", tt.job, got, tt.want)
		}
	}
	if u.GID != 100 || u.Groups[1] != 200 {
		t.Errorf("the user was changed: %+v", u)
	}
}
