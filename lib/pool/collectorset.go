// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// DaemonAd says when the ad of the daemon as a whole is sent
// (ENABLE_STARTD_DAEMON_AD).
type DaemonAd uint8

const (
	DaemonAdNever  DaemonAd = iota
	DaemonAdAlways          // to every collector
	DaemonAdAuto            // to collectors that know it: 23.2 and later
)

// Settings are what a configuration says about the pool.
type Settings struct {
	Collectors []Collector
	DaemonAd   DaemonAd
	// Pause is the longest pause between two attempts to reach a collector.
	Pause time.Duration
	// Files say where daemons of this machine are.
	Files AddressFiles
	// Attached is the access point that has this EP to itself, "" if none.
	Attached string
	// Attach says to whom slots are offered without a negotiator.
	Attach Attach
	// Rehome is what the owner says about moving by command.
	Rehome Rehome
	// WholeClaims says that a partitionable slot may be claimed as a whole.
	WholeClaims bool
	// Datagrams says that updates go by UDP to the collectors that take them
	// so (UPDATE_COLLECTOR_WITH_TCP is false), but for those that Streams names
	// (TCP_UPDATE_COLLECTORS; '*' stands for anything).
	Datagrams bool
	Streams   []string
	// PrivateNetwork is the network whose members reach us privately.
	PrivateNetwork string
	// Administration says that those may administrate us whom the collector
	// lets (SEC_ENABLE_REMOTE_ADMINISTRATION).
	Administration bool
	// Host is the name of this machine, for those who read requests of ours.
	Host string
	// TokenUser is whose token is requested of a collector that refuses us,
	// "" without UID_DOMAIN.
	TokenUser string
	// MatchSessions says that claim ids carry their sessions.
	MatchSessions bool
	// ClearClaims has claim ids sent in clear where a connection does not
	// encrypt; see clearClaims.
	ClearClaims bool
}

// Collector is one entry of COLLECTOR_HOST.
type Collector struct {
	Text string // as it is configured
	At   cedar.Sinful
}

// SettingsFrom reads the settings. The error names everything that is wrong.
func SettingsFrom(c *config.Snapshot) (Settings, error) {
	var s Settings
	var bad []error
	port, err := c.Int("COLLECTOR_PORT")
	bad = append(bad, err)
	seen := make(map[string]bool)
	for _, text := range c.List("COLLECTOR_HOST") {
		at, err := ParseCollector(text, int(port))
		if err != nil {
			bad = append(bad, err)
			continue
		}
		if name := at.String(); !seen[name] {
			seen[name] = true
			s.Collectors = append(s.Collectors, Collector{Text: text, At: at})
		}
	}
	switch text := strings.ToLower(c.String("ENABLE_STARTD_DAEMON_AD")); {
	case text == "auto" || text == "":
		s.DaemonAd = DaemonAdAuto
	default:
		on, err := c.Bool("ENABLE_STARTD_DAEMON_AD")
		if err != nil {
			bad = append(bad, errs.E("pool.SettingsFrom", errs.Invalid, "ENABLE_STARTD_DAEMON_AD",
				fmt.Errorf("%q is neither true, false nor auto", c.String("ENABLE_STARTD_DAEMON_AD"))))
		}
		if on {
			s.DaemonAd = DaemonAdAlways
		}
	}
	interval, err := c.Duration("UPDATE_INTERVAL")
	bad = append(bad, err)
	avoid, err := c.Duration("DEAD_COLLECTOR_MAX_AVOIDANCE_TIME")
	bad = append(bad, err)
	s.Pause = max(min(interval, avoid), firstPause)
	s.Files = AddressFilesFrom(c)
	s.Attached = c.String("STARTD_DIRECT_ATTACH_SCHEDD_NAME")
	s.Attach, err = attachFrom(c)
	bad = append(bad, err)
	s.Rehome, err = rehomeFrom(c)
	bad = append(bad, err)
	s.WholeClaims, err = c.Bool("ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS")
	bad = append(bad, err)
	tcp, err := c.Bool("UPDATE_COLLECTOR_WITH_TCP")
	s.Datagrams = err == nil && !tcp
	s.Streams = c.List("TCP_UPDATE_COLLECTORS")
	bad = append(bad, err)
	s.Host = c.String("FULL_HOSTNAME")
	if domain := c.String("UID_DOMAIN"); domain != "" {
		s.TokenUser = "condor@" + domain
	}
	s.PrivateNetwork = c.String("PRIVATE_NETWORK_NAME")
	s.Administration, err = c.Bool("SEC_ENABLE_REMOTE_ADMINISTRATION")
	bad = append(bad, err)
	s.MatchSessions, err = c.Bool("SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION")
	bad = append(bad, err)
	s.ClearClaims = clearClaims(c)
	return s, errors.Join(bad...)
}

// datagrams reports whether a collector is to be told by UDP.
func (s *Settings) datagrams(c Collector) bool {
	return s.Datagrams && !slices.ContainsFunc(s.Streams, func(p string) bool {
		return fits(p, c.Text) || fits(p, c.At.Host) || fits(p, c.At.HostPort())
	})
}

// fits reports whether a text is that of a pattern whose '*' stand for
// anything, whatever the case of letters.
func fits(pattern, text string) bool {
	parts := strings.Split(strings.ToLower(pattern), "*")
	rest, ok := strings.CutPrefix(strings.ToLower(text), parts[0])
	if !ok || len(parts) == 1 {
		return ok && rest == ""
	}
	last := len(parts) - 1
	for _, p := range parts[1:last] {
		at := strings.Index(rest, p)
		if at < 0 {
			return false
		}
		rest = rest[at+len(p):]
	}
	return strings.HasSuffix(rest, parts[last])
}

// ParseCollector reads an entry of COLLECTOR_HOST: a host, host:port,
// host:port?parameters or a whole sinful. port is where a collector is that
// names none.
func ParseCollector(text string, port int) (cedar.Sinful, error) {
	bad := func(why string) (cedar.Sinful, error) {
		return cedar.Sinful{}, errs.E("pool.ParseCollector", errs.Invalid, "COLLECTOR_HOST", fmt.Errorf("%q: %s; want host, host:port or <host:port?…>", text, why))
	}
	if strings.HasPrefix(text, "<") {
		at, err := cedar.ParseSinful(text)
		if err != nil {
			return bad(err.Error())
		}
		if at.Port == cedar.NoPort {
			at.Port = port
		}
		return at, nil
	}
	hostport, params, more := strings.Cut(text, "?")
	host, number := hostport, strconv.Itoa(port)
	if rest, ok := strings.CutPrefix(hostport, "["); ok {
		inner, tail, ok := strings.Cut(rest, "]")
		if !ok {
			return bad("the bracket is not closed")
		}
		host = inner
		if tail != "" {
			if number, ok = strings.CutPrefix(tail, ":"); !ok {
				return bad("what follows the bracket is no port")
			}
		}
	} else if strings.Count(hostport, ":") == 1 {
		host, number, _ = strings.Cut(hostport, ":")
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n > 65535 {
		return bad("the port is no number from 0 to 65535")
	}
	if host == "" {
		return bad("there is no host")
	}
	if strings.ContainsAny(host, " \t<>[]@#/") {
		return bad("the host cannot be one")
	}
	// What is no address for others is none here.
	address := strings.TrimSuffix(cedar.Sinful{Host: host, Port: n}.String(), ">")
	if more {
		address += "?" + params
	}
	at, err := cedar.ParseSinful(address + ">")
	if err != nil {
		return bad(err.Error())
	}
	return at, nil
}
