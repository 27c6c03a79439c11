// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/execpoint/execpoint/lib/eventlog"
)

// beChirper makes the test binary a job that says its arguments by Chirp, as
// condor_chirp would, and prints the answers.
const beChirper = "EXECPOINT_TEST_BE_CHIRPER"

func chirper(requests []string) error {
	b, err := os.ReadFile(os.Getenv("_CONDOR_CHIRP_CONFIG"))
	if err != nil {
		fmt.Println("no chirp")
		return nil
	}
	var host, port, cookie string
	if _, err := fmt.Sscan(string(b), &host, &port, &cookie); err != nil {
		return err
	}
	nc, err := net.Dial("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return err
	}
	defer nc.Close()
	r := bufio.NewReader(nc)
	for _, q := range append([]string{"cookie " + cookie}, requests...) {
		if _, err := fmt.Fprintf(nc, "%s\n", strings.ReplaceAll(q, "~", "\\ ")); err != nil {
			return err
		}
		answer, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		answer = strings.TrimSuffix(answer, "\n")
		verb, _, _ := strings.Cut(q, " ")
		n, err := strconv.Atoi(answer)
		if err != nil {
			return err
		}
		switch verb {
		case "cookie":
			continue
		case "get_job_attr", "get_job_attr_delayed", "getfile", "getdir", "whoami", "read":
			if n > 0 {
				text := make([]byte, n)
				if _, err := io.ReadFull(r, text); err != nil {
					return err
				}
				answer = strings.Join(strings.Fields(string(text)), " ")
			}
		case "open", "stat", "statfs":
			if n < 0 {
				break
			}
			line, err := r.ReadString('\n')
			if err != nil {
				return err
			}
			answer = fmt.Sprint(n, " and ", len(strings.Fields(line)), " numbers")
		case "putfile": // its last word is what the file gets
			if n >= 0 {
				fmt.Fprint(nc, "made\n")
				if answer, err = r.ReadString('\n'); err != nil {
					return err
				}
				answer = strings.TrimSpace(answer)
			}
		}
		fmt.Printf("%s: %s\n", verb, answer)
	}
	return nil
}

// chirping is a submit file whose job says requests; in one of them ~ is a blank
// in a word.
func chirping(t *testing.T, more string, requests ...string) string {
	t.Helper()
	self := filepath.Join(openDir(t, "program"), "chirper") // where every user comes
	copyProgram(t, self)
	args := ""
	for _, q := range requests {
		args += " '" + strings.ReplaceAll(q, `"`, `""`) + "'"
	}
	return small + "executable = " + self + "\ntransfer_executable = false\nenvironment = \"" + beChirper + "=1\"\narguments = \"" + args[1:] + "\"\n" +
		"output = out\nerror = err\nlog = job.log\n" + more + "queue\n"
}

// TestChirp has a job without a pool ask for Chirp: it reaches the files of its
// submit directory and no others, its ad and its event log, and what it sets there
// is what the policy of the submit file sees.
func TestChirp(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "in.txt", "from the submit directory\n")
	p.write(t, "job.sub", chirping(t, "want_io_proxy = true\n+Answer = 42\n+Owner2 = \"me\"\n"+
		"on_exit_hold = Progress == 7 && Answer == 43\non_exit_hold_reason = ChirpPhase\non_exit_hold_subcode = 5\n",
		"get_job_attr Answer", "get_job_attr Nothing", "set_job_attr Progress 7", "set_job_attr Answer 43", "get_job_attr Answer",
		`set_job_attr Owner "root"`, "set_job_attr ClusterId 9", "set_job_attr Progress )", `set_job_attr_delayed ChirpPhase "two"`, "get_job_attr_delayed ChirpPhase",
		"set_job_attr_delayed Other 1", "ulog half~done", "getfile in.txt", "getfile gone.txt", "getfile /etc/passwd", "getfile ../x",
		"putfile made.txt 420 5", "getfile "+filepath.Join(p.dir, "made.txt"), "mkdir sub 493", "rename made.txt sub/made.txt", "getdir sub", "stat in.txt",
		"statfs in.txt", "open in.txt r 0", "read 0 8", "whoami 20"))
	status, stdout, stderr := p.ep(t, "run", "job.sub")
	const want = `get_job_attr: 42
get_job_attr: UNDEFINED
set_job_attr: 0
set_job_attr: 0
get_job_attr: 43
set_job_attr: -2
set_job_attr: -2
set_job_attr: -8
set_job_attr_delayed: 0
get_job_attr_delayed: "two"
set_job_attr_delayed: 1
ulog: 0
getfile: from the submit directory
getfile: -3
getfile: -2
getfile: -2
putfile: 5
getfile: made
mkdir: 0
rename: 0
getdir: made.txt
stat: 0 and 13 numbers
statfs: 0 and 7 numbers
open: 0 and 13 numbers
read: from the
whoami: CONDOR
`
	if got := p.read(t, "out"); got != want {
		t.Errorf("the job was answered\n%s\nwant\n%s", got, want)
	}
	if got := p.read(t, "sub/made.txt"); got != "made\n" {
		t.Errorf("the file of the job is %q", got)
	}
	if status != exitSomeFailed || !strings.Contains(stdout, "two (code 3 subcode 5)") {
		t.Errorf("status %d, want the job held by what it set\n%s%s", status, stdout, stderr)
	}
	var said []string
	for _, r := range p.events(t, "job.log") {
		switch e := r.Event.(type) {
		case eventlog.AttributeUpdate:
			said = append(said, e.Name+"="+e.OldValue+">"+e.Value)
		case eventlog.Generic:
			said = append(said, e.Info)
		}
	}
	if got := strings.Join(said, " "); got != "Progress=>7 Answer=42>43 half done" {
		t.Errorf("the event log has %q", got)
	}
	p.nothingLeft(t)
}

// TestChirpUnasked has jobs that do not ask for Chirp: as in HTCondor they may set
// attributes for the next update and nothing else, unless job or owner say no.
func TestChirpUnasked(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, conf, job, want string }{
		{"the default", "", "", "set_job_attr_delayed: 0\nget_job_attr: -8\ngetfile: -8\nulog: -8\n"},
		{"updates alone", "", "+WantRemoteUpdates = true\n", "set_job_attr_delayed: 0\nget_job_attr: 1\ngetfile: -8\nulog: 0\n"},
		{"the job wants none", "", "+WantDelayedUpdates = false\n", "no chirp\n"},
		{"the owner offers none", "ENABLE_CHIRP = false\n", "want_io_proxy = true\n", "no chirp\n"},
		{"the owner offers no files", "ENABLE_CHIRP_IO = false\n", "want_io_proxy = true\n", "set_job_attr_delayed: 0\nget_job_attr: -8\ngetfile: -8\nulog: -8\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.write(t, "ep.conf", tt.conf)
			p.write(t, "job.sub", chirping(t, tt.job+"+Answer = 1\n", "set_job_attr_delayed ChirpX 1", "get_job_attr Answer", "getfile job.sub", "ulog x"))
			status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub")
			if got := p.read(t, "out"); status != exitOK || got != tt.want {
				t.Errorf("status %d, the job was answered\n%s\nwant\n%s\n%s%s", status, got, tt.want, stdout, stderr)
			}
			p.nothingLeft(t)
		})
	}
}

// TestChirpAsTheOwner has root run a submit file of another user: by Chirp the job
// reaches what that user could, though the starter is root's.
func TestChirpAsTheOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	who, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("no user nobody")
	}
	base, err := os.MkdirTemp("", "owner")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	p := place{dir: filepath.Join(base, "dir"), tmp: filepath.Join(base, "tmp")}
	for _, dir := range []string{p.dir, p.tmp} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	p.write(t, "job.sub", chirping(t, "want_io_proxy = true\n", "putfile made.txt 420 5", "getfile secret", "putfile secret 420 5",
		"chmod secret 511", "unlink secret", "chown made.txt 0 0", "open pipe r 0"))
	if out, err := exec.Command("chown", "-R", "nobody", p.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	secret := filepath.Join(p.dir, "secret")
	p.write(t, "secret", "of root\n")
	if err := os.Chmod(secret, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(p.dir, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := p.ep(t, "run", "job.sub")
	const want = "putfile: 5\ngetfile: -2\nputfile: -2\nchmod: -2\nunlink: 0\nchown: -2\nopen: -2\n"
	if got := p.read(t, "out"); status != exitOK || got != want {
		t.Errorf("status %d, the job was answered\n%s\nwant\n%s\n%s%s", status, got, want, stdout, stderr)
	}
	info, err := os.Stat(filepath.Join(p.dir, "made.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); strconv.Itoa(int(st.Uid)) != who.Uid {
		t.Errorf("made.txt is of the user %d", st.Uid)
	}
	p.nothingLeft(t)
}

// TestChirpInRootsDirectory has a job of root's own directory, which runs as
// nobody, try to have root move files for it: what it would name as its output,
// its input and its next run it may not set; its own attributes it may.
func TestChirpInRootsDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	base, err := os.MkdirTemp("", "own")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	p := place{dir: filepath.Join(base, "dir"), tmp: filepath.Join(base, "tmp")}
	for _, dir := range []string{p.dir, p.tmp} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.write(t, "ep.conf", "CHIRP_DELAYED_UPDATE_PREFIX = *\n")
	p.write(t, "job.sub", chirping(t, "want_io_proxy = true\nmax_retries = 1\nsuccess_exit_code = 7\n",
		`set_job_attr Out "`+base+`/evil"`, `set_job_attr TransferInput "/etc/shadow"`, `set_job_attr UserLog "`+base+`/evil"`,
		`set_job_attr_delayed Out "`+base+`/evil"`, `set_job_attr ChirpMine 3`, `get_job_attr ChirpMine`))
	_, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub")
	const want = "set_job_attr: -2\nset_job_attr: -2\nset_job_attr: -2\nset_job_attr_delayed: 0\nset_job_attr: 0\nget_job_attr: 3\n"
	if got := p.read(t, "out"); got != want {
		t.Errorf("the job was answered\n%s\nwant\n%s\n%s%s", got, want, stdout, stderr)
	}
	if !strings.Contains(stdout, "the jobs run as nobody") || strings.Count(stdout, "started") != 2 {
		t.Errorf("want two runs as nobody:\n%s%s", stdout, stderr)
	}
	if _, err := os.Lstat(filepath.Join(base, "evil")); err == nil {
		t.Error("a job of nobody's had root write where it likes")
	}
	p.nothingLeft(t)
}
