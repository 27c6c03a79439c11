// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// record is a Control that writes down what it is ordered.
type record struct {
	mu     sync.Mutex
	orders []string
}

func (r *record) add(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.orders = append(r.orders, s)
}

func (r *record) Reconfigure(full bool) { r.add(fmt.Sprintf("reconfigure %v", full)) }
func (r *record) Shutdown(m Mode)       { r.add(m.String()) }

// desk is a daemon that answers.
type desk struct {
	answers *Answers
	record  *record
	log     *bytes.Buffer
	peer    security.Peer // who asks
}

func newDesk(t testing.TB, knobs string) *desk {
	d := &desk{record: new(record), log: new(bytes.Buffer), peer: security.Peer{User: "admin@example"}}
	s := snapshot(t, knobs)
	d.answers = &Answers{
		Orders: &Orders{Control: d.record}, Config: func() *config.Snapshot { return s },
		Clock: clock.NewFake(time.Unix(1_700_000_000, 0)), Files: DiskFiles{},
		Instance: [8]byte{1, 2, 3, 4, 0xfb, 0xfc, 0xfd, 0xfe},
	}
	return d
}

// ask has a command handled on a stream that is encrypted or not. put writes
// its payload, get reads the reply; either may be nil.
func (d *desk) ask(t *testing.T, number int, encrypted bool, put, get func(c *cedar.Conn)) error {
	t.Helper()
	a, b := cedartest.Pipe()
	mine, theirs := cedar.NewConn(a, cedar.Limits{}), cedar.NewConn(b, cedar.Limits{})
	defer mine.Close()
	defer theirs.Close()
	if encrypted {
		key := bytes.Repeat([]byte{9}, 32)
		if err := errors.Join(mine.EnableAES(key), theirs.EnableAES(key)); err != nil {
			t.Fatal(err)
		}
	}
	table, err := listen.NewTable(d.answers.Commands()...)
	if err != nil {
		t.Fatal(err)
	}
	cmd, ok := table.Lookup(number)
	if !ok {
		t.Fatalf("there is no command %d", number)
	}
	if put != nil {
		put(mine)
		if err := mine.EndMessage(); err != nil {
			t.Fatal(err)
		}
	}
	err = cmd.Handle(t.Context(), &listen.Call{
		Conn: theirs, Command: cmd, Request: &security.Request{Command: number, Peer: d.peer},
		Log: slog.New(slog.NewTextHandler(d.log, nil)),
	})
	_ = theirs.Close()
	if get != nil {
		get(mine)
		if err := mine.EndOfMessage(); err != nil {
			t.Errorf("end of the reply: %v", err)
		}
	}
	if _, err := mine.Int(); !errors.Is(err, io.EOF) {
		t.Errorf("behind the reply: %v, want the end", err)
	}
	return err
}

func TestLevels(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"DC_RAISESIGNAL": "DAEMON", "DC_CONFIG_PERSIST": "DAEMON", "DC_CONFIG_RUNTIME": "DAEMON", "DC_RECONFIG": "ADMINISTRATOR", "DC_RECONFIG_FULL": "ADMINISTRATOR",
		"DC_OFF_GRACEFUL": "ADMINISTRATOR", "DC_OFF_FAST": "ADMINISTRATOR", "DC_OFF_PEACEFUL": "ADMINISTRATOR", "DC_OFF_FORCE": "ADMINISTRATOR",
		"DC_SET_PEACEFUL_SHUTDOWN": "ADMINISTRATOR", "DC_SET_FORCE_SHUTDOWN": "ADMINISTRATOR", "DC_CONFIG_VAL": "READ", "CONFIG_VAL": "READ",
		"DC_NOP": "ALLOW", "DC_NOP_READ": "READ", "DC_NOP_WRITE": "WRITE", "DC_NOP_NEGOTIATOR": "NEGOTIATOR", "DC_NOP_ADMINISTRATOR": "ADMINISTRATOR",
		"DC_NOP_OWNER": "ADMINISTRATOR", "DC_NOP_CONFIG": "CONFIG", "DC_NOP_DAEMON": "DAEMON", "DC_NOP_ADVERTISE_STARTD": "ADVERTISE_STARTD",
		"DC_NOP_ADVERTISE_SCHEDD": "ADVERTISE_SCHEDD", "DC_NOP_ADVERTISE_MASTER": "ADVERTISE_MASTER",
		"DC_FETCH_LOG": "ADMINISTRATOR", "DC_PURGE_LOG": "ADMINISTRATOR", "DC_TIME_OFFSET": "DAEMON", "DC_QUERY_INSTANCE": "ALLOW", "DC_QUERY_READY": "READ",
	}
	got := map[string]string{}
	for _, c := range newDesk(t, "").answers.Commands() {
		got[c.Name] = c.Level.String()
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestOrders(t *testing.T) {
	t.Parallel()
	signal := func(n int64) func(*cedar.Conn) { return func(c *cedar.Conn) { c.PutInt(n) } }
	tests := []struct {
		name     string
		commands []int
		put      func(*cedar.Conn)
		want     []string
	}{
		{"reconfig", []int{command.DCReconfig}, nil, []string{"reconfigure false"}},
		{"full reconfig", []int{command.DCReconfigFull}, nil, []string{"reconfigure true"}},
		{"off", []int{command.DCOffGraceful}, nil, []string{"graceful"}},
		{"off fast", []int{command.DCOffFast}, nil, []string{"fast"}},
		{"off peaceful", []int{command.DCOffPeaceful}, nil, []string{"peaceful"}},
		{"peaceful first, then off", []int{command.DCSetPeaceful, command.DCOffGraceful}, nil, []string{"peaceful"}},
		{"peaceful first, then changed their mind", []int{command.DCSetPeaceful, command.DCSetForce, command.DCOffGraceful}, nil, []string{"graceful"}},
		{"force", []int{command.DCSetPeaceful, command.DCOffForce}, nil, []string{"graceful"}},
		{"peaceful first, then fast", []int{command.DCSetPeaceful, command.DCOffFast}, nil, []string{"fast"}},
		{"nop", []int{command.DCNop, command.DCNopRead, command.DCNopAdministrator}, nil, nil},
		{"SIGTERM", []int{command.DCRaiseSignal}, signal(15), []string{"graceful"}},
		{"SIGQUIT", []int{command.DCRaiseSignal}, signal(3), []string{"fast"}},
		{"SIGHUP", []int{command.DCRaiseSignal}, signal(1), []string{"reconfigure false"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, "")
			for _, n := range tt.commands {
				if err := d.ask(t, n, true, tt.put, nil); err != nil {
					t.Error(err)
				}
			}
			if !slices.Equal(d.record.orders, tt.want) {
				t.Errorf("ordered %q, want %q", d.record.orders, tt.want)
			}
		})
	}
	d := newDesk(t, "")
	if err := d.ask(t, command.DCRaiseSignal, true, signal(9), nil); !errs.Is(err, errs.Unsupported) || d.record.orders != nil {
		t.Errorf("signal 9: %v, ordered %q", err, d.record.orders)
	}
}

// Whoever holds a claim id has DAEMON for what becomes of the claim, not to end
// the daemon with the jobs of all others.
func TestClaimHolderSendsNoSignals(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	d.peer = security.Peer{User: security.SubmitSide, Method: security.MethodMatch}
	for _, n := range []int64{1, 3, 15} {
		if err := d.ask(t, command.DCRaiseSignal, true, func(c *cedar.Conn) { c.PutInt(n) }, nil); !errs.Is(err, errs.Denied) || d.record.orders != nil {
			t.Errorf("signal %d of the holder of a claim: %v, ordered %q", n, err, d.record.orders)
		}
	}
	d.peer = security.Peer{User: security.Parent, Method: security.MethodFamily}
	if err := d.ask(t, command.DCRaiseSignal, true, func(c *cedar.Conn) { c.PutInt(15) }, nil); err != nil || !slices.Equal(d.record.orders, []string{"graceful"}) {
		t.Errorf("the parent: %v, ordered %q", err, d.record.orders)
	}
}

// texts reads strings to the end of the message; one that is absent is "NULL".
func texts(t *testing.T, into *[]string) func(*cedar.Conn) {
	return func(c *cedar.Conn) {
		for {
			s, there, err := c.NullableString()
			if err != nil {
				t.Error(err)
				return
			}
			if !there {
				s = "NULL"
			}
			*into = append(*into, s)
			if !c.More() {
				return
			}
		}
	}
}

func TestConfigVal(t *testing.T) {
	t.Parallel()
	const knobs = "BASE = 5\nMY_KNOB = $(BASE)0\nUPDATE_INTERVAL = 77\nX509_PASSWORD = sesame\nCRED_PASSWORD_FILE = /etc/x\nEMPTY =\n"
	count := strconv.Itoa(len(uniqueNames(newDesk(t, knobs).answers.Config())))
	tests := []struct {
		ask, want string
		command   int
	}{
		{ask: "my_knob", want: "50|MY_KNOB = $(BASE)0|test.conf, line 2|NULL|1"},
		{ask: "UPDATE_INTERVAL", want: "77|UPDATE_INTERVAL = 77|test.conf, line 3|300|1"},
		{ask: "NO_SUCH_KNOB", want: "NULL"},
		{ask: "X509_PASSWORD", want: "<hidden>|X509_PASSWORD = <hidden>|test.conf, line 4|NULL|1"},
		{ask: "CRED_PASSWORD_FILE", want: "/etc/x|CRED_PASSWORD_FILE = /etc/x|test.conf, line 5|NULL|1"},
		{ask: "?names:^(MY_|BASE$)", want: "BASE|MY_KNOB"},
		{ask: "?names:^nothing$", want: ""},
		{ask: "?names:(", want: "!error:regex:0: " + badPattern},
		{ask: "?names:(?i)[b-\\x{1e942}]", want: "!error:regex:0: " + badPattern},
		{ask: "?names:" + strings.Repeat("x", 1025), want: "!error:regex:0: the pattern has 1025 bytes, and no more than 1024 are read: ask with a shorter one"},
		{ask: "?names:" + strings.Repeat("(.*.*.*)", 120) + "!", want: "!error:regex:0: the pattern takes more than 1000000 steps for " + count + " names: ask with a simpler one"},
		{ask: "?names:((.{1,30}){1,30}x)", want: "!error:regex:0: the pattern takes more than 1000000 steps for " + count + " names: ask with a simpler one"},
		{ask: "?what", want: "!error:unsup:1: '?what' is not supported"},
		{command: command.ConfigVal, ask: "MY_KNOB", want: "50"},
		{command: command.ConfigVal, ask: "EMPTY", want: "Not defined"},
		{command: command.ConfigVal, ask: "NO_SUCH_KNOB", want: "Not defined"},
		{command: command.ConfigVal, ask: "X509_PASSWORD", want: "<hidden>"},
	}
	for _, tt := range tests {
		for _, encrypted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d %s %v", tt.command, tt.ask, encrypted), func(t *testing.T) {
				t.Parallel()
				d := newDesk(t, knobs)
				number := tt.command
				if number == 0 {
					number = command.DCConfigVal
				}
				var got []string
				if err := d.ask(t, number, encrypted, func(c *cedar.Conn) { c.PutString(tt.ask) }, texts(t, &got)); err != nil {
					t.Error(err)
				}
				if s := strings.Join(got, "|"); s != tt.want {
					t.Errorf("answer is %q, want %q", s, tt.want)
				}
			})
		}
	}
}

func TestConfigStats(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "A = 1\n")
	err := d.ask(t, command.DCConfigVal, true, func(c *cedar.Conn) { c.PutString("?stats") }, func(c *cedar.Conn) {
		if s, err := c.String(); err != nil || s == "" {
			t.Errorf("number used is %q, %v", s, err)
		}
		ad, err := c.Ad(cedar.AdOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := ad.EvalInt("Macros", nil); n < 2 {
			t.Errorf("Macros is %d", n)
		}
	})
	if err != nil {
		t.Error(err)
	}
	var names []string
	if err := d.ask(t, command.DCConfigVal, true, func(c *cedar.Conn) { c.PutString("?names:.*|.summary") }, texts(t, &names)); err != nil {
		t.Error(err)
	}
	if !slices.Contains(names, "#test.conf") || !slices.Contains(names, "A") || slices.Contains(names, "UPDATE_INTERVAL") {
		t.Errorf("summary is %q", names)
	}
}

func TestSettingFromAfarIsRefused(t *testing.T) {
	t.Parallel()
	for _, number := range []int{command.DCConfigPersist, command.DCConfigRuntime} {
		d := newDesk(t, "")
		err := d.ask(t, number, true, func(c *cedar.Conn) { c.PutString("START"); c.PutString("START = true\nsecond line") }, func(c *cedar.Conn) {
			if n, err := c.Int(); n != -1 {
				t.Errorf("answer is %d, %v; want -1", n, err)
			}
		})
		if !errs.Is(err, errs.Denied) || !strings.Contains(err.Error(), "admin@example") || strings.Contains(err.Error(), "\n") {
			t.Errorf("error is %v", err)
		}
	}
}

func TestQueryInstance(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	for range 2 {
		if err := d.ask(t, command.DCQueryInstance, false, nil, func(c *cedar.Conn) {
			if b, err := c.Bytes(16); string(b) != "01020304fbfcfdfe" {
				t.Errorf("instance is %q, %v", b, err)
			}
		}); err != nil {
			t.Error(err)
		}
	}
}

func TestQueryReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, "")
		ready := make(chan struct{})
		d.answers.Ready = ready
		start := time.Now()
		time.AfterFunc(time.Minute, func() { close(ready) })
		err := d.ask(t, command.DCQueryReady, true, nil, func(c *cedar.Conn) {
			ad, err := c.Ad(cedar.AdOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if s, _ := ad.EvalString("DaemonState", nil); s != "Ready" {
				t.Errorf("state is %q", s)
			}
		})
		if err != nil || time.Since(start) != time.Minute {
			t.Errorf("%v after %s, want an answer after 1m", err, time.Since(start))
		}
	})
}

func TestTimeOffset(t *testing.T) {
	t.Parallel()
	put := func(last int64) func(*cedar.Conn) {
		return func(c *cedar.Conn) {
			for _, v := range []int64{100, 0, 0, last} {
				c.PutInt(v)
			}
		}
	}
	d := newDesk(t, "")
	err := d.ask(t, command.DCTimeOffset, true, put(7), func(c *cedar.Conn) {
		for _, want := range []int64{100, 1_700_000_000, 1_700_000_000, 7} {
			if n, err := c.Int(); n != want {
				t.Errorf("time is %d, %v; want %d", n, err, want)
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
	if err := d.ask(t, command.DCTimeOffset, true, put(0), nil); !errs.Is(err, errs.Invalid) {
		t.Errorf("fourth time 0: %v", err)
	}
}

func TestFetchLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"StartLog": "one\ntwo\n", "StarterLog": "", "StarterLog.slot1_1": "of a slot\n",
		"history": "new\n", "history.20260101T000000": "old\n", "historyx": "other\n", "jobs/1.0": "first\n", "jobs/2.0": "second\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	knobs := "D = " + filepath.ToSlash(dir) + "\nSTARTD_LOG = $(D)/StartLog\nSTARTER_LOG = $(D)/StarterLog\nGONE_LOG = $(D)/gone\nDIR_LOG = $(D)\n" +
		"STARTD_HISTORY = $(D)/history\nHISTORY =\nSTARTD.PER_JOB_HISTORY_DIR = $(D)/jobs\n"
	tests := []struct {
		kind   int64
		name   string
		result int64
		files  []string
		kindOf errs.Kind
	}{
		{0, "STARTD", 0, []string{"one\ntwo\n"}, errs.Other},
		{0, "STARTER", 0, []string{""}, errs.Other},
		{0, "STARTER.slot1_1", 0, []string{"of a slot\n"}, errs.Other},
		{0, "NOSUCH", 1, nil, errs.NotFound},
		{0, "GONE", 2, nil, errs.NotFound},
		{0, "DIR", 2, nil, errs.NotFound},
		{1, "STARTD_HISTORY", 0, []string{"old\n", "new\n"}, errs.Other},
		{1, "HISTORY", 3, nil, errs.NotFound},
		{9, "STARTD", 3, nil, errs.NotFound},
	}
	for _, tt := range tests {
		for _, encrypted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d %s %v", tt.kind, tt.name, encrypted), func(t *testing.T) {
				t.Parallel()
				d := newDesk(t, knobs)
				err := d.ask(t, command.DCFetchLog, encrypted, func(c *cedar.Conn) { c.PutInt(tt.kind); c.PutString(tt.name) }, func(c *cedar.Conn) {
					if n, err := c.Int(); err != nil || n != tt.result {
						t.Fatalf("result is %d, %v; want %d", n, err, tt.result)
					}
					for _, want := range tt.files {
						var b bytes.Buffer
						if _, err := c.GetFile(t.Context(), &b, -1); err != nil || b.String() != want {
							t.Errorf("file is %q, %v; want %q", b.String(), err, want)
						}
					}
				})
				if errs.KindOf(err) != tt.kindOf {
					t.Errorf("error is %v, want kind %v", err, tt.kindOf)
				}
				if tt.result == 0 && !strings.Contains(d.log.String(), "user=admin@example") {
					t.Errorf("the log does not tell who asked:\n%s", d.log)
				}
			})
		}
	}
	for _, name := range []string{"STARTER./../../etc/passwd", "STARTER.a/b", "STARTER.a\\b"} {
		d := newDesk(t, knobs)
		if err := d.ask(t, command.DCFetchLog, true, func(c *cedar.Conn) { c.PutInt(0); c.PutString(name) }, nil); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v, want kind Invalid and no reply", name, err)
		}
	}
	d := newDesk(t, knobs)
	err := d.ask(t, command.DCFetchLog, true, func(c *cedar.Conn) { c.PutInt(2); c.PutString("") }, func(c *cedar.Conn) {
		got := map[string]string{}
		for {
			more, err := c.Int()
			if err != nil {
				t.Fatal(err)
			}
			if more == 0 {
				break
			}
			name, err := c.String()
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if _, err := c.GetFile(t.Context(), &b, -1); err != nil {
				t.Fatal(err)
			}
			got[name] = b.String()
		}
		if d := cmp.Diff(map[string]string{"1.0": "first\n", "2.0": "second\n"}, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func TestPurgeLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, name := range []string{"old", "new"} {
		path := filepath.Join(dir, name)
		at := time.Unix(int64(1000+1000*i), 0)
		if err := errors.Join(os.WriteFile(path, nil, 0o644), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	d := newDesk(t, "STARTD.PER_JOB_HISTORY_DIR = "+filepath.ToSlash(dir)+"\n")
	want := func(n int64) func(*cedar.Conn) {
		return func(c *cedar.Conn) {
			if got, err := c.Int(); got != n {
				t.Errorf("answer is %d, %v; want %d", got, err, n)
			}
		}
	}
	if err := d.ask(t, command.DCPurgeLog, true, func(c *cedar.Conn) { c.PutInt(1500) }, want(1)); err != nil {
		t.Error(err)
	}
	if names, err := (DiskFiles{}).List(dir); !slices.Equal(names, []string{"new"}) {
		t.Errorf("left are %q, %v", names, err)
	}
	if err := newDesk(t, "").ask(t, command.DCPurgeLog, true, func(c *cedar.Conn) { c.PutInt(1500) }, want(0)); !errs.Is(err, errs.NotFound) {
		t.Errorf("no folder: %v", err)
	}
}

// The test plays condor_master.
func TestParent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type message struct {
			at      time.Duration
			command int
			numbers []int64
			ad      *classad.Ad
		}
		var mu sync.Mutex
		var got []message
		fails, healthy := 0, true
		start := time.Now()
		p := &Parent{
			Address: cedar.Sinful{Host: "192.0.2.1", Port: 9618}, PID: 4712, Silence: func() time.Duration { return time.Hour },
			Healthy: func(context.Context) bool { mu.Lock(); defer mu.Unlock(); return healthy },
			Log:     slog.New(slog.DiscardHandler),
			Send: func(_ context.Context, to cedar.Sinful, number int) (*cedar.Conn, error) {
				mu.Lock()
				defer mu.Unlock()
				if fails > 0 {
					fails--
					return nil, errors.New("connection refused")
				}
				mine, theirs := cedartest.Pipe()
				at := time.Since(start)
				go func() {
					c := cedar.NewConn(theirs, cedar.Limits{})
					m := message{at: at, command: number}
					if number == command.DCSetReady {
						m.ad, _ = c.Ad(cedar.AdOptions{})
					} else {
						for range 4 { // pid, silence, and a real number is two
							n, _ := c.Int()
							m.numbers = append(m.numbers, n)
						}
					}
					if err := c.EndOfMessage(); err != nil {
						t.Error(err)
					}
					mu.Lock()
					got = append(got, m)
					mu.Unlock()
				}()
				return cedar.NewConn(mine, cedar.Limits{}), nil
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { p.KeepAlive(ctx); close(done) }()
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		mu.Lock()
		if len(got) != 2 || got[0].at != 0 || got[1].at != 1170*time.Second || got[0].command != command.DCChildAlive || !slices.Equal(got[0].numbers, []int64{4712, 3600, 0, 0}) {
			t.Errorf("the parent heard %+v; want pid 4712 and 3600 seconds at once and after 1170s", got)
		}
		fails = 2
		mu.Unlock()
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		mu.Lock()
		if len(got) != 3 || fails != 0 {
			t.Errorf("after two failures the parent heard %+v", got)
		}
		healthy = false
		mu.Unlock()
		time.Sleep(2 * time.Hour)
		mu.Lock()
		if len(got) != 3 {
			t.Errorf("a daemon that is stuck said %+v", got[3:])
		}
		mu.Unlock()
		p.Ready(ctx)
		synctest.Wait()
		mu.Lock()
		last := got[len(got)-1]
		mu.Unlock()
		if last.command != command.DCSetReady || last.ad == nil {
			t.Fatalf("the last message is %+v", last)
		}
		for name, want := range map[string]string{"DaemonName": `"STARTD"`, "DaemonState": `"Ready"`, "DaemonPID": "4712"} {
			if e, _ := last.ad.Lookup(name); e == nil || e.Text(classad.Old) != want {
				t.Errorf("%s is %v, want %s", name, e, want)
			}
		}
		cancel()
		<-done
	})
	for silence, want := range map[time.Duration]time.Duration{time.Hour: 1170 * time.Second, 90 * time.Second: time.Second, 93 * time.Second: time.Second, 120 * time.Second: 10 * time.Second} {
		if got := Period(silence); got != want {
			t.Errorf("Period(%s) is %s, want %s", silence, got, want)
		}
	}
}

func TestAddressFile(t *testing.T) {
	t.Parallel()
	f := AddressFile{Path: filepath.Join(t.TempDir(), ".startd_address"), Version: "$CondorVersion: 25.14.0 2026-11-20 $", Platform: "$CondorPlatform: X86_64-Linux $"}
	here := cedar.Sinful{Host: "192.0.2.1", Port: 9618, NoUDP: true}
	for range 2 {
		if err := f.Write(here); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(f.Path)
	if want := "<192.0.2.1:9618?noUDP>\n$CondorVersion: 25.14.0 2026-11-20 $\n$CondorPlatform: X86_64-Linux $\n"; string(text) != want || err != nil {
		t.Errorf("the file holds %q, %v; want %q", text, err, want)
	}
	if s, err := ReadAddress(string(text)); err != nil || s.String() != here.String() {
		t.Errorf("it reads as %s, %v", s, err)
	}
	if err := f.Remove(cedar.Sinful{Host: "192.0.2.2", Port: 9618}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(f.Path); err != nil {
		t.Errorf("the file of another daemon was removed: %v", err)
	}
	for range 2 {
		if err := f.Remove(here); err != nil {
			t.Error(err)
		}
	}
	if names, _ := os.ReadDir(filepath.Dir(f.Path)); len(names) != 0 {
		t.Errorf("left are %v", names)
	}
	if s, err := ReadAddress("MyAddress = \"<192.0.2.1:9618>\"\nX = 1\n"); err != nil || s.Port != 9618 {
		t.Errorf("an ad reads as %v, %v", s, err)
	}
	for _, good := range []string{
		"<192.0.2.1:9618>", "\n # where\n\t<192.0.2.1:9618>\r\nmore", "Name = \"cm\"\nmyaddress=\"<192.0.2.1:9618>\"\n", "# MyAddress = \"<192.0.2.2:1>\"\nX = 1\nMyAddress = \"<192.0.2.1:9618>\"",
	} {
		if s, err := ReadAddress(good); err != nil || s.String() != "<192.0.2.1:9618>" {
			t.Errorf("%q reads as %s, %v", good, s, err)
		}
	}
	for _, bad := range []string{
		"", "192.0.2.1:9618", "MyAddress = 5", "<192.0.2.1:9618", "version\n<192.0.2.1:9618>", "X = 1\n<192.0.2.1:9618>", "X = 1\nversion\nMyAddress = \"<192.0.2.1:9618>\"",
		"MyAddress = \"192.0.2.1:9618\"", "MyAddress = \"", "<192.0.2.1:9618>" + strings.Repeat("\n", MostAddressFile),
	} {
		if _, err := ReadAddress(bad); err == nil {
			t.Errorf("%q is taken for an address", bad)
		}
	}
	if err := (AddressFile{Path: filepath.Join(f.Path, "x", "y")}).Write(here); !errs.Is(err, errs.Broken) {
		t.Errorf("no folder: %v", err)
	}
	if err := errors.Join(AddressFile{}.Write(here), AddressFile{}.Remove(here)); err != nil {
		t.Errorf("without a path: %v", err)
	}
}
