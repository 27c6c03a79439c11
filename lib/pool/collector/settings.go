// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool/directory"
)

// DaemonAd says when the ad of the daemon as a whole is sent
// (ENABLE_STARTD_DAEMON_AD).
type DaemonAd uint8

const (
	DaemonAdNever  DaemonAd = iota
	DaemonAdAlways          // to every collector
	DaemonAdAuto            // to collectors that know it: 23.2 and later
)

// Settings are what a configuration says about collectors.
type Settings struct {
	Collectors []directory.Collector
	DaemonAd   DaemonAd
	// Pause is the longest pause between two attempts to reach a collector.
	Pause time.Duration
	// Files say where daemons of this machine are.
	Files directory.AddressFiles
	// Attached is the access point that has this EP to itself, "" if none.
	Attached string
	// Datagrams says that updates go by UDP to the collectors that take them
	// so (UPDATE_COLLECTOR_WITH_TCP is false), but for those that Streams names
	// (TCP_UPDATE_COLLECTORS; '*' stands for anything).
	Datagrams bool
	Streams   []string
	// Administration says that those may administrate us whom the collector
	// lets (SEC_ENABLE_REMOTE_ADMINISTRATION).
	Administration bool
	// Host is the name of this machine, for those who read requests of ours.
	Host string
	// TokenUser is whose token is requested of a collector that refuses us,
	// "" without UID_DOMAIN.
	TokenUser string
	// ClearClaims has claim ids sent in clear where a connection does not
	// encrypt; see ClearClaims.
	ClearClaims bool
}

// SettingsFrom reads the settings. The error names everything that is wrong.
func SettingsFrom(c *config.Snapshot) (Settings, error) {
	var s Settings
	var bad []error
	var err error
	s.Collectors, err = directory.CollectorsFrom(c)
	bad = append(bad, err)
	switch text := strings.ToLower(c.String("ENABLE_STARTD_DAEMON_AD")); {
	case text == "auto" || text == "":
		s.DaemonAd = DaemonAdAuto
	default:
		on, err := c.Bool("ENABLE_STARTD_DAEMON_AD")
		if err != nil {
			bad = append(bad, errs.E("collector.SettingsFrom", errs.Invalid, "ENABLE_STARTD_DAEMON_AD",
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
	s.Files = directory.AddressFilesFrom(c)
	s.Attached = c.String("STARTD_DIRECT_ATTACH_SCHEDD_NAME")
	tcp, err := c.Bool("UPDATE_COLLECTOR_WITH_TCP")
	s.Datagrams = err == nil && !tcp
	s.Streams = c.List("TCP_UPDATE_COLLECTORS")
	bad = append(bad, err)
	s.Host = c.String("FULL_HOSTNAME")
	if domain := c.String("UID_DOMAIN"); domain != "" {
		s.TokenUser = "condor@" + domain
	}
	s.Administration, err = c.Bool("SEC_ENABLE_REMOTE_ADMINISTRATION")
	bad = append(bad, err)
	s.ClearClaims = ClearClaims(c)
	return s, errors.Join(bad...)
}

// datagrams reports whether updates go to a collector over UDP.
func (s *Settings) datagrams(c directory.Collector) bool {
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
