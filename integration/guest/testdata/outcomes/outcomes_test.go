// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package outcomes has tests that end in every way, for the test that looks how
// that is seen outside of a guest.
package outcomes

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

func TestPasses(t *testing.T) {
	t.Log("said", os.Getenv("EXECPOINT_GUEST_INSIDE"))
	t.Run("a b", func(t *testing.T) {})
	t.Run("x/y", func(t *testing.T) { t.Log("deep") })
}

func TestFails(t *testing.T) {
	t.Run("good", func(*testing.T) {})
	t.Run("bad", func(t *testing.T) { fmt.Println("printed"); t.Error("wrong") })
}

func TestSkips(t *testing.T) { t.Skip("needs the moon") }

func TestData(t *testing.T) {
	text, err := os.ReadFile("testdata/text")
	if err != nil || string(text) != "it is there\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestPanics(t *testing.T) { panic("at the disco") }

func TestExits(t *testing.T) { os.Exit(7) }

// The guest is gone without a word.
func TestTurnsOff(t *testing.T) {
	_ = syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
}

func TestHangs(t *testing.T) { select {} }
