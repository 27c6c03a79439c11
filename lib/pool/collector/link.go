// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool/ads"
)

// link is a connection to the collector, or what stands for one over UDP.
type link struct {
	conn    *cedar.Conn
	post    Poster // over UDP; conn is nil then
	to      cedar.Sinful
	opened  int // the command it was opened for, until that was sent; then -1
	version cedar.Version
	known   bool // the version is
	since   time.Time
	lost    chan struct{} // closed when the collector hung up, nil over UDP
	release func()
}

func (l *link) close() {
	switch {
	case l == nil:
	case l.post != nil:
		_ = l.post.Close()
	default:
		l.release()
		_ = l.conn.Close()
		<-l.lost
	}
}

// gone reports whether the collector hung up.
func (l *link) gone() bool {
	if l == nil {
		return false
	}
	select {
	case <-l.lost:
		return true
	default:
		return false
	}
}

// send writes one message. An ad that cannot be written is dropped, which is
// no error.
func (s *updater) send(ctx context.Context, l *link, u *update) error {
	if u.kind == ads.TypeDaemon && u.command == command.UpdateStartdAd && s.updates.settings.Load().DaemonAd == DaemonAdAuto &&
		(!l.known || !l.version.AtLeast(23, 2, 0)) {
		s.finished(u, false)
		if l.opened >= 0 && l.post == nil {
			return errs.E("collector.send", errs.Unsupported, s.to.Text, errors.New("there was nothing but a daemon ad to send, which it does not know"))
		}
		return nil
	}
	var err error
	lasts := false // what came of it
	what := secrets{s.updates.settings.Load().ClearClaims}
	if l.post != nil {
		err = l.post.Send(ctx, u.command, func(conn *cedar.Conn) { u.payload(conn, what) })
		lasts = errs.Is(err, errs.Invalid) || errs.Is(err, errs.Exhausted)
	} else {
		err = u.put(l.conn, l.opened == u.command, what)
		lasts = errs.Is(err, errs.Invalid) && !l.conn.Broken()
	}
	l.opened = -1
	if err != nil && lasts {
		s.mu.Lock()
		s.status.Refused++
		s.mu.Unlock()
		s.log.Error("an ad cannot be sent", "ad", u.name, "err", err)
		s.finished(u, false)
		return nil
	}
	if err == nil {
		s.finished(u, true)
		s.noteClear(l, what)
	}
	return err
}

// connect opens a connection with its first command.
func (s *updater) connect(ctx context.Context, command int, retiring bool) (*link, error) {
	to, err := s.where()
	if err != nil {
		return nil, err
	}
	limit := ctx
	if retiring {
		var cancel context.CancelFunc
		limit, cancel = context.WithTimeout(ctx, lastWord)
		defer cancel()
	}
	if l, err := s.posting(limit, to, command); l != nil || err != nil {
		return l, err
	}
	conn, session, err := s.updates.cfg.Open.Command(limit, to, command, security.Options{})
	if err != nil {
		return nil, err
	}
	l := &link{conn: conn, to: to, release: conn.Bind(ctx), opened: command, since: time.Now(), lost: make(chan struct{})}
	version := ""
	if session != nil {
		version = session.PeerVersion
	}
	l.version, l.known = cedar.ParseVersion(version)
	go l.watch()
	s.connected(l, version)
	s.log.Info("connected to the collector", "address", to.String(), "version", version)
	return l, nil
}

// connected notes a connection, or what stands for one.
func (s *updater) connected(l *link, version string) {
	s.trusting = false
	s.mu.Lock()
	s.status.Address = l.to.String()
	s.status.Connected, s.status.Datagrams, s.status.Version, s.status.Since, s.status.Err = true, l.post != nil, version, s.updates.cfg.Clock.Now().Wall, nil
	s.last = ""
	s.mu.Unlock()
}

// posts reports whether a collector at an address gets its updates over UDP.
func (s *updater) posts(to cedar.Sinful) bool {
	s.mu.Lock()
	streams := s.streams
	s.mu.Unlock()
	return !streams && s.updates.cfg.Post != nil && s.updates.settings.Load().datagrams(s.to) && security.TakesDatagrams(to)
}

// posting begins to tell the collector over UDP, if that is wanted and its
// address does not say that it takes none. It returns nil where TCP is to be
// used: what cannot be over UDP is no reason to tell the collector nothing.
func (s *updater) posting(ctx context.Context, to cedar.Sinful, command int) (*link, error) {
	if !s.posts(to) {
		return nil, nil
	}
	post, err := s.updates.cfg.Post(ctx, to, command)
	if errs.Is(err, errs.Unsupported) {
		s.log.Warn("the collector is told over TCP, though UPDATE_COLLECTOR_WITH_TCP is false", "err", err)
		s.mu.Lock()
		s.streams = true
		s.mu.Unlock()
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l := &link{post: post, to: to, opened: command, since: time.Now()}
	version := post.PeerVersion()
	l.version, l.known = cedar.ParseVersion(version)
	s.connected(l, version)
	s.log.Info("telling the collector over UDP", "address", to.String(), "version", version)
	return l, nil
}

// reconfigured has UDP tried again, as the settings say now.
func (s *updater) reconfigured() {
	s.mu.Lock()
	s.streams = false
	s.mu.Unlock()
}

// watch waits for the collector to hang up: it never says anything. It ends
// with the connection.
func (l *link) watch() {
	defer close(l.lost)
	nc := l.conn.NetConn()
	var b [1]byte
	for {
		if err := nc.SetReadDeadline(time.Time{}); err != nil {
			return
		}
		n, err := nc.Read(b[:])
		if n > 0 || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
}

// where returns the collector's address; that of port 0 is in its file.
func (s *updater) where() (cedar.Sinful, error) { return s.updates.FindCollector(s.to.At) }

// moved reports whether the collector, which gets its updates over UDP, has another
// address now. Nothing else shows that it started again: no connection is lost.
func (s *updater) moved(l *link) bool {
	if l.post == nil || s.to.At.Port != 0 {
		return false
	}
	at, err := s.where()
	return err == nil && at.String() != l.to.String()
}
