// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lvm

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// Tag is HTCondor's mark of volumes of jobs.
	Tag = "htcondor_lv"
	// Label is its label of their file systems.
	Label = "HTCondorLV_FS"
)

// command is one of lvm2's, without the program.
type command []string

// String is what stands in logs.
func (c command) String() string { return strings.Join(c, " ") }

// makeGroup are the commands that make a group on an empty device.
func (s *Settings) makeGroup(device string) []command {
	all := []command{
		{"pvcreate", "--yes", device},
		{"vgcreate", "--autobackup", "n", s.Group, device},
	}
	if s.Thin() {
		all = append(all, command{"lvcreate", "--yes", "--autobackup", "n", "--type", "thin-pool", "-l", "100%FREE", "-n", s.Pool, s.Group})
	}
	return all
}

// removeGroup are the commands that take a group of ours off its device.
func (s *Settings) removeGroup(device string) []command {
	return []command{
		{"vgremove", "--yes", "--force", s.Group},
		{"pvremove", "--yes", "--force", device},
	}
}

// makeVolume makes one for a share of disk.
func (s *Settings) makeVolume(name string, shareKiB int64) command {
	c := command{"lvcreate", "--yes", "--autobackup", "n", "-n", name, "--addtag", Tag}
	size := strconv.FormatInt(s.volumeKiB(shareKiB), 10) + "k"
	if s.Thin() {
		return append(c, "-V", size, "-T", s.Group+"/"+s.Pool)
	}
	return append(c, "-L", size, s.Group)
}

// volumeKiB is how large the volume for a share of disk is; lvm rounds it up to
// whole extents.
func (s *Settings) volumeKiB(shareKiB int64) int64 {
	kib := min(max(shareKiB, 1), maxMiB<<10)
	if s.Thin() {
		kib += s.ExtraMiB << 10
	}
	return kib
}

// limitKiB is the use of a volume at which its job has outgrown it: its share where
// there is room beyond, of a linear one so much less that a job is seen before it
// meets the end.
func (s *Settings) limitKiB(shareKiB int64) int64 {
	return int64(float64(max(shareKiB, 1)) * s.Margin)
}

func (s *Settings) removeVolume(name string) command {
	return command{"lvremove", "--yes", "--autobackup", "n", s.Group + "/" + name}
}

// format are the arguments of the program that makes a file system: no journal, for
// nobody mounts it after a crash, and no blocks kept for root.
func format(device string) command {
	return command{"-q", "-F", "-O", "^has_journal", "-E", "lazy_itable_init=1", "-m", "0", "-L", Label, device}
}

// listVolumes asks for all volumes of the group.
func (s *Settings) listVolumes() command {
	return append(command{"lvs"}, append(report("vg_name,lv_name,pool_lv,lv_tags,lv_size,data_percent,vg_extent_size"), s.Group)...)
}

// listGroups asks for all groups of the machine: one that is not there is no error.
func listGroups() command {
	return append(command{"vgs"}, report("vg_name,vg_size,vg_free,vg_extent_size")...)
}

// listDevices asks on which devices groups lie.
func listDevices() command { return append(command{"pvs"}, report("pv_name,vg_name")...) }

func report(columns string) command {
	return command{"--reportformat", "json", "--units", "b", "--nosuffix", "-o", columns}
}

// withoutUdev has lvm make the files of devices itself: nobody else does, where udev
// does not run.
const withoutUdev = "activation{udev_sync=0 udev_rules=0 verify_udev_operations=0 monitoring=0} " +
	"devices{obtain_device_list_from_udev=0} global{use_lvmpolld=0}"

// Device is the path of a volume. The device mapper doubles each hyphen of a name.
func (s *Settings) Device(name string) string {
	double := strings.NewReplacer("-", "--")
	return "/dev/mapper/" + double.Replace(s.Group) + "-" + double.Replace(name)
}

// VolumeName is how HTCondor calls the volume of a slot: SLOT+PID_N, with the startd's
// pid and the number of the volume, or with the same name each time SLOT alone.
func (s *Settings) VolumeName(slot string, pid int, number int64) string {
	slot = strings.Map(func(r rune) rune {
		if nameRune(r) {
			return r
		}
		return '_'
	}, slot)
	slot = cmp.Or(strings.TrimLeft(slot, "-"), "slot")
	slot = slot[:min(len(slot), maxName/2)]
	if !s.UniqueNames {
		return slot
	}
	return fmt.Sprintf("%s+%d_%d", slot, pid, uint32(number))
}

// maxName is the longest name that lvm allows a volume, and its group with it.
const maxName = 100

// badName says why lvm takes no such name, "" if it does. A name that begins with a
// hyphen would be an option.
func badName(name string) string {
	switch {
	case name == "" || len(name) > maxName:
		return "is no name of a volume"
	case name[0] == '-' || name == "." || name == "..":
		return "is no name of a volume"
	case strings.IndexFunc(name, func(r rune) bool { return !nameRune(r) }) >= 0:
		return "has a character that lvm does not allow"
	}
	return ""
}

func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("+_.-", r)
}

// PoolPatience is how long a thin pool may be full before jobs leave: the kernel has
// their writes wait for as long, and then refuses them.
const PoolPatience = 60 * time.Second
