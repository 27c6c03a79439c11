// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
)

// maxQuestion bounds the name of a setting that somebody asks for.
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
func (a *Answers) configVal(_ context.Context, c *listen.Call) error {
	name, err := question(c)
	if err != nil {
		return err
	}
	s := a.Config()
	if strings.HasPrefix(name, "?") {
		return askConfig(c.Conn, s, name)
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
func askConfig(conn *cedar.Conn, s *config.Snapshot, q string) error {
	pattern, names := strings.CutPrefix(q, "?names")
	switch {
	case names && (pattern == "" || pattern[0] == ':'):
		pattern = strings.TrimPrefix(pattern, ":")
		if strings.HasPrefix(pattern, ".*|.summary") {
			putSummary(conn, s)
			return conn.EndMessage()
		}
		re, err := regexp.Compile("(?i)" + pattern)
		if err != nil {
			conn.PutString("!error:regex:0: error code 1")
			return conn.EndMessage()
		}
		any := false
		for _, r := range uniqueNames(s) {
			if re.MatchString(r) {
				conn.PutString(r)
				any = true
			}
		}
		if !any {
			conn.PutString("")
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
