// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/execpoint/execpoint/bin/internal/pooltool"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/pool/directory"
	"github.com/execpoint/execpoint/lib/tool/ask"
)

// remotePatience is how long a daemon and the collectors that know it may take
// for all answers.
const remotePatience = 60 * time.Second

// kinds are the daemons that can be looked for by name. HTCondor's tool asks
// the master where no kind is given.
var kinds = map[string]directory.Kind{"": directory.Master, "master": directory.Master, "startd": directory.ExecutionPoint, "schedd": directory.AccessPoint}

// fromDaemon answers from what a daemon says that it is set to. Its level READ
// lets one ask.
func (r *run) fromDaemon() int {
	switch _, known := kinds[r.daemon.kind]; {
	case !known && r.daemon.address == "":
		return r.fail("-" + r.daemon.kind + " is found by -address alone; by name a master, startd or schedd is")
	case r.what.dump || r.write.file != "" || r.what.sources || r.what.hasCondition || r.what.macro || r.show.Evaluate:
		return r.fail("of a daemon only names can be asked, with -raw, -default, -verbose or none of these")
	case len(r.names) == 0:
		fmt.Fprint(r.stderr, usage())
		return exitFailed
	}
	facts, _ := r.facts(nil)
	root, _, err := config.FindRoot(config.Places{Env: r.env, Tilde: r.tilde, Windows: r.windows, Registry: r.registry, Open: r.open})
	if r.read.rootGiven {
		root, err = r.read.root, nil
	}
	if err != nil {
		r.ReportAll(err)
		return exitFailed
	}
	snap, client, err := pooltool.Open(root, facts)
	if err != nil {
		r.ReportAll(err)
		return exitFailed
	}
	ctx, cancel := context.WithTimeout(context.Background(), remotePatience)
	defer cancel()
	at, err := r.locate(ctx, snap, client)
	if err != nil {
		kind := cmp.Or(r.daemon.kind, "daemon")
		return r.fail(fmt.Sprintf("Can't find address for %s '%s' in %s\n%v", kind, cmp.Or(r.daemon.name, r.daemon.address, "default"), cmp.Or(r.daemon.pool, "local pool"), err))
	}
	status := exitOK
	for _, name := range r.names {
		if strings.HasPrefix(name, "^") {
			return r.fail("remote query not supported for use " + name[1:])
		}
		s, err := ask.Setting(ctx, client, at, name)
		if err != nil {
			return r.fail(fmt.Sprintf("%s: %v", at.String(), err))
		}
		if !r.Print(name, s) {
			status = exitFailed
		}
	}
	return status
}

// locate finds the daemon that the options name: at an address, of this machine by the
// files that it writes, or by a name that a collector knows.
func (r *run) locate(ctx context.Context, snap *config.Snapshot, client *security.Client) (cedar.Sinful, error) {
	if r.daemon.address != "" {
		text := r.daemon.address
		if !strings.HasPrefix(text, "<") {
			text = "<" + text + ">"
		}
		return cedar.ParseSinful(text)
	}
	name := r.daemon.name
	if r.daemon.pool == "" {
		read, err := pooltool.ReadShown(snap)
		if err != nil {
			return cedar.Sinful{}, err
		}
		at, asked, found := ask.Here{Config: snap, Read: read, Root: os.Geteuid() == 0}.Find(kinds[r.daemon.kind], r.daemon.name)
		if found {
			return at, nil
		}
		name = asked
	}
	port, err := snap.Int("COLLECTOR_PORT")
	find, err2 := pooltool.CollectorFinder(snap)
	if err := errors.Join(err, err2); err != nil {
		return cedar.Sinful{}, err
	}
	list := snap.List("COLLECTOR_HOST")
	if r.daemon.pool != "" {
		list = []string{r.daemon.pool}
	}
	return ask.Directory{Open: client, Port: int(port), Find: find}.Locate(ctx, list, kinds[r.daemon.kind], name)
}
