// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gpu

import "strings"

// IDs is how devices are named.
type IDs uint8

// The ways. ByDefault is ShortUUID where every device has a UUID, else ByIndex.
const (
	ByDefault IDs = iota
	ShortUUID
	FullUUID
	ByIndex
)

const (
	gpuMark = "GPU-"
	migMark = "MIG-"
	// shortLen is as much of a name as a short one keeps: the mark and eight digits.
	shortLen = len(gpuMark) + 8
)

// ID returns the name of the device with this UUID, such as GPU-6a96bd13, which
// CUDA_VISIBLE_DEVICES takes. The name of a MIG instance is never shortened,
// because CUDA does not know it then.
func ID(uuid string, short bool) string {
	if strings.HasPrefix(uuid, migMark) {
		return uuid
	}
	if !strings.Contains(uuid, gpuMark) {
		uuid = gpuMark + uuid
	}
	if short && strings.HasPrefix(uuid, gpuMark) && len(uuid) > shortLen {
		uuid = uuid[:shortLen]
	}
	return uuid
}

// bare returns the hexadecimal part of a UUID of NVML.
func bare(uuid string) string {
	return strings.TrimPrefix(strings.TrimPrefix(uuid, migMark), gpuMark)
}

// attribute returns the name of a device as (the beginning of) an attribute's name.
func attribute(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, id)
}
