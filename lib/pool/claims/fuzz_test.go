// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"strconv"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/classad"
)

const recordings = "../../cedar/testdata/vectors/"

const smallJob = `MyType = "Job"
User = "alice@example"
Owner = "alice"
ScheddName = "schedd@example"
JobUniverse = 5
RequestCpus = 1
RequestMemory = 128
RequestDisk = 1024
Requirements = true
_condor_SECURE_CLAIM_ID = true
_condor_SEND_CLAIMED_AD = true
`

func adOf(t testing.TB, text string) *classad.Ad {
	t.Helper()
	ad, err := classad.ParseAd(text, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

func FuzzReadRequest(f *testing.F) {
	for _, name := range []string{"ep-claim-job-complete", "ep-claim-minimal-info", "ep-pslot-leftovers"} {
		for _, c := range cedartest.Load(f, recordings+name+".json").Connections {
			for _, m := range c.Messages {
				if m.Note == "REQUEST_CLAIM payload" || m.Note == "ACTIVATE_CLAIM payload" || m.Note == "claim id" {
					f.Add([]byte(m.Plaintext))
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		r, err := readRequest(cedar.MessageReader(b, cedar.Limits{}))
		if err != nil {
			return
		}
		ev := r.event
		if len(ev.Evict) > 1<<12 || ev.DynamicSlots < -1 || ev.DynamicSlots > 1<<12 || ev.AliveInterval < 0 || ev.WholeTime < 0 || ev.Job == nil {
			t.Errorf("%+v", ev)
		}
		if c := ev.Client; max(len(c.User), len(c.Owner), len(c.Schedd), len(c.AccountingGroup), len(c.Project)) > mostName || len(c.Address) > mostAddress {
			t.Errorf("the client is %+v", c)
		}
		for name := range ev.Job.All() {
			if strings.HasPrefix(strings.ToLower(name), "_condor_send_") {
				t.Errorf("%s is left in the job", name)
			}
		}
	})
}

func FuzzReadActivation(f *testing.F) {
	f.Add(cedartest.Encode(f, false, func(c *cedar.Conn) { c.PutInt(2); c.PutAd(adOf(f, smallJob), cedar.AdOptions{}) }))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		if job, err := readActivation(cedar.MessageReader(b, cedar.Limits{})); err == nil && job == nil {
			t.Error("no job and no error")
		}
	})
}

// BenchmarkReadRequest is the reading of a request of 3 KiB alone.
func BenchmarkReadRequest(b *testing.B) {
	var text strings.Builder
	text.WriteString(smallJob)
	for i := range 80 {
		text.WriteString("Attribute" + strconv.Itoa(i) + " = \"a value of some length\"\n")
	}
	out := cedartest.Encode(b, false, func(c *cedar.Conn) {
		c.PutSecret("<127.0.0.1:9620>#1#1#[Encryption=\"YES\";]0123456789abcdef")
		c.PutAd(adOf(b, text.String()), cedar.AdOptions{})
		c.PutString("<127.0.0.1:9700>")
		c.PutInt(20)
		c.PutInt(0)
	})
	b.ReportAllocs()
	b.SetBytes(int64(len(out)))
	for b.Loop() {
		if _, err := readRequest(cedar.MessageReader(out, cedar.Limits{})); err != nil {
			b.Fatal(err)
		}
	}
}
