// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lvm

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Group is a volume group as vgs reports it.
type Group struct {
	Name                         string
	Bytes, FreeBytes, ExtentSize int64
}

// Volume is a logical volume as lvs reports it.
type Volume struct {
	Group, Name, Pool string
	Tags              []string
	Bytes             int64
	ExtentSize        int64
	// Used is how much of a thin pool, in hundredths of a percent; -1 where lvm
	// does not say.
	Used int64
}

// Ours reports whether the volume is a job's: of HTCondor's, or of ours.
func (v Volume) Ours() bool { return slices.Contains(v.Tags, Tag) }

// Space is what there is of disk for jobs.
type Space struct {
	Bytes, FreeBytes int64
	// OthersBytes is what volumes have that are not ours. What ours have that an
	// earlier life left is not counted, for it is going.
	OthersBytes int64
	ExtentKiB   int64 // the smallest volume, and the step of sizes
}

// row is an item of a report: the columns that were asked for, as texts.
type row map[string]string

// rows reads a report of one kind: "lv", "vg" or "pv".
func rows(text []byte, kind string) ([]row, error) {
	var doc struct {
		Report []map[string][]row `json:"report"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("the report is not read: %w", err)
	}
	if doc.Report == nil {
		return nil, errors.New("the answer is no report")
	}
	var all []row
	for _, r := range doc.Report {
		all = append(all, r[kind]...)
	}
	return all, nil
}

// ParseGroups reads the report of vgs.
func ParseGroups(text []byte) ([]Group, error) {
	all, err := rows(text, "vg")
	var out []Group
	for _, r := range all {
		g := Group{Name: r["vg_name"]}
		err = errors.Join(err, r.size("vg_size", &g.Bytes), r.size("vg_free", &g.FreeBytes), r.size("vg_extent_size", &g.ExtentSize))
		out = append(out, g)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ParseVolumes reads the report of lvs.
func ParseVolumes(text []byte) ([]Volume, error) {
	all, err := rows(text, "lv")
	var out []Volume
	for _, r := range all {
		v := Volume{Group: r["vg_name"], Name: r["lv_name"], Pool: r["pool_lv"], Used: -1}
		if r["lv_tags"] != "" {
			v.Tags = strings.Split(r["lv_tags"], ",")
		}
		err = errors.Join(err, r.size("lv_size", &v.Bytes), r.size("vg_extent_size", &v.ExtentSize), r.percent("data_percent", &v.Used))
		out = append(out, v)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ParseDevices reads the report of pvs: the group on each device, "" for none.
func ParseDevices(text []byte) (map[string]string, error) {
	all, err := rows(text, "pv")
	if err != nil {
		return nil, err
	}
	out := make(map[string]string)
	for _, r := range all {
		out[r["pv_name"]] = r["vg_name"]
	}
	return out, nil
}

func (r row) size(column string, to *int64) error {
	n, err := strconv.ParseInt(r[column], 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("%s of %s%s is %q, and no number of bytes", column, r["vg_name"], r["lv_name"], r[column])
	}
	*to = n
	return nil
}

func (r row) percent(column string, to *int64) error {
	if r[column] == "" {
		return nil
	}
	p, err := strconv.ParseFloat(r[column], 64)
	if err != nil || !(p >= 0 && p <= 100) {
		return fmt.Errorf("%s of %s is %q, and no part", column, r["lv_name"], r[column])
	}
	*to = int64(math.Round(p * 100))
	return nil
}

// usedBytes are those of a thin pool.
func (v Volume) usedBytes() int64 {
	const all = 100_00
	if v.Used >= all {
		return v.Bytes
	}
	// The parts of what does not divide are less than a byte in ten thousand.
	return v.Bytes/all*max(v.Used, 0) + v.Bytes%all*max(v.Used, 0)/all
}

// Full reports whether a thin pool has nothing left: writes to its volumes stand
// still.
func (v Volume) Full() bool { return v.Used >= 100_00 }

// space finds what there is for jobs: of the group, or of its thin pool.
func (s *Settings) space(groups []Group, volumes []Volume) (Space, error) {
	at := slices.IndexFunc(groups, func(g Group) bool { return g.Name == s.Group })
	if at < 0 {
		return Space{}, fmt.Errorf("there is no volume group %s", s.Group)
	}
	g := groups[at]
	is := Space{Bytes: g.Bytes, FreeBytes: g.FreeBytes, ExtentKiB: g.ExtentSize >> 10}
	if s.Thin() {
		pool, ok := s.pool(volumes)
		if !ok {
			return Space{}, fmt.Errorf("the volume group %s has no thin pool %s", s.Group, s.Pool)
		}
		is.Bytes, is.FreeBytes = pool.Bytes, pool.Bytes-pool.usedBytes()
	}
	for _, v := range volumes {
		if v.Group == s.Group && v.Pool == s.Pool && v.Name != s.Pool && !v.Ours() {
			is.OthersBytes += min(v.Bytes, math.MaxInt64-is.OthersBytes)
		}
	}
	return is, nil
}

// pool finds the thin pool.
func (s *Settings) pool(volumes []Volume) (Volume, bool) {
	for _, v := range volumes {
		if v.Group == s.Group && v.Name == s.Pool {
			return v, true
		}
	}
	return Volume{}, false
}

// leftovers are the volumes of jobs that an earlier life left where ours would be.
func (s *Settings) leftovers(volumes []Volume) []string {
	var names []string
	for _, v := range volumes {
		if v.Group == s.Group && v.Ours() && v.Pool == s.Pool && v.Name != s.Pool {
			names = append(names, v.Name)
		}
	}
	return names
}
