// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/reach"
)

// section is the part of docs/security.md under a heading.
func section(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("docs/security.md has no section %q", heading)
	}
	part, _, _ = strings.Cut(part, "\n## ")
	return part
}

// rows are the cells of the tables of a section, without headings.
func rows(part string) [][]string {
	var all [][]string
	ruled := false
	for line := range strings.Lines(part) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			ruled = false
		case strings.HasPrefix(line, "|---"):
			ruled = true
		case ruled:
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			all = append(all, cells)
		}
	}
	return all
}

// shown is a command as the page has it, without what it does.
func shown(c listen.Command) string {
	level := c.Level.String()
	for _, l := range c.Alternatives {
		level += " or " + l.String()
	}
	proof := "key"
	switch {
	case c.Authenticated:
		proof = "user"
	case c.Level == security.Allow:
		proof = "none"
	case c.Level == security.Read:
		proof = "policy"
	case c.Empty:
		proof = "address"
	}
	udp := ""
	if c.Datagrams {
		udp = "yes"
	}
	return fmt.Sprintf("%d|%s|%s|%s|%s", c.Number, c.Name, level, proof, udp)
}

// The tables of commands in docs/security.md are those that the daemon and its
// starters answer by, and each says what its command does.
func TestSecurityPageCommands(t *testing.T) {
	t.Parallel()
	startd, err := tableOf(new(pool.Pool), &daemon.Answers{Orders: new(daemon.Orders)}, new(daemon.TokenRequests), new(listen.Reverser), newAskServer())
	if err != nil {
		t.Fatal(err)
	}
	starter, err := listen.NewTable(append(new(reach.CommandSocket).Commands(), new(listen.Reverser).Command())...)
	if err != nil {
		t.Fatal(err)
	}
	answered := map[string][]command.Row{}
	for heading, table := range map[string]*listen.Table{"Commands of condor_startd": startd, "Commands of a starter": starter} {
		var want, got []string
		for _, c := range table.Commands() {
			want = append(want, shown(c))
			answered[heading] = append(answered[heading], c.Row)
		}
		for _, cells := range rows(section(t, heading)) {
			if len(cells) != 6 || cells[5] == "" {
				t.Errorf("%s: the row %q has not six cells with something in the last", heading, cells)
				continue
			}
			got = append(got, strings.Join(cells[:5], "|"))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: the page is not what the table of commands says (-table +page)\n%s", heading, d)
		}
	}
	// Every row of the table is answered, and with the terms that it has.
	want := map[string][]command.Row{"Commands of condor_startd": command.Startd.Rows(), "Commands of a starter": command.Starter.Rows()}
	if d := cmp.Diff(want, answered); d != "" {
		t.Errorf("the daemons do not answer what the table of commands says (-table +daemons)\n%s", d)
	}
	if most := observe.MostRequest; command.AskMessage <= most {
		t.Errorf("a question of %d bytes is no longer taken: the table has %d", most, command.AskMessage)
	}
}

// hardened is the configuration that the page recommends.
func hardened(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(section(t, "A hardened configuration")) {
		if code, ok := strings.CutPrefix(line, "    "); ok {
			b.WriteString(code)
		}
	}
	return b.String()
}

// settingsOf are those of the startd of a configuration.
func settingsOf(t *testing.T, text string) *security.Settings {
	t.Helper()
	s, err := config.Parse("page.conf", text, config.Options{Subsystem: subsystem, Facts: map[string]string{"FULL_HOSTNAME": "node7.pool.example.org"}})
	if err != nil {
		t.Fatal(err)
	}
	settings, err := security.SettingsFrom(s, security.Sources{Subsystem: subsystem})
	if err != nil {
		t.Fatal(err)
	}
	return settings
}

// mostLevels are the levels that somebody has, without those that others of them
// imply.
func mostLevels(s *security.Settings, p security.Peer) string {
	if p.User == security.CollectorSide && !s.Administration {
		return "not given out"
	}
	var all []security.Level
	for _, l := range [...]security.Level{security.Administrator, security.Daemon, security.Negotiator, security.Write, security.Read} {
		demands := s.Policy(l).Authentication == security.Required && p.Method == ""
		if v := s.Authorizer.Allowed(l, security.Asker{Peer: p, Addr: netip.MustParseAddr("192.0.2.7")}); !v.OK || demands {
			continue
		}
		if !slices.ContainsFunc(all, func(has security.Level) bool { return has.Implies(l) }) {
			all = append(all, l)
		}
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Trim(fmt.Sprint(all), "[]")
}

// Who has which level is worked out from the configurations that the page names.
func TestSecurityPageLevels(t *testing.T) {
	t.Parallel()
	peers := []security.Peer{
		{User: security.Unauthenticated},
		{User: "alice@pool.example.org", Method: "IDTOKENS"},
		{User: "condor@pool.example.org", Method: "IDTOKENS"},
		{User: "condor@password", Method: "PASSWORD"},
		{User: "root@pool.example.org", Method: "IDTOKENS"},
		{User: security.SubmitSide, Method: security.MethodMatch},
		{User: security.CollectorSide, Method: security.MethodMatch},
		{User: security.Family, Method: security.MethodFamily},
	}
	const domain = "UID_DOMAIN = pool.example.org\nTRUST_DOMAIN = pool.example.org\n"
	all := []*security.Settings{settingsOf(t, domain), settingsOf(t, domain+"use SECURITY : recommended\n"), settingsOf(t, hardened(t))}
	table := rows(section(t, "Who has which level"))
	if len(table) != len(peers) {
		t.Fatalf("the table has %d rows, want %d: one for each of %v", len(table), len(peers), peers)
	}
	name := regexp.MustCompile("`([^`]+@[^`]+)`")
	for i, p := range peers {
		m := name.FindStringSubmatch(table[i][0])
		if m == nil || m[1] != p.User {
			t.Errorf("row %d is about %q, want %s", i+1, table[i][0], p.User)
		}
		want := []string{table[i][0]}
		for _, s := range all {
			want = append(want, mostLevels(s, p))
		}
		if d := cmp.Diff(want, table[i]); d != "" {
			t.Errorf("(-settings +page)\n%s", d)
		}
	}
}
