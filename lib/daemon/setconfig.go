// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// maxSettingText bounds what a peer may set.
const maxSettingText = 256 << 10

// setConfig makes, or takes back, a setting: for condor_config_val -set and
// -unset in a file, for -rset and -runset until the daemon ends. Which knobs
// whom is allowed stands in SETTABLE_ATTRS_<LEVEL>, and what was set under a
// name is replaced only by who may set that too; the command itself is open to
// everybody. It is in force after the next reconfiguration.
func (a *Answers) setConfig(ctx context.Context, c *listen.Call) error {
	const op = "daemon.setConfig"
	name, err := c.Conn.String()
	if err != nil {
		return err
	}
	text, err := c.Conn.String()
	if err != nil {
		return err
	}
	if err := c.Conn.EndOfMessage(); err != nil {
		return err
	}
	knob, err := settingName(name, text)
	switch {
	case err != nil:
	case a.Remote == nil || a.Allowed == nil:
		err = errors.New("this daemon's configuration is in its files alone")
	case !a.settable(ctx, c.Request, knob) || !strings.EqualFold(name, knob) && !a.settable(ctx, c.Request, name):
		err = fmt.Errorf("no SETTABLE_ATTRS_<LEVEL> of a level that %s has names it", c.Request.Peer.User)
	case c.Command.Number == command.DCConfigPersist:
		err = a.Remote.Persist(name, text)
	default:
		err = a.Remote.Set(name, text)
	}
	answer := int64(0)
	if err != nil {
		answer = -1
		err = errs.E(op, errs.Denied, fmt.Sprintf("%.80q", firstLine(name)), fmt.Errorf("%s may not change it from afar: %w", c.Request.Peer.User, err))
	} else {
		c.Log.Info("setting from afar", "user", c.Request.Peer.User, "name", name, "kept", c.Command.Number == command.DCConfigPersist, "taken back", text == "")
	}
	c.Conn.PutInt(answer)
	return errors.Join(err, c.Conn.EndMessage())
}

// settingName returns the name that a setting is judged by: that of its knob,
// or $CATEGORY.OPTION of a template. One line is one setting, so that a
// second one cannot come in unjudged.
func settingName(name, text string) (string, error) {
	if !remoteName(name) {
		return "", errors.New("want a name of letters, digits, dots and underscores")
	}
	if text == "" {
		return name, nil
	}
	if len(text) > maxSettingText || strings.ContainsAny(strings.TrimRight(text, "\r\n"), "\r\n\x00") {
		return "", errors.New("want one line")
	}
	line := strings.TrimSpace(text)
	if strings.HasSuffix(line, "\\") {
		return "", errors.New("want one whole line")
	}
	if len(line) > 4 && strings.EqualFold(line[:4], "use ") {
		category, option, ok := strings.Cut(line[4:], ":")
		category, option = strings.TrimSpace(category), strings.TrimSpace(option)
		if _, _, known := config.TemplateText(category, option, ""); !ok || !known || !remoteName(option) {
			return "", errors.New("want use CATEGORY : OPTION with one known option")
		}
		return "$" + category + "." + option, nil
	}
	knob, _, ok := strings.Cut(line, "=")
	knob = strings.TrimSpace(knob)
	if !ok || !remoteName(knob) || strings.HasPrefix(knob, "$") {
		return "", errors.New("want NAME = VALUE")
	}
	return knob, nil
}

// settingLevels are the levels of those who ask something of us.
var settingLevels = [...]security.Level{
	security.Read, security.Write, security.Negotiator, security.Administrator, security.Config, security.Daemon,
	security.AdvertiseStartd, security.AdvertiseSchedd, security.AdvertiseMaster,
}

// settable reports whether who asks has a level whose list names the knob.
func (a *Answers) settable(ctx context.Context, r *security.Request, knob string) bool {
	s := a.Config()
	for _, l := range settingLevels {
		list := s.List("SETTABLE_ATTRS_" + l.String())
		if listed(list, knob) && a.Allowed(ctx, l, r) {
			return true
		}
	}
	return false
}

// listed reports whether a list with at most one * in each entry has a name.
func listed(list []string, name string) bool {
	name = strings.ToLower(name)
	for _, entry := range list {
		before, after, wild := strings.Cut(strings.ToLower(entry), "*")
		if !wild && before == name ||
			wild && len(name) >= len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after) {
			return true
		}
	}
	return false
}
