// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package speed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/transfer"
)

// BenchmarkTransfer moves one large file to a job and back, with a real shadow
// as the other end, which writes into its event log when each transfer began
// and ended. The shadow is the limit when its processor is full. The file has
// as many MiB as the environment says.
func BenchmarkTransfer(b *testing.B) {
	s := newSite(b, slots)
	size := number(b, bytesKnob, defaultBytes)
	s.Must(randomFile(filepath.Join(s.jobs, "big"), size))
	s.Own(filepath.Join(s.jobs, "big"))
	for _, e := range s.eps {
		b.Run(e.Name, func(b *testing.B) {
			var in, out, spent []float64
			for b.Loop() {
				before := s.spent(e)
				s.cluster(b, e, "executable = /bin/mv\narguments = big result\nshould_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT\n"+
					"transfer_input_files = big\ntransfer_output_files = result\nrequest_disk = 4G\n", 1)
				moved, err := s.moved()
				s.Must(err)
				in = append(in, float64(size)/moved[0].Seconds())
				out = append(out, float64(size)/moved[1].Seconds())
				spent = append(spent, (s.spent(e)-before).Seconds()*1024/float64(2*size))
				s.returned(b, size)
			}
			report(b, in, "MiB/s-in")
			report(b, out, "MiB/s-out")
			report(b, spent, "cpu-s/GiB")
			b.ReportMetric(0, "ns/op")
			s.Eventually("claims are given back", realpool.Patience, e.Idle)
		})
	}
}

// moved reads how long the transfers to and from the one job of the event log
// took.
func (s *site) moved() (took [2]time.Duration, err error) {
	text, err := os.ReadFile(filepath.Join(s.jobs, "log"))
	if err != nil {
		return took, err
	}
	begun := [2]time.Time{}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "040 ") {
			continue
		}
		at, err := stamp(line)
		if err != nil {
			return took, err
		}
		i := 0
		if strings.Contains(line, "output") {
			i = 1
		}
		if strings.Contains(line, "Started") {
			begun[i] = at
		} else if strings.Contains(line, "Finished") {
			took[i] = at.Sub(begun[i])
		}
	}
	if took[0] <= 0 || took[1] <= 0 {
		return took, fmt.Errorf("the event log tells of no transfers in both directions:\n%s", text)
	}
	return took, nil
}

// randomFile makes a file that nothing compresses.
func randomFile(path string, mib int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	r := rand.NewChaCha8([32]byte{1})
	block := make([]byte, 1<<20)
	for range mib {
		_, _ = r.Read(block) // never fails
		if _, err := f.Write(block); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}

// BenchmarkTransferDriven moves the file to a job and back with a shadow of our
// own as the other end: in, from the activation to the job's first
// instruction; out, from its last to the answer that the startd is done with
// it.
func BenchmarkTransferDriven(b *testing.B) {
	s := newSite(b, slots)
	size := number(b, bytesKnob, defaultBytes)
	s.Must(randomFile(filepath.Join(s.jobs, "big"), size))
	s.Write(filepath.Join(s.jobs, "move.sh"), "#!/bin/sh\nmv big result\nexec date +%s.%N > \"$1\"\n", 0o755)
	stamp := filepath.Join(s.jobs, "stamp")
	seq := 0
	for _, e := range s.eps {
		b.Run(e.Name, func(b *testing.B) {
			d := s.drive(b, e, 1)
			job := s.ad(b, "executable = "+s.jobs+"/move.sh\narguments = "+stamp+"\nshould_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT\n"+
				"transfer_input_files = big\ntransfer_output_files = result\nrequest_disk = 4G\n")
			var in, out, spent []float64
			for b.Loop() {
				seq++
				before := s.spent(e)
				ctx, cancel := context.WithTimeout(b.Context(), 5*realpool.Patience)
				begun, _, err := d.run(ctx, d.claims[0], seq, job, transfer.SendPlan{Items: []transfer.SendItem{{Source: "big"}}})
				done := time.Now()
				cancel()
				s.Must(err)
				at, err := readStamp(stamp)
				s.Must(err)
				in = append(in, float64(size)/at.Sub(begun).Seconds())
				out = append(out, float64(size)/done.Sub(at).Seconds())
				spent = append(spent, (s.spent(e)-before).Seconds()*1024/float64(2*size))
				s.returned(b, size)
			}
			report(b, in, "MiB/s-in")
			report(b, out, "MiB/s-out")
			report(b, spent, "cpu-s/GiB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// returned looks at the file that came back, and takes it away.
func (s *site) returned(b *testing.B, size int) {
	b.Helper()
	path := filepath.Join(s.jobs, "result")
	info, err := os.Stat(path)
	s.Must(err)
	if info.Size() != int64(size)<<20 {
		b.Fatalf("%d bytes came back, want %d", info.Size(), int64(size)<<20)
	}
	s.Must(os.Remove(path))
}
