// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// Collector is one entry of COLLECTOR_HOST.
type Collector struct {
	Text string // as it is configured
	At   cedar.Sinful
}

// CollectorsFrom reads COLLECTOR_HOST, each collector once. The error names every entry
// that is wrong.
func CollectorsFrom(c *config.Snapshot) ([]Collector, error) {
	var all []Collector
	port, err := c.Int("COLLECTOR_PORT")
	bad := []error{err}
	seen := make(map[string]bool)
	for _, text := range c.List("COLLECTOR_HOST") {
		at, err := ParseCollector(text, int(port))
		if err != nil {
			bad = append(bad, err)
			continue
		}
		if name := at.String(); !seen[name] {
			seen[name] = true
			all = append(all, Collector{Text: text, At: at})
		}
	}
	return all, errors.Join(bad...)
}

// ParseCollector reads an entry of COLLECTOR_HOST: a host, host:port,
// host:port?parameters or a whole sinful. port is where a collector is that
// names none.
func ParseCollector(text string, port int) (cedar.Sinful, error) {
	bad := func(why string) (cedar.Sinful, error) {
		return cedar.Sinful{}, errs.E("directory.ParseCollector", errs.Invalid, "COLLECTOR_HOST", fmt.Errorf("%q: %s; want host, host:port or <host:port?…>", text, why))
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
