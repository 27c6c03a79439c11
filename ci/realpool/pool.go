// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import "errors"

const (
	controlName = "control"
	stopLine    = "stop\n"
)

func up(s store, o options, io streams) error        { return errors.New("x") }
func in(s store, o options, io streams) (int, error) { return 1, errors.New("x") }
func down(s store, o options, io streams) error      { return errors.New("x") }
func hold(string) (int, error)                       { return 1, errors.New("x") }
