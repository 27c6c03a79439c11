// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package confio is platform/confio under the name by which our programs know it:
// it reads for lib/config what a configuration names. It must never do anything
// else.
package confio

import (
	"context"

	"github.com/execpoint/execpoint/platform/confio"
)

// ReadDir returns the names in a directory that are not directories.
func ReadDir(path string) ([]string, error) { return confio.ReadDir(path) }

// IsDir opens a file for reading and says whether it is a directory.
func IsDir(path string) (directory bool, err error) { return confio.IsDir(path) }

// WriteFile writes a whole file.
func WriteFile(path string, data []byte) error { return confio.WriteFile(path, data) }

// RunCommand runs a command of the configuration and returns its output.
func RunCommand(command string) ([]byte, error) { return confio.RunCommand(command) }

// RunUntil is RunCommand for commands that are ended when ctx ends.
func RunUntil(ctx context.Context) func(command string) ([]byte, error) { return confio.RunUntil(ctx) }
