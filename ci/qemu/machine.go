// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package qemu

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Cgroups is which control groups a machine has mounted.
type Cgroups int

// As systemd mounts them: version 2 with all controllers, version 1 alone, or all
// controllers with version 1 and a version 2 without any beside them.
const (
	V2 Cgroups = iota
	V1
	Hybrid
)

func (c Cgroups) String() string { return [...]string{"v2", "v1", "hybrid"}[c] }

// ParseCgroups reads the name of a layout.
func ParseCgroups(name string) (Cgroups, error) {
	for _, c := range []Cgroups{V2, V1, Hybrid} {
		if name == c.String() {
			return c, nil
		}
	}
	return 0, fmt.Errorf("control groups %q: want v2, v1 or hybrid", name)
}

// Machine is a virtual machine. The zero value has version 2 of control groups, one
// CPU, 1 GiB and no disk, and its program is root's.
type Machine struct {
	Memory  int   // MiB
	CPUs    int   //
	Disks   []int // MiB of each, empty: /dev/vda, /dev/vdb...
	Cgroups Cgroups
	// User runs the program: Tester is one without rights, empty is root.
	User string
	// Delegated has the program begin in a group of version 2 that its user owns,
	// as systemd does it for a service with Delegate=yes.
	Delegated bool
	// Systemd has the machine begin with Debian's systemd, which mounts the control
	// groups and runs the program as a service.
	Systemd bool
	// Modules are loaded at the start. dm-mod and loop are always; most others the
	// kernel loads when they are used.
	Modules []string
	// Programs are ours, below bin, which are built and lie in PATH.
	Programs []string
	// Files are files and directories of this machine, by their paths in the guest.
	Files map[string]string
	// Limit is how long it may last, five minutes if zero.
	Limit time.Duration
}

// Command is what a machine runs.
type Command struct {
	Program string // a file of this machine that needs no libraries, or
	Shell   string // lines for the shell of the guest
	Args    []string
	Env     []string
	Dir     string // in the guest, / if empty
}

// Inside is set in the environment of what runs in a guest, to its control groups.
const Inside = "EXECPOINT_GUEST_INSIDE"

//go:embed init.sh
var initScript string

// order is the archive that a machine has beside the base: what to run, and how.
func (m Machine) order(w io.Writer, c Command) error {
	a := newArchive(w)
	a.text("init", 0o755, initScript)
	var order strings.Builder
	for _, set := range [][2]string{
		{"cgroups", m.Cgroups.String()}, {"user", cmp.Or(m.User, "root")}, {"delegated", yes(m.Delegated)},
		{"modules", strings.Join(m.Modules, " ")}, {"systemd", yes(m.Systemd)}, {"added", strings.Join(slices.Sorted(maps.Keys(m.Files)), " ")}, {"directory", c.Dir},
	} {
		fmt.Fprintf(&order, "%s=%s\n", set[0], quote(set[1]))
	}
	a.text("guest/order", 0o644, order.String())
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		a.copy(name, m.Files[name])
	}
	var run strings.Builder
	fmt.Fprintf(&run, "#!/bin/sh\nexport %s=%s\n", Inside, m.Cgroups)
	for _, e := range c.Env {
		name, value, _ := strings.Cut(e, "=")
		fmt.Fprintf(&run, "export %s=%s\n", name, quote(value))
	}
	fmt.Fprintf(&run, "cd %s || exit 126\n", quote(cmp.Or(c.Dir, "/")))
	if c.Dir != "" {
		a.dir(c.Dir, 0o755)
	}
	if c.Program == "" {
		run.WriteString(c.Shell + "\n")
	} else {
		program := path.Join("/guest/program", filepath.Base(c.Program))
		a.copy(program, c.Program)
		run.WriteString("exec " + quote(program))
		for _, arg := range c.Args {
			run.WriteString(" " + quote(arg))
		}
		run.WriteString("\n")
	}
	a.text("guest/run", 0o755, run.String())
	return a.close()
}

// yes is how the order says that something is wanted.
func yes(wanted bool) string {
	if wanted {
		return "yes"
	}
	return ""
}

// quote makes a text one word of the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// files are what QEMU is told about.
type files struct {
	kernel, initrd string
	system         string // the file system with systemd, if one is wanted
	disks          []string
}

// arguments are QEMU's. Descriptor 3 takes what the program prints, 4 its status,
// and the standard output the console.
func (m Machine) arguments(f files, kvm bool) []string {
	accel, cpu := "tcg", "max"
	if kvm {
		accel, cpu = "kvm", "host"
	}
	args := []string{"-accel", accel, "-cpu", cpu, "-machine", "pc", "-smp", fmt.Sprint(max(m.CPUs, 1)), "-m", fmt.Sprint(cmp.Or(m.Memory, 1024)),
		"-no-reboot", "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio",
		"-kernel", f.kernel, "-initrd", f.initrd, "-append", "console=ttyS0 panic=-1 quiet tsc=unstable psi=1" + m.kernelWords(),
		"-device", "virtio-serial-pci",
		"-chardev", "file,id=results,path=/dev/fd/3", "-device", "virtserialport,chardev=results,name=results",
		"-chardev", "file,id=status,path=/dev/fd/4", "-device", "virtserialport,chardev=status,name=status"}
	for _, disk := range f.disks {
		args = append(args, "-drive", "file="+disk+",if=virtio,format=raw,cache=unsafe,discard=unmap")
	}
	if f.system != "" { // behind those of the program; what is written to it is forgotten
		args = append(args, "-drive", "file="+f.system+",if=none,id=system,format=raw,snapshot=on,cache=unsafe", "-device", "virtio-blk-pci,drive=system,serial="+systemDisk)
	}
	return args
}

// systemDisk is the number by which the guest knows the disk with systemd.
const systemDisk = "execpoint-system"
