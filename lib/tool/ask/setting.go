// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"context"
	"errors"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/pool/directory"
	"github.com/execpoint/execpoint/lib/tool/settings"
)

// Setting asks a daemon what a name is set to. The answer is the value, and of daemons since
// HTCondor 8.1.2 the line of the file, where that is, the default, and how
// often the name was asked for; a name that is not defined is no string, or
// "Not defined" of older ones.
func Setting(ctx context.Context, open directory.Opener, at cedar.Sinful, name string) (settings.Answer, error) {
	s := settings.Answer{Name: strings.ToUpper(name)}
	conn, _, err := open.Command(ctx, at, command.DCConfigVal, security.Options{})
	if err != nil {
		return s, err
	}
	defer conn.Close()
	defer conn.Bind(ctx)()
	conn.PutString(name)
	if err := conn.EndMessage(); err != nil {
		return s, err
	}
	value, there, err := conn.NullableString()
	if err != nil {
		return s, err
	}
	var line string
	hasDef := false
	for i := 0; conn.More() && err == nil; i++ {
		switch i {
		case 0:
			line, err = conn.String()
		case 1:
			s.At, err = conn.String()
		case 2:
			s.Default, hasDef, err = conn.NullableString()
		default:
			_, err = conn.String()
		}
	}
	if err := errors.Join(err, conn.EndOfMessage()); err != nil {
		return s, err
	}
	if there && !(line == "" && value == "Not defined") {
		s.Value, s.Known, s.Raw = value, true, value
		if _, raw, ok := strings.Cut(line, " = "); ok {
			s.Raw = raw
		}
		s.HasDefault = hasDef
	}
	return s, nil
}
