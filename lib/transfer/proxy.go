// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar/delegation"
	"github.com/execpoint/execpoint/lib/classad"
)

// proxyMode is the mode of a proxy: its owner alone may read it.
const proxyMode = 0o600

// proxy has the other end delegate a proxy into a new file. It counts as a file of no
// bytes, as HTCondor counts it.
func (r *receiver) proxy(name string, legal bool) error {
	request, err := delegation.NewRequest()
	if err != nil {
		return r.giveUp(r.noProxy(name, err))
	}
	chain, err := request.Ask(r.c)
	if err != nil {
		return r.broken("receiving proxy "+r.path(name), err)
	}
	file, err := request.Accept(chain)
	if err != nil {
		// A sender of HTCondor's that can sign nothing takes that for a failure of the
		// connection. It sends no more and waits for our report, which lets it try again.
		return r.giveUp(r.noProxy(name, err))
	}
	r.stats.Files++
	if !legal || r.first != nil {
		return nil
	}
	f, err := r.open(name)
	if err != nil {
		r.failWrite(name, err)
		return nil
	}
	_, err = f.Write(file)
	r.close(f, name, proxyMode, false, err, true)
	return nil
}

// ProxyName is the name of the job's proxy (x509userproxy) in its scratch directory,
// wherever the file is at the access point; "" if it has none, or one that cannot be
// the name of a file.
func ProxyName(job *classad.Ad) string {
	name := text(job, "x509userproxy")
	if i := strings.LastIndexAny(name, "/\\"); i >= 0 {
		name = name[i+1:]
	}
	if !legalName(name) {
		return ""
	}
	return name
}

// noProxy says that no proxy was received.
func (r *receiver) noProxy(name string, err error) *WireFailure {
	return &WireFailure{
		HoldCode: HoldDownload, Err: err, Retry: true,
		Reason: oneLine(fmt.Sprintf("%s at %s - |Error: receiving file %s: %v", r.Name, r.Address, r.path(name), err)),
	}
}
