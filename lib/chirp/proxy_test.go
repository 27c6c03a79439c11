// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chirp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/shadow"
)

// world is a proxy in front of a directory.
type world struct {
	t      testing.TB
	proxy  *Proxy
	dir    string
	local  *Local
	events []*classad.Ad
}

func newWorld(t testing.TB, allow Allow, change ...func(*Config)) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	job, err := classad.ParseAd("Owner = \"alice\"\nRequirements = Memory > 10\nChirpOld = 1 + 1\nClaimId = \"<a>#1#2#secret\"", classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	w.local = NewLocal(w.dir, job)
	w.local.System.Errno = errno
	w.local.Event = func(ad *classad.Ad) { w.events = append(w.events, ad) }
	cfg := Config{Remote: w.local, Allow: allow, Job: job, Settings: settings(t, "")}
	for _, f := range change {
		f(&cfg)
	}
	if w.proxy, err = Listen(cfg); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- w.proxy.Serve(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		w.proxy.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		w.local.Shut()
	})
	return w
}

func errno(err error) (int, string, bool) {
	var n syscall.Errno
	ok := errors.As(err, &n)
	return int(n), n.Error(), ok
}

func (w *world) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Error(err)
	}
	return string(b)
}

// line is one connection to the proxy.
type line struct {
	t  testing.TB
	nc net.Conn
	r  *bufio.Reader
}

// dial connects, with the cookie if known.
func (w *world) dial(known bool) *line {
	w.t.Helper()
	f := strings.Fields(w.proxy.ConfigText())
	if len(f) != 3 {
		w.t.Fatalf("the configuration is %q", w.proxy.ConfigText())
	}
	nc, err := net.Dial("tcp", net.JoinHostPort(f[0], f[1]))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(20 * time.Second))
	l := &line{t: w.t, nc: nc, r: bufio.NewReader(nc)}
	if known {
		l.say("cookie "+f[2]+"\n", "0\n")
	}
	return l
}

// say sends bytes and demands an answer, byte for byte.
func (l *line) say(send, want string) {
	l.t.Helper()
	if _, err := io.WriteString(l.nc, send); err != nil {
		l.t.Fatal(err)
	}
	b := make([]byte, len(want))
	n, err := io.ReadFull(l.r, b)
	if got := string(b[:n]); err != nil || got != want {
		l.t.Errorf("%.80q was answered %q (%v), want %q", send, got, err, want)
	}
}

// ended demands that the proxy has closed the connection.
func (l *line) ended() {
	l.t.Helper()
	if b, err := io.ReadAll(l.r); len(b) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
		l.t.Errorf("want the end, got %.80q, %v", b, err)
	}
}

const all = "files, updates, delayed"

func allowed(text string) Allow {
	return Allow{IO: strings.Contains(text, "files"), Updates: strings.Contains(text, "updates"), Delayed: strings.Contains(text, "delayed")}
}

func TestFileRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allowed("files"))
	w.write("in", "0123456789")
	if err := os.Chtimes(filepath.Join(w.dir, "in"), time.Unix(1700000000, 0), time.Unix(1700000000, 0)); err != nil {
		t.Fatal(err)
	}
	stat := "0 0 33188 1 0 0 0 10 4096 1 1700000000 1700000000 1700000000\n"
	l := w.dial(true)
	for _, c := range []struct{ send, want string }{
		{"open in r 0\n", "0\n" + stat},
		{"read 0 4\n", "4\n0123"},
		{"read 0 100\n", "6\n456789"},
		{"read 0 100\n", "0\n"},
		{"lseek 0 2 0\n", "2\n"},
		{"read 0 1\n", "1\n2"},
		{"lseek 0 0 3\n", "-8\n"},
		{"pread 0 3 5\n", "3\n567"},
		{"sread 0 4 0 2 5\n", "4\n0156"},
		{"sread 0 4 0 0 5\n", "-8\n"},
		{"read 0 0\n", "-8\n"},
		{"read 0 -1\n", "-8\n"},
		{"fstat 0\n", "0\n" + stat},
		{"close 0\n", "0\n"},
		{"close 0\n", "-12\n"},
		{"read 7 1\n", "-12\n"},
		{"stat in\n", "0\n" + stat},
		{"lstat in\n", "0\n" + stat},
		{"stat none\n", "-3\n"},
		{"statfs in\n", "-127\n"},
		{"open none r 0\n", "-3\n"},
		{"open out wc 384\n", "0\n"},
	} {
		l.say(c.send, c.want)
	}
	if _, err := l.r.ReadString('\n'); err != nil { // the stat line has the time
		t.Fatal(err)
	}
	for _, c := range []struct{ send, want string }{
		{"write 0 5\nhello", "5\n"},
		{"pwrite 0 2 1\nEL", "2\n"},
		{"swrite 0 4 10 2 3\nabcd", "4\n"},
		{"ftruncate 0 15\n", "0\n"},
		{"fsync 0\n", "0\n"},
		{"fchmod 0 256\n", "0\n"},
		{"write 9 3\nxyz", "-12\n"}, // the bytes do not become requests
		{"swrite 0 3 0 0 0\nxyz", "-8\n"},
		{"close 0\n", "0\n"},
	} {
		l.say(c.send, c.want)
	}
	if got := w.read("out"); got != "hELlo\x00\x00\x00\x00\x00ab\x00cd" {
		t.Errorf("out is %q", got)
	}
}

func TestPathRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allowed("files"))
	w.write("a", "text")
	l := w.dial(true)
	for _, c := range []struct{ send, want string }{
		{"mkdir d 493\n", "0\n"},
		{"mkdir d 493\n", "-4\n"},
		{"rename a d/b\n", "0\n"},
		{"rmdir d\n", "-15\n"},
		{"rmdir d/b\n", "-14\n"},
		{"unlink d\n", "-13\n"},
		{"link d/b d/c\n", "0\n"},
		{"symlink b d/l\n", "0\n"},
		{"readlink d/l 100\n", "1\nb"},
		{"readlink d/l 0\n", "-8\n"},
		{"getdir d\n", "7\nb\nc\nl\n\n"},
		{"getdir none\n", "-3\n"},
		{"chmod d/b 256\n", "0\n"},
		{"access d/b 4\n", "0\n"},
		{"access d/b 1\n", "-2\n"},
		{"chmod d/b 384\n", "0\n"},
		{"truncate d/b 2\n", "0\n"},
		{"getfile d/b\n", "2\nte"},
		{"getfile none\n", "-3\n"},
		{"utime d/b 1 2\n", "0\n"},
		{"putfile new\\ file 420 5\n", "0\n"},
		{"12345", "5\n"},
		{"getfile new\\ file\n", "5\n12345"},
		{"putfile none/x 420 5\n", "-3\n"},
		{"putfile empty 420 0\n", "0\n"},
		{"getfile empty\n", "0\n"},
		{"getfile d\n", "-13\n"},
		{"lookup in\n", "9\nremote:in"},
		{"whoami 3\n", "3\nCON"},
		{"whoareyou host 100\n", "6\nCONDOR"},
		{"whoami 99999999999\n", "-8\n"},
		{"unlink d/c\n", "0\n"},
		{"rmall d\n", "0\n"},
		{"rmall d\n", "-3\n"},
		{"rmall .\n", "-8\n"},
		// Nothing outside the directory of the job.
		{"getfile ../../../etc/passwd\n", "-2\n"},
		{"getfile /etc/passwd\n", "-2\n"},
		{"symlink /etc s\n", "0\n"},
		{"getfile s/passwd\n", "-2\n"},
	} {
		l.say(c.send, c.want)
	}
	if got := w.read("new file"); got != "12345" {
		t.Errorf("the file is %q", got)
	}
}

func TestUpdateRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allowed("updates"))
	l := w.dial(true)
	for _, c := range []struct{ send, want string }{
		{"version\n", "2\n"},
		{"get_job_attr Owner\n", "7\n\"alice\""},
		{"get_job_attr None\n", "9\nUNDEFINED"},
		{"set_job_attr New 1\\ +\\ 1\n", "0\n"},
		{"get_job_attr New\n", "5\n1 + 1"},
		{"set_job_attr New ((\n", "-8\n"},
		{"constrain Disk\\ >\\ 5\n", "0\n"},
		{"get_job_attr Requirements\n", "34\n(Memory > 10) && AgentRequirements"},
		{"get_job_attr AgentRequirements\n", "8\nDisk > 5"},
		{"constrain Disk\\ >\\ 6\n", "0\n"},
		{"get_job_attr Requirements\n", "34\n(Memory > 10) && AgentRequirements"},
		{"get_job_attr AgentRequirements\n", "8\nDisk > 6"},
		{"set_job_attr owner \"root\"\n", "-2\n"},
		{"set_job_attr ProcId 5\n", "-2\n"},
		{"ulog a\\ line rest\n", "0\n"},
		{"open a r 0\n", "-8\n"},
		{"set_job_attr_delayed ChirpA 1\n", "-8\n"},
	} {
		l.say(c.send, c.want)
	}
	if len(w.events) != 1 {
		t.Fatalf("%d events", len(w.events))
	}
	info, _ := w.events[0].EvalString("Info", nil)
	number, _ := w.events[0].EvalInt("EventTypeNumber", nil)
	if info != "a line" || number != 8 {
		t.Errorf("event\n%s", w.events[0].Text(classad.Old))
	}
}

func TestDelayedRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allowed("delayed"), func(c *Config) {
		c.Settings = settings(t, "CHIRP_DELAYED_UPDATE_PREFIX = Chirp*, Extra\nCHIRP_DELAYED_UPDATE_MAX_ATTRS = 1 + 1\n")
	})
	if w.proxy.Delayed() != nil {
		t.Error("there is an update before there is one")
	}
	l := w.dial(true)
	for _, c := range []struct{ send, want string }{
		{"set_job_attr_delayed chirpA 1\n", "0\n"},
		{"set_job_attr_delayed Other 1\n", "1\n"},
		{"set_job_attr_delayed Chirp-x 1\n", "1\n"},
		{"set_job_attr_delayed ChirpA ((\n", "-8\n"},
		{"set_job_attr_delayed ChirpA " + strings.Repeat("1", 994) + "\n", "-127\n"},
		{"set_job_attr_delayed EXTRA \"x\\ y\"\n", "0\n"},
		{"set_job_attr_delayed ChirpC 1\n", "1\n"}, // one too many
		{"set_job_attr_delayed ChirpA 2\n", "0\n"},
		{"get_job_attr_delayed ChirpA\n", "1\n2"},
		{"get_job_attr_delayed ChirpOld\n", "5\n1 + 1"},
		{"get_job_attr_delayed None\n", "-3\n"},
		{"get_job_attr_delayed ClaimId\n", "-3\n"},
		{"get_job_attr Owner\n", "-8\n"},
		{"version\n", "-8\n"},
	} {
		l.say(c.send, c.want)
	}
	ad := w.proxy.Delayed()
	if ad == nil || ad.Len() != 2 {
		t.Fatalf("update %v", ad)
	}
	ad.SetInt("ChirpB", 1) // a copy
	if w.proxy.Delayed().Len() != 2 {
		t.Error("the update is not a copy")
	}
}

func TestCookie(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allowed(all))
	l := w.dial(false)
	l.say("version\n", "-1\n")
	l.say("cookie aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", "-1\n")
	l.say("cookie\n", "-1\n")
	l.ended()
	cookie := strings.Fields(w.proxy.ConfigText())[2]
	if len(cookie) != 31 || strings.Trim(cookie, "abcdefghijklmnopqrstuvwxyz") != "" {
		t.Errorf("the cookie is %q", cookie)
	}
	other := newWorld(t, allowed(all))
	if strings.HasSuffix(other.proxy.ConfigText(), cookie+"\n") {
		t.Error("two proxies have the same cookie")
	}
	l = w.dial(false)
	l.say("nonsense\ncookie "+cookie+"\nversion\n", "-1\n0\n2\n")
}

func TestBadLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allowed(all))
	l := w.dial(true)
	for _, send := range []string{"\n", "nonsense\n", "open\n", "open a\n", "open a r x\n", "close 99999999999999999999\n", "\x00\n", "Version\n", "unlink \n"} {
		l.say(send, "-8\n")
	}
	l.say("version anything\r\n", "2\n")
	l.say(strings.Repeat("x", MaxLine)+"\n", "-5\n")
	l.ended()
}

func TestNobodyKeepsOthersOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allowed(all))
	w.write("big", strings.Repeat("x", 8<<20))
	first := w.dial(true)
	for range 5 * mostStrangers { // that never say a word
		w.dial(false)
	}
	half := w.dial(true)
	half.say("putfile half 420 100\n", "0\n")
	if _, err := io.WriteString(half.nc, "only"); err != nil {
		t.Fatal(err)
	}
	slow := w.dial(true) // asks and does not read
	for range 50 {
		if _, err := io.WriteString(slow.nc, "getfile big\n"); err != nil {
			t.Fatal(err)
		}
	}
	first.say("version\n", "2\n")
	w.dial(true).say("stat none\n", "-3\n")
	_ = half.nc.Close()
}

func TestClientsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allowed(all))
	for range mostClients {
		w.dial(true)
	}
	l := w.dial(false)
	l.say("cookie "+strings.Fields(w.proxy.ConfigText())[2]+"\n", "-10\n")
	l.ended()
}

// lost is a submit side that is gone.
type lost struct{ *Local }

func (lost) Unlink(context.Context, string) error { return shadow.ErrLost }
func (lost) Rmdir(context.Context, string) error {
	return &shadow.CallError{Call: "rmdir", Errno: cedar.ETXTBSY}
}

func TestLostShadow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allowed(all), func(c *Config) { c.Remote = lost{c.Remote.(*Local)} })
	l := w.dial(true)
	l.say("unlink a\n", "-17\n")
	l.say("rmdir a\n", "-10\n")
}

func TestCodes(t *testing.T) {
	t.Parallel()
	for n, want := range map[cedar.Errno]Code{
		cedar.EPERM: -2, cedar.EACCES: -2, cedar.ENOENT: -3, cedar.EEXIST: -4, cedar.EFBIG: -5, cedar.ENOSPC: -6, cedar.ENOMEM: -7,
		cedar.EINVAL: -8, 7: -8, cedar.EMFILE: -9, 23: -9, 16: -10, cedar.ETXTBSY: -10, cedar.EAGAIN: -11, cedar.EINTR: -11, 9: -12,
		cedar.EISDIR: -13, cedar.ENOTDIR: -14, cedar.ENOTEMPTY: -15, 18: -16, 110: -17, cedar.EIO: -127, cedar.ENAMETOOLONG: -127,
	} {
		if got := codeOf(&shadow.CallError{Errno: n}); got != want {
			t.Errorf("error %d is %d, want %d", n, got, want)
		}
	}
}

// settings are those of a configuration.
func settings(t testing.TB, text string) Settings {
	t.Helper()
	c, err := config.Parse("text", text, config.Options{Subsystem: "STARTER"})
	if err != nil {
		t.Fatal(err)
	}
	set, err := SettingsFrom(c)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestAllowFrom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ job, off, want string }{
		{"", "", "delayed"},
		{"WantIOProxy = true", "", all},
		{"WantIOProxy = true\nWantRemoteUpdates = false", "", "files, delayed"},
		{"WantRemoteUpdates = true", "", "updates, delayed"},
		{"WantDelayedUpdates = false", "", ""},
		{"WantIOProxy = true", "ENABLE_CHIRP", ""},
		{"WantIOProxy = true", "ENABLE_CHIRP_IO", "delayed"},
		{"WantIOProxy = true", "ENABLE_CHIRP_UPDATES", "files, delayed"},
		{"WantIOProxy = true", "ENABLE_CHIRP_DELAYED", "files, updates"},
	} {
		job, err := classad.ParseAd(c.job, classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		text := "CHIRP_DELAYED_UPDATE_PREFIX =\n"
		if c.off != "" {
			text += c.off + " = (1 > 2)\n"
		}
		got := AllowFrom(job, settings(t, text))
		if got != allowed(c.want) || got.Any() != (c.want != "") {
			t.Errorf("%q without %q: %+v, want %q", c.job, c.off, got, c.want)
		}
	}
}
