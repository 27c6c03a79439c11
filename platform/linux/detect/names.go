// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/machine/proctext"
)

// names finds out how the machine, its kernel and its distribution are called.
type names struct{ System }

func (names) Name() string { return "names" }

func (n names) Scan(_ context.Context, inv *machine.Inventory) error {
	n.distribution(inv)
	return errors.Join(n.kernel(inv), n.uptime(inv), n.addresses(inv))
}

func (n names) kernel(inv *machine.Inventory) error {
	var u unix.Utsname
	if err := n.Uname(&u); err != nil {
		return errs.E("detect.uname", errs.Internal, "", err)
	}
	inv.Uname = machine.Uname{
		Sysname:  word(u.Sysname[:]),
		Nodename: word(u.Nodename[:]),
		Release:  word(u.Release[:]),
		Version:  word(u.Version[:]),
		Machine:  word(u.Machine[:]),
	}
	inv.UnameArch = inv.Uname.Machine
	inv.Arch = proctext.Arch(inv.Uname.Machine)
	inv.OpSys = "LINUX"
	inv.OpSysLegacy = "LINUX"
	inv.Learn("uname(2)", "Uname", "UnameArch", "Arch", "OpSys", "OpSysLegacy")

	host := strings.TrimSuffix(inv.Uname.Nodename, ".")
	if host == "" {
		return nil
	}
	inv.Hostname, _, _ = strings.Cut(host, ".")
	inv.FullHostname = host
	inv.Learn("uname(2)", "Hostname", "FullHostname")
	if strings.Contains(host, ".") {
		return nil
	}
	// The resolver is not asked: a name server that does not answer would
	// hold up the start for many seconds. DEFAULT_DOMAIN_NAME is the owner's
	// way to say what /etc/hosts does not.
	path := filepath.Join(n.Root.Etc, "hosts")
	if text, err := readText(maxText, path); err == nil {
		if full := proctext.CanonicalHost(text, host); full != "" {
			inv.FullHostname = full
			inv.Learn(path, "FullHostname")
		}
	}
	return nil
}

// word returns the text of a field of struct utsname, which root may set to
// anything, as one that can be printed.
func word(field []byte) string {
	return proctext.Printable(unix.ByteSliceToString(field))
}

func (n names) distribution(inv *machine.Inventory) {
	var issues [4][]byte
	source := "no file names the distribution"
	for i, name := range proctext.IssueFiles() {
		// A file that is not there, or is no text at all, names nothing.
		issues[i], _ = readText(maxText, n.Root.Etc, name)
	}
	release, _ := readText(maxText, n.Root.Etc, "os-release")
	d := proctext.NameDistro(issues, release)
	if d.Source != "" {
		source = filepath.Join(n.Root.Etc, d.Source)
	}
	inv.OpSysLongName, inv.OpSysName, inv.OpSysShort = d.LongName, d.Name, d.Name
	inv.OpSysMajorVer, inv.OpSysVer, inv.OpSysAndVer = d.MajorVer, d.Ver, d.AndVer
	inv.Learn(source, "OpSysLongName", "OpSysName", "OpSysShort", "OpSysMajorVer", "OpSysVer", "OpSysAndVer")
}

func (n names) uptime(inv *machine.Inventory) error {
	path := filepath.Join(n.Root.Proc, "uptime")
	text, err := readText(maxText, path)
	if err != nil {
		return err
	}
	up, err := proctext.Uptime(text)
	if err != nil {
		return broken(path, err)
	}
	inv.Uptime = up
	inv.Learn(path, "Uptime")
	return nil
}

// addresses lists the interfaces and takes the addresses that the machine is
// reached by as long as NETWORK_INTERFACE does not say otherwise.
func (n names) addresses(inv *machine.Inventory) error {
	interfaces, err := n.Interfaces()
	if err != nil {
		return errs.E("detect.addresses", errs.Transient, "", err)
	}
	inv.Interfaces = interfaces
	inv.Learn("network interfaces", "Interfaces")
	inv.ChooseAddress("*")
	if inv.IPv4 != "" {
		inv.Learn("network interfaces", "IPv4")
	}
	if inv.IPv6 != "" {
		inv.Learn("network interfaces", "IPv6")
	}
	return nil
}
