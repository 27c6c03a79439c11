// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package asstarter turns the calling process into a starter of the operating
// system it runs on, which is platform/linux/asstarter's. It must be called
// before the process has done anything else.
package asstarter

import (
	"fmt"
	"os"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/localuniverse"
	"github.com/execpoint/execpoint/lib/starter/role"
	"github.com/execpoint/execpoint/platform/linux/asstarter"
	"github.com/execpoint/execpoint/platform/linux/system"
)

// Main is the whole life of a starter; the caller exits with what it returns.
func Main(args []string) int {
	if len(args) == 1 {
		switch args[0] {
		case "-v", "-version", "--version":
			return commands.PrintVersion(os.Stdout)
		case "-h", "-help", "--help":
			fmt.Print(commands.Starter.Help(""))
			return commands.OK
		case role.ClassadOption:
			return system.StarterAd(os.Stdout, os.Stderr)
		}
	}
	if localuniverse.Asked(args) {
		return system.LocalUniverse(args)
	}
	return asstarter.Main(args)
}
