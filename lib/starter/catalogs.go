// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"errors"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// answerTime is how long the startd may take to show a catalog.
const answerTime = 20 * time.Second

// announce has the slots of the machine show a catalog, and waits until they do: who is
// told next that the files are here may come at once to claim a slot for them.
func (a *activation) announce(ctx context.Context, catalog string) error {
	const op = "starter.Announce"
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, errs.E(op, errs.Transient, "", errors.New("the startd does not answer")))
	defer cancel()
	answer := make(chan protocol.Cataloged, 1)
	if err := a.Do(ctx, func() {
		a.announced = append(a.announced, answer)
		a.say(protocol.Catalog{Ad: catalog})
	}); err != nil {
		return err
	}
	select {
	case got := <-answer:
		if got.Why != "" {
			return errs.E(op, errs.Denied, "", errors.New(got.Why))
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// cataloged passes an answer of the startd on.
func (a *activation) cataloged(o protocol.Cataloged) {
	if len(a.announced) == 0 {
		a.refuse(o, errors.New("nothing was announced"))
		return
	}
	a.announced[0] <- o
	a.announced = a.announced[1:]
}
