// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/starter/plugins"
	"github.com/execpoint/execpoint/lib/transfer"
)

// trial is one method of one plugin that the owner wants to see work before it is
// advertised (<METHOD>_TEST_URL).
type trial struct{ path, method, url string }

// trials are what came of them, the last time each was made: true is that it works.
type trials map[trial]bool

// trialURLs are the URLs of a configuration by their methods, in lower case.
func trialURLs(s *config.Snapshot) map[string]string {
	urls := make(map[string]string)
	for _, knob := range s.Names() {
		method, ok := strings.CutSuffix(strings.ToUpper(knob), "_TEST_URL")
		if url := s.String(knob); ok && method != "" && url != "" {
			urls[strings.ToLower(method)] = url
		}
	}
	return urls
}

// offered leaves of the methods of plugins those that work as far as that is known: what
// is tried and has not worked yet is not offered, unless another plugin works. offline
// are the methods that a plugin says it has and that did not work. HTCondor tries in the
// same way; a job's own starter tries nothing.
func (t trials) offered(known *transfer.Plugins, urls map[string]string) (methods, offline []string) {
	lacking, works := map[string]bool{}, map[string]bool{}
	for _, one := range known.List {
		for _, m := range one.Methods {
			url, tried := urls[m]
			well, done := t[trial{one.Path, m, url}]
			switch {
			case !tried || well:
				works[m] = true
			case done:
				offline = append(offline, m)
				fallthrough
			default:
				lacking[m] = true
			}
		}
	}
	methods = slices.DeleteFunc(known.Methods(), func(m string) bool { return lacking[m] && !works[m] })
	slices.Sort(offline)
	return methods, slices.Compact(offline)
}

// tryPlugins makes the trials of the plugins that were asked. What came of them is shown
// when all are made.
func (n *node) tryPlugins(ctx context.Context, ways *transfer.Plugins, s *config.Snapshot, round int) {
	urls := trialURLs(s)
	made := trials{}
	for _, one := range ways.List {
		for _, m := range one.Methods {
			url, wanted := urls[m]
			if !wanted {
				continue
			}
			err := n.try(ctx, ways, one, url, s)
			if ctx.Err() != nil {
				return
			}
			made[trial{one.Path, m, url}] = err == nil
			if err != nil {
				n.o.Log.Warn("a file transfer plugin does not fetch the URL that it is tried with: its method is not advertised", "plugin", one.Path, "method", m, "err", err)
			}
		}
	}
	if len(made) == 0 {
		return
	}
	n.mail.post(func(now clock.Instant) {
		if round == n.starter.abilities.round {
			n.starter.abilities.trials = made
			n.learn(now, nil)
		}
	})
}

// try has a plugin fetch a URL into a directory of its own in EXECUTE. Under root it has
// the rights of the account that has jobs without a user, and no more.
func (n *node) try(ctx context.Context, ways *transfer.Plugins, one transfer.Plugin, url string, s *config.Snapshot) (err error) {
	var user *host.Identity
	if n.o.Host.Account != nil {
		if user, err = n.o.Host.Account(Nobody(s)); err != nil {
			return err
		}
	}
	execute := n.o.executeOf(slot.ID{})
	dir, err := os.MkdirTemp(execute, ".test_file_transfer-*")
	if err != nil {
		return err
	}
	above, err := os.OpenRoot(execute)
	if err != nil {
		return errors.Join(err, os.Remove(dir))
	}
	name := filepath.Base(dir)
	defer func() { err = errors.Join(err, above.RemoveAll(name), above.Close()) }()
	mine := *ways
	mine.Run = plugins.Runner(n.o.Host.Spawner, user, n.o.StarterEnv)
	if user != nil {
		give := func(root *os.Root, name string, _ bool) error { return root.Lchown(name, int(user.UID), int(user.GID)) }
		if err := give(above, name, true); err != nil {
			return err
		}
		mine.Owner = give
	}
	root, err := above.OpenRoot(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return mine.Try(ctx, root, one, url)
}
