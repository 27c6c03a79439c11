// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// Options say where records go.
type Options struct {
	Path string // "" keeps none
	// Rotate makes room before a record would make the file larger than
	// MaxBytes, or when the last record is of an earlier day or month. Keep
	// rotated files are left, at least one.
	Rotate         bool
	MaxBytes       int64
	Keep           int
	Daily, Monthly bool
	// PerJob is a directory that has a file for each job besides, "" for none.
	PerJob string
	// HideEnvironment leaves the environment of jobs out.
	HideEnvironment bool
}

// OptionsFrom reads the knobs of an EP. The error is what is wrong with them;
// what is right can be used all the same.
func OptionsFrom(s *config.Snapshot) (Options, error) {
	o := Options{Path: s.String("STARTD_HISTORY"), PerJob: s.String("STARTD_PER_JOB_HISTORY_DIR")}
	var bad []error
	env := true
	for _, f := range []struct {
		knob string
		to   *bool
	}{
		{"ENABLE_HISTORY_ROTATION", &o.Rotate}, {"ROTATE_HISTORY_DAILY", &o.Daily},
		{"ROTATE_HISTORY_MONTHLY", &o.Monthly}, {"HISTORY_CONTAINS_JOB_ENVIRONMENT", &env},
	} {
		b, err := s.Bool(f.knob)
		if err != nil {
			bad = append(bad, err)
		}
		*f.to = b
	}
	o.HideEnvironment = !env
	size, err := s.Int("MAX_HISTORY_LOG")
	bad = append(bad, err)
	keep, err := s.Int("MAX_HISTORY_ROTATIONS")
	bad = append(bad, err)
	o.MaxBytes, o.Keep = size, int(min(max(keep, 1), 1<<20))
	return o, errors.Join(bad...)
}

// maxRecord bounds one record, in bytes.
const maxRecord = 4 << 20

// Append adds the record of a job. now is the time of the record; what
// completed when is in the ad. A record is written as a whole or not at all,
// as far as the file system lets it.
func (o *Options) Append(job *classad.Ad, now time.Time) error {
	const op = "history.Append"
	text := o.text(job)
	if len(text) > maxRecord {
		return errs.E(op, errs.Exhausted, o.Path, fmt.Errorf("a record of %d bytes is longer than %d", len(text), maxRecord))
	}
	var bad []error
	if o.Path != "" {
		if err := o.append(job, text, now); err != nil {
			bad = append(bad, errs.E(op, errs.Transient, o.Path, err))
		}
	}
	if o.PerJob != "" {
		if err := o.single(job, text); err != nil {
			bad = append(bad, errs.E(op, errs.Transient, o.PerJob, err))
		}
	}
	return errors.Join(bad...)
}

func (o *Options) append(job *classad.Ad, text string, now time.Time) error {
	rotated := o.rotate(int64(len(text)), now)
	f, err := os.OpenFile(o.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return errors.Join(rotated, err)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return errors.Join(rotated, err, f.Close())
	}
	last, err := lastLine(f, size)
	if err != nil {
		return errors.Join(rotated, err, f.Close())
	}
	record := text + banner(job, last, now)
	if n, err := f.WriteString(record); err != nil || n < len(record) {
		// Half a record would spoil the next one.
		return errors.Join(rotated, err, f.Truncate(size), f.Close())
	}
	return errors.Join(rotated, f.Close())
}

// text is the ad as it is kept: shorter names first, as the field has them. The
// old syntax has no way to write a line break within a string, and a job could
// forge other records with one, so a blank stands for it.
func (o *Options) text(job *classad.Ad) string {
	type line struct{ name, text string }
	var lines []line
	for name, e := range job.All() {
		if classad.IsPrivate(name) || o.HideEnvironment && (strings.EqualFold(name, "Env") || strings.EqualFold(name, "Environment")) {
			continue
		}
		lines = append(lines, line{name, oneLine(e.Text(classad.Old))})
	}
	slices.SortFunc(lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(len(a.name), len(b.name)), strings.Compare(a.name, b.name))
	})
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%s = %s\n", l.name, l.text)
	}
	return b.String()
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, s)
}

// banner closes a record. last is where the last line of the file began before
// it, so that a reader can go from banner to banner.
func banner(job *classad.Ad, last int64, now time.Time) string {
	num := func(name string) int64 {
		if n, ok := job.EvalInt(name, nil); ok {
			return n
		}
		return -1
	}
	owner, ok := job.EvalString("Owner", nil)
	if !ok {
		owner = "?"
	}
	return fmt.Sprintf("*** Offset = %d ClusterId = %d ProcId = %d Owner = %s CompletionDate = %d CurrentTime = %d\n",
		last, num("ClusterId"), num("ProcId"), oneLine(classad.String(owner).Text(classad.Old)), num("CompletionDate"), now.Unix())
}

// lastLine returns where the last line of a file begins.
func lastLine(f io.ReaderAt, size int64) (int64, error) {
	if size == 0 {
		return 0, nil
	}
	w := window{from: f, step: 512} // banners are short
	at, err := w.last("\n", size-1) // the last byte ends that line
	return at + 1, err
}

// rotate puts the file aside if it has no room for n more bytes.
func (o *Options) rotate(n int64, now time.Time) error {
	if !o.Rotate {
		return nil
	}
	info, err := os.Stat(o.Path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	was, is := info.ModTime().In(now.Location()), now
	earlierMonth := was.Year() < is.Year() || was.Year() == is.Year() && was.Month() < is.Month()
	earlierDay := was.Year() < is.Year() || was.Year() == is.Year() && was.YearDay() < is.YearDay()
	full := o.MaxBytes > 0 && info.Size()+n > o.MaxBytes && info.Size() > 0
	if !full && !(o.Daily && earlierDay) && !(o.Monthly && earlierMonth) {
		return nil
	}
	old, err := rotatedFiles(o.Path)
	if err != nil {
		return err
	}
	// Room for the one that follows.
	var bad []error
	for _, extra := range old[:max(0, len(old)-max(o.Keep, 1)+1)] {
		bad = append(bad, os.Remove(extra))
	}
	path := filepath.Clean(o.Path)
	// Names give the order, also when two follow within a second or when the
	// clock was set back.
	name := path + "." + now.Format(stamp)
	if n := len(old); n > 0 && old[n-1] >= name {
		newest, err := time.Parse(stamp, old[n-1][len(path)+1:])
		if err != nil {
			return err
		}
		name = path + "." + newest.Add(time.Second).Format(stamp)
	}
	return errors.Join(append(bad, os.Rename(o.Path, name))...)
}

// stamp ends the name of a rotated file: local time, ISO 8601 basic.
const stamp = "20060102T150405"

// rotatedFiles lists the rotated files of a history, oldest first.
func rotatedFiles(path string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), filepath.Base(path)+".")
		if _, err := time.Parse(stamp, rest); ok && err == nil && e.Type().IsRegular() {
			out = append(out, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	slices.Sort(out)
	return out, nil
}

// Files lists the files of a history, newest first. It is an error if there is
// none at all.
func Files(path string) ([]string, error) {
	out, err := rotatedFiles(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errs.E("history.Files", errs.Broken, path, err)
	}
	if _, err := os.Stat(path); err == nil {
		out = append(out, path)
	} else if len(out) == 0 {
		return nil, errs.E("history.Files", errs.NotFound, path, err)
	}
	slices.Reverse(out)
	return out, nil
}

// single writes the file of one job, which has its global id in its name.
func (o *Options) single(job *classad.Ad, text string) error {
	id, ok := job.EvalString("GlobalJobId", nil)
	if !ok || id == "" || len(id) > 200 || strings.ContainsAny(id, "/\\\x00\n") {
		return fmt.Errorf("a job with the GlobalJobId %q can have no file", id)
	}
	f, err := os.CreateTemp(o.PerJob, ".history.*.tmp")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(o.PerJob, "history."+id))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
