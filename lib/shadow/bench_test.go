// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow_test

import (
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
)

// The conversation over a stream under AES in memory; both ends are counted.
func BenchmarkCall(b *testing.B) {
	update := ad(b, `_condor_JOBINFO_MAXINTERVAL = 300
JobState = "Running"
RemoteUserCpu = 12.5
RemoteSysCpu = 0.25
ImageSize = 123456
ResidentSetSize = 100000
MemoryUsage = ((ResidentSetSize + 1023) / 1024)
DiskUsage = 4711
NumPids = 3
JobPid = 4242
`)
	data := make([]byte, 64<<10)
	for _, bb := range []struct {
		name  string
		bytes int
		call  func(c *shadow.Caller) error
	}{
		{"begin_execution", 0, func(c *shadow.Caller) error { return c.BeginExecution(b.Context()) }},
		{"register_job_info", 0, func(c *shadow.Caller) error { return c.RegisterJob(b.Context(), update) }},
		{"write64KiB", len(data), func(c *shadow.Caller) error {
			_, err := c.Pwrite(b.Context(), 3, data, 0)
			return err
		}},
		{"read64KiB", len(data), func(c *shadow.Caller) error {
			_, err := c.Pread(b.Context(), 3, len(data), 0)
			return err
		}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			starter, peer := pair(b)
			caller := shadow.New(starter, shadow.Options{})
			defer caller.End()
			go func() {
				for {
					r, err := shadow.ReadRequest(peer)
					if err != nil {
						return
					}
					reply := shadow.Reply{}
					switch r.Call {
					case shadow.CallPwrite:
						reply.Value = int64(len(r.Data))
					case shadow.CallPread:
						reply.Value, reply.Data = r.Ints[1], data
					}
					reply.Put(peer, r.Call)
					if peer.EndMessage() != nil {
						return
					}
				}
			}()
			b.SetBytes(int64(bb.bytes))
			b.ReportAllocs()
			for b.Loop() {
				if err := bb.call(caller); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}

// A whole job as the shadow sees it, without its files.
func BenchmarkJob(b *testing.B) {
	job := ad(b, "JobUniverse = 5\nCmd = \"/bin/true\"\n")
	me := ad(b, "StarterIpAddr = \"<127.0.0.1:9620>\"\nCondorVersion = \"$CondorVersion: 25.14.0 2026-11-20 TEST $\"\n")
	final := classad.NewAd()
	b.ReportAllocs()
	for b.Loop() {
		c := shadow.New(serve(b, shadowtest.New(shadowtest.Job{Ad: job})), shadow.Options{})
		_, err := c.JobInfo(b.Context())
		for _, err := range []error{
			err, c.RegisterStarter(b.Context(), me), c.RegisterJob(b.Context(), final), c.BeginExecution(b.Context()),
			c.RegisterJob(b.Context(), final), c.JobExit(b.Context(), 0, shadow.Exited, final),
		} {
			if err != nil {
				b.Fatal(err)
			}
		}
		c.End()
	}
}
