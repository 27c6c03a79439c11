// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"strings"
	"sync"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
)

// Rootless is how a program contains jobs that has not the rights of root.
type Rootless struct {
	// Users says why starters cannot have a user namespace in which they give jobs
	// mounts, process numbers and a network of their own; nil is that they can. It finds
	// out by doing, and is called once.
	Users func() error
	// Memory says why the memory of jobs cannot be limited by control groups at a place.
	Memory func(host.GroupPlace) error
}

// attrNotContained is an attribute of the slots of an Execution Point that is not
// root's: what jobs there are not kept from, as a list of the words below. It is not
// HTCondor's, which says nothing.
const attrNotContained = "ExecpointNotContained"

// containment is what comes of the rights of this program and of one configuration.
type containment struct {
	users bool // starters begin in a user namespace
	not   []uncontained
}

// uncontained is one thing that jobs are not kept from.
type uncontained struct {
	word  string // in the attribute
	what  string
	why   string
	asked bool // the owner wants it, and does not get it
}

func (u uncontained) String() string {
	if u.why == "" {
		return u.word + ": " + u.what
	}
	return fmt.Sprintf("%s: %s (%s)", u.word, u.what, u.why)
}

// advertise puts it into a machine's ad.
func (c *containment) advertise(ad *classad.Ad) {
	words := make([]string, len(c.not))
	for i, u := range c.not {
		words[i] = u.word
	}
	ad.Delete(attrNotContained)
	if len(words) > 0 {
		ad.SetString(attrNotContained, strings.Join(words, ","))
	}
}

// triedUsers is Rootless.Users, asked at the first time.
type triedUsers struct {
	once sync.Once
	err  error
}

func (t *triedUsers) ask(r *Rootless) error {
	t.once.Do(func() { t.err = r.Users() })
	return t.err
}

// notAsked is why jobs share what they could have of their own.
const notAsked = "PER_JOB_NAMESPACES = True has jobs get their own by a user namespace, in which programs that change the user, as sudo and ping, do not work"

// containmentOf finds out what jobs are kept from under these settings. It is called
// beside the owner, as it asks the system.
func (n *node) containmentOf(all *starterSettings) (c containment) {
	r := n.o.Host.Rootless
	if r == nil {
		return c
	}
	c.not = append(c.not, uncontained{word: "Accounts", what: "a job runs as the user of this Execution Point, and reads and writes that user's files and those of other jobs"})
	asked, network := all.any.settings.Space.Asked, all.any.settings.Space.NoNetwork
	for _, of := range all.byType {
		asked, network = asked || of.settings.Space.Asked, network || of.settings.Space.NoNetwork
	}
	cannot := n.starter.users.ask(r)
	c.users = asked && cannot == nil
	if !c.users {
		why := notAsked
		if cannot != nil {
			why = cannot.Error()
		}
		c.not = append(c.not,
			uncontained{"Mounts", "jobs share /tmp, /var/tmp and /dev/shm with all of the machine", why, asked},
			uncontained{"Processes", "a job sees the processes of the machine, and what it leaves is found by descent and environment alone", why, asked},
			uncontained{"Network", "a job has the network of the machine; with NO_JOB_NETWORKING none starts", why, network})
	}
	place := host.GroupPlace{Base: all.any.settings.Cgroup, Delegated: all.any.settings.Delegated}
	if err := r.Memory(place); err != nil {
		c.not = append(c.not, uncontained{"Memory", "the memory of a job is not limited", err.Error(), place.Delegated})
	}
	return c
}

// tellUncontained logs what is not contained, where that is not what was said before.
// It is a warning where the owner wants it.
func (n *node) tellUncontained(before, now *starterSettings) {
	said := map[string]bool{}
	if before != nil {
		for _, u := range before.contain.not {
			said[u.String()] = true
		}
	}
	for _, u := range now.contain.not {
		switch {
		case said[u.String()]:
		case u.asked:
			n.o.Log.Warn("not contained: " + u.String())
		default:
			n.o.Log.Info("not contained: " + u.String())
		}
	}
	if now.contain.users && (before == nil || !before.contain.users) {
		n.o.Log.Info("starters begin in a user namespace: jobs have mounts, and where they are to, processes and a network of their own")
	}
}
