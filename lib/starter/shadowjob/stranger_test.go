// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// A shadow says which numbers a submitter has that no account here has, but it
// cannot make the job root, or somebody who is known here.
func TestStranger(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		uid, gid int
		want     string // part of the error, "" for none
	}{
		{"somebody", 5001, 5002, ""},
		{"who has an account by now", 1001, 1001, ""},
		{"root", 0, 5002, "as root"},
		{"the group of root", 5001, 0, "group of root"},
		{"nobody at all", -1, -1, "as root"},
		{"a number that wraps to root", 1 << 32, 5002, "as root"},
		{"the number for no change", 1<<32 - 1, 5002, "as root"},
		{"somebody else of this machine", 1002, 5002, "who is condor on this machine"},
		{"a broken list of users", 1003, 5002, "the list is broken"},
		{"a user of the system", 99, 5002, "below 100 are those of the system; SOFT_UID_DOMAIN lets nobody be that"},
		{"the disks", 5001, 6, "below 100 are those of the system; SOFT_UID_DOMAIN lets nobody be that"},
		{"the passwords", 5001, 42, "below 100 are those of the system"},
		{"all users", 5001, 100, ""},
		{"a service here", 5001, 998, "docker is a group of the system on this machine; SOFT_UID_DOMAIN lets nobody be that"},
		{"a service that is not here", 5001, 997, ""},
		{"somebody's group", 5001, 1500, ""},
		{"docker by another number", 5001, 1501, "docker is a group of the system"},
		{"who may be root", 5001, 1502, "wheel is a group of the system"},
		{"a broken list of groups", 5001, 1503, "the list is broken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ours, theirs := cedartest.Pipe()
			defer ours.Close()
			defer theirs.Close()
			sh := shadowtest.New(shadowtest.Job{Ad: classad.NewAd(), UID: tt.uid, GID: tt.gid})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { _, _ = sh.Serve(ctx, cedar.NewConn(theirs, cedar.Limits{Timeout: -1})) }()
			names := func(uid uint32) (string, error) {
				switch uid {
				case 1001:
					return "carol", nil
				case 1002:
					return "condor", nil
				case 1003:
					return "", errs.E("", errs.Broken, "", errors.New("the list is broken"))
				}
				return "", errs.E("", errs.NotFound, "", errors.New("nobody"))
			}
			groups := func(gid uint32) (string, error) {
				if name, ok := map[uint32]string{100: "users", 998: "docker", 1500: "physics", 1501: "docker", 1502: "wheel"}[gid]; ok {
					return name, nil
				}
				if gid == 1503 {
					return "", errs.E("", errs.Broken, "", errors.New("the list is broken"))
				}
				return "", errs.E("", errs.NotFound, "", errors.New("no group"))
			}
			s := &Config{Plan: &protocol.Plan{AskUser: "carol"}, Accounts: job.Accounts{UserName: names, GroupName: groups}}
			got, err := s.stranger(t.Context(), shadow.New(cedar.NewConn(ours, cedar.Limits{}), shadow.Options{}))
			if tt.want == "" {
				if diff := cmp.Diff(&host.Identity{Name: "carol", UID: uint32(tt.uid), GID: uint32(tt.gid)}, got); diff != "" || err != nil {
					t.Errorf("%v (-want +got):\n%s", err, diff)
				}
			} else if err == nil || !strings.Contains(err.Error(), tt.want) || got != nil {
				t.Errorf("%+v, %v, want %s", got, err, tt.want)
			}
		})
	}
}
