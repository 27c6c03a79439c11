// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"context"
	"fmt"
	"net/netip"
	"os"

	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool/admin"
)

// ours says why a file of settings may not be trusted: it must belong to who
// we run as.
func (d *daemonState) ours(path string) error {
	_, owners := d.o.Platform.Credentials()
	if owners == nil {
		return nil
	}
	e, err := owners.Entry(path)
	if err != nil {
		return err
	}
	if us := os.Geteuid(); int64(e.UID) != int64(us) {
		return errs.E("startd.Run", errs.Denied, path, fmt.Errorf("it belongs to user %d; want %d, who we run as", e.UID, us))
	}
	return nil
}

// mayAct reports whether who asked may act at a level.
func (d *daemonState) mayAct(ctx context.Context, l security.Level, r *security.Request) bool {
	return d.wire.server.Allowed(l, r, func(addr netip.Addr) []string { return d.wire.endpoint.Names.Within(ctx, addr) })
}

// mover moves us to another access point.
func (d *daemonState) mover() *admin.Mover {
	return &admin.Mover{
		Persist:     d.conf.remote.Persist,
		Reconfigure: func() { control{d}.Reconfigure(false) },
		Reboot: func(ctx context.Context, command string) error {
			if d.o.Reboot == nil {
				return errs.E("startd.Reboot", errs.Unsupported, command, fmt.Errorf("nothing here can run it"))
			}
			return d.o.Reboot(ctx, command)
		},
	}
}
