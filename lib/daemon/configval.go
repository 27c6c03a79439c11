// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
)

// maxQuestion bounds the name of a setting that a peer asks for.
const maxQuestion = 4096

// question reads the payload of both commands.
func question(c *listen.Call) (string, error) {
	name, err := c.Conn.String()
	if err != nil {
		return "", err
	}
	if len(name) > maxQuestion {
		name = name[:maxQuestion]
	}
	return strings.TrimSpace(name), c.Conn.EndOfMessage()
}

// configVal tells a setting, where it comes from and what its default is; or
// names and figures, for a question that begins with '?'.
func (a *Answers) configVal(ctx context.Context, c *listen.Call) error {
	name, err := question(c)
	if err != nil {
		return err
	}
	s := a.Config()
	if strings.HasPrefix(name, "?") {
		return askConfig(ctx, c.Conn, s, name)
	}
	set, ok := s.Lookup(name)
	if !ok || set.Implied {
		c.Conn.PutNull()
		return c.Conn.EndMessage()
	}
	def, hasDefault := s.DefaultText(name)
	if private(set.Name) {
		set.Raw, set.Value, def = hidden, hidden, hidden
	}
	c.Conn.PutString(wireText(set.Value))
	c.Conn.PutString(strings.ToUpper(set.Name) + " = " + wireText(set.Raw))
	c.Conn.PutString(wireText(set.Origin.Location()))
	if hasDefault {
		c.Conn.PutString(wireText(def))
	} else {
		c.Conn.PutNull()
	}
	c.Conn.PutString("1") // it was used just now
	return c.Conn.EndMessage()
}

// oldConfigVal tells a setting and nothing else.
func (a *Answers) oldConfigVal(_ context.Context, c *listen.Call) error {
	name, err := question(c)
	if err != nil {
		return err
	}
	set, ok := a.Config().Lookup(name)
	switch {
	case !ok || set.Value == "":
		c.Conn.PutString("Not defined")
	case private(set.Name):
		c.Conn.PutString(hidden)
	default:
		c.Conn.PutString(wireText(set.Value))
	}
	return c.Conn.EndMessage()
}

// askConfig answers ?names, ?names:pattern and ?stats.
func askConfig(ctx context.Context, conn *cedar.Conn, s *config.Snapshot, q string) error {
	pattern, names := strings.CutPrefix(q, "?names")
	switch {
	case names && (pattern == "" || pattern[0] == ':'):
		pattern = strings.TrimPrefix(pattern, ":")
		if strings.HasPrefix(pattern, ".*|.summary") {
			putSummary(conn, s)
			return conn.EndMessage()
		}
		found, problem := matchingNames(ctx, uniqueNames(s), pattern)
		switch {
		case problem != "":
			conn.PutString("!error:regex:0: " + problem)
		case len(found) == 0:
			conn.PutString("")
		}
		for _, name := range found {
			conn.PutString(name)
		}
	case len(q) > 1 && strings.HasPrefix("?stats", q):
		rows := s.Rows()
		used := 0
		for _, r := range rows {
			if r.Used {
				used++
			}
		}
		conn.PutString(strconv.Itoa(used))
		ad := classad.NewAd()
		ad.SetInt("Macros", int64(len(rows)))
		ad.SetInt("Used", int64(used))
		ad.SetInt("Files", int64(len(s.Sources())))
		conn.PutAd(ad, adOptions)
	default:
		conn.PutString(fmt.Sprintf("!error:unsup:1: '%.100s' is not supported", q))
	}
	return conn.EndMessage()
}

// Bounds of ?names:pattern, which everybody at READ may ask: of the pattern's
// bytes, and of the steps that all names together may take, 50 ms at most.
const (
	maxNamesPattern = 1024
	namesSteps      = 1_000_000
)

// badPattern begins as HTCondor's own answer does.
const badPattern = "error code 1: not a regular expression, or one with back references or look-around, which are not supported"

// nameMatches is how a pattern is tried on a name: with the expressions of
// ClassAds, which read the spelling of PCRE as HTCondor does and pay for it.
var nameMatches = classad.MustParseExpr(`regexp(Pattern, Name, "i")`)

// matchingNames returns the names that a peer's regular expression matches, or
// what is wrong with it.
func matchingNames(ctx context.Context, names []string, pattern string) (found []string, problem string) {
	if pattern == "" {
		return names, ""
	}
	if len(pattern) > maxNamesPattern {
		return nil, fmt.Sprintf("the pattern has %d bytes, and no more than %d are read: ask with a shorter one", len(pattern), maxNamesPattern)
	}
	ad := classad.NewAd()
	ad.SetString("Pattern", pattern)
	budget := classad.NewBudget(namesSteps)
	env := &classad.Env{My: ad, Budget: budget}
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, "the daemon ends"
		}
		ad.SetString("Name", name)
		v := nameMatches.Eval(env)
		switch yes, ok := v.AsBool(); {
		case budget.Spent():
			return nil, fmt.Sprintf("the pattern takes more than %d steps for %d names: ask with a simpler one", namesSteps, len(names))
		case !ok:
			return nil, badPattern
		case yes:
			found = append(found, name)
		}
	}
	return found, ""
}

func uniqueNames(s *config.Snapshot) []string {
	var all []string
	for _, r := range s.Rows() {
		if len(all) == 0 || !strings.EqualFold(all[len(all)-1], r.Name) {
			all = append(all, r.Name)
		}
	}
	return all
}

// putSummary puts the settings that differ from their defaults, with a comment
// wherever another file begins.
func putSummary(conn *cedar.Conn, s *config.Snapshot) {
	conn.PutString("#" + "STARTD")
	last := ""
	for _, r := range s.Rows() {
		if r.Knob >= 0 && r.MatchesDefault || r.Restated || r.Origin.File == "" {
			continue
		}
		if r.Origin.File != last {
			last = r.Origin.File
			conn.PutString("#" + wireText(last))
		}
		conn.PutString(r.Name)
	}
}

const hidden = "<hidden>"

// private reports whether a setting holds a secret itself, and not the name
// of a file that does.
func private(name string) bool {
	name = strings.ToUpper(name)
	for _, suffix := range []string{"_FILE", "_DIRECTORY", "_DIR"} {
		if strings.HasSuffix(name, suffix) {
			return false
		}
	}
	for _, word := range []string{"PASSWORD", "SECRET", "COOKIE", "PRIVATE_KEY"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// wireText drops what a string on the wire cannot hold.
func wireText(s string) string { return strings.ReplaceAll(s, "\x00", "") }

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// adOptions are those of the ads in the commands of this package.
var adOptions = cedar.AdOptions{}
