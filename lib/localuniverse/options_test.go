// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package localuniverse

import (
	"strings"
	"testing"
)

// asSchedd are the arguments of the schedd of HTCondor 25.14, as it was seen to give
// them.
var asSchedd = []string{
	"-f", "-job-cluster", "7", "-job-proc", "3", "-header", "(7.3) ", "-job-input-ad", "-",
	"-schedd-addr", "<127.0.0.1:9618?addrs=127.0.0.1-9618&alias=h&noUDP&sock=schedd_1_2>",
}

func TestParse(t *testing.T) {
	t.Parallel()
	o, err := Parse(asSchedd)
	if err != nil || o.ID.String() != "7.3" || o.Input != "-" || o.Schedd.Host != "127.0.0.1" || o.Schedd.Port != 9618 {
		t.Fatalf("%+v, %v", o, err)
	}
	if o, err = Parse([]string{"-job-i", "/x", "-sch", "<1.2.3.4:5>", "-job-c", "1", "-job-p", "0", "-job-s", "2"}); err != nil || o.Input != "/x" || o.Subproc != 2 {
		t.Errorf("the beginnings of options: %+v, %v", o, err)
	}
	for _, c := range []struct{ args, fails string }{
		{"", "-job-input-ad is missing"},
		{"-job-input-ad -", "-schedd-addr is missing"},
		{"-job-input-ad - -schedd-addr <1.2.3.4:5>", "-job-cluster and -job-proc"},
		{"-job-cluster", "a value is missing"},
		{"-job-cluster x", "invalid syntax"},
		{"-job-proc -1", "out of range"},
		{"-job- 1", "more than one option"},
		{"submit.example.org", "none such"},
		{"-job-keyword k", "none such"},
		{"-job-input-ad - -schedd-addr <1.2.3.4:5x> -job-cluster 1 -job-proc 0", "-schedd-addr"},
	} {
		if _, err := Parse(strings.Fields(c.args)); err == nil || !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%q: %v; want %q", c.args, err, c.fails)
		}
	}
}

// A startd starts a starter without arguments.
func TestAsked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want bool
	}{{nil, false}, {[]string{"slot1"}, false}, {[]string{"-"}, false}, {asSchedd, true}, {[]string{"x", "-f"}, true}} {
		if got := Asked(c.args); got != c.want {
			t.Errorf("%q: %v", c.args, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(strings.Join(asSchedd, "\n"))
	f.Add("-job-cluster\n-1")
	f.Fuzz(func(t *testing.T, args string) {
		o, err := Parse(strings.Split(args, "\n"))
		if err == nil && (o.Input == "" || o.ID.Cluster < 0 || o.ID.Proc < 0 || o.Subproc < 0) {
			t.Errorf("%q: %+v", args, o)
		}
	})
}
