// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package proctext

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
)

// Membership is one line of /proc/<pid>/cgroup: a control group that a process
// lives in.
type Membership struct {
	Controllers []string // empty for version 2
	Path        string
}

// Memberships reads /proc/<pid>/cgroup.
func Memberships(text []byte) ([]Membership, error) {
	var all []Membership
	for line := range bytes.Lines(text) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		// A group's name may have colons in it.
		hierarchy, rest, ok := strings.Cut(string(line), ":")
		controllers, path, also := strings.Cut(rest, ":")
		if _, err := strconv.Atoi(hierarchy); err != nil || !ok || !also {
			return nil, malformed("control group", line)
		}
		m := Membership{Path: path}
		if controllers != "" {
			m.Controllers = strings.Split(controllers, ",")
		}
		all = append(all, m)
	}
	return all, nil
}

// Socket is one line of /proc/net/tcp, tcp6, udp or udp6.
type Socket struct {
	Local netip.AddrPort
	State uint8
	UID   uint32
}

// ParseSocket reads one of these lines, which must not be the first: that names
// the columns. The kernel writes an address in words of 32 bits as the machine has
// them in memory, which is little-endian on every machine that we are built for.
func ParseSocket(line []byte) (s Socket, err error) {
	f := bytes.Fields(line)
	const columns = 8 // up to the user
	if len(f) < columns {
		return s, malformed("socket", line)
	}
	host, port, _ := bytes.Cut(f[1], []byte(":"))
	var ip [16]byte
	n, herr := 0, error(nil)
	if len(host) == 8 || len(host) == 32 {
		n, herr = hex.Decode(ip[:], host)
	}
	for at := 0; at < n; at += 4 {
		binary.BigEndian.PutUint32(ip[at:], binary.LittleEndian.Uint32(ip[at:]))
	}
	addr, ok := netip.AddrFromSlice(ip[:n])
	p, perr := strconv.ParseUint(string(port), 16, 16)
	state, serr := strconv.ParseUint(string(f[3]), 16, 8)
	uid, uerr := strconv.ParseUint(string(f[7]), 10, 32)
	if !ok || herr != nil || perr != nil || serr != nil || uerr != nil {
		return s, malformed("socket", line)
	}
	return Socket{netip.AddrPortFrom(addr, uint16(p)), uint8(state), uint32(uid)}, nil
}
