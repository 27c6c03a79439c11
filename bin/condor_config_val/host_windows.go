// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build windows

package main

import (
	winreg "golang.org/x/sys/windows/registry"
)

// registry returns a text value of HTCondor's key.
func registry(name string) (string, bool) {
	key, err := winreg.OpenKey(winreg.LOCAL_MACHINE, `Software\Condor`, winreg.QUERY_VALUE)
	if err != nil {
		return "", false
	}
	defer key.Close()
	value, kind, err := key.GetStringValue(name)
	return value, err == nil && kind == winreg.SZ
}
