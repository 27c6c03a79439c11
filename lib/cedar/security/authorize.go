// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// Authorizer decides who may do what, by the ALLOW_ and DENY_ lists of a
// configuration. It is immutable and safe for concurrent use.
type Authorizer struct {
	lists [levels]lists
	local func(netip.Addr) bool
}

// lists are what a configuration has for one level.
type lists struct {
	allow, deny []rule
	// The settings the two came from, for verdicts; "" = no list.
	allowName, denyName string
}

// rule is one entry of a list: a pattern for users and a host or network.
type rule struct {
	text    string // as it was written
	user    string
	also    string // the other name of pool-key holders, "" = none
	net     network
	isNet   bool
	host    string       // a host name or a pattern of one, if not a network
	aliases []netip.Addr // what the host name stands for
}

// Asker is a peer that wants to do something.
type Asker struct {
	Peer Peer
	Addr netip.Addr

	// Names looks up the host names of Addr. It is called at most once for
	// each question, and only if a list has names of hosts that could decide;
	// nil finds none.
	Names func(netip.Addr) []string
}

// Verdict is a decision and what it rests on.
type Verdict struct {
	OK  bool
	Why string // one sentence for the log
}

// Hosts is what a host knows about names and addresses. Either func may be
// nil.
type Hosts struct {
	Lookup func(name string) []netip.Addr // the addresses of a host
	Local  func(netip.Addr) bool          // whether an address is of this host
}

// AccessLists are the ALLOW_ and DENY_ lists of a configuration, level by level.
type AccessLists struct {
	Allow, Deny [levels]AccessList
	// Equivalent is USE_POOL_USERNAME_EQUIVALENT.
	Equivalent bool
}

// AccessList is one list: the setting that it stands in, where that is, and its
// text. Without a name there is no such list.
type AccessList struct {
	Name   string `json:",omitempty"`
	Origin string `json:",omitempty"`
	Text   string `json:",omitempty"`
}

// accessListsFrom reads the lists, ALLOW_<LEVEL>_<SUBSYSTEM>, ALLOW_<LEVEL>, then
// those of the levels it falls back to, and the same with DENY_, and looks whether
// their entries can be read.
func accessListsFrom(c *config.Snapshot, subsystem string) (AccessLists, error) {
	var all AccessLists
	r, err := newReader(c, subsystem)
	if err != nil {
		return all, err
	}
	if all.Equivalent, err = flag(c, "USE_POOL_USERNAME_EQUIVALENT", true); err != nil {
		return all, err
	}
	for l := range levels {
		if l == Allow {
			continue
		}
		for _, f := range []struct {
			pattern, own string
			to           *AccessList
		}{{"ALLOW_%s", "ALLOW_%s_%s", &all.Allow[l]}, {"DENY_%s", "DENY_%s_%s", &all.Deny[l]}} {
			s, ok := r.find(f.pattern, f.own, l)
			if !ok || l == ClientLevel && f.to == &all.Allow[l] && !strings.Contains(strings.ToUpper(s.Name), "ALLOW_CLIENT") {
				continue
			}
			*f.to = AccessList{Name: s.Name, Origin: s.Origin.String(), Text: s.Value}
		}
	}
	if _, err := all.authorizer(Hosts{}); err != nil {
		return AccessLists{}, err
	}
	return all, nil
}

// authorizer looks the names of hosts up, once, which makes an Authorizer of the
// lists.
func (all *AccessLists) authorizer(h Hosts) (*Authorizer, error) {
	a := &Authorizer{local: h.Local}
	looked := map[string][]netip.Addr{}
	for l := range levels {
		for _, f := range []struct {
			from  AccessList
			rules *[]rule
			name  *string
		}{
			{all.Allow[l], &a.lists[l].allow, &a.lists[l].allowName},
			{all.Deny[l], &a.lists[l].deny, &a.lists[l].denyName},
		} {
			if f.from.Name == "" {
				continue
			}
			*f.name = f.from.Name
			var err error
			if *f.rules, err = f.from.rules(all.Equivalent, h.Lookup, looked); err != nil {
				return nil, err
			}
		}
	}
	if client := &a.lists[ClientLevel]; client.allowName == "" {
		// Whom we turn to is trusted unless something is said about it.
		client.allowName, client.allow = "ALLOW_CLIENT", []rule{{text: "*", user: "*", net: network{all: true}, isNet: true}}
	}
	return a, nil
}

// maxRules bounds one list.
const maxRules = 100_000

// bad is the error of a list that cannot be used.
func (l *AccessList) bad(want string) error {
	return errs.E("security.Configure", errs.Invalid, l.Name, fmt.Errorf("%s: %s = %q: %s", l.Origin, l.Name, clip(l.Text), want))
}

func (l *AccessList) rules(equivalent bool, lookup func(string) []netip.Addr, looked map[string][]netip.Addr) ([]rule, error) {
	var all []rule
	for _, entry := range words(l.Text) {
		if len(all) == maxRules {
			return nil, l.bad(fmt.Sprintf("want at most %d entries", maxRules))
		}
		r, why := parseRule(entry)
		if why != "" {
			return nil, l.bad(fmt.Sprintf("entry %q: %s", clip(entry), why))
		}
		if equivalent {
			r.also = poolEquivalent(r.user)
		}
		if lookup != nil && !r.isNet && plainHost(r.host) {
			addrs, ok := looked[r.host]
			if !ok {
				addrs = lookup(r.host)
				looked[r.host] = addrs
			}
			r.aliases = addrs
		}
		all = append(all, r)
	}
	return all, nil
}

// parseRule takes an entry apart: user/host, user@domain, host, user/net/mask
// or net/mask. A */x is a user and a host.
func parseRule(entry string) (r rule, why string) {
	r.text = entry
	if strings.HasPrefix(entry, "+") {
		return r, "netgroups are not supported; name users and hosts instead"
	}
	first, rest, slash := strings.Cut(entry, "/")
	_, isNet := parseNetwork(entry)
	host := ""
	switch {
	case !slash && strings.ContainsRune(entry, '@'):
		r.user, host = entry, "*"
	case !slash:
		r.user, host = "*", entry
	case strings.ContainsRune(rest, '/'), strings.ContainsRune(first, '@'), strings.HasPrefix(entry, "*"):
		r.user, host = first, rest
	case isNet:
		r.user, host = "*", entry
	default:
		r.user, host = first, rest
	}
	if r.user == "" || host == "" {
		return r, "want user@domain/host, user@domain, host or a network"
	}
	if r.net, r.isNet = parseNetwork(host); r.isNet {
		return r, ""
	}
	r.host = host
	if strings.ContainsAny(host, "<>?/") || strings.ContainsRune(host, ':') {
		return r, fmt.Sprintf("%q is no host name, address or network", clip(host))
	}
	return r, ""
}

// plainHost reports whether a host pattern is a name to be looked up.
func plainHost(host string) bool { return host != "" && !strings.ContainsRune(host, '*') }

// poolEquivalent returns the other name by which holders of the pool's key go.
func poolEquivalent(user string) string {
	const a, b = "condor@", "condor_pool@"
	switch {
	case len(user) >= len(a) && strings.EqualFold(user[:len(a)], a):
		return b + user[len(a):]
	case len(user) >= len(b) && strings.EqualFold(user[:len(b)], b):
		return a + user[len(b):]
	}
	return ""
}

func (r *rule) fitsUser(user string) bool {
	return wildcard(r.user, user) || r.also != "" && wildcard(r.also, user)
}

// fitsAddr reports whether the rule's host covers an address by itself.
func (r *rule) fitsAddr(addr netip.Addr, local func(netip.Addr) bool) bool {
	if r.isNet {
		return r.net.contains(addr, local)
	}
	for _, a := range r.aliases {
		if a.Unmap() == addr {
			return true
		}
	}
	return false
}

// Allowed decides whether a peer may act at a level. The limits of the
// session come first, then what comes with a session that was handed over,
// then the lists: DENY wins, an ALLOW list must fit, and a level is granted to
// a peer that has one which implies it.
func (a *Authorizer) Allowed(l Level, who Asker) Verdict {
	if l == Allow {
		return Verdict{OK: true, Why: "ALLOW is open to everyone"}
	}
	if l >= levels {
		return Verdict{Why: "unknown level"}
	}
	if !who.Peer.permits(l) {
		return Verdict{Why: fmt.Sprintf("the session is limited to %s, which does not include %s", limits(who.Peer), l)}
	}
	for _, hole := range who.Peer.holes() {
		if hole.Implies(l) {
			return Verdict{OK: true, Why: fmt.Sprintf("%s comes with the session of %s", l, who.Peer.User)}
		}
	}
	if reserved(who.Peer.User) && len(who.Peer.holes()) == 0 {
		return Verdict{Why: fmt.Sprintf("the name %s is reserved for sessions that are handed over", clip(who.Peer.User))}
	}
	q := question{a: a, who: who, user: who.Peer.User, addr: who.Addr.Unmap().WithZone("")}
	if q.user == "" {
		q.user = Unauthenticated
	}
	return q.allowed(l)
}

// AllowedAny decides by a command's level or any alternative to it, the way a
// command that several levels may give is decided.
func (a *Authorizer) AllowedAny(l Level, alternatives []Level, who Asker) Verdict {
	first := a.Allowed(l, who)
	if first.OK {
		return first
	}
	for _, other := range alternatives {
		if v := a.Allowed(other, who); v.OK {
			return v
		}
	}
	return first
}

func limits(p Peer) string {
	if len(p.Limit) == 0 {
		return "nothing"
	}
	var names []string
	for _, l := range p.Limit {
		names = append(names, l.String())
	}
	return strings.Join(names, ",")
}

// question is one decision under way.
type question struct {
	a     *Authorizer
	who   Asker
	user  string
	addr  netip.Addr
	names []string
	asked bool
}

func (q *question) allowed(l Level) Verdict {
	lists := &q.a.lists[l]
	if r := q.match(lists.deny); r != nil {
		return Verdict{Why: fmt.Sprintf("%s has %s, which fits %s", lists.denyName, r.text, q.describe())}
	}
	if r := q.match(lists.allow); r != nil {
		return Verdict{OK: true, Why: fmt.Sprintf("%s has %s", lists.allowName, r.text)}
	}
	for _, higher := range l.ImpliedBy() {
		if v := q.allowed(higher); v.OK {
			return Verdict{OK: true, Why: fmt.Sprintf("%s implies %s; %s", higher, l, v.Why)}
		}
	}
	if lists.allowName == "" {
		return Verdict{Why: fmt.Sprintf("nothing is set that allows %s to anybody, so not to %s", l, q.describe())}
	}
	return Verdict{Why: fmt.Sprintf("%s has no entry that fits %s", lists.allowName, q.describe())}
}

// match returns the first rule that fits, by address before by name.
func (q *question) match(rules []rule) *rule {
	named := false
	for i := range rules {
		r := &rules[i]
		if !r.fitsUser(q.user) {
			continue
		}
		if r.fitsAddr(q.addr, q.a.local) {
			return r
		}
		named = named || !r.isNet
	}
	if !named {
		return nil
	}
	for _, name := range q.hosts() {
		for i := range rules {
			r := &rules[i]
			if !r.isNet && r.fitsUser(q.user) && wildcard(r.host, name) {
				return r
			}
		}
	}
	return nil
}

func (q *question) hosts() []string {
	if !q.asked && q.who.Names != nil {
		q.names = q.who.Names(q.addr)
	}
	q.asked = true
	return q.names
}

// describe says who asks, for a verdict.
func (q *question) describe() string {
	host := q.addr.String()
	if len(q.names) > 0 {
		host += " (" + clip(strings.Join(q.names, ",")) + ")"
	}
	return clip(q.user) + " from " + host
}

// errDenied is the error of a request that is not allowed.
func errDenied(op, subject, why string) error {
	return errs.E(op, errs.Denied, subject, fmt.Errorf("%s", why))
}
