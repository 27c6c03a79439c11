// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package reach lets real programs reach into and out of a job: an ssh
// client with the keys that START_SSHD gives, and HTCondor's condor_chirp. As
// root the job is that of the user that EXECPOINT_TEST_USER names, or tester's.
package reach

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reach"
	"github.com/execpoint/execpoint/platform/linux/account"
	"github.com/execpoint/execpoint/platform/linux/proc"
)

const (
	startd   = "<127.0.0.1:9618?addrs=127.0.0.1-9618&noUDP>"
	keyText  = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	jobOwner = "alice@example.org"
	version  = "$CondorVersion: 25.14.0 2026-11-20 TEST $"
)

// job is a Handler whose job is always running.
type job struct{ target reach.Target }

func (j job) Reconnect(context.Context, *cedar.Conn, *classad.Ad) error {
	return errors.New("not here")
}
func (job) RenewProxy([]byte) error { return errors.New("the job has no proxy") }

func (j job) Vacate(context.Context, string, int, int, bool) error { return nil }
func (j job) Running() (reach.Target, bool)                        { return j.target, true }

// tester is who jobs run as: nil is ourselves.
func tester(t *testing.T) *host.Identity {
	if os.Getuid() != 0 {
		return nil
	}
	name := realpool.JobUser(t).Username // root does not let itself in by ssh
	u, err := account.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// scratch is a directory that the job's user owns and can reach.
func scratch(t *testing.T, u *host.Identity) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "reach")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if u != nil {
		if err := os.Chown(dir, int(u.UID), int(u.GID)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func configuration(t *testing.T, knobs map[string]string) *config.Snapshot {
	t.Helper()
	text := ""
	for name, value := range knobs {
		text += name + " = " + value + "\n"
	}
	c, err := config.Parse("text", text, config.Options{Subsystem: "STARTER"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func settings(t *testing.T, knobs map[string]string) reach.Settings {
	t.Helper()
	set, err := reach.SettingsFrom(configuration(t, knobs), "STARTER")
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// open opens a door before a job in dir.
func open(t *testing.T, dir string, u *host.Identity, knobs map[string]string) (*reach.CommandSocket, *bytes.Buffer) {
	t.Helper()
	spawner, err := proc.New(proc.Options{Role: proc.Guest})
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	ad := classad.NewAd()
	ad.SetString("User", jobOwner)
	n := 0
	target := reach.Target{
		Job: ad, Root: root, Scratch: dir, User: u, PIDs: []int{4711},
		Env: []string{"PATH=/usr/bin:/bin", "_CONDOR_JOB_IWD=" + dir, "GREETING=it's me", "BAD NAME=x"},
		Spawn: func(s host.SpawnSpec) (host.Family, error) {
			n++
			s.Marker = fmt.Sprintf("_CONDOR_ANCESTOR_%d=%d:%d", os.Getpid(), n, time.Now().UnixNano())
			s.Env = append(s.Env, s.Marker)
			return spawner.Spawn(s)
		},
	}
	log := &bytes.Buffer{}
	door, err := reach.Open(t.Context(), reach.Config{
		Claim: testClaim(), Address: startd, Job: job{target}, Settings: settings(t, knobs),
		Endpoint: endpoint.New(endpoint.Config{Version: version, Log: slog.New(slog.NewTextHandler(log, nil))}),
	})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- door.Serve(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		door.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		left, _ := filepath.Glob(filepath.Join(dir, ".condor_ssh_to_job_*"))
		if len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		_ = root.Close()
	})
	return door, log
}

func testClaim() claim.Secret {
	return claim.Secret(startd + "#1700000000#1#" + security.DefaultInfo("25.14.0").String() + keyText)
}

// ask opens a command under a session and asks with an ad.
func ask(t *testing.T, door *reach.CommandSocket, s *security.Sessions, session string, number int, request *classad.Ad) (*cedar.Conn, *classad.Ad) {
	t.Helper()
	client := &security.Client{
		Sessions: s, Clock: clock.System(), Version: version, Subsystem: "TOOL", Address: func() string { return "" },
		Dial: func(ctx context.Context, to cedar.Sinful) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", to.HostPort())
		},
	}
	client.Configure(&security.Settings{Authorizer: &security.Authorizer{}, StepTimeout: time.Minute, Deadline: time.Minute}, nil)
	to, err := cedar.ParseSinful(door.Address())
	if err != nil {
		t.Fatal(err)
	}
	conn, _, err := client.Command(t.Context(), to, number, security.Options{Session: session})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetTimeout(time.Minute)
	conn.PutAd(request, cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		t.Fatal(err)
	}
	reply, err := conn.Ad(cedar.AdOptions{})
	if err == nil {
		err = conn.EndOfMessage()
	}
	if err != nil {
		t.Fatal(err)
	}
	return conn, reply
}

// startSSHD does what schedd and condor_ssh_to_job do.
func startSSHD(t *testing.T, door *reach.CommandSocket) (*cedar.Conn, *classad.Ad) {
	t.Helper()
	sessions := security.NewSessions(clock.System(), 10)
	id, err := claim.ParseID(testClaim().Reveal())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sessions.AddExecuteSide(id, ""); err != nil {
		t.Fatal(err)
	}
	request := classad.NewAd()
	request.SetString("ClaimId", testClaim().Reveal())
	request.SetString("SessionInfo", `[Encryption="YES";Integrity="YES";]`)
	conn, reply := ask(t, door, sessions, id.Public, command.CreateJobOwnerSecSession, request)
	_ = conn.Close()
	text, _ := reply.EvalString("ClaimId", nil)
	c, err := security.ParseCapabilityID(text)
	if err != nil {
		t.Fatalf("%v in %s", err, reply.Text(classad.Old))
	}
	if _, err := sessions.AddShared(c.Session, c.Info.String(), claim.Secret(text[strings.LastIndexByte(text, ']')+1:])); err != nil {
		t.Fatal(err)
	}
	request = classad.NewAd()
	request.SetString("Shell", "/bin/nonsense,/bin/sh")
	request.SetString("Name", "slot1@ep.example.org")
	request.SetString("SSHKeyGenArgs", "-b 2048")
	return ask(t, door, sessions, c.Session, command.StartSSHD, request)
}

func TestSSHToJob(t *testing.T) {
	_, ssh := realpool.SSH(t)
	u := tester(t)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	runs := me.Username // who the job is
	if u != nil {
		runs = u.Name
	}
	for _, fake := range []bool{false, true} { // whether HTCondor's library makes up an account
		t.Run(fmt.Sprintf("made up account %v", fake), func(t *testing.T) {
			lib := ""
			if fake {
				path := realpool.Find(t).Library("libgetpwnam.so")
				if path == "" {
					realpool.Missing(t, "this HTCondor has no libgetpwnam.so", "install one that has it in LIB")
				}
				lib = filepath.Dir(path)
			}
			dir := scratch(t, u)
			door, log := open(t, dir, u, map[string]string{"LIB": lib})
			conn, reply := startSSHD(t, door)
			if ok, _ := reply.EvalBool("Result", nil); !ok {
				t.Fatalf("refused: %s", reply.Text(classad.Old))
			}
			keys := t.TempDir()
			decode := func(attr, file string) {
				text, _ := reply.EvalString(attr, nil)
				b, err := base64.StdEncoding.DecodeString(text)
				if err != nil || len(b) == 0 {
					t.Fatalf("%s is %q: %v", attr, text, err)
				}
				if file == "known" {
					b = append([]byte("job "), b...)
				}
				if err := os.WriteFile(filepath.Join(keys, file), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			decode("SSHPublicServerKey", "known")
			decode("SSHPrivateClientKey", "key")
			name := runs
			if fake {
				name = "condor-user"
			}
			if given, _ := reply.EvalString("RemoteUser", nil); given != name {
				t.Errorf("RemoteUser is %q, want %q", given, name)
			}
			port := relay(t, conn)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, ssh, "-F", "/dev/null", "-i", filepath.Join(keys, "key"), "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
				"-o", "UserKnownHostsFile="+filepath.Join(keys, "known"), "-o", "GlobalKnownHostsFile=/dev/null", "-o", "HostKeyAlias=job", "-o", "StrictHostKeyChecking=yes",
				"-p", strconv.Itoa(port), name+"@127.0.0.1", `pwd; id -un; echo "$GREETING"; echo "$_CONDOR_SLOT_NAME $_CONDOR_JOB_PIDS"; exit 7`)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			want := fmt.Sprintf("%s\n%s\nit's me\nslot1@ep.example.org 4711\n", dir, runs)
			if string(out) != want {
				sshdLog, _ := filepath.Glob(filepath.Join(dir, ".condor_ssh_to_job_1", "sshd.log"))
				for _, f := range sshdLog {
					b, _ := os.ReadFile(f)
					t.Logf("%s", b)
				}
				t.Errorf("ssh said %q, want %q\n%s\n%s", out, want, stderr.String(), log)
			}
			var status *exec.ExitError
			if !errors.As(err, &status) || status.ExitCode() != 7 {
				t.Errorf("ssh ended with %v, want status 7", err)
			}
		})
	}
}

// relay is a port that leads to what is behind a conversation: the bytes after
// the answer are ssh's own.
func relay(t *testing.T, conn *cedar.Conn) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(); _ = conn.Close() })
	far := conn.NetConn()
	_ = far.SetDeadline(time.Time{})
	go func() {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(far, nc); _ = far.Close() }()
		_, _ = io.Copy(nc, far)
		_ = nc.Close()
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func TestSSHToJobWithoutServer(t *testing.T) {
	dir := scratch(t, nil)
	for knob, want := range map[string]string{"SSH_TO_JOB_SSHD": "openssh-server", "SSH_TO_JOB_SSH_KEYGEN": "openssh"} {
		programs := map[string]string{"SSH_TO_JOB_SSHD": "/bin/true", "SSH_TO_JOB_SSH_KEYGEN": "/bin/true"} // whatever this machine has
		programs[knob] = "/nonexistent/program"
		door, _ := open(t, dir, nil, programs)
		conn, reply := startSSHD(t, door)
		_ = conn.Close()
		ok, _ := reply.EvalBool("Result", nil)
		why, _ := reply.EvalString("ErrorString", nil)
		if ok || !strings.Contains(why, "/nonexistent/program") || !strings.Contains(why, want) && knob == "SSH_TO_JOB_SSHD" || !strings.Contains(why, knob) {
			t.Errorf("answer\n%s\nwant what to install or set", reply.Text(classad.Old))
		}
	}
	door, _ := open(t, dir, nil, map[string]string{"ENABLE_SSH_TO_JOB": "false"})
	conn, reply := startSSHD(t, door)
	_ = conn.Close()
	if why, _ := reply.EvalString("ErrorString", nil); !strings.Contains(why, "ENABLE_SSH_TO_JOB") {
		t.Errorf("answer\n%s", reply.Text(classad.Old))
	}
}

// openTo is a directory through which every user may pass.
func openTo(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "reach")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The real client of Chirp in a job of condor_ep run, which has no shadow: it
// reaches the submit directory, the job's ad and its event log.
func TestCondorChirp(t *testing.T) {
	htcondor := realpool.Find(t)
	tool := htcondor.Program("condor_chirp")
	if tool == "" {
		realpool.Missing(t, "this HTCondor has no condor_chirp", "install an HTCondor that has it in LIBEXEC")
	}
	ep := filepath.Join(t.TempDir(), "condor_ep")
	if out, err := exec.Command("go", "build", "-o", ep, "github.com/execpoint/execpoint/bin/condor_ep").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	submit := openTo(t)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(submit, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	big := strings.Repeat("0123456789abcdef", 300_000)
	write("in file", "from the submit side\n")
	write("big", big)
	write("up", big)
	cases := []struct {
		args string // as the shell reads them
		want string // part of what is printed, with the exit status in parentheses
	}{
		{`fetch "in file" got`, "(0)"},
		{`fetch big gotbig`, "(0)"},
		{`put -mode cwt -perm 600 up "sent up"`, "(0)"},
		{`get_job_attr Answer`, "41\n(0)"},
		{`set_job_attr Answer "40 + 2"`, "(0)"},
		{`get_job_attr Answer`, "40 + 2\n(0)"},
		{`set_job_attr Owner '"root"'`, "exit 1"},
		{`set_job_attr_delayed ChirpStep '"two words"'`, "(0)"},
		{`get_job_attr_delayed ChirpStep`, `"two words"`},
		{`ulog "half way there"`, "(0)"},
		{`read -offset 5 "in file" 3`, "the"},
		{`write -offset 5 "in file" got`, "(21)"},
		{`getdir .`, "in file"},
		{`stat "in file"`, "size: 2"},
		{`statfs "in file"`, "f_bsize"},
		{`access "in file" r`, "(0)"},
		{`link big other`, "(0)"},
		{`truncate other 10`, "(0)"},
		{`rmdir -r none`, "exit 1"},
		{`remove other`, "(0)"},
		{`fetch none x`, "exit 1"},
		{`fetch /etc/passwd x`, "exit 1"},
		{`whoami`, "CONDOR"},
	}
	script := "#!/bin/sh\n"
	for i, c := range cases {
		script += fmt.Sprintf("%s %s >said.%d 2>&1; echo \"($?)\" >>said.%d\n", tool, c.args, i, i)
	}
	write("job.sh", script)
	env := ""
	for _, e := range append(htcondor.Env(), "TZ=UTC") {
		env += " '" + e + "'"
	}
	write("job.sub", "executable = job.sh\nshould_transfer_files = YES\ntransfer_input_files = up\nenvironment = \""+env[1:]+"\"\nrequest_cpus = 1\nrequest_memory = 16\n"+
		"request_disk = 64 MB\nwant_io_proxy = true\n+Answer = 41\non_exit_hold = Answer == 42\non_exit_hold_reason = ChirpStep\nlog = job.log\nqueue\n")
	if os.Geteuid() == 0 { // no job runs as root
		if out, err := exec.Command("chown", "-R", realpool.JobUser(t).Username, submit).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, ep, "run", "job.sub")
	cmd.Dir = submit
	out, _ := cmd.CombinedOutput() // its status says that the job is held, which is looked for below
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(submit, name))
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return string(b)
	}
	for i, c := range cases {
		got := read(fmt.Sprint("said.", i))
		if failed := !strings.HasSuffix(got, "(0)\n"); c.want == "exit 1" && !failed || c.want != "exit 1" && !strings.Contains(got, c.want) {
			t.Errorf("condor_chirp %s: %q, want %q", c.args, got, c.want)
		}
	}
	for name, want := range map[string]string{
		"got": "from the submit side\n", "gotbig": big, "sent up": big, "in file": "from from the submit side\n", "big": big[:10],
	} {
		if got := read(name); got != want {
			t.Errorf("%s has %d bytes (%.40q), want %d", name, len(got), got, len(want))
		}
	}
	if log := read("job.log"); !strings.Contains(log, "half way there\n") || !strings.Contains(log, "Changing job attribute Answer from 41 to 40 + 2\n") {
		t.Errorf("the event log is\n%s", log)
	}
	if !strings.Contains(string(out), "two words") {
		t.Errorf("the job is not held for what it set with a delay\n%s", out)
	}
}
