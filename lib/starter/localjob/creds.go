// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package localjob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/job"
)

// Secrets are the files of the machine's owner that are nobody else's.
type Secrets struct {
	Files host.PrivateFiles // nil where the system has no such thing
	User  string            // who runs this process
}

// mostToken bounds one token, in bytes.
const mostToken = 1 << 20

// openCreds brings the tokens that the job needs (OAuthServicesNeeded). The access
// point is this machine, so they are where it has them: a directory for each user in
// SEC_CREDENTIAL_DIRECTORY_OAUTH, with a file for each service that ends in .use.
func (j *Job) openCreds(got *job.Brought) error {
	services := j.place.Job.Services()
	if len(services) == 0 {
		return nil
	}
	if j.Plan.Settings.Tokens.Dir == "" || j.Secrets == nil {
		return errs.E("starter.creds", errs.Unsupported, "SEC_CREDENTIAL_DIRECTORY_OAUTH", errors.New("it is not set, so there are no tokens on this machine"))
	}
	dir, err := j.copyCreds(services)
	if err != nil {
		return err
	}
	got.Creds = dir
	j.creds = job.Renew(j.Plan.Settings.Tokens.Every, j.Log, []job.Renewal{func(context.Context) error {
		_, err := j.copyCreds(services)
		return err
	}})
	return nil
}

// copyCreds writes the tokens of services where the job finds them.
func (j *Job) copyCreds(services []string) (dir string, err error) {
	own := j.Secrets()
	user := own.User
	if u := j.place.User; u != nil {
		user = u.Name // as whom it runs, whatever its ad says
	}
	if user == "" || user[0] == '.' || strings.ContainsAny(user, "/\\\x00") {
		return "", errs.E("starter.creds", errs.Invalid, user, errors.New("the name of the job's user cannot be that of a directory"))
	}
	wanted := make(map[string][]byte, len(services))
	for _, service := range services {
		if wanted[service], err = j.token(own, user, service); err != nil {
			return "", err
		}
	}
	return j.place.Box.WriteCreds(wanted)
}

// token reads the user's token of a service: a file of this process's own user that
// nobody else may read, or any that is in the user's directory and leads nowhere else
// (TRUST_CREDENTIAL_DIRECTORY).
func (j *Job) token(own Secrets, user, service string) ([]byte, error) {
	const op = "starter.creds"
	set := j.Plan.Settings.Tokens
	name := strings.ReplaceAll(service, "*", "_") + ".use"
	if strings.ContainsAny(name, "/\\\x00") || name[0] == '.' {
		return nil, errs.E(op, errs.Invalid, service, errors.New("the name of the service cannot be that of a file"))
	}
	if !set.Trusted {
		if own.Files == nil {
			return nil, errs.E(op, errs.Unsupported, service, errors.New("no file can be read here that is another's secret"))
		}
		return own.Files.ReadPrivate(filepath.Join(set.Dir, user, name), mostToken)
	}
	dir, err := os.OpenRoot(filepath.Join(set.Dir, user))
	if err != nil {
		return nil, errs.E(op, errs.NotFound, user, err)
	}
	defer dir.Close()
	// A pipe would keep us waiting.
	if info, err := dir.Stat(name); err != nil || !info.Mode().IsRegular() {
		return nil, errs.E(op, errs.NotFound, service, errors.Join(errors.New("there is no token of this service"), err))
	}
	f, err := dir.Open(name)
	if err != nil {
		return nil, errs.E(op, errs.Denied, service, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostToken+1))
	if err == nil && len(data) > mostToken {
		err = fmt.Errorf("it has more than %d bytes", mostToken)
	}
	if err != nil {
		return nil, errs.E(op, errs.Broken, service, err)
	}
	return data, nil
}
