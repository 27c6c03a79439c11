// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"context"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/delegation"
)

// Proxy has the shadow delegate the proxy at path, which must be that of the job, to
// be good until then at the longest; the zero time is as long as the job's own. It
// returns the file of the new proxy. A shadow that cannot delegate closes the
// connection besides.
func (c *Caller) Proxy(ctx context.Context, path string, until time.Time) ([]byte, error) {
	request, err := delegation.NewRequest()
	if err != nil {
		return nil, err
	}
	r := &Request{Call: CallGetProxy, Texts: [2]string{path}, Data: request.DER()}
	if !until.IsZero() {
		r.Ints[0] = until.Unix()
	}
	reply, err := c.ask(ctx, r)
	if err != nil {
		return nil, err
	}
	return request.Accept(reply.Data)
}
