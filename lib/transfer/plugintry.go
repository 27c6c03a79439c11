// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
)

// tryLongest is how long a plugin may take for a URL that it is tried with. HTCondor
// waits as long as for a job, 20 hours.
const tryLongest = 10 * time.Minute

// Try has one plugin fetch a URL into root, which has to be a directory of its own, and
// says why it cannot, nil if it can.
func (p *Plugins) Try(ctx context.Context, root *os.Root, one Plugin, url string) error {
	q := *p
	q.Scratch = root.Name()
	if q.Lifetime <= 0 || q.Lifetime > tryLongest {
		q.Lifetime = tryLongest
	}
	o, _ := q.external(ctx, root, batch{plugin: one, items: []urlItem{{URL: url, Name: "test_file"}}}, false)
	if o.result == pluginWell && o.text == "" {
		return nil
	}
	return errs.E("transfer.Try", errs.Broken, one.Path, errors.New(o.text))
}
