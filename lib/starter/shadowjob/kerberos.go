// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/starter/job"
)

// kerberos is where a job of Kerberos gets its tickets. The owner of the machine has
// a directory (SEC_CREDENTIAL_DIRECTORY_KRB) and a credential monitor, a program that
// turns what the access point has of a user there, USER.cred, into a ticket cache,
// USER.cc, and renews it. The job has a copy of the cache, as KRB5CCNAME.
type kerberos struct {
	job  *Job
	dir  string
	user string // of this machine, as whom the job runs
	copy []byte // what the job has
}

const (
	mostTicket = 1 << 20 // bytes of a credential or a cache
	mostPID    = 256     // of the file with the monitor's
	credKind   = 0x20    // Kerberos, in CREDD_GET_CRED
	ccSuffix   = ".cc"
)

// openKerberos brings the tickets of the job, by way of the credential monitor, which
// is given what the access point has if it has made none or only an old one.
func (j *Job) openKerberos(ctx context.Context) (job.Renewal, error) {
	const op = "starter.kerberos"
	set := j.Plan.Settings.Pool.Creds
	if set.KerberosDir == "" {
		return nil, errs.E(op, errs.Unsupported, "SEC_CREDENTIAL_DIRECTORY_KRB", errors.New("it is not set, so this machine has no tickets of Kerberos"))
	}
	k := &kerberos{job: j, dir: set.KerberosDir}
	if user := j.place.User; user != nil {
		k.user = user.Name
	} else if j.System != nil {
		k.user = j.System().User
	}
	if k.user == "" || k.user[0] == '.' || strings.ContainsAny(k.user, "/\\\x00") {
		return nil, errs.E(op, errs.Invalid, k.user, errors.New("the name of the job's user cannot be that of a file"))
	}
	dir, err := os.OpenRoot(k.dir)
	if err != nil {
		return nil, errs.E(op, errs.Broken, k.dir, err)
	}
	defer dir.Close()
	// What is marked is swept by the monitor.
	if err := dir.Remove(k.user + ".mark"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		j.conv.log.Warn("the tickets of a user may be swept away", "user", k.user, "err", err)
	}
	if !k.fresh(dir, set.KerberosFresh) {
		if err := k.fetch(ctx, dir); err != nil {
			return nil, errs.E(op, errs.KindOf(err), k.user, err)
		}
		if err := k.await(ctx, dir, set.CredmonWait); err != nil {
			return nil, err
		}
	}
	if err := k.bring(ctx); err != nil {
		return nil, err
	}
	j.mover.tickets = k.user + ccSuffix
	return k.bring, nil
}

// fresh reports whether there is a cache that is young enough: one of any age where
// age is negative.
func (k *kerberos) fresh(dir *os.Root, age time.Duration) bool {
	info, err := dir.Stat(k.user + ccSuffix)
	return err == nil && (age < 0 || k.job.conv.clock.Now().Wall.Sub(info.ModTime()) < age)
}

// fetch gives the monitor what the access point has of the user, and wakes it.
func (k *kerberos) fetch(ctx context.Context, dir *os.Root) error {
	cred, err := k.ask(ctx)
	if err != nil {
		return err
	}
	next := k.user + "." + rand.Text() + ".tmp" // other starters may do the same
	f, err := dir.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(cred.Reveal()))
	if err = errors.Join(err, f.Close()); err == nil {
		err = dir.Rename(next, k.user+".cred")
	}
	if err != nil {
		return errors.Join(err, dir.Remove(next))
	}
	if err := k.wake(dir); err != nil { // it may look by itself in time
		k.job.conv.log.Warn("the credential monitor is not woken", "dir", k.dir, "err", err)
	}
	return nil
}

// ask asks the shadow for what it has of the user, under the session of the claim.
func (k *kerberos) ask(ctx context.Context) (cedar.Secret, error) {
	j := k.job
	to, err := cedar.ParseSinful(j.place.Job.Text("ShadowIpAddr"))
	if err != nil {
		return "", err
	}
	session, err := j.conv.claimSession()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, j.Plan.Settings.Pool.Wire)
	defer cancel()
	conn, _, err := j.conv.client.Command(ctx, to, command.CreddGetCred, security.Options{Session: session})
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	defer conn.Bind(ctx)()
	if !conn.Encrypted() {
		return "", errors.New("the connection to the shadow is not encrypted")
	}
	return shadow.UserCred(conn, k.user, j.Plan.Settings.Pool.UidDomain, credKind)
}

// wake has the monitor look, by SIGHUP to the process that it says it is.
func (k *kerberos) wake(dir *os.Root) error {
	f, err := dir.Open("pid")
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostPID))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return fmt.Errorf("the file pid holds %.20q, no number of a process", text)
	}
	if k.job.Wake == nil {
		return errors.New("no process can be told here")
	}
	return k.job.Wake(pid)
}

// await waits until the monitor has made a cache.
func (k *kerberos) await(ctx context.Context, dir *os.Root, limit time.Duration) error {
	const op, step = "starter.kerberos", time.Second
	for waited := time.Duration(0); ; waited += step {
		if _, err := dir.Stat(k.user + ccSuffix); err == nil {
			return nil
		}
		if waited >= limit {
			return errs.E(op, errs.Expired, k.user, fmt.Errorf("the credential monitor has made no tickets in %s within %s (CREDD_POLLING_TIMEOUT)", k.dir, limit))
		}
		select {
		case <-time.After(step):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// bring copies the cache to the job if it is another one.
func (k *kerberos) bring(context.Context) error {
	const op = "starter.kerberos"
	if k.job.System == nil {
		return errs.E(op, errs.Unsupported, k.user, errors.New("no file can be read here that is another's secret"))
	}
	files := k.job.System().Files
	if files == nil {
		return errs.E(op, errs.Unsupported, k.user, errors.New("no file can be read here that is another's secret"))
	}
	cache, err := files.ReadPrivate(filepath.Join(k.dir, k.user+ccSuffix), mostTicket)
	if err != nil {
		return err
	}
	if bytes.Equal(cache, k.copy) {
		return nil
	}
	if err := k.job.place.Box.WritePrivate(k.user+ccSuffix, cache); err != nil {
		return err
	}
	k.copy = cache
	return nil
}
