// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// Cred is one credential of the job's user.
type Cred struct {
	Service string // as "scitokens" or "box*private"
	Data    cedar.Secret
}

// maxCred bounds one credential.
const maxCred = 1 << 20

// Creds asks for the credentials that the job needs. It is refused here when
// the stream is clear, unless that is allowed.
func (c *Caller) Creds(ctx context.Context, clear bool) ([]Cred, error) {
	if err := c.demandSecrecy(CallGetcreds); err != nil && !clear {
		return nil, err
	}
	r, err := c.ask(ctx, &Request{Call: CallGetcreds})
	if err != nil {
		return nil, err
	}
	if r.Value < 0 {
		refusal := errors.New("the shadow refused getcreds: it could not read a credential")
		return nil, errs.E("shadow.getcreds", errs.Broken, c.Peer(), refusal)
	}
	creds := make([]Cred, 0, len(r.Ads))
	for _, ad := range r.Ads {
		service, _ := ad.EvalString("Service", nil)
		text, _ := ad.EvalString("Data", nil)
		data, err := base64.StdEncoding.DecodeString(strings.Map(dropSpace, text))
		if err != nil || len(data) == 0 || len(data) > maxCred || service == "" {
			return nil, c.useless(CallGetcreds, fmt.Sprintf("the credential of service %.80q cannot be read", service))
		}
		creds = append(creds, Cred{Service: serviceName(service), Data: cedar.Secret(data)})
	}
	return creds, nil
}

func dropSpace(r rune) rune {
	if r == '\n' || r == '\r' || r == ' ' || r == '\t' {
		return -1
	}
	return r
}

// serviceName is the name of a service, also from a shadow before 10.8.0,
// which sent that of the file: with .use and _ in place of *.
func serviceName(service string) string {
	name, old := strings.CutSuffix(service, ".use")
	if old && !strings.Contains(name, "*") {
		name = strings.ReplaceAll(name, "_", "*")
	}
	return name
}

// UserCred asks the shadow at the other end of conn, which is at the payload of
// CREDD_GET_CRED, for what its machine has of a user, of a kind that the number says. A
// shadow that has nothing closes the connection.
func UserCred(conn *cedar.Conn, user, domain string, kind int64) (cedar.Secret, error) {
	const op = "shadow.UserCred"
	conn.PutString(user)
	conn.PutString(domain)
	conn.PutInt(kind)
	if err := conn.EndMessage(); err != nil {
		return "", err
	}
	n, err := conn.IntIn(0, maxCred)
	if err != nil {
		return "", errs.E(op, errs.NotFound, user, fmt.Errorf("the access point has no credential of this user: %w", err))
	}
	if n == 0 {
		return "", errs.E(op, errs.NotFound, user, errors.New("the credential of this user is empty"))
	}
	data, err := conn.Bytes(int(n))
	if err == nil {
		err = conn.EndOfMessage()
	}
	return cedar.Secret(data), err
}

// DockerCreds asks for what a container runtime needs to fetch the image of
// the job. The ad's HTCondorError says why there is nothing, which is an error
// here. It is refused here when the stream is clear.
func (c *Caller) DockerCreds(ctx context.Context) (*classad.Ad, error) {
	if err := c.demandSecrecy(CallGetDockerCreds); err != nil {
		return nil, err
	}
	r, err := c.ask(ctx, &Request{Call: CallGetDockerCreds, Ad: classad.NewAd()})
	if err != nil {
		return nil, err
	}
	if why, ok := r.Ad.EvalString("HTCondorError", nil); ok {
		return nil, errs.E("shadow.get_docker_creds", errs.Broken, c.Peer(), errors.New(why))
	}
	return r.Ad, nil
}
