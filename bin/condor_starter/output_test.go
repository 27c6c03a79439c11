// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/starter/launch"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/platform/linux/proc"
)

// pipedOut makes the job's standard output end in a named pipe, which takes no
// more than the test reads.
func (s *stage) pipedOut() *os.File {
	s.Helper()
	path := filepath.Join(s.submit, "out")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		s.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // which does not wait for a writer
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { f.Close() })
	return f
}

// The program of a job has ended and its output is on its way when the job is to
// leave at once, or the startd goes, or the starter itself is told to end: all of
// the output arrives, and the job is not evicted.
func TestOutputSpared(t *testing.T) {
	t.Parallel()
	const size = 24 << 20
	for name, leave := range map[string]func(h *launch.Handle) error{
		"killed": func(h *launch.Handle) error {
			return h.Send(protocol.HardKill{Leave: protocol.Leave{Reason: "Startd was shutdown"}, OutputLimit: time.Hour})
		},
		"SIGTERM": func(h *launch.Handle) error { return unix.Kill(h.Proc().PID, unix.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.configure("KILLING_TIMEOUT = 600\n")
			// The starter heeds SIGTERM when a job has run for a second.
			s.sh("head -c 25165824 /dev/zero; sleep 1.5; exit 7")
			out := s.pipedOut()
			got := make(chan int64, 1)
			h := s.launch(launcher(t, proc.Guest, 0))
			record := s.follow(h, func(r protocol.Report) {
				switch r.(type) {
				case protocol.TransferOutStart: // the pipe takes 64 KiB: the rest waits
					if err := leave(h); err != nil {
						t.Error(err)
					}
					if err := h.Send(protocol.Checkpoint{}); err != nil {
						t.Error(err)
					}
				case protocol.Refused: // the order before was taken
					go func() {
						n, _ := io.CopyN(io.Discard, out, size)
						got <- n
					}()
				}
			}).record
			if n := <-got; n != size || record.Evicted || record.Status.Code != 7 || record.BytesOut != size {
				t.Errorf("%d bytes arrived of %d; %+v", n, size, record)
			}
		})
	}
}
