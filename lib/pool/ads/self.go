// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
)

// Self is what the daemon says about itself, in its own ad.
type Self struct {
	Usage    host.Usage // of its process alone
	Sockets  int        // connections that are open
	Sessions int        // security sessions that are kept
}

// monitor remembers the last measurement, for the share of a processor that
// was used since.
type monitor struct {
	mu   sync.Mutex
	at   time.Time
	cpu  time.Duration
	used float64
}

// shortest is how far apart two measurements are at least.
const shortest = time.Second

// show adds the MonitorSelf attributes to the daemon's ad. CPU usage is in
// hundredths of one processor since the last measurement, since the start at
// the first.
func (m *monitor) show(ad *classad.Ad, s Self, now, start time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at.IsZero() {
		m.at = start
	}
	cpu := s.Usage.UserCPU + s.Usage.SysCPU
	if d := now.Sub(m.at); d >= shortest {
		m.used = max(0, 100*(cpu-m.cpu).Seconds()/d.Seconds())
		m.at, m.cpu = now, cpu
	}
	ad.SetInt("MonitorSelfTime", now.Unix())
	ad.SetInt("MonitorSelfAge", max(0, int64(now.Sub(start)/time.Second)))
	ad.SetReal("MonitorSelfCPUUsage", m.used)
	ad.SetInt("MonitorSelfImageSize", s.Usage.ImageSizeKiB)
	ad.SetInt("MonitorSelfResidentSetSize", s.Usage.RSSKiB)
	ad.SetInt("MonitorSelfRegisteredSocketCount", int64(s.Sockets))
	ad.SetInt("MonitorSelfSecuritySessions", int64(s.Sessions))
}

// AddSelf completes the daemon's ad with what it says of itself.
func (s *Source) AddSelf(ad *classad.Ad) {
	if s.cfg.Self == nil {
		return
	}
	usage, err := s.cfg.Self()
	if err != nil {
		s.log.Debug("the daemon cannot measure itself", "err", err)
		return
	}
	s.self.show(ad, usage, s.cfg.Clock.Now().Wall, time.Unix(s.cfg.Start, 0))
}
