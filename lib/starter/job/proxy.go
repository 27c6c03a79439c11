// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"errors"
	"path/filepath"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/transfer"
)

// attrProxy names the job's X.509 proxy, a file of its access point.
const attrProxy = "x509userproxy"

// proxy is where the job finds its proxy: beside its other files if they are moved,
// else where it lies.
func (j *Job) proxy(scratch string) string {
	name := j.Text(attrProxy)
	switch {
	case name == "":
		return ""
	case j.Moves:
		return filepath.Join(scratch, transfer.ProxyName(j.Ad))
	}
	return Under(j.Iwd, name)
}

// Delegate has the proxy of a job that came from another machine be in the scratch
// directory, also where its files are not moved: there it is delegated to.
func (j *Job) Delegate(scratch string) error {
	if j.Proxy == "" {
		return nil
	}
	name := transfer.ProxyName(j.Ad)
	if name == "" {
		return errs.E("starter.job", errs.Invalid, attrProxy, errors.New("the name of the proxy cannot be that of a file"))
	}
	j.Proxy = filepath.Join(scratch, name)
	return nil
}
