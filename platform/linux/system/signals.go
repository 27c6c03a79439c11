// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/execpoint/execpoint/lib/startd"
)

// Signals turns those of the system into orders. An interrupt at a terminal is
// meant as SIGQUIT is.
func Signals() <-chan startd.Signal {
	in := make(chan os.Signal, 8)
	signal.Notify(in, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, os.Interrupt)
	out := make(chan startd.Signal)
	go func() {
		for s := range in {
			switch s {
			case syscall.SIGTERM:
				out <- startd.Terminate
			case syscall.SIGHUP:
				out <- startd.Hangup
			default:
				out <- startd.Quit
			}
		}
	}()
	return out
}
