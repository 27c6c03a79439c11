// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/pool/directory"
	"github.com/execpoint/execpoint/lib/pool/pooltest"
)

// files are the address files of a machine, by path.
type files struct {
	mu   sync.Mutex
	text map[string]string
}

func (f *files) read(path string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if text, ok := f.text[path]; ok {
		return []byte(text), nil
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

func (f *files) write(path, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text[path] = text
}

const theirVersion = "$CondorVersion: 25.14.0 2026-11-20 $\n"

// addressFiles are those of a configuration on the machine ep.example.org.
func addressFiles(t *testing.T, text string) directory.AddressFiles {
	t.Helper()
	c, err := config.Parse("test", text, config.Options{Subsystem: "STARTD", Facts: map[string]string{"HOSTNAME": "ep", "FULL_HOSTNAME": "ep.example.org"}})
	if err != nil {
		t.Fatal(err)
	}
	return directory.AddressFilesFrom(c)
}

// A collector of port 0 is where its file says, whatever else its name says. Any
// other one is where it is configured.
func TestFindCollector(t *testing.T) {
	t.Parallel()
	const (
		log  = "LOG = /log\n"
		file = "/log/.collector_address"
		own  = "<192.0.2.1:4321?addrs=192.0.2.1-4321&alias=ep>"
		sock = "<192.0.2.1:9618?noUDP&sock=collector>"
	)
	for _, tt := range []struct {
		name, text, at string
		files          map[string]string
		want           string // "" for an error
		kind           errs.Kind
	}{
		{"a port", log, "cm:9618", map[string]string{file: own}, "<cm:9618>", 0},
		{"a port and a shared port", log, "cm:9618?sock=collector", map[string]string{file: own}, "<cm:9618?sock=collector>", 0},
		{"port 0", log, "cm:0", map[string]string{file: own + "\n" + theirVersion}, own, 0},
		{"port 0 of a whole address", log, "<127.0.0.1:0>", map[string]string{file: own}, own, 0},
		{"port 0 behind a shared port", log, "cm:0?sock=collector", map[string]string{file: sock + "\n" + theirVersion}, sock, 0},
		{"a file of attributes", log, "cm:0", map[string]string{file: "Name = \"cm\"\nMyAddress = \"" + own + "\"\n"}, own, 0},
		{"a file that is named", log + "COLLECTOR_ADDRESS_FILE = /run/c\n", "cm:0", map[string]string{file: sock, "/run/c": own}, own, 0},
		{"no file yet", log, "cm:0", nil, "", errs.Transient},
		{"a file without address", log, "cm:0?sock=collector", map[string]string{file: theirVersion}, "", errs.Transient},
		{"no shared port yet", log, "cm:0?sock=collector", map[string]string{file: "<192.0.2.1:0?sock=collector>\n"}, "", errs.Transient},
		{"no port", log, "cm:0", map[string]string{file: "<192.0.2.1>\n"}, "", errs.Transient},
		{"too long", log, "cm:0", map[string]string{file: own + "\n" + strings.Repeat("# x\n", 20_000)}, "", errs.Transient},
		{"nobody says where the file is", "LOG =\n", "cm:0", map[string]string{file: own}, "", errs.Invalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			at, err := directory.ParseCollector(tt.at, 9618)
			if err != nil {
				t.Fatal(err)
			}
			got, err := addressFiles(t, tt.text).FindCollector(at, (&files{text: tt.files}).read)
			if (err == nil) != (tt.want != "") || err == nil && got.String() != tt.want || err != nil && !errs.Is(err, tt.kind) {
				t.Errorf("%s, %v; want %q", got, err, tt.want)
			}
		})
	}
}

// The schedd of this machine is known by the name that it would have without
// anybody's account in it.
func TestFindSchedd(t *testing.T) {
	t.Parallel()
	const own = "<192.0.2.1:4321?addrs=192.0.2.1-4321>"
	for _, tt := range []struct {
		text, name string
		found      bool
		kind       errs.Kind // of the error
	}{
		{"SPOOL = /spool\n", "ep.example.org", true, 0},
		{"SPOOL = /spool\n", "EP.example.org", true, 0},
		{"SPOOL = /spool\n", "alice@ep.example.org", false, errs.NotFound},
		{"SPOOL = /spool\n", "other.example.org", false, errs.NotFound},
		{"SPOOL = /spool\n", "", false, errs.NotFound},
		{"SPOOL = /spool\nSCHEDD_NAME = second\n", "second@ep.example.org", true, 0},
		{"SPOOL = /spool\nSCHEDD_NAME = second\n", "ep.example.org", false, errs.NotFound},
		{"SPOOL = /spool\nSCHEDD_NAME = alice@pool\n", "alice@pool", true, 0},
		{"SPOOL = /spool\nSCHEDD_NAME = ep\n", "ep.example.org", true, 0},
		{"SPOOL = /other\n", "ep.example.org", false, errs.Transient},
		{"SPOOL = /other\nSCHEDD_ADDRESS_FILE = /spool/.schedd_address\n", "ep.example.org", true, 0},
		{"SPOOL =\n", "ep.example.org", false, errs.NotFound},
	} {
		f := &files{text: map[string]string{"/spool/.schedd_address": own + "\n" + theirVersion}}
		got, err := addressFiles(t, tt.text).FindSchedd(tt.name, f.read)
		if (err == nil) != tt.found || err == nil && got.String() != own || err != nil && !errs.Is(err, tt.kind) {
			t.Errorf("%q, %q: %s, %v", tt.text, tt.name, got, err)
		}
	}
}

const portZero = "COLLECTOR_HOST = cm:0\nLOG = /log\nDEAD_COLLECTOR_MAX_AVOIDANCE_TIME = 8\n"

// A collector that starts again is told everything at its new port. Its file may
// be late.
func TestCollectorGetsAnotherPort(t *testing.T) {
	for _, udp := range []string{"", byUDP} {
		synctest.Test(t, func(t *testing.T) {
			f := &files{text: map[string]string{}}
			cm := pooltest.NewCollector("25.14.0")
			r := newRig(t, portZero+"UPDATE_INTERVAL = 30\n"+udp, cm, func(c *pool.Config) { c.Post, c.ReadFile = cm.Post, f.read })
			time.Sleep(20 * time.Second)
			if st := r.pool.Collectors()[0]; st.Connected || !errs.Is(st.Err, errs.Transient) {
				t.Fatalf("without a file: %+v", st)
			}
			for i, at := range []string{"<192.0.2.1:4001>", "<192.0.2.1:4002>"} {
				f.write("/log/.collector_address", at+"\n"+theirVersion)
				cm.Restart()
				time.Sleep(70 * time.Second)
				synctest.Wait()
				if st := r.pool.Collectors()[0]; !st.Connected || st.Address != at {
					t.Errorf("life %d of the collector: %+v", i+1, st)
				}
				if len(cm.Names()) != 2 {
					t.Errorf("life %d of the collector: it has %q", i+1, cm.Names())
				}
				if got := cm.At(); got != at {
					t.Errorf("life %d of the collector: told at %q, want %q", i+1, got, at)
				}
			}
			if n := strings.Count(r.log.String(), "level=WARN"); udp != "" && n != 1 {
				t.Errorf("%d warnings over UDP:\n%s", n, r.log)
			}
		})
	}
}

// Slots are offered to the schedd of this machine where its file says, and by a
// collector of port 0 where that one has another's.
func TestOffersByAddressFiles(t *testing.T) {
	t.Parallel()
	const address = "<127.0.0.1:9700>"
	for _, tt := range []struct {
		name, text string
		files      map[string]string
		opened     []string
		failure    string
	}{
		{"the schedd's file", "STARTD_DIRECT_ATTACH_SCHEDD_NAME = ap@example\nSCHEDD_NAME = ap@example\n", map[string]string{"/spool/.schedd_address": address}, []string{"531 " + address}, ""},
		{"the collector's file", "STARTD_DIRECT_ATTACH_SCHEDD_NAME = ap@example\n", map[string]string{"/log/.collector_address": "<192.0.2.1:4001>"}, []string{"6 <192.0.2.1:4001>", "531 " + address}, ""},
		{"neither, yet", "STARTD_DIRECT_ATTACH_SCHEDD_NAME = ap@example\nSCHEDD_NAME = ap@example\n", nil, nil, "/spool/.schedd_address"},
		{"another pool", "STARTD_DIRECT_ATTACH_SCHEDD_NAME = ap@example\nSCHEDD_NAME = ap@example\nSTARTD_DIRECT_ATTACH_SCHEDD_POOL = other:1234\n",
			map[string]string{"/spool/.schedd_address": "<127.0.0.1:1>"}, []string{"6 <other:1234>", "531 " + address}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ap := &submitter{t: t, name: "ap@example", address: address, result: 1}
				s := newStation(t, stationOptions{text: twoStatic + portZero + "SPOOL = /spool\nSTARTD_DIRECT_ATTACH_INTERVAL = 60\n" + tt.text, change: func(c *pool.Config) {
					c.Open, c.ReadFile = ap, (&files{text: tt.files}).read
				}})
				s.idle()
				time.Sleep(30 * time.Second)
				synctest.Wait()
				ap.mu.Lock()
				opened := slices.DeleteFunc(slices.Clone(ap.opened), func(o string) bool { return strings.HasPrefix(o, "0 ") })
				ap.mu.Unlock()
				if len(opened) < len(tt.opened) || !slices.Equal(opened[:len(tt.opened)], tt.opened) || tt.opened == nil && len(opened) > 0 {
					t.Errorf("opened %v, want %v", opened, tt.opened)
				}
				if tt.failure != "" && !strings.Contains(s.log.String(), tt.failure) {
					t.Errorf("the log does not say %q:\n%s", tt.failure, s.log.String())
				}
			})
		})
	}
}

// Whatever stands in a file, what is found can be connected to.
func FuzzFindCollector(f *testing.F) {
	for _, text := range []string{"<192.0.2.1:4321?addrs=192.0.2.1-4321&alias=ep>\n" + theirVersion, "<h:0?sock=collector>", "<h>", "MyAddress = \"<h:1>\"", "", "# x\n\n<h:1>"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		files := directory.AddressFiles{Collector: "c"}
		got, err := files.FindCollector(cedar.Sinful{Host: "cm"}, func(string) ([]byte, error) { return []byte(text), nil })
		if err == nil && got.Port <= 0 || err != nil && !errs.Is(err, errs.Transient) {
			t.Errorf("%s, %v", got, err)
		}
		if _, err := files.FindCollector(cedar.Sinful{Host: "cm"}, func(string) ([]byte, error) { return nil, errors.New(text) }); !errs.Is(err, errs.Transient) {
			t.Error(err)
		}
	})
}
