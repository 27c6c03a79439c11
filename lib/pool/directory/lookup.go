// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool/ads"
)

// mostDaemonAd bounds a collector's answer about one daemon, in bytes.
const mostDaemonAd = 1 << 20

// Kind is a kind of daemon that collectors can be asked about.
type Kind uint8

// The kinds of daemons.
const (
	ExecutionPoint Kind = iota // by the name of one of its slots, its own or its machine's
	AccessPoint                // by its name
	Master                     // by its name or its machine's
)

// Opener opens a command at a daemon; *security.Client is one.
type Opener interface {
	Command(ctx context.Context, to cedar.Sinful, command int, o security.Options) (*cedar.Conn, *security.Session, error)
}

// query returns the command and the ad that ask a collector for the address of
// a daemon. Collectors find an attribute that is TARGET's by itself alone.
func (k Kind) query(name string) (number int, ad *classad.Ad, err error) {
	quoted := string(classad.Literal(classad.String(name)).AppendText(nil, classad.Old))
	number, kind, wanted := command.QueryScheddAds, ads.TypeSchedd, ads.AttrName+" == "+quoted
	switch k {
	case AccessPoint:
	case Master:
		number, kind = command.QueryMasterAds, ads.TypeMaster
		wanted += " || " + ads.AttrMachine + " == " + quoted
	case ExecutionPoint:
		number, kind = command.QueryStartdAds, ads.TypeSlot
		wanted += " || " + ads.AttrMachine + " == " + quoted + " || " + ads.AttrName + ` == strcat("slot1@", ` + quoted + ")"
	}
	ad = classad.NewAd()
	ad.SetString(ads.AttrMyType, ads.TypeQuery)
	ad.SetString(ads.AttrTargetType, kind)
	ad.SetInt("LimitResults", 1)
	ad.SetString("Projection", ads.AttrName+" "+ads.AttrMyAddress)
	return number, ad, ad.SetText(ads.AttrRequirements, wanted)
}

// Lookup asks collectors, one after the other, where a daemon is. A name that
// begins with < is its address already. When none of them knows the daemon, the
// error is errs.NotFound and says what each answered.
func Lookup(ctx context.Context, open Opener, collectors []cedar.Sinful, kind Kind, name string) (cedar.Sinful, error) {
	if strings.HasPrefix(name, "<") {
		return cedar.ParseSinful(name)
	}
	bad := []error{errors.New("no collector knows it")}
	for _, collector := range collectors {
		at, err := lookupAt(ctx, open, collector, kind, name)
		if err == nil {
			return at, nil
		}
		bad = append(bad, err)
	}
	return cedar.Sinful{}, errs.E("directory.Lookup", errs.NotFound, name, errors.Join(bad...))
}

// lookupAt asks one collector.
func lookupAt(ctx context.Context, open Opener, collector cedar.Sinful, kind Kind, name string) (cedar.Sinful, error) {
	const op = "directory.Lookup"
	number, query, err := kind.query(name)
	if err != nil {
		return cedar.Sinful{}, errs.E(op, errs.Invalid, name, err)
	}
	conn, _, err := open.Command(ctx, collector, number, security.Options{})
	if err != nil {
		return cedar.Sinful{}, err
	}
	defer conn.Close()
	defer conn.Bind(ctx)()
	conn.LimitMessage(mostDaemonAd)
	conn.PutAd(query, cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		return cedar.Sinful{}, err
	}
	more, err := conn.Int()
	if err != nil {
		return cedar.Sinful{}, err
	}
	if more == 0 {
		return cedar.Sinful{}, errs.E(op, errs.NotFound, name, fmt.Errorf("the collector at %s does not know it", collector.String()))
	}
	ad, err := conn.Ad(cedar.AdOptions{})
	if err != nil {
		return cedar.Sinful{}, err
	}
	text, ok := ad.EvalString(ads.AttrMyAddress, nil)
	if !ok {
		return cedar.Sinful{}, errs.E(op, errs.Invalid, name, errors.New("its ad has no "+ads.AttrMyAddress))
	}
	return cedar.ParseSinful(text)
}
