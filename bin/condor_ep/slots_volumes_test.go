// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// SLOT<N>_EXECUTE on another file system has its own disk; one that is not
// there has none, breaks its slot and is named.
func TestSlotsVolumes(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), "/dev/shm"
	var here, there unix.Stat_t
	if err := unix.Stat(dir, &here); err != nil {
		t.Fatal(err)
	}
	if err := unix.Stat(other, &there); err != nil || there.Dev == here.Dev {
		t.Skip("there is no second file system: ", err)
	}
	var free unix.Statfs_t
	if err := unix.Statfs(other, &free); err != nil || int64(free.Bavail)*free.Bsize < 64<<20 {
		t.Skip("the second file system is full: ", err)
	}
	conf := filepath.Join(dir, "ep.conf")
	text := fmt.Sprintf("EXECUTE = %s\nSLOT2_EXECUTE = %s\nSLOT3_EXECUTE = %s/gone\nNUM_CPUS = 3\nNUM_SLOTS_TYPE_1 = 3\nSLOT_TYPE_1 = cpus=1\n"+
		"JAVA =\nDOCKER =\nSINGULARITY =\nSTARTD_DETECT_GPUS = false\n", dir, other, dir)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmdSlots([]string{"-config", conf, "-json"}, nil, &out, &errs)
	if !strings.Contains(errs.String(), "warning: ") || !strings.Contains(errs.String(), dir+"/gone") {
		t.Errorf("the directory that is not there is not named:\n%s", &errs)
	}
	var ads []struct {
		Disk, TotalDisk  int64
		SlotBrokenReason string
	}
	if err := json.Unmarshal(out.Bytes(), &ads); err != nil || len(ads) != 3 {
		t.Fatalf("%v\n%s%s", err, &out, &errs)
	}
	most := int64(free.Blocks) * free.Bsize >> 10
	if ads[1].Disk != ads[1].TotalDisk || ads[1].Disk <= 0 || ads[1].Disk > most {
		t.Errorf("slot2 has %+v of at most %d KiB", ads[1], most)
	}
	if ads[0].Disk != ads[0].TotalDisk || ads[0].SlotBrokenReason != "" || !strings.Contains(ads[2].SlotBrokenReason, "Disk") {
		t.Errorf("slot1 %+v, slot3 %+v", ads[0], ads[2])
	}
}
