// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"errors"
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/observe"
)

// Options are what condor_ep drain can be told. The zero value drains gracefully and
// lets the machine stay drained.
type Options struct {
	// Graceful, Quick and Fast exclude one another: each job keeps its retirement and
	// its vacate time, its vacate time only, or neither.
	Graceful, Quick, Fast bool

	// Resume, Exit, Restart and Reconfigure exclude one another: what happens when
	// every slot is drained. Reconfigure takes jobs again as well.
	Resume, Exit, Restart, Reconfigure bool

	Reason string // why, for people; "" names the user who asks
	Start  string // an expression: jobs that are let in meanwhile; "" lets none in
	Check  string // an expression that must be true of every slot, or nothing is drained

	Cancel    bool   // ends a drain
	RequestID string // the drain to be cancelled; "" for any
}

// Request is the request for what the options say. The error names two that
// exclude one another, as the flags of condor_ep are called.
func (o Options) Request() (observe.Request, error) {
	var no observe.Request
	how, err := oneOf(option{"fast", o.Fast}, option{"graceful", o.Graceful}, option{"quick", o.Quick})
	if err != nil {
		return no, err
	}
	then, err := oneOf(option{"exit-on-completion", o.Exit}, option{"reconfig-on-completion", o.Reconfigure},
		option{"restart-on-completion", o.Restart}, option{"resume-on-completion", o.Resume})
	if err != nil {
		return no, err
	}
	if o.Cancel {
		if how != "" || then != "" || o.Reason != "" || o.Start != "" || o.Check != "" {
			return no, errors.New("-cancel takes no other option than -request-id")
		}
		return observe.Request{Op: observe.OpResume, Subject: o.RequestID}, nil
	}
	if o.RequestID != "" {
		return no, errors.New("-request-id is for -cancel")
	}
	then = strings.TrimSuffix(then, "-on-completion")
	if then == "reconfig" {
		then = "reconfigure"
	}
	return observe.Request{Op: observe.OpDrain, Drain: &observe.Drain{How: how, Then: then, Reason: o.Reason, Start: o.Start, Check: o.Check}}, nil
}

// option is one of those that exclude one another.
type option struct {
	name string
	set  bool
}

// oneOf returns the one option that is set, "" if none is. The options come by name.
func oneOf(options ...option) (string, error) {
	found := ""
	for _, o := range options {
		switch {
		case !o.set:
		case found != "":
			return "", fmt.Errorf("-%s and -%s exclude one another", found, o.name)
		default:
			found = o.name
		}
	}
	return found, nil
}

// Said is what came of a request that was granted, in a sentence without an end.
func Said(req observe.Request, resp observe.Response) string {
	switch {
	case req.Op != observe.OpResume:
		return "draining, request id " + resp.DrainID
	case resp.DrainID == "":
		return "nothing was draining"
	}
	return "cancelled the draining with request id " + resp.DrainID
}
