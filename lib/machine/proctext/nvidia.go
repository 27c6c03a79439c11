// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package proctext

import (
	"strconv"
	"strings"
)

// ParseNVIDIA reads /proc/driver/nvidia/gpus/*/information: lines "Name: \t value", of
// which "GPU UUID" is the long name and "Device Minor" the number of /dev/nvidiaN. ok
// is false without one of them, as for a GPU that another system uses.
func ParseNVIDIA(text []byte) (uuid string, minor uint32, ok bool) {
	known := false
	for line := range strings.Lines(string(text)) {
		name, value, found := strings.Cut(line, ":")
		if !found {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "GPU UUID":
			uuid = value
		case "Device Minor":
			n, err := strconv.ParseUint(value, 10, 20)
			minor, known = uint32(n), err == nil
		}
	}
	if uuid == "" || !known || strings.Contains(uuid, "?") { // which stands for what the driver does not know yet
		return "", 0, false
	}
	return uuid, minor, true
}
