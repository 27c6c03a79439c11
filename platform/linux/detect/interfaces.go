// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/machine"
)

// interfaces lists the network interfaces of this machine that are up. It asks
// the kernel for all addresses once, since a container host has thousands of
// interfaces, and each card that could wake the machine what it can.
func interfaces() ([]machine.Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	addresses, err := addressesByIndex()
	if err != nil {
		return nil, err
	}
	control, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(control)
	found := make([]machine.Interface, 0, len(all))
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		one := machine.Interface{Name: i.Name, HardwareAddress: i.HardwareAddr.String(), Addresses: addresses[i.Index]}
		if len(i.HardwareAddr) == 6 && len(one.Addresses) > 0 {
			one.Wake = askCard(control, i.Name)
		} else {
			one.Wake.Err = errs.E("detect.wake", errs.Unsupported, i.Name, unix.EOPNOTSUPP)
		}
		found = append(found, one)
	}
	return found, nil
}

// addressesByIndex returns the addresses of every interface.
func addressesByIndex() (map[int][]netip.Prefix, error) {
	table, err := syscall.NetlinkRIB(unix.RTM_GETADDR, unix.AF_UNSPEC)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseNetlinkMessage(table)
	if err != nil {
		return nil, err
	}
	found := make(map[int][]netip.Prefix)
	for i := range messages {
		m := &messages[i]
		if m.Header.Type != unix.RTM_NEWADDR || len(m.Data) < unix.SizeofIfAddrmsg {
			continue
		}
		header := (*unix.IfAddrmsg)(unsafe.Pointer(&m.Data[0]))
		attrs, err := syscall.ParseNetlinkRouteAttr(m)
		if err != nil {
			return nil, err
		}
		var local, remote netip.Addr
		for _, a := range attrs {
			ip, ok := netip.AddrFromSlice(a.Value)
			switch {
			case !ok:
			case a.Attr.Type == unix.IFA_LOCAL:
				local = ip
			case a.Attr.Type == unix.IFA_ADDRESS:
				remote = ip
			}
		}
		// The far end of a point-to-point link has an address as well; without
		// a local one there is no such link, and the address is our own.
		if !local.IsValid() {
			local = remote
		}
		if p := netip.PrefixFrom(local, int(header.Prefixlen)); p.IsValid() {
			found[int(header.Index)] = append(found[int(header.Index)], p)
		}
	}
	return found, nil
}

// wakeInfo is struct ethtool_wolinfo, wakeRequest a struct ifreq that points
// to one. The kernel's numbers of the modes are those of machine.WakeModes.
type wakeInfo struct {
	cmd, supported, enabled uint32
	_                       [8]byte // a password, which is not for us, and padding
}

type wakeRequest struct {
	name [unix.IFNAMSIZ]byte
	info *wakeInfo
	_    [24 - unsafe.Sizeof(uintptr(0))]byte
}

// knownModes are those that have a word; the kernel has more by now.
const knownModes = machine.WakePhysical | machine.WakeUnicast | machine.WakeMulticast | machine.WakeBroadcast | machine.WakeARP |
	machine.WakeMagic | machine.WakeMagicSecure

// askCard asks what the card of an interface does about waking the machine.
func askCard(control int, name string) machine.Wake {
	info := wakeInfo{cmd: unix.ETHTOOL_GWOL}
	request := wakeRequest{info: &info}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	_, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(control), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if no != 0 {
		return machine.Wake{Err: errs.E("detect.wake", wakeKind(no), name, no)}
	}
	return machine.Wake{Supported: machine.WakeModes(info.supported) & knownModes, Enabled: machine.WakeModes(info.enabled) & knownModes}
}

func wakeKind(err error) errs.Kind {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return errs.Denied
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENODEV):
		return errs.Unsupported
	}
	return errs.Transient
}
