// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/errs"
)

// The environment through which condor_master hands things down.
const (
	InheritVariable        = "CONDOR_INHERIT"
	PrivateInheritVariable = "CONDOR_PRIVATE_INHERIT"
	ParentVariable         = "CONDOR_PARENT_ID"
	CookieVariable         = "CONDOR_PRIVATE_SHARED_PORT_COOKIE"
)

// Bounds of what a parent may hand down.
const (
	maxInherit        = 256 << 10 // bytes of either variable
	maxInheritedSocks = 64
	maxDescriptor     = 1 << 20
)

// SocketKind says what sort of socket was handed down.
type SocketKind uint8

// The kinds, with the numbers that CONDOR_INHERIT uses.
const (
	Stream   SocketKind = 1 // TCP
	Datagram SocketKind = 2 // UDP
)

// Socket is an open descriptor of this process that its parent made.
type Socket struct {
	Kind       SocketKind
	Descriptor int
}

// NamedSocket is the listening socket of a shared port endpoint which the
// parent made for its child.
type NamedSocket struct {
	Name       string // where it listens: a path, or for an abstract socket cookie/id
	Descriptor int
}

// ID returns the last part of the name: what stands behind sock= in an
// address.
func (n NamedSocket) ID() string { return n.Name[strings.LastIndexByte(n.Name, '/')+1:] }

// Inherit is what a parent handed down. The zero value belongs to a daemon
// that was not started by a daemon of HTCondor.
type Inherit struct {
	ParentPID     int
	ParentAddress string // sinful text
	Streams       []Socket
	Endpoint      *NamedSocket // nil without shared port
	Commands      []Socket     // command sockets that listen already
	// Parent is the session with the parent alone, Family the one with every
	// daemon under the same condor_master. Nil is none.
	Parent, Family *security.CapabilityID
}

// ParseInherit reads the values of CONDOR_INHERIT and CONDOR_PRIVATE_INHERIT,
// either of which may be empty. Errors never quote the second.
func ParseInherit(inherit, private string) (Inherit, error) {
	var in Inherit
	if err := in.parsePublic(inherit); err != nil {
		return Inherit{}, errs.E("daemon.ParseInherit", errs.Invalid, InheritVariable, err)
	}
	if err := in.parsePrivate(private); err != nil {
		return Inherit{}, errs.E("daemon.ParseInherit", errs.Invalid, PrivateInheritVariable, err)
	}
	return in, nil
}

func (in *Inherit) parsePublic(text string) error {
	if len(text) > maxInherit {
		return fmt.Errorf("%d bytes are too long; at most %d are read", len(text), maxInherit)
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil
	}
	pid, err := strconv.ParseInt(words[0], 10, 32)
	if err != nil || pid < 1 {
		return fmt.Errorf("word 1, the pid of the parent, is %s; want a number above 0", quoteWord(words[0]))
	}
	if len(words) < 2 || !isSinful(words[1]) {
		return fmt.Errorf("word 2, the address of the parent, is %s; want <host:port…>", quoteWord(wordAt(words, 1)))
	}
	in.ParentPID, in.ParentAddress = int(pid), words[1]
	n, err := parseSockets(words, 2, &in.Streams)
	if err != nil {
		return err
	}
	if text, ok := strings.CutPrefix(wordAt(words, n), "SharedPort:"); ok {
		name, rest, ok := strings.Cut(text, "*")
		fd, ferr := parseDescriptor(rest)
		if !ok || name == "" || ferr != nil || strings.HasSuffix(name, "/") {
			return fmt.Errorf("word %d, the shared port endpoint, is %s; want SharedPort:name*descriptor*…", n+1, quoteWord(words[n]))
		}
		in.Endpoint = &NamedSocket{Name: name, Descriptor: fd}
		n++
	}
	_, err = parseSockets(words, n, &in.Commands)
	return err
}

// parseSockets reads pairs of kind and socket up to the word 0, or the end,
// which stands for it, and returns the number of the word behind it.
func parseSockets(words []string, n int, to *[]Socket) (int, error) {
	for ; n < len(words) && words[n] != "0"; n += 2 {
		if words[n] != "1" && words[n] != "2" {
			return n, fmt.Errorf("word %d, the kind of a socket, is %s; want 0, 1 or 2", n+1, quoteWord(words[n]))
		}
		fd, err := parseDescriptor(wordAt(words, n+1))
		if err != nil {
			return n, fmt.Errorf("word %d, a socket, is %s; want descriptor*state*…", n+2, quoteWord(wordAt(words, n+1)))
		}
		if len(*to) == maxInheritedSocks {
			return n, fmt.Errorf("more than %d sockets", maxInheritedSocks)
		}
		*to = append(*to, Socket{Kind: SocketKind(words[n][0] - '0'), Descriptor: fd})
	}
	return n + 1, nil
}

// parseDescriptor reads the first field of a socket that was made a text.
func parseDescriptor(text string) (int, error) {
	first, _, ok := strings.Cut(text, "*")
	if !ok {
		return 0, strconv.ErrSyntax
	}
	fd, err := strconv.ParseInt(first, 10, 32)
	if err != nil || fd < 0 || fd > maxDescriptor {
		return 0, strconv.ErrRange
	}
	return int(fd), nil
}

func (in *Inherit) parsePrivate(text string) error {
	if len(text) > maxInherit {
		return fmt.Errorf("%d bytes are too long; at most %d are read", len(text), maxInherit)
	}
	for n, word := range strings.Fields(text) {
		to := &in.Parent
		rest, ok := strings.CutPrefix(word, "SessionKey:")
		if !ok {
			to = &in.Family
			rest, ok = strings.CutPrefix(word, "FamilySessionKey:")
		}
		if !ok {
			continue // a newer parent hands down more
		}
		id, err := security.ParseCapabilityID(rest)
		if err != nil {
			return fmt.Errorf("word %d: %w", n+1, err)
		}
		*to = &id
	}
	return nil
}

// Scrub returns env without what a parent handed down: jobs and hooks must not
// see it. env is not changed.
func Scrub(env []string) []string {
	out := make([]string, 0, len(env))
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case InheritVariable, PrivateInheritVariable, ParentVariable, CookieVariable, notifyVariable, watchdogVariable, watchdogPIDVariable:
		default:
			out = append(out, v)
		}
	}
	return out
}

func isSinful(s string) bool {
	return len(s) > 2 && s[0] == '<' && s[len(s)-1] == '>'
}

func wordAt(words []string, n int) string {
	if n < len(words) {
		return words[n]
	}
	return ""
}

// quoteWord shows a word that was not understood, shortened. Words of sockets
// may end in a session key, which must not be shown.
func quoteWord(w string) string {
	if w == "" {
		return "missing"
	}
	if i := strings.IndexByte(w, '*'); i >= 0 {
		w = w[:i] + "*…"
	}
	if len(w) > 40 {
		w = w[:40] + "…"
	}
	return strconv.Quote(w)
}
