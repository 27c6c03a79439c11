// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/pool/admin"
)

// FuzzAdminCommand gives each order of an administrator with any payload. It is
// answered in the known form or refused, a slot leaves its claim only by an
// order that was understood, and what a move keeps as configuration is the
// settings that it is about, on lines of their own.
func FuzzAdminCommand(f *testing.F) {
	const drain, cancel, vacate, fast, rehome = 512, 513, 465, 475, 562
	numbers := []int{drain, cancel, vacate, fast, rehome}
	ad := func(which uint8, text string) {
		f.Add(which, cedartest.Encode(f, true, func(c *cedar.Conn) { c.PutAd(adOf(f, text), cedar.AdOptions{}) }))
	}
	for _, text := range []string{"", "HowFast = 10\nResumeOnCompletion = 9", "CheckExpr = Cpus > 100", "HowFast = 0\nDrainReason = \"new disks\"\nStartExpr = true\nDeadline = 1",
		"HowFast = HowFast", "DrainReason = \"a\\nb\""} {
		ad(0, text)
	}
	for _, text := range []string{"", "RequestID = \"77\"", "RequestID = 1"} {
		ad(1, text)
	}
	for _, name := range []string{"slot2@ep.wirev.test", "SLOT1", "slot9", "", strings.Repeat("x", 1<<16)} {
		for which := range uint8(2) {
			f.Add(2+which, cedartest.Encode(f, true, func(c *cedar.Conn) { c.PutString(name) }))
		}
	}
	for _, text := range []string{"", `ScheddName = ""`, `ScheddName = "a\\"`, `ScheddName = "$(SECRET)"`, "ScheddName = \"a\"\nReboot = true", "ScheddName = \"a\"\nCancel = true",
		"ScheddName = \"<127.0.0.1:9700>\"\nScheddPool = \"cm.example:9618\"\nRehomeTimeout = 9223372036854775807", "ScheddName = \"a\"\nScheddPool = \"b\\nSTART = true\""} {
		ad(4, text)
	}
	f.Fuzz(func(t *testing.T, which uint8, payload []byte) {
		if len(payload) == 0 || len(payload) > 1<<17 {
			return
		}
		number := numbers[int(which)%len(numbers)]
		var kept []string
		reconfigured := make(chan struct{}, 1)
		s := newStation(t, stationOptions{text: twoStatic, quiet: true, change: func(c *pool.Config) {
			c.Mover = &admin.Mover{
				Persist:     func(_, lines string) error { kept = append(kept, lines); return nil },
				Reconfigure: func() { reconfigured <- struct{}{} },
				Reboot:      func(context.Context, string) error { t.Error("the machine is rebooted"); return errors.ErrUnsupported },
			}
		}})
		s.idle()
		one, two := s.offered("slot1"), s.offered("slot2")
		p := s.peer(one, two)
		if a, b := p.claim(one, smallJob), p.claim(two, smallJob); a.code != 1 || b.code != 1 {
			t.Fatal(a.code, b.code)
		}
		conn, done := s.handle(number, "", func(c *cedar.Conn) { c.PutBytes(payload) })
		conn.SetTimeout(20 * time.Second)
		understood := false
		reply, err := conn.Ad(cedar.AdOptions{})
		refused := <-done
		switch number {
		case vacate, fast:
			if understood = refused == nil; err == nil {
				t.Errorf("%d is answered %v", number, reply)
			}
		default:
			if (err == nil) != (refused == nil) {
				t.Fatalf("%d with %q is answered %v (%v), %v", number, payload, reply, err, refused)
			}
			if err == nil {
				result, ok := reply.EvalBool("Result", nil)
				why, _ := reply.EvalString("ErrorString", nil)
				if understood = result; !ok || !result && why == "" || conn.EndOfMessage() != nil {
					t.Errorf("%d with %q is answered %v", number, payload, reply)
				}
			}
		}
		if err == nil {
			if _, err := conn.Int(); !errors.Is(err, io.EOF) {
				t.Errorf("behind the answer of %d: %v, want the end", number, err)
			}
		}
		if left := strings.Join(s.slots(), " "); !understood && left != "slot1 Claimed/Idle slot2 Claimed/Idle" {
			t.Errorf("%d with %q was refused (%v, %v), and the slots are %s", number, payload, reply, refused, left)
		}
		for _, lines := range kept {
			for line := range strings.Lines(lines) {
				name, value, ok := strings.Cut(line, " = ")
				if !ok || name != "STARTD_DIRECT_ATTACH_SCHEDD_NAME" && name != "STARTD_DIRECT_ATTACH_SCHEDD_POOL" || strings.ContainsAny(value, "$\r\x00") || strings.HasSuffix(value, "\\\n") {
					t.Errorf("%q keeps the line %q", payload, line)
				}
			}
			if strings.Count(lines, "\n") > 2 {
				t.Errorf("%q keeps %q", payload, lines)
			}
		}
	})
}
