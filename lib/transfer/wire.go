// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
)

// What a sender announces before each file.
const (
	cmdFinished   = 0
	cmdFile       = 1
	cmdEncrypt    = 2
	cmdDontCrypt  = 3
	cmdX509       = 4
	cmdURL        = 5
	cmdMkdir      = 6
	cmdOther      = 999
	subUploadURL  = 7
	subReuse      = 8
	subSignURLs   = 9
	goAheadAlways = 2
)

// Hold codes of transfers, as job ads and event logs have them.
const (
	HoldDownload     = 12 // the receiving side failed
	HoldUpload       = 13 // the sending side failed
	HoldInputSize    = 32
	HoldOutputSize   = 33
	holdInvalidAck   = 11
	holdInvalidAhead = 18

	subTimeout         = 62 // a plugin took too long: ETIME
	subPluginUnknown   = -1001
	subPluginBroken    = -1002
	subPluginNotRun    = -1003
	subPluginNoResult  = -1004
	subNotPermitted    = 1 // EPERM
	minAlive           = 300 * time.Second
	aliveSlop          = 20 * time.Second
	noLimit            = -1
	maxName            = 4096
	maxURLs            = 100_000
	maxURLText         = 64 << 20 // bytes of all URLs, and of all ads about files at URLs
	sizeSlack          = 65535
	defaultMaxItems    = 1 << 24
	defaultIdleTimeout = 300 * time.Second
	lastWordTimeout    = 5 * time.Second // for what a lost peer may have said before
)

// Side is one end of a transfer: the connection, right after the TransferKey
// was sent or taken, and how this end speaks of itself.
type Side struct {
	Conn        *cedar.Conn
	PeerVersion string            // of the other end; informative, every dialect spoken since 10.6 is the same
	Log         *slog.Logger      // nil is none
	Record      func(*classad.Ad) // told of each file received and each result of a plugin, for FILE_TRANSFER_STATS_LOG; nil is nobody
	Progress    func(bytes int64) // told about bytes of files as they move; nil is none
	Name        string            // in messages, default "STARTER"
	Address     string            // own IP address in messages, default that of the connection
	Errno       host.Errno        // numbers and texts of the system's errors; nil knows the commonest
	Timeout     time.Duration     // how long the other end may be silent within a transfer, default 300 s
}

// Begin sends the TransferKey, the first message after command.FiletransUpload or
// command.FiletransDownload. A shadow answers nothing if it is right.
func Begin(conn *cedar.Conn, key cedar.Secret) error {
	conn.PutSecret(key)
	return conn.EndMessage()
}

// Stats is what a transfer moved.
type Stats struct {
	Files int   // over the connection, empty ones too
	Bytes int64 // over the connection
	Final bool  // receiving: the sender said that the job is over
	// Protocols are the transfers by URL, by the upper-case name of their scheme.
	Protocols map[string]ProtocolStats
	// PluginResults are what plugins reported, an invocation ad before the
	// results of each: what shadows expect as InputPluginResultList.
	PluginResults []*classad.Ad
	// Reported are the files of a received transfer that its sender stored at
	// URLs itself, as it reported them.
	Reported []*classad.Ad
	// Peer is TransferStats of the other end, nil if it sent none.
	Peer *classad.Ad
	// Spooled are the names at the top that were sent, for SpooledOutputFiles.
	Spooled []string

	uncounted int  // files that HTCondor does not count: received by commands 2 and 3
	failed    bool // a receiver that failed tells no totals
}

// ProtocolStats counts one kind of URL.
type ProtocolStats struct {
	Files int
	Bytes int64
}

// Total is what was moved in all, in bytes: over the connection and by URL, as
// the plugins say.
func (s Stats) Total() int64 {
	n := s.Bytes
	for _, p := range s.Protocols {
		n = min(n, math.MaxInt64-p.Bytes) + p.Bytes
	}
	return n
}

// Ad returns TransferStats: Protocols, CedarSizeBytes, CedarFilesCount, and
// both for every other protocol.
func (s Stats) Ad() *classad.Ad {
	ad := classad.NewAd()
	var protocols []string
	if s.Bytes > 0 {
		protocols = append(protocols, "cedar")
	}
	if n := s.Files - s.uncounted; n > 0 {
		ad.SetInt("CedarFilesCount", int64(n))
	}
	names := make([]string, 0, len(s.Protocols))
	for name := range s.Protocols {
		names = append(names, name)
	}
	slices.Sort(names)
	if !s.failed {
		ad.SetString("Protocols", strings.Join(append(protocols, names...), ","))
		if s.Bytes > 0 {
			ad.SetInt("CedarSizeBytes", s.Bytes)
		}
	}
	for _, name := range names {
		p := s.Protocols[name]
		ad.SetInt(name+"FilesCount", int64(p.Files))
		ad.SetInt(name+"SizeBytes", p.Bytes)
	}
	return ad
}

// WireFailure is why a transfer failed, in the words and numbers that hold
// reasons have.
type WireFailure struct {
	HoldCode    int
	HoldSubcode int
	Reason      string // both ends' texts, without line breaks
	Retry       bool   // another try may succeed: the job is not to be held
	Broken      bool   // the connection failed, and no final report was exchanged
	Err         error  // the first cause here; nil if the other end had it
}

// Error returns the reason.
func (f *WireFailure) Error() string {
	return fmt.Sprintf("%s (hold code %d, subcode %d)", f.Reason, f.HoldCode, f.HoldSubcode)
}

// Unwrap returns the cause.
func (f *WireFailure) Unwrap() error { return f.Err }
