// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/starter"
	"github.com/execpoint/execpoint/lib/starter/plugins"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

// What starters can do for jobs is partly known by programs only: those of
// FILETRANSFER_PLUGINS, Java, Docker, Singularity. HTCondor's startd asks its starter,
// and its starter asks all of them one after another, before the first ad and at each
// reconfig. Here they are asked side by side, beside the owner of the engine and when
// its slots are there: a program that takes its time, or never answers, keeps neither
// the machine from its pool nor what others have said from the ads. No job is refused
// for a program that has not answered yet: a job's own starter asks again.

// gather is how long answers wait for each other, so that the ads change once as a
// rule. Each later one is advertised when it comes.
const gather = 500 * time.Millisecond

// abilities is the asking; it is the owner's.
type abilities struct {
	answers transfer.Answers
	trials  trials
	round   int // of asking, the last one that began
	cancel  context.CancelFunc
}

// end gives up what is asked still.
func (a *abilities) end() {
	if a.cancel != nil {
		a.cancel()
	}
}

// able puts what starters can do into a machine's ad, as far as it is known.
// HTCondor asks a starter without a slot type.
func (n *node) able(ad *classad.Ad, s *starterSettings) {
	starter.Withdraw(ad)
	starter.Advertise(ad)
	if s.any.settings.Space.NoNetwork {
		starter.WithoutNetwork(ad)
	}
	s.contain.advertise(ad)
	if n.serving() {
		known := plugins.From(s.any.settings.Pool.Plugins, nil)
		known.List = n.starter.abilities.answers.Said(known.Programs)
		methods, offline := n.starter.abilities.trials.offered(known, trialURLs(s.any.config))
		starter.AdvertiseForPool(ad, methods, n.mapping(s))
		starter.AdvertiseOffline(ad, offline)
	}
}

// mapping is how files that jobs share are mapped, "" if they are not: where no shadow
// is asked for them, and where root runs the jobs of each slot as another user. There
// one job cannot read what the starter of another has staged; HTCondor's starter gives
// the files to whoever mapped them last.
func (n *node) mapping(s *starterSettings) protocol.Mapping {
	if s.any.settings.Pool.Guidance.Silent || n.o.Host.Account != nil && protocol.UsersBySlot(s.any.config) {
		return ""
	}
	return s.any.settings.Pool.Mapping
}

// known is a machine with what its starters can do, as far as that is known; what
// programs say of it comes later.
func (n *node) known(inv *machine.Inventory, s *starterSettings) *machine.Inventory {
	next := *inv
	next.Attrs = inv.Attrs.Clone()
	n.able(next.Attrs, s)
	return &next
}

// seekAbilities asks all programs under the configuration in force. What is asked
// under an older one does not count any more.
func (n *node) seekAbilities() {
	a := &n.starter.abilities
	a.end()
	ctx, cancel := context.WithCancel(context.Background())
	a.round, a.cancel = a.round+1, cancel
	round := a.round
	learn := func(inv *machine.Inventory) {
		n.mail.post(func(now clock.Instant) {
			if round == n.starter.abilities.round {
				n.learn(now, inv)
			}
		})
	}
	if n.o.Probe != nil {
		inv, snap := *n.o.Inventory, n.o.Config
		inv.Attrs = inv.Attrs.Clone()
		n.mail.around.Go(func() { n.probe(ctx, &inv, n.o.Probe(snap), learn) })
	}
	if n.serving() {
		any := n.starter.settings.Load().any
		ways := plugins.From(any.settings.Pool.Plugins, plugins.Runner(n.o.Host.Spawner, nil, n.o.StarterEnv))
		n.mail.around.Go(func() {
			n.askPlugins(ctx, ways, func() { learn(nil) })
			if ctx.Err() == nil {
				n.tryPlugins(ctx, ways, any.config, round)
			}
		})
	}
}

// probe asks the machine's programs, into a copy of its inventory.
func (n *node) probe(ctx context.Context, inv *machine.Inventory, programs machine.Scanner, learn func(*machine.Inventory)) {
	starter.Withdraw(inv.Attrs)
	machine.Unprobe(inv.Attrs)
	problems := inv.Apply(ctx, time.Now(), programs)
	if ctx.Err() != nil {
		return
	}
	for _, err := range problems {
		n.o.Log.Warn("machine", "err", err)
	}
	learn(inv)
}

// askPlugins asks the programs that move files by URL. learn is called when there is
// more to show than before.
func (n *node) askPlugins(ctx context.Context, plugins *transfer.Plugins, learn func()) {
	answered := make(chan struct{}, len(plugins.Programs))
	plugins.Answers, plugins.Answered = &n.starter.abilities.answers, func() { answered <- struct{}{} }
	var useless []error
	all := make(chan struct{})
	go func() {
		defer close(all)
		useless = plugins.Load(ctx)
	}()
	late := time.NewTimer(gather)
	defer late.Stop()
	gathered := false
	for {
		select {
		case <-answered:
			if gathered {
				learn()
			}
		case <-late.C:
			gathered = true
			n.o.Log.Info("waiting for the programs of FILETRANSFER_PLUGINS to say what they can; what each of them moves is advertised when it has")
			learn()
		case <-all:
			if ctx.Err() == nil {
				n.tellPlugins(useless)
				learn()
			}
			return
		}
	}
}

// learn shows what has become known of a machine, nil being the one that is shown.
func (n *node) learn(now clock.Instant, inv *machine.Inventory) {
	if inv == nil {
		inv = n.o.Inventory
	}
	next := n.known(inv, n.starter.settings.Load())
	if next.Attrs.Text(classad.Old) == n.o.Inventory.Attrs.Text(classad.Old) {
		return
	}
	n.o.Inventory = next
	n.step(now, ep.AbilitiesFound{Inventory: next})
	n.step(now, ep.Tick{})
	n.moved = true
}

// tellPlugins logs which plugins are of no use. HTCondor's default names six, and
// a machine without HTCondor has none of them: that is one line.
func (n *node) tellPlugins(problems []error) {
	var missing []string
	for _, err := range problems {
		var e *errs.Error
		if errors.Is(err, fs.ErrNotExist) && errors.As(err, &e) {
			missing = append(missing, e.Subject)
			continue
		}
		n.o.Log.Info("a file transfer plugin is of no use", "why", err)
	}
	if len(missing) > 0 {
		n.o.Log.Info("no such programs are here; what FILETRANSFER_PLUGINS names and this machine lacks moves no files, and http, https and data are built in", "missing", strings.Join(missing, ", "))
	}
}
