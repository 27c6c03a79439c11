// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// accounts is a machine with these users besides root.
func accounts(names ...string) func(string) (*host.Identity, error) {
	return func(name string) (*host.Identity, error) {
		switch name {
		case "root":
			return nil, errs.E("", errs.Denied, name, errors.New("nothing is run for others as root"))
		case "toor": // an account that should have been refused
			return &host.Identity{Name: name}, nil
		case "wheel":
			return &host.Identity{Name: name, UID: 1099}, nil
		}
		for i, n := range names {
			if n == name {
				return &host.Identity{Name: n, UID: uint32(1000 + i), GID: 100}, nil
			}
		}
		return nil, errs.E("", errs.NotFound, name, errors.New("there is no such user"))
	}
}

func TestRunAs(t *testing.T) {
	t.Parallel()
	const alice = "Owner = \"alice\"\nUser = \"alice@example.org\"\n"
	const domain = "UID_DOMAIN = example.org\n"
	for _, tt := range []struct {
		name, config, job string
		local             bool
		hosts             []string
		want              string // the user, or part of the error
	}{
		{"the submitter, from this machine", domain, alice, true, nil, "alice"},
		{"the submitter, whose machine is in the domain", domain, alice, false, []string{"ap.example.org"}, "alice"},
		{"the domain's own name", domain, alice, false, []string{"Example.org."}, "alice"},
		{"a machine that only ends alike", domain, alice, false, []string{"badexample.org", "ap.example.org.evil.net"}, "nobody"},
		{"a machine without a name", domain, alice, false, nil, "nobody"},
		{"believed without names", domain + "TRUST_UID_DOMAIN = true\n", alice, false, nil, "alice"},
		{"this machine is not believed", domain + "TRUST_LOCAL_UID_DOMAIN = false\n", alice, true, nil, "nobody"},
		{"another domain", "UID_DOMAIN = example.net\nTRUST_UID_DOMAIN = true\n", alice, true, nil, "nobody"},
		{"the job says its domain", domain, alice + "UidDomain = \"example.net\"\n", true, nil, "nobody"},
		{"the job does not want to", domain, alice + "RunAsOwner = false\n", true, nil, "nobody"},
		{"the job wants to", domain, alice + "RunAsOwner = true\n", true, nil, "alice"},
		{"not allowed", domain + "STARTER_ALLOW_RUNAS_OWNER = false\n", alice, true, nil, "nobody"},
		{"allowed for some", domain + "STARTER_ALLOW_RUNAS_OWNER = TARGET.Owner == \"bob\"\n", alice, true, nil, "nobody"},
		{"allowed for this one", domain + "STARTER_ALLOW_RUNAS_OWNER = TARGET.Owner == \"alice\"\n", alice, true, nil, "alice"},
		{"allowed by a number", domain + "STARTER_ALLOW_RUNAS_OWNER = 2 - 1\n", alice, true, nil, "alice"},
		{"the name at the system", domain, alice + "OsUser = \"bob\"\n", true, nil, "bob"},
		{"the user of the slot", domain + "SLOT2_USER = cndrusr2\nSLOT1_USER = cndrusr1\nNOBODY_SLOT_USER = bob\n", alice + "RunAsOwner = false\n", true, nil, "cndrusr2"},
		{"the user of all slots", domain + "SLOT1_USER = cndrusr1\nNOBODY_SLOT_USER = bob\n", alice + "RunAsOwner = false\n", true, nil, "bob"},
		{"the user of the slot is not there", domain + "SLOT2_USER = nouser\n", alice + "RunAsOwner = false\n", true, nil, "no such user"},
		{"unknown here", domain, "Owner = \"carol\"\nUser = \"carol@example.org\"\n", true, nil, "no account here"},
		{"unknown here, softly", domain + "SOFT_UID_DOMAIN = true\n", "Owner = \"carol\"\nUser = \"carol@example.org\"\n", true, nil, "ask for carol"},
		{"softly, and known here", domain + "SOFT_UID_DOMAIN = true\n", alice, true, nil, "alice"},
		{"the group of root", domain, "Owner = \"wheel\"\nUser = \"wheel@example.org\"\n", true, nil, "as root"},
		{"the user of the dynamic slot", domain + "SLOT2_1_USER = bob\nSLOT2_USER = cndrusr2\n", alice + "RunAsOwner = false\n", true, nil, "bob"},
		{"a user for each slot", domain + "NOBODY_SLOT_USER = $(STARTER_SLOT_NAME)\n", alice + "RunAsOwner = false\n", true, nil, "slot2_1"},
		{"a dedicated account", domain + "SLOT2_USER = cndrusr2\nDEDICATED_EXECUTE_ACCOUNT_REGEXP = cndrusr[0-9]+\n", alice + "RunAsOwner = false\n", true, nil, "cndrusr2, dedicated"},
		{"an account that only begins alike", domain + "DEDICATED_EXECUTE_ACCOUNT_REGEXP = al|bob\n", alice, true, nil, "alice"},
		{"all accounts dedicated", domain + "EXECUTE_LOGIN_IS_DEDICATED = true\n", alice, true, nil, "alice, dedicated"},
		{"a pattern that is none", domain + "DEDICATED_EXECUTE_ACCOUNT_REGEXP = al(\n", alice, true, nil, "DEDICATED_EXECUTE_ACCOUNT_REGEXP"},
		{"root", domain, "Owner = \"root\"\nUser = \"root@example.org\"\n", true, nil, "as root"},
		{"root, softly", domain + "SOFT_UID_DOMAIN = true\n", "Owner = \"root\"\nUser = \"root@example.org\"\n", true, nil, "as root"},
		{"another name of root", domain, "Owner = \"toor\"\nUser = \"toor@example.org\"\n", true, nil, "as root"},
		{"root for a slot", domain + "SLOT2_USER = root\n", alice + "RunAsOwner = false\n", true, nil, "nobody"},
		{"another name of root for a slot", domain + "SLOT2_USER = toor\n", alice + "RunAsOwner = false\n", true, nil, "as root"},
		{"a job of nobody", domain, "", true, nil, "nobody"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			snap, err := config.Parse("ep.conf", tt.config, config.Options{})
			if err != nil {
				t.Fatal(err)
			}
			job, err := classad.ParseAd(tt.job, classad.Old)
			if err != nil {
				t.Fatal(err)
			}
			r := runAsFrom(snap, slot.ID{N: 2, Sub: 1}, classad.NewAd(), job)
			r.local, r.hosts = tt.local, tt.hosts
			id, err := r.identity(accounts("alice", "bob", "nobody", "cndrusr1", "cndrusr2", "slot2_1"))
			got := ""
			switch {
			case id.user != nil:
				got = id.user.Name
			case id.ask != "":
				got = "ask for " + id.ask
			}
			if id.dedicated {
				got += ", dedicated"
			}
			switch {
			case err != nil:
				if !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %s", err, tt.want)
				}
			case got != tt.want || id.user != nil && (id.user.UID == 0 || id.user.GID == 0):
				t.Errorf("it runs as %+v (%s), want %s", id.user, got, tt.want)
			}
		})
	}
}

// The embedded access point's jobs are chosen a user by the same rules; whose they
// are is known without a domain, and is not what their ads say.
func TestRunAsHere(t *testing.T) {
	t.Parallel()
	find := accounts("alice", "bob", "nobody", "slot2_1")
	alice, err := find("alice")
	if err != nil {
		t.Fatal(err)
	}
	const forged = "Owner = \"bob\"\nUser = \"bob@x\"\n"
	for _, tt := range []struct {
		name, config, job string
		owner             *host.Identity
		user              string // of the job, or part of the error
		as                string // whose the files are if they are not the job's user's
		all               string // what is told of the jobs before they begin
	}{
		{"a user's", "", forged, alice, "alice", "", "alice"},
		{"a user's, in any domain", "UID_DOMAIN = other.org\nTRUST_LOCAL_UID_DOMAIN = false\n", forged, alice, "alice", "", "alice"},
		{"a user's who does not want to", "NOBODY_SLOT_USER = bob\n", "RunAsOwner = false", alice, "bob", "alice", "bob"},
		{"a user's who may not", "STARTER_ALLOW_RUNAS_OWNER = false\n", forged, alice, "nobody", "alice", "nobody"},
		{"root's", "", "Owner = \"root\"\nRunAsOwner = true\n", nil, "nobody", "root", "nobody"},
		{"root's, with another name in the ad", "UID_DOMAIN = x\n", forged, nil, "nobody", "root", "nobody"},
		{"root's, as the configuration says", "NOBODY_SLOT_USER = bob\n", "", nil, "bob", "root", "bob"},
		{"root's, in a slot with a user", "SLOT2_USER = bob\n", "", nil, "bob", "root", "the users of SLOT<N>_USER and NOBODY_SLOT_USER"},
		{"root's, with a user for each slot", "NOBODY_SLOT_USER = $(STARTER_SLOT_NAME)\n", "", nil, "slot2_1", "root", "the users of SLOT<N>_USER and NOBODY_SLOT_USER"},
		{"root's, with root in the configuration", "NOBODY_SLOT_USER = root\n", "", nil, "nobody", "root", "nobody"},
		{"root's, with another name of root", "NOBODY_SLOT_USER = toor\n", "", nil, "no job runs as root", "", "no job runs as root"},
		{"root's, with the group of root", "NOBODY_SLOT_USER = wheel\n", "", nil, "no job runs as root", "", "no job runs as root"},
		{"root's, with a slot of nobody who is there", "SLOT7_USER = nouser\n", "", nil, "nobody", "root", "SLOT7_USER: "},
		{"root's, with nobody who is there", "NOBODY_SLOT_USER = nouser\n", "", nil, "no such user", "", "no such user"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			snap, err := config.Parse("ep.conf", tt.config, config.Options{})
			if err != nil {
				t.Fatal(err)
			}
			job, err := classad.ParseAd(tt.job, classad.Old)
			if err != nil {
				t.Fatal(err)
			}
			n := &node{o: Options{OwnJobs: OwnJobs{RunAs: tt.owner}, Host: Host{Account: find}}}
			plan := new(protocol.Plan)
			switch err := n.chooseHere(plan, runAsHere(snap, slot.ID{N: 2, Sub: 1}, classad.NewAd(), job, tt.owner), false); {
			case err != nil:
				if !strings.Contains(err.Error(), tt.user) || plan.RunAs != nil {
					t.Errorf("%v, want %s; %+v", err, tt.user, plan.RunAs)
				}
			default:
				as := ""
				if plan.Submit.Own {
					as = "root"
				} else if plan.Submit.As != nil {
					as = plan.Submit.As.Name
				}
				if plan.RunAs.Name != tt.user || plan.RunAs.UID == 0 || as != tt.as {
					t.Errorf("it runs as %+v and its files are %q's, want %s and %q", plan.RunAs, as, tt.user, tt.as)
				}
			}
			names, err := JobUsers(snap, find, tt.owner, []*classad.Ad{job, job})
			if all := strings.Join(names, "+"); err == nil && all != tt.all || err != nil && !strings.Contains(err.Error(), tt.all) {
				t.Errorf("told %q, %v; want %q", all, err, tt.all)
			}
		})
	}
}

// Where the access point is follows from the connection.
func TestPeerOf(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if local, names := peerOf(t.Context(), nc, runAs{}); !local || names != nil {
		t.Errorf("%v %v", local, names)
	}
}
