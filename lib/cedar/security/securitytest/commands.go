// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package securitytest tries every command of a daemon in every way in which a
// peer can send it, and compares what becomes of it with a table. It owns the
// ways and the policies; it must never be imported by anything but tests.
package securitytest

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
)

var update = flag.Bool("update-commands", false, "write the tables of commands anew")

// policies are the configurations, in the order of the signs in a cell.
var policies = [...]struct{ name, text string }{
	{"open", everybody},
	{"users", "ALLOW_READ = *\n" + strings.ReplaceAll(acting, "*", member)},
	{"required", everybody + "SEC_DEFAULT_AUTHENTICATION = REQUIRED\nSEC_DEFAULT_ENCRYPTION = REQUIRED\nSEC_DEFAULT_INTEGRITY = REQUIRED\n" +
		"SEC_READ_AUTHENTICATION = OPTIONAL\nSEC_READ_ENCRYPTION = OPTIONAL\nSEC_READ_INTEGRITY = OPTIONAL\n"},
}

const (
	everybody = "ALLOW_READ = *\n" + acting
	acting    = "ALLOW_WRITE = *\nALLOW_DAEMON = *\nALLOW_ADMINISTRATOR = *\nALLOW_CONFIG = *\nALLOW_NEGOTIATOR = *\n" +
		"ALLOW_ADVERTISE_STARTD = *\nALLOW_ADVERTISE_SCHEDD = *\nALLOW_ADVERTISE_MASTER = *\n"
)

// proof is what a way shows of its sender, weakest first.
type proof int

const (
	none    proof = iota // nothing, or what anybody may have seen
	guessed              // an id of 128 random bits and the right address, but no key
	shown                // the key
)

// way is how a command comes.
type way struct {
	name  string
	proof proof
	udp   bool
	// named says that the peer has a name: it was authenticated, or its session
	// was handed over.
	named bool
	try   func(*rig) bool
}

// ways are the columns of the table.
var ways = []way{
	{"bare", none, false, false, (*rig).bare},
	{"new", shown, false, false, func(r *rig) bool { return r.negotiated(false, true) }},
	{"new-user", shown, false, true, func(r *rig) bool { return r.negotiated(true, true) }},
	{"next", shown, false, false, func(r *rig) bool { return r.negotiated(false, false) }},
	{"next-user", shown, false, true, func(r *rig) bool { return r.negotiated(true, false) }},

	{"again", shown, false, false, again(security.Peer{User: security.Unauthenticated}, true, there, key, true)},
	{"again-user", shown, false, true, again(user, true, there, key, true)},
	{"again-unanswered", shown, false, true, again(user, true, there, key, false)},
	{"again-moved", shown, false, true, again(user, true, elsewhere, key, true)},
	{"again-wrong", guessed, false, true, again(user, true, there, other, true)},
	{"again-id", guessed, false, true, again(user, true, there, nil, true)},
	{"again-id-unanswered", guessed, false, true, again(user, true, there, nil, false)},
	{"again-id-moved", none, false, true, again(user, true, elsewhere, nil, true)},

	{"claim", shown, false, true, again(handed(security.SubmitSide), false, there, key, true)},
	{"claim-id", guessed, false, true, again(handed(security.SubmitSide), false, there, nil, true)},
	{"capability", shown, false, true, again(handed(security.CollectorSide), false, there, key, true)},
	{"capability-id", guessed, false, true, again(handed(security.CollectorSide), false, there, nil, true)},
	{"family", shown, false, true, again(family(security.Family), false, here, key, true)},
	{"family-id", guessed, false, true, again(family(security.Family), false, here, nil, true)},
	{"family-far", none, false, true, again(family(security.Family), false, there, key, true)},
	{"parent-id", guessed, false, true, again(family(security.Parent), false, here, nil, true)},
	{"parent-far", none, false, true, again(family(security.Parent), false, there, key, true)},

	{"udp", none, true, false, func(r *rig) bool { return r.datagram("", nil) }},
	{"udp-user", shown, true, true, posted(user, true, there, sealed(key))},
	// Whoever names a session and has made no digest with its key is taken for
	// nobody.
	{"udp-unsealed", none, true, false, posted(user, true, there, hidden)},
	{"udp-wrong", none, true, true, posted(user, true, there, sealed(other))},
	{"udp-id", none, true, false, posted(user, true, there, nil)},
	{"udp-family", shown, true, true, posted(family(security.Family), false, here, sealed(key))},
	// The sessions of the family are for this machine, with and without the key.
	{"udp-family-far", none, true, true, posted(family(security.Family), false, there, sealed(key))},
	{"udp-family-id", none, true, false, posted(family(security.Family), false, here, nil)},
}

var user = security.Peer{User: member, Method: "PASSWORD"}

func handed(name string) security.Peer {
	return security.Peer{User: name, Method: security.MethodMatch}
}
func family(name string) security.Peer {
	return security.Peer{User: name, Method: security.MethodFamily}
}

// again resumes a session of a peer.
func again(p security.Peer, negotiated bool, from netip.AddrPort, k security.Key, answer bool) func(*rig) bool {
	return func(r *rig) bool {
		r.from = from
		r.has("the id", p, negotiated)
		return r.resumed("the id", k, answer)
	}
}

// posted sends a datagram of a session of a peer.
func posted(p security.Peer, negotiated bool, from netip.AddrPort, protect func(*cedar.Datagram)) func(*rig) bool {
	return func(r *rig) bool {
		r.from = from
		r.has("the id", p, negotiated)
		return r.datagram("the id", protect)
	}
}

// hidden encrypts a datagram.
func hidden(m *cedar.Datagram) {
	if err := m.Encrypt(cedar.Blowfish, key[:24], "the id"); err != nil {
		panic(err)
	}
}

// sealed encrypts a datagram and adds its digest.
func sealed(k security.Key) func(*cedar.Datagram) {
	return func(m *cedar.Datagram) {
		hidden(m)
		m.Sign(k, "the id")
	}
}

// Commands tries all commands of a table in all ways under all policies. The
// file has a row for each command and a cell for each way; a cell has a sign
// for each policy: '+' where the command begins and its payload is read, '-'
// where it is refused, and is '.' where the command cannot come that way. A
// command that has no row, or another one, fails the test. Whatever the file
// says, a command above READ must not begin for who has proven too little.
func Commands(t *testing.T, table *listen.Table, file string) {
	t.Helper()
	all := table.Security()
	all[before] = command.Row{Number: before, Name: "BEFORE", Terms: command.Terms{Level: security.Read}}
	var made []policy
	for _, p := range policies {
		made = append(made, newPolicy(t, p.text))
	}
	commands := table.Commands()
	cells := make([][]string, len(commands))
	// The group ends when all of its parallel tests have ended.
	t.Run("commands", func(t *testing.T) {
		for i, cmd := range commands {
			t.Run(cmd.Name, func(t *testing.T) {
				t.Parallel()
				for _, w := range ways {
					cells[i] = append(cells[i], cell(t, made, all, cmd, w))
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", strings.Join(policyNames(), ", "))
	fmt.Fprintf(&b, "command\tlevel\t%s\n", strings.Join(wayNames(), "\t"))
	for i, cmd := range commands {
		fmt.Fprintf(&b, "%d %s\t%s\t%s\n", cmd.Number, cmd.Name, levels(cmd), strings.Join(cells[i], "\t"))
	}
	compare(t, file, b.String())
}

// cell tries a command in one way under each policy.
func cell(t *testing.T, made []policy, all security.Commands, cmd listen.Command, w way) string {
	t.Helper()
	if w.udp && !cmd.Datagrams {
		return "."
	}
	var signs strings.Builder
	for i, p := range policies {
		begun := w.try(newRig(t, made[i], all, cmd))
		if begun {
			if why := forbidden(cmd, w, p.name); why != "" {
				t.Errorf("%s begins %s, policy %s: %s", cmd.Name, w.name, p.name, why)
			}
		}
		signs.WriteByte("-+"[b2i(begun)])
	}
	return signs.String()
}

// forbidden says why a command must not begin, "" if it may.
func forbidden(cmd listen.Command, w way, policy string) string {
	if cmd.Authenticated && !w.named {
		return "the command is for users who are known"
	}
	if cmd.Level == security.Allow || cmd.Level == security.Read {
		return ""
	}
	orAnybody := slices.Contains(cmd.Alternatives, security.Allow)
	switch {
	case w.proof == guessed && !cmd.Empty:
		return "the sender has not shown the key"
	case w.proof == none && w.named:
		return "the sender has shown nothing, and takes a user's name"
	case policy == "required" && !w.named:
		return "the level demands authentication"
	case policy == "users" && !w.named && !orAnybody:
		return "the level is for users"
	}
	return ""
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func policyNames() (names []string) {
	for _, p := range policies {
		names = append(names, p.name)
	}
	return names
}

func wayNames() (names []string) {
	for _, w := range ways {
		names = append(names, w.name)
	}
	return names
}

// levels are what the command demands: its level, or one of the others.
func levels(cmd listen.Command) string {
	text := cmd.Level.String()
	for _, l := range cmd.Alternatives {
		text += "|" + l.String()
	}
	if cmd.Authenticated {
		text += " user"
	}
	if cmd.Empty {
		text += " empty"
	}
	return text
}

// compare holds the table against the file, row by row.
func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := rows(string(b))
	for name, row := range rows(got) {
		switch {
		case want[name] == "":
			t.Errorf("%s has no row for %s. If this is what ought to happen, add\n%s", file, name, row)
		case want[name] != row:
			t.Errorf("%s: %s\n got %s\nwant %s", file, name, row, want[name])
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s has a row for %s, which is no command", file, name)
	}
}

func rows(text string) map[string]string {
	all := map[string]string{}
	for row := range strings.Lines(text) {
		row = strings.TrimSuffix(row, "\n")
		name, _, _ := strings.Cut(row, "\t")
		all[name] = row
	}
	return all
}
