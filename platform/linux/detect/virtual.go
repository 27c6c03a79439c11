// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/machine/proctext"
)

// virtual finds out whether this machine is a virtual one or a container, and
// whether it could run virtual machines itself. It runs after processors, which
// reads the flags.
type virtual struct{ System }

func (virtual) Name() string { return "virtual" }

func (v virtual) Scan(_ context.Context, inv *machine.Inventory) error {
	if name, path := v.hypervisor(inv.CPU.Guest); name != "" {
		inv.Virtual.Hypervisor = name
		inv.Learn(path, "Virtual.Hypervisor")
	}
	if name, path := v.container(); name != "" {
		inv.Virtual.Container = name
		inv.Learn(path, "Virtual.Container")
	}
	// The flag says what the processor can do, the device whether the kernel
	// lets anybody: firmware may have switched it off.
	if path := filepath.Join(v.Root.Dev, "kvm"); exists(path) {
		inv.Virtual.Hardware = machine.Yes
		inv.Learn(path, "Virtual.Hardware")
	} else if inv.Known("CPU") && inv.Arch == "X86_64" && !inv.CPU.Virtualizes {
		inv.Virtual.Hardware = machine.No
		inv.Learn(inv.Facts["CPU"].Source, "Virtual.Hardware")
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// makers are what the firmware of virtual machines calls itself, in the files
// of firmware, and what makes them so. Some are also makers of real machines:
// these count only where the processor says that it is not alone.
var makers = [...]struct {
	words, name string
	real        bool
}{
	{"Amazon EC2", "amazon", true}, {"Google Compute Engine", "google", false}, {"KVM", "kvm", false}, {"QEMU", "kvm", false},
	{"OpenStack", "kvm", false}, {"VMware", "vmware", false}, {"VirtualBox", "oracle", false}, {"innotek GmbH", "oracle", false},
	{"Parallels", "parallels", false}, {"BHYVE", "bhyve", false}, {"Bochs", "bochs", false}, {"Apple Virtualization", "apple", false},
	{"Xen", "xen", false}, {"Microsoft Corporation", "microsoft", true},
}

// hypervisor names what this machine runs on, and which file says so. On bare
// metal there is none; a guest whose maker is unknown is "unknown".
func (v virtual) hypervisor(guest bool) (name, path string) {
	path = filepath.Join(v.Root.Sys, "hypervisor/type")
	if text, err := readText(maxText, path); err == nil {
		if name := proctext.Printable(string(bytes.TrimSpace(text))); name != "" {
			return name, path
		}
	}
	for _, file := range [...]string{"product_name", "sys_vendor", "board_vendor", "bios_vendor"} {
		path := filepath.Join(v.Root.Sys, "class/dmi/id", file)
		text, err := readText(maxText, path)
		if err != nil {
			continue
		}
		for _, m := range makers {
			if bytes.Contains(text, []byte(m.words)) && (guest || !m.real) {
				return m.name, path
			}
		}
	}
	path = filepath.Join(v.Root.Sys, "firmware/devicetree/base/hypervisor/compatible")
	if text, err := readText(maxText, path); err == nil {
		// A list of words that end in NUL, such as "linux,kvm".
		word, _, _ := strings.Cut(string(text), "\x00")
		if _, name, ok := strings.Cut(word, ","); ok && name != "" {
			return proctext.Printable(name), path
		}
	}
	if guest {
		return "unknown", filepath.Join(v.Root.Proc, "cpuinfo")
	}
	return "", ""
}

// container names the kind of container this process is in: by what the
// container tells, otherwise by the name of its control group.
func (v virtual) container() (name, path string) {
	path = filepath.Join(v.Root.Run, "systemd/container")
	if text, err := readText(maxText, path); err == nil {
		if name := proctext.Printable(string(bytes.TrimSpace(text))); name != "" {
			return name, path
		}
	}
	if path := filepath.Join(v.Root.Run, ".containerenv"); exists(path) {
		return "podman", path
	}
	if path := filepath.Join(v.Root.Run, "secrets/kubernetes.io"); exists(path) {
		return "kubernetes", path
	}
	path = filepath.Join(v.Root.Proc, "self/cgroup")
	text, err := readText(maxText, path)
	if err != nil {
		return "", ""
	}
	for _, kind := range [...]struct{ words, name string }{
		{"/kubepods", "kubernetes"}, {"/docker/", "docker"}, {"/docker-", "docker"}, {"/libpod-", "podman"}, {"/lxc/", "lxc"}, {"/lxc.payload", "lxc"},
	} {
		if bytes.Contains(text, []byte(kind.words)) {
			return kind.name, path
		}
	}
	return "", ""
}
