// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
)

// What systemd tells a service in its environment.
const (
	notifyVariable      = "NOTIFY_SOCKET"
	watchdogVariable    = "WATCHDOG_USEC"
	watchdogPIDVariable = "WATCHDOG_PID"
)

// Notifier tells the service manager how the daemon is. A nil Notifier is
// that of a daemon which no service manager watches: it says nothing.
type Notifier struct {
	socket   string // "@name" is abstract
	watchdog time.Duration
}

// NewNotifier reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID from getenv.
// It returns nil without NOTIFY_SOCKET.
func NewNotifier(getenv func(string) string, pid int) (*Notifier, error) {
	socket := getenv(notifyVariable)
	if socket == "" {
		return nil, nil
	}
	bad := func(name, value, want string) (*Notifier, error) {
		return nil, errs.E("daemon.NewNotifier", errs.Invalid, name, fmt.Errorf("is %q; want %s", value, want))
	}
	if !strings.HasPrefix(socket, "/") && !strings.HasPrefix(socket, "@") || len(socket) < 2 || len(socket) > 107 {
		return bad(notifyVariable, socket, "a path, or @ and the name of an abstract socket")
	}
	n := &Notifier{socket: socket}
	usec := getenv(watchdogVariable)
	if usec == "" {
		return n, nil
	}
	us, err := strconv.ParseInt(usec, 10, 64)
	if err != nil || us < 1 || us > int64(365*24*time.Hour/time.Microsecond) {
		return bad(watchdogVariable, usec, "microseconds, at most a year of them")
	}
	if p := getenv(watchdogPIDVariable); p != "" && p != strconv.Itoa(pid) {
		return n, nil // the watchdog watches another process
	}
	n.watchdog = time.Duration(us) * time.Microsecond
	return n, nil
}

// Ready says that the daemon answers.
func (n *Notifier) Ready() error { return n.say("READY=1") }

// Reloading says that the configuration is being read again; Ready ends it.
// monotonic is the system's monotonic clock, which systemd wants to know.
func (n *Notifier) Reloading(monotonic time.Duration) error {
	return n.say("RELOADING=1\nMONOTONIC_USEC=" + strconv.FormatInt(monotonic.Microseconds(), 10))
}

// Stopping says that the daemon goes down.
func (n *Notifier) Stopping() error { return n.say("STOPPING=1") }

// Status shows one line in systemctl status.
func (n *Notifier) Status(line string) error {
	return n.say("STATUS=" + strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, line))
}

// Watchdog returns how often Alive wants to be called: half of what the
// service manager allows, 0 for never.
func (n *Notifier) Watchdog() time.Duration {
	if n == nil {
		return 0
	}
	return n.watchdog / 2
}

// Alive says that the daemon is not stuck.
func (n *Notifier) Alive() error { return n.say("WATCHDOG=1") }

// Watch calls Alive until ctx ends, each time after healthy returned true.
// healthy should go through what would hang if the daemon did. Without a
// watchdog it returns at once.
func (n *Notifier) Watch(ctx context.Context, healthy func(context.Context) bool) error {
	every := n.Watchdog()
	if every <= 0 {
		return nil
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		if healthy(ctx) {
			if err := n.Alive(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

func (n *Notifier) say(text string) error {
	if n == nil {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return errs.E("daemon.Notifier", errs.Transient, notifyVariable, err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(text)); err != nil {
		return errs.E("daemon.Notifier", errs.Transient, notifyVariable, err)
	}
	return nil
}
