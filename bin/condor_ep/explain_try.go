// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/explain"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/lib/tool/slots"
)

// tried explains what slots would do with a configuration, on this machine as
// it is now or on a described one; nothing is started.
func (f *explainFlags) tried(stderr io.Writer) ([]*explain.Report, int) {
	list, err := f.try(stderr)
	if err != nil {
		printError(stderr, "condor_ep explain", err)
		return nil, exitUsage
	}
	return list, exitOK
}

func (f *explainFlags) try(stderr io.Writer) ([]*explain.Report, error) {
	d, err := slotsFlags{config: f.config, local: f.local, machine: f.machine}.divide()
	if err != nil {
		return nil, err
	}
	_, doubtful := d.Config.Sort()
	for _, p := range doubtful {
		fmt.Fprintf(stderr, "condor_ep explain: warning: %s\n", warningText(p))
	}
	if f.machine == "" {
		if err := sample(d); err != nil {
			return nil, err
		}
	}
	here, err := native()
	if err != nil {
		return nil, err
	}
	var job *classad.Ad
	if f.job != "" {
		if job, err = f.jobAd(); err != nil {
			return nil, err
		}
	}
	return d.Explain(slots.Question{Subject: f.subject, Job: job, Set: f.set.ad, Native: here})
}

// sample measures this machine for the slots' ads.
func sample(d *slots.Division) error {
	p, err := thishost.New()
	if err != nil {
		return err
	}
	h, err := p.Host(os.TempDir(), d.Config)
	if err != nil {
		return err
	}
	s, err := h.Sampler.Sample(context.Background())
	if err != nil {
		return err
	}
	s.At = d.Now
	d.Ads.Refresh(s, d.Now)
	return nil
}

// native is what a running Execution Point would say of itself, and what else
// of this machine a described one leaves open.
func native() (*classad.Ad, error) {
	inv, err := thisMachine()
	if err != nil {
		return nil, err
	}
	run.Advertise(inv, version)
	return inv.Attrs, nil
}
