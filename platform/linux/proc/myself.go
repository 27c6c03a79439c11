// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/host"
)

// Myself measures the calling process alone, without its children.
func Myself() (host.Usage, error) {
	st, err := newTable("/proc").stat(os.Getpid())
	if err != nil {
		return host.Usage{}, err
	}
	return host.Usage{
		UserCPU: time.Duration(st.User) * tick, SysCPU: time.Duration(st.Sys) * tick, Procs: 1,
		RSSKiB: st.RSS * int64(os.Getpagesize()/1024), ImageSizeKiB: int64(st.Size / 1024),
	}, nil
}
