// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/errs"
)

// maxHops bounds the brokers behind one another that lead to a daemon; those
// that relay refuse more.
const maxHops = 9

// relaysSince is the first version of a broker that relays.
var relaysSince = cedar.Version{Major: 25, Minor: 12}

// relayed has the broker relay what we and the daemon say, on the connection
// on which it was asked. Brokers behind it are told the way.
func (r *Reverser) relayed(ctx context.Context, b cedar.Broker, back cedar.Sinful) (net.Conn, error) {
	target, route, err := hops(b)
	if err != nil {
		return nil, err
	}
	conn, err := r.open(ctx, b)
	if err != nil {
		return nil, err
	}
	release := conn.Bind(ctx)
	err = r.relay(conn, target, route, back)
	release()
	if err == nil {
		err = conn.NetConn().SetDeadline(time.Time{})
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn.NetConn(), nil
}

// relay asks on conn and reads the answers, the last of which is the hello of
// the daemon.
func (r *Reverser) relay(conn *cedar.Conn, target, route string, back cedar.Sinful) error {
	// One that is older would ask the daemon to connect to our broker.
	if v, ok := cedar.ParseVersion(conn.PeerVersion()); !ok || !v.AtLeast(relaysSince.Major, relaysSince.Minor, relaysSince.Patch) {
		return errs.E("listen.Dial", errs.Unsupported, conn.Peer(), fmt.Errorf("the broker is %.40q and relays nothing; want %s or newer", conn.PeerVersion(), relaysSince))
	}
	id := newConnectID()
	ad := r.request(target, id, back)
	if route != "" {
		ad.SetString("CCBRoute", route)
	}
	ad.SetBool("CCBStreamingRequired", true)
	conn.PutAd(ad, cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		return err
	}
	if err := refusal(conn); err != nil {
		return err
	}
	return readHello(conn, id)
}

// readHello reads what opens a reversed connection that a broker relays.
func readHello(conn *cedar.Conn, id string) error {
	bad := func(kind errs.Kind, err error) error { return errs.E("listen.Dial", kind, conn.Peer(), err) }
	n, err := conn.Int()
	if err != nil {
		return err
	}
	if n != command.CCBReverseConnect {
		return bad(errs.Invalid, fmt.Errorf("the relayed connection begins with %d, want %d (CCB_REVERSE_CONNECT)", n, command.CCBReverseConnect))
	}
	ad, err := readAd(conn)
	if err != nil {
		return err
	}
	if got, _ := lookupString(ad, "ClaimId"); !same(id, got) {
		return bad(errs.Denied, errors.New("the relayed connection is of another id"))
	}
	if conn.Buffered() > 0 {
		return bad(errs.Invalid, errEager)
	}
	return nil
}

// hops splits what a daemon is known as at its brokers, "id0#id1#…": the first
// broker is asked for id0, and told of the others as the way from there.
func hops(b cedar.Broker) (target, route string, err error) {
	ids := strings.Split(b.ID, "#")
	if len(ids) > maxHops {
		return "", "", errs.E("listen.Dial", errs.Exhausted, b.String(), fmt.Errorf("%d brokers in a row, %d are the most", len(ids), maxHops))
	}
	for _, id := range ids {
		if !digits(id) {
			return "", "", errs.E("listen.Dial", errs.Invalid, b.String(), fmt.Errorf("%.20q is no number of a daemon at a broker", id))
		}
	}
	return ids[0], strings.Join(ids[1:], " "), nil
}

// digits reports whether a text is a number as brokers count.
func digits(s string) bool {
	return s != "" && len(s) <= 20 && strings.Trim(s, "0123456789") == ""
}
