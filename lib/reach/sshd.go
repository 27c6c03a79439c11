// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// startSSHD lets the owner of the job in by ssh (condor_ssh_to_job): keys are
// made, the answer carries them, and from then on the connection belongs to an
// sshd beside the job.
func (cs *CommandSocket) startSSHD(ctx context.Context, c *listen.Call) error {
	t, running := cs.cfg.Job.Running()
	if err := cs.owner(c, t); err != nil {
		return err // HTCondor does not answer this one either
	}
	ad, err := readAd(c)
	if err != nil {
		return err
	}
	if why, retry := cs.noSSH(t, running); why != "" {
		return refuse(c.Conn, cs.cfg.Endpoint.Version, retry, why)
	}
	v, err := cs.readVisit(ad, t)
	if err == nil {
		err = v.prepare(ctx)
	}
	if err != nil {
		v.cleanUp()
		return errors.Join(err, refuse(c.Conn, cs.cfg.Endpoint.Version, false, oneLine(err.Error())))
	}
	reply := classad.NewAd()
	reply.SetBool(attrResult, true)
	reply.SetString("RemoteUser", v.user)
	reply.SetString("SSHPublicServerKey", armoured(v.public))
	reply.SetString("SSHPrivateClientKey", armoured(v.private))
	c.Conn.PutAd(reply, cedar.AdOptions{Breaks: true})
	if err := c.Conn.EndMessage(); err != nil {
		v.cleanUp()
		return err
	}
	conn := c.Conn
	if !c.Detach() {
		v.cleanUp()
		return nil
	}
	defer conn.Close()
	family, err := v.run(conn)
	if err != nil {
		v.cleanUp()
		return err
	}
	c.Log.Info("the owner of the job is let in by ssh", "user", c.Request.Peer.User, "proc", family.Main().String())
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.stopped.Err() != nil {
		_, err := family.Close()
		v.cleanUp()
		return err
	}
	cs.visits.Go(func() {
		select {
		case <-family.Done():
		case <-cs.stopped.Done():
		}
		if _, err := family.Close(); err != nil {
			cs.cfg.Endpoint.Log.Warn("what an ssh session left could not be ended", "err", err)
		}
		v.cleanUp()
	})
	return nil
}

// noSSH says why no visitor can be let in now, "" if one can.
func (cs *CommandSocket) noSSH(t Target, running bool) (why string, retry bool) {
	if !cs.cfg.allows(cs.cfg.Settings.SSH, t) {
		return "ENABLE_SSH_TO_JOB is false on this machine", false
	}
	if why, retry := t.unready(running); why != "" {
		return why, retry
	}
	switch {
	case t.Suspended:
		return "the job is suspended", true
	case t.Spawn == nil:
		return "nothing can be started beside a job on this machine", false
	}
	return "", false
}

// run hands the connection to an sshd.
func (v *visit) run(conn *cedar.Conn) (host.Family, error) {
	const op = "reach.sshd"
	if conn.Buffered() > 0 {
		return nil, errs.E(op, errs.Invalid, conn.Peer(), errors.New("bytes came before the answer was sent; ssh cannot begin in the middle"))
	}
	filer, ok := conn.NetConn().(interface{ File() (*os.File, error) })
	if !ok {
		return nil, errs.E(op, errs.Unsupported, conn.Peer(), fmt.Errorf("a connection of the kind %T cannot be handed to sshd", conn.NetConn()))
	}
	socket, err := filer.File()
	if err != nil {
		return nil, errs.E(op, errs.Broken, conn.Peer(), err)
	}
	defer socket.Close()
	_ = socket.Fd() // from here on it blocks, as sshd expects
	if tcp, ok := conn.NetConn().(*net.TCPConn); ok {
		_ = tcp.SetKeepAlive(true)
	}
	log, err := v.create("sshd.log")
	if err != nil {
		return nil, errs.E(op, errs.Broken, v.dir, err)
	}
	defer log.Close()
	family, err := v.target.Spawn(host.SpawnSpec{
		Path: v.sshd, Args: append([]string{v.sshd}, v.sshdArgs...), Env: v.env, Dir: v.target.Scratch,
		Stdin: socket, Stdout: socket, Stderr: log, User: v.target.User, Bond: host.Bound,
	})
	if err != nil {
		return nil, errs.E(op, errs.Broken, v.sshd, err)
	}
	return family, nil
}

// armoured writes key in base64 as condor_ssh_to_job reads it: in lines of 64
// characters. A longer line it takes for nothing at all.
func armoured(key []byte) string {
	const width = 64
	text := base64.StdEncoding.EncodeToString(key)
	var out strings.Builder
	for len(text) > width {
		out.WriteString(text[:width] + "\n")
		text = text[width:]
	}
	out.WriteString(text)
	return out.String()
}
