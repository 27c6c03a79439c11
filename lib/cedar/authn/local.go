// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"

	"errors"
	"fmt"
)

// anonymousUser is who everybody is with ANONYMOUS.
const anonymousUser = "CONDOR_ANONYMOUS_USER"

// maxUser bounds the name that a client claims with CLAIMTOBE.
const maxUser = 512

// claimToBeClient says who we are. name is empty when that is not known.
func claimToBeClient(conn *cedar.Conn, name string) error {
	const op = "authn.claimToBeClient"
	if name == "" {
		conn.PutInt(0)
		if err := send(conn); err != nil {
			return err
		}
		return errs.E(op, errs.NotFound, "", errors.New("there is no name to claim"))
	}
	conn.PutInt(1)
	conn.PutString(name)
	if err := send(conn); err != nil {
		return err
	}
	r := reader{conn: conn}
	answer := r.int()
	if err := r.end(); err != nil {
		return err
	}
	if answer != 1 {
		return errs.E(op, errs.Denied, name, fmt.Errorf("the server answered %d", answer))
	}
	return nil
}

// claimToBeServer believes the client. With includeDomain the name may bring
// its domain along; domain is ours.
func claimToBeServer(conn *cedar.Conn, domain string, includeDomain bool) (Identity, error) {
	const op = "authn.claimToBeServer"
	r := reader{conn: conn}
	claims := r.int()
	var name string
	if claims == 1 {
		name = r.name(maxUser)
	}
	if err := r.end(); err != nil {
		return Identity{}, err
	}
	if claims != 1 {
		return Identity{}, errs.E(op, errs.Denied, "", errors.New("the client does not know its name"))
	}
	id := Identity{Method: ClaimToBe, User: name, Name: name}
	if includeDomain {
		id = fqu(ClaimToBe, name)
		if id.Domain == "" {
			id.Domain = strings.ToLower(domain)
		}
		id.Name = id.FQU()
	}
	if id.User == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return Identity{}, broken{errs.E(op, errs.Invalid, "", fmt.Errorf("%.64q is no name of a user", name))}
	}
	conn.PutInt(1)
	return id, send(conn)
}

// anonymousClient waits for the server's word.
func anonymousClient(conn *cedar.Conn) error {
	r := reader{conn: conn}
	answer := r.int()
	if err := r.end(); err != nil {
		return err
	}
	if answer != 1 {
		return errs.E("authn.anonymousClient", errs.Denied, "", fmt.Errorf("the server answered %d", answer))
	}
	return nil
}

func anonymousServer(conn *cedar.Conn) (Identity, error) {
	conn.PutInt(1)
	return Identity{Method: Anonymous, User: anonymousUser, Name: anonymousUser}, send(conn)
}
