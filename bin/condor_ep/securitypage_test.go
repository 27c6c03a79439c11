// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"strings"
	"testing"
)

// condor_ep check finds nothing in the configuration that docs/security.md
// recommends.
func TestSecurityPageConfiguration(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## A hardened configuration\n")
	if !ok {
		t.Fatal("the section is gone")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var conf strings.Builder
	for line := range strings.Lines(section) {
		if code, ok := strings.CutPrefix(line, "    "); ok {
			conf.WriteString(code)
		}
	}
	p := newPlace(t)
	p.write(t, "condor_config", "CONDOR_HOST = cm.pool.example.org\nLOCAL_DIR = "+p.dir+"\nEXECUTE = "+p.dir+"\n"+conf.String())
	if strings.Count(conf.String(), "\n") < 10 {
		t.Fatalf("the configuration is only\n%s", conf.String())
	}
	c, stdout, stderr := p.cmd(t, "check", "condor_config")
	if err := c.Run(); err != nil || stdout.Len() > 0 || stderr.Len() > 0 {
		t.Errorf("%v\n%s%s", err, stdout, stderr)
	}
}
