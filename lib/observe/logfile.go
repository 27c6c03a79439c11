// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
)

// LogLimit is how large or how old a log may become before it is put aside:
// the value of MAX_<SUBSYSTEM>_LOG.
type LogLimit struct {
	Bytes int64         // 0 for no limit
	Age   time.Duration // 0 for no limit
}

// ParseLogLimit reads "10 Mb", "1000000", "1 day" and the like: a number and a
// unit, of which the first letters count. Without unit it is bytes; M alone is
// megabytes, m and Min are minutes.
func ParseLogLimit(text string) (LogLimit, error) {
	bad := func(want string) (LogLimit, error) {
		return LogLimit{}, errs.E("observe.ParseLogLimit", errs.Invalid, "", fmt.Errorf("%.60q; want %s", text, want))
	}
	s := strings.TrimSpace(text)
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(s[:end], 10, 64)
	if err != nil {
		return bad("a number and a unit, as 10 Mb or 1 day")
	}
	unit := strings.TrimSpace(s[end:])
	upper := strings.ToUpper(unit)
	size, age := int64(0), time.Duration(0)
	switch {
	case unit == "", upper[0] == 'B':
		size = 1
	case strings.ContainsAny(unit, " \t0123456789"):
		return bad("one unit behind the number")
	case upper[0] == 'K':
		size = 1 << 10
	case upper[0] == 'G':
		size = 1 << 30
	case upper[0] == 'T':
		size = 1 << 40
	case upper[0] == 'S':
		age = time.Second
	case upper[0] == 'H':
		age = time.Hour
	case upper[0] == 'D':
		age = 24 * time.Hour
	case upper[0] == 'W':
		age = 7 * 24 * time.Hour
	case unit == "m", strings.HasPrefix(upper, "MI") && !strings.HasPrefix(upper, "MIB"):
		age = time.Minute
	case upper == "M", strings.HasPrefix(upper, "MB"), strings.HasPrefix(upper, "MIB"):
		size = 1 << 20
	default:
		return bad("b, Kb, Mb, Gb, Tb, sec, min, hour, day or week as unit")
	}
	if size > 0 && n > math.MaxInt64/size || age > 0 && n > math.MaxInt64/int64(age) {
		return bad("less")
	}
	return LogLimit{Bytes: n * size, Age: time.Duration(n) * age}, nil
}

// LogFile is a daemon's log on disk. It is put aside when it is too large or
// old: as <path>.old, or with the time behind its name if more than one is
// kept. It is safe for concurrent use; each Write is one record.
type LogFile struct {
	path string
	now  func() time.Time

	touched time.Time // when it was last written before it was opened, zero for a new one

	mu    sync.Mutex
	f     *os.File // nil after a failure to open
	size  int64
	born  time.Time
	limit LogLimit
	keep  int
	again time.Time // not put aside before, after that failed
}

// rotateAgain is how long a log that could not be put aside grows until that is
// tried again.
const rotateAgain = time.Minute

// OpenLog opens the log at path, to be written behind what is there. keep is
// MAX_NUM_<SUBSYSTEM>_LOG: how many old ones there may be.
func OpenLog(path string, limit LogLimit, keep int, now func() time.Time) (*LogFile, error) {
	l := &LogFile{path: path, now: now, limit: limit, keep: max(keep, 1)}
	if st, err := os.Stat(path); err == nil {
		l.touched = st.ModTime()
	}
	if err := l.open(); err != nil {
		return nil, errs.E("observe.OpenLog", errs.Broken, path, err)
	}
	return l, nil
}

// SetLimit replaces limit and number, as a reconfiguration does.
func (l *LogFile) SetLimit(limit LogLimit, keep int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit, l.keep, l.again = limit, max(keep, 1), time.Time{}
}

func (l *LogFile) open() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.f, l.size, l.born = f, st.Size(), l.now()
	if l.size > 0 {
		l.born = st.ModTime() // the best that is known
	}
	return nil
}

// Write implements io.Writer. A log that was moved or removed by somebody
// else is made anew.
func (l *LogFile) Write(record []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil && l.moved() {
		_ = l.f.Close()
		l.f = nil
	}
	if l.f == nil {
		if err := l.open(); err != nil {
			return 0, errs.E("observe.LogFile", errs.Broken, l.path, err)
		}
	}
	if l.full() {
		if err := l.rotate(); err != nil {
			return 0, errs.E("observe.LogFile", errs.Broken, l.path, err)
		}
	}
	n, err := l.f.Write(record)
	l.size += int64(n)
	return n, err
}

// full reports whether the log is to be put aside now.
func (l *LogFile) full() bool {
	tooLarge := l.limit.Bytes > 0 && l.size > l.limit.Bytes
	tooOld := l.limit.Age > 0 && l.size > 0 && l.now().Sub(l.born) > l.limit.Age
	return (tooLarge || tooOld) && !l.now().Before(l.again)
}

// moved reports whether the name stands for another file now.
func (l *LogFile) moved() bool {
	here, err := os.Stat(l.path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	mine, err := l.f.Stat()
	return err != nil || !os.SameFile(here, mine)
}

// stampLayout is the time behind the name of an old log.
const stampLayout = "20060102T150405"

// rotate puts the log aside. If that fails the log goes on, with a line that
// says why, and it is tried again after a while: better a large log than none.
func (l *LogFile) rotate() error {
	to := l.path + ".old"
	if l.keep > 1 {
		to = l.path + "." + l.now().Format(stampLayout)
	}
	_ = l.f.Close()
	l.f = nil
	born := l.born
	failed := os.Rename(l.path, to)
	if err := l.open(); err != nil {
		return err
	}
	if failed != nil && !errors.Is(failed, fs.ErrNotExist) { // else somebody was faster
		l.born, l.again = born, l.now().Add(rotateAgain)
		line := fmt.Sprintf("%s(D_ERROR) the log cannot be put aside as its limit wants and goes on, to be tried again in %v: %s\n",
			l.now().Format("01/02/06 15:04:05 "), rotateAgain, appendOneLine(nil, failed.Error()))
		n, err := l.f.WriteString(line)
		l.size += int64(n)
		return err
	}
	l.prune()
	return nil
}

// prune removes the oldest of more old logs than are to be kept.
func (l *LogFile) prune() {
	entries, err := os.ReadDir(filepath.Dir(l.path))
	if err != nil {
		return
	}
	base := filepath.Base(l.path) + "."
	var old []string
	for _, e := range entries {
		stamp, ok := strings.CutPrefix(e.Name(), base)
		if !ok {
			continue
		}
		if _, err := time.Parse(stampLayout, stamp); err == nil || stamp == "old" && l.keep > 1 {
			old = append(old, e.Name())
		}
	}
	// "old" is from a time when only one was kept; it goes first.
	slices.SortFunc(old, func(a, b string) int {
		if x, y := strings.HasSuffix(a, ".old"), strings.HasSuffix(b, ".old"); x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	most := l.keep
	if most == 1 {
		most = 0 // the one kept is "old", which is not counted
	}
	for len(old) > most {
		_ = os.Remove(filepath.Join(filepath.Dir(l.path), old[0]))
		old = old[1:]
	}
}

// Close closes the file.
func (l *LogFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	err := l.f.Close()
	l.f = nil
	return err
}
