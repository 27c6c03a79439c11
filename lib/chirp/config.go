// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chirp

import (
	"context"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/shadow"
)

// Settings are what the configuration says about chirping.
type Settings struct {
	Enabled bool // ENABLE_CHIRP
	IO      bool // ENABLE_CHIRP_IO
	Updates bool // ENABLE_CHIRP_UPDATES
	Delayed bool // ENABLE_CHIRP_DELAYED
	// Prefixes are the patterns of attributes that may be set with a delay
	// (CHIRP_DELAYED_UPDATE_PREFIX), MostDelayed is how many of them
	// (CHIRP_DELAYED_UPDATE_MAX_ATTRS).
	Prefixes    []string
	MostDelayed int
}

// SettingsFrom reads the configuration.
func SettingsFrom(s *config.Snapshot) (Settings, error) {
	r := &config.Reader{Snapshot: s}
	set := Settings{
		Enabled: r.Bool("ENABLE_CHIRP"), IO: r.Bool("ENABLE_CHIRP_IO"), Updates: r.Bool("ENABLE_CHIRP_UPDATES"), Delayed: r.Bool("ENABLE_CHIRP_DELAYED"),
		Prefixes:    strings.FieldsFunc(r.Text("CHIRP_DELAYED_UPDATE_PREFIX"), func(c rune) bool { return c == ',' || c == ' ' || c == '\t' }),
		MostDelayed: int(min(r.Int("CHIRP_DELAYED_UPDATE_MAX_ATTRS"), math.MaxInt32)),
	}
	if err := r.Err(); err != nil {
		return Settings{}, err
	}
	return set, nil
}

// Files are the calls for files at the submit machine, as *shadow.Caller has
// them.
type Files interface {
	Opener
	Reader
	Writer
	FileAttributes
}

// Opener opens and closes files.
type Opener interface {
	FileInfo(ctx context.Context, logical string) (url string, err error)
	Open(ctx context.Context, path string, flags, mode int) (fd int, err error)
	Close(ctx context.Context, fd int) error
	Fsync(ctx context.Context, fd int) error
	Seek(ctx context.Context, fd int, offset int64, whence int) (int64, error)
}

// Reader reads from open files.
type Reader interface {
	Read(ctx context.Context, fd, n int) ([]byte, error)
	Pread(ctx context.Context, fd, n int, offset int64) ([]byte, error)
	Sread(ctx context.Context, fd, n int, offset, length, skip int64) ([]byte, error)
}

// Writer writes to open files.
type Writer interface {
	Write(ctx context.Context, fd int, b []byte) (int, error)
	Pwrite(ctx context.Context, fd int, b []byte, offset int64) (int, error)
	Swrite(ctx context.Context, fd int, b []byte, offset, length, skip int64) (int, error)
}

// FileAttributes are what open files have besides their bytes.
type FileAttributes interface {
	Fchmod(ctx context.Context, fd, mode int) error
	Fchown(ctx context.Context, fd, uid, gid int) error
	Ftruncate(ctx context.Context, fd int, size int64) error
	Fstat(ctx context.Context, fd int) (shadow.Stat, error)
	Fstatfs(ctx context.Context, fd int) (shadow.Statfs, error)
}

// Paths are the calls for names of files there.
type Paths interface {
	Names
	Directories
	Links
	PathAttributes
	PathStats
	Peers
}

// Names are what is done with a file by its name.
type Names interface {
	Unlink(ctx context.Context, path string) error
	Rename(ctx context.Context, from, to string) error
	Access(ctx context.Context, path string, mode int) error
	Truncate(ctx context.Context, path string, size int64) error
}

// Directories makes, removes and lists directories.
type Directories interface {
	Mkdir(ctx context.Context, path string, mode int) error
	Rmdir(ctx context.Context, path string) error
	RmAll(ctx context.Context, path string) error
	GetDir(ctx context.Context, path string) ([]string, error)
	GetLongDir(ctx context.Context, path string) ([]shadow.Entry, error)
}

// Links makes and reads links.
type Links interface {
	Link(ctx context.Context, old, name string) error
	Symlink(ctx context.Context, old, name string) error
	Readlink(ctx context.Context, path string, n int) (string, error)
}

// PathAttributes changes modes, owners and times.
type PathAttributes interface {
	Chmod(ctx context.Context, path string, mode int) error
	Chown(ctx context.Context, path string, uid, gid int) error
	Lchown(ctx context.Context, path string, uid, gid int) error
	Utime(ctx context.Context, path string, read, changed int64) error
}

// PathStats tells what files and their file systems are like.
type PathStats interface {
	Stat(ctx context.Context, path string) (shadow.Stat, error)
	Lstat(ctx context.Context, path string) (shadow.Stat, error)
	Statfs(ctx context.Context, path string) (shadow.Statfs, error)
}

// Peers tells who the two sides are.
type Peers interface {
	Whoami(ctx context.Context, n int) (string, error)
	WhoAreYou(ctx context.Context, host string, n int) (string, error)
}

// Updates are the calls for the job's ad and log.
type Updates interface {
	JobAttr(ctx context.Context, name string) (string, error)
	SetJobAttr(ctx context.Context, name, expr string) error
	Constrain(ctx context.Context, expr string) error
	Log(ctx context.Context, event *classad.Ad) error
}

// Remote is the submit side. A refused call is a *shadow.CallError.
// *shadow.Caller is one.
type Remote interface {
	Files
	Paths
	Updates
}

var _ Remote = (*shadow.Caller)(nil)

// Allow says which groups of requests a job may make.
type Allow struct {
	IO      bool // files
	Updates bool // attributes and the log
	Delayed bool // attributes, with the next update
}

// Any reports whether there is anything to offer.
func (a Allow) Any() bool { return a.IO || a.Updates || a.Delayed }

// AllowFrom reads what the job wants of what the machine offers.
func AllowFrom(job *classad.Ad, set Settings) Allow {
	wants := func(name string, otherwise bool) bool {
		if b, ok := job.EvalBool(name, nil); ok {
			return b
		}
		return otherwise
	}
	if !set.Enabled {
		return Allow{}
	}
	var a Allow
	a.IO = wants("WantIOProxy", false) && set.IO
	a.Updates = wants("WantRemoteUpdates", a.IO) && set.Updates
	a.Delayed = wants("WantDelayedUpdates", true) && set.Delayed
	return a
}

// Config says whom a proxy serves.
type Config struct {
	Remote   Remote
	Allow    Allow
	Job      *classad.Ad // as the starter has it, for attributes that were not set yet
	Settings Settings
	// Address is where to listen; the zero value is the loopback interface. A
	// job in a container has another one.
	Address netip.Addr
	// Acknowledge tells the system to acknowledge at once what came on nc
	// (Linux: TCP_QUICKACK). The clients there are send a request and then its
	// data, and their system keeps the data until the request is acknowledged,
	// 40 ms for each without this. Nil does nothing.
	Acknowledge func(nc net.Conn)
	Log         *slog.Logger // nil for none
}
