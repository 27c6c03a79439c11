// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !windows

package main

func registry(string) (string, bool) { return "", false }
