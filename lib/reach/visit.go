// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/jobenv"
)

// visit is one session of the job's owner by ssh: its directory in the scratch
// directory, with keys of its own, and the sshd in front of it.
type visit struct {
	target   Target
	dir      string // relative to Target.Root; "" as long as there is none
	sshd     string
	sshdArgs []string
	keygen   []string
	template string   // of sshd's configuration
	env      []string // of the job, for sshd and for the shell
	user     string   // whom sshd lets in: the one it runs as

	public, private []byte // the two halves of the key pair
}

// mostVisits bounds the directories of sessions.
const mostVisits = 1000

// toMakeKeys is how long making the keys may take.
const toMakeKeys = 60 * time.Second

// readVisit reads what is asked for and what is configured. What it returns
// with an error can be cleaned up as well.
func (cs *CommandSocket) readVisit(ad *classad.Ad, t Target) (*visit, error) {
	set := &cs.cfg.Settings
	v := &visit{target: t, sshd: set.SSHD}
	keygen := set.Keygen
	for _, f := range [...]struct{ path, knob, pack string }{
		{v.sshd, "SSH_TO_JOB_SSHD", "openssh-server"}, {keygen, "SSH_TO_JOB_SSH_KEYGEN", "openssh-client"},
	} {
		if info, err := os.Stat(f.path); err != nil || !info.Mode().IsRegular() {
			return v, errs.E("reach.sshd", errs.NotFound, f.path, fmt.Errorf("it is not on the machine of the job; its administrator can install %s, or set %s to where it is", f.pack, f.knob))
		}
	}
	if strings.ContainsAny(t.Scratch, "\"'\\%\n\r \t") {
		return v, errs.E("reach.sshd", errs.Unsupported, t.Scratch, errors.New("the path of the scratch directory has characters that sshd's files cannot hold"))
	}
	for n := range mostVisits {
		name := fmt.Sprintf(".condor_ssh_to_job_%d", n+1)
		if _, err := t.Root.Lstat(name); errors.Is(err, os.ErrNotExist) {
			v.dir = name
			break
		}
	}
	if v.dir == "" {
		return v, errs.E("reach.sshd", errs.Exhausted, "", fmt.Errorf("there are %d ssh sessions to the job already", mostVisits))
	}
	var err error
	if v.sshdArgs, err = arguments("SSH_TO_JOB_SSHD_ARGS", set.SSHDArgs, v.path("sshd_config")); err != nil {
		return v, err
	}
	if v.keygen, err = arguments("SSH_TO_JOB_SSH_KEYGEN_ARGS", set.KeygenArgs, v.path("sshkey")); err != nil {
		return v, err
	}
	asked, _ := ad.EvalString("SSHKeyGenArgs", nil)
	more, err := jobenv.ArgsFromV2(asked)
	if err != nil {
		return v, errs.E("reach.sshd", errs.Invalid, "SSHKeyGenArgs", err)
	}
	v.keygen = slices.Concat([]string{keygen}, v.keygen, more)
	v.template = cs.template()
	v.environment(cs, ad)
	return v, nil
}

// arguments reads the text of a knob that holds arguments between double quotes,
// in which %f stands for a file.
func arguments(knob, text, file string) ([]string, error) {
	bad := func(err error) ([]string, error) { return nil, errs.E("reach.sshd", errs.Invalid, knob, err) }
	raw, err := jobenv.Unquote(text)
	if err != nil {
		return bad(err)
	}
	args, err := jobenv.ArgsFromV2(raw)
	if err != nil {
		return bad(err)
	}
	for i, a := range args {
		args[i] = strings.NewReplacer("%%", "%", "%f", file).Replace(a)
	}
	return args, nil
}

// template returns the template of sshd's configuration: the configured one,
// that of an installation, or ours.
func (cs *CommandSocket) template() string {
	if path := cs.cfg.Settings.Template; path != "" {
		if b, err := os.ReadFile(path); err == nil && len(b) < 1<<20 {
			return string(b)
		}
	}
	return ownTemplate
}

// ownTemplate has what a session beside a job needs: keys only, files in a
// directory that others may look into, and whatever the owner wants to bring.
const ownTemplate = `HostKey _INSERT_HOST_KEY_
AuthorizedKeysFile _INSERT_AUTHORIZED_KEYS_FILE_
StrictModes no
AcceptEnv *
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitEmptyPasswords no
PermitRootLogin no
PermitUserEnvironment no
X11Forwarding yes
X11UseLocalhost no
Subsystem sftp internal-sftp
PidFile none
LogLevel VERBOSE
`

// environment makes the environment of the session.
func (v *visit) environment(cs *CommandSocket, ad *classad.Ad) {
	set := func(name, value string) { v.env = append(v.env, name+"="+value) }
	scratch := false
	for _, e := range v.target.Env {
		name, _, _ := strings.Cut(e, "=")
		scratch = scratch || name == "_CONDOR_SCRATCH_DIR"
		if name != "DISPLAY" && name != "LD_PRELOAD" && name != "_CONDOR_JOB_PIDS" {
			v.env = append(v.env, e)
		}
	}
	if !scratch { // the home of a made-up account
		set("_CONDOR_SCRATCH_DIR", v.target.Scratch)
	}
	pids := make([]string, len(v.target.PIDs))
	for i, p := range v.target.PIDs {
		pids[i] = fmt.Sprint(p)
	}
	set("_CONDOR_JOB_PIDS", strings.Join(pids, " "))
	if slot, ok := ad.EvalString("Name", nil); ok && slot != "" {
		set("_CONDOR_SLOT_NAME", oneLine(slot))
	}
	shells, _ := ad.EvalString("Shell", nil)
	for _, s := range strings.Split(shells, ",") {
		if s = strings.TrimSpace(s); filepath.IsAbs(s) {
			if info, err := os.Stat(s); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				set("_CONDOR_SHELL", s)
				break
			}
		}
	}
	// Users without an account that one can log in to have a library of
	// HTCondor's make one up, where it is installed.
	if cs.cfg.Settings.FakePasswd {
		lib := filepath.Join(cs.cfg.Settings.Lib, "libgetpwnam.so")
		if _, err := os.Stat(lib); err == nil && filepath.IsAbs(lib) {
			set("LD_PRELOAD", lib)
		}
	}
}

func (v *visit) file(name string) string { return filepath.Join(v.dir, name) }
func (v *visit) path(name string) string { return filepath.Join(v.target.Scratch, v.dir, name) }

// keysScript makes the directory, the keys and the name of the user, all as
// that user.
const keysScript = `umask 077
d=$1
shift
mkdir "$d" || exit 1
"$@" >"$d/keygen.log" 2>&1 || exit 2
id -un >"$d/user" || exit 3
`

// prepare makes keys and files.
func (v *visit) prepare(ctx context.Context) error {
	const op = "reach.sshd"
	if err := v.makeKeys(ctx); err != nil {
		return err
	}
	var err error
	for _, f := range [...]struct {
		name string
		to   *[]byte
	}{{"sshkey.pub", &v.public}, {"sshkey", &v.private}} {
		if *f.to, err = v.read(f.name); err != nil {
			return errs.E(op, errs.Broken, f.name, err)
		}
	}
	user, err := v.read("user")
	if err != nil {
		return errs.E(op, errs.Broken, "user", err)
	}
	v.user = strings.TrimSpace(string(user))
	command := "/bin/sh " + v.path("shell.sh")
	for _, f := range [...]struct{ name, text string }{
		{"env.sh", exports(v.env)},
		{"shell.sh", strings.ReplaceAll(shellScript, "_INSERT_DIR_", v.path(""))},
		{"authorized_keys", `command="` + command + `" ` + string(v.public)},
		{"sshd_config", strings.NewReplacer(
			"_INSERT_HOST_KEY_", v.path("sshkey"), "_INSERT_AUTHORIZED_KEYS_FILE_", v.path("authorized_keys"), "_INSERT_FORCE_COMMAND_", command,
		).Replace(v.template)},
	} {
		if err := v.write(f.name, f.text); err != nil {
			return errs.E(op, errs.Broken, f.name, err)
		}
	}
	return nil
}

// makeKeys has the keys made beside the job.
func (v *visit) makeKeys(ctx context.Context) error {
	const op = "reach.sshd"
	args := append([]string{"sh", "-c", keysScript, "sh", v.path("")}, v.keygen...)
	family, err := v.target.Spawn(host.SpawnSpec{Path: "/bin/sh", Args: args, Env: v.env, Dir: v.target.Scratch, User: v.target.User, Bond: host.Bound})
	if err != nil {
		return errs.E(op, errs.Broken, v.keygen[0], err)
	}
	defer family.Close()
	t := time.NewTimer(toMakeKeys)
	defer t.Stop()
	select {
	case <-family.Done():
	case <-t.C:
		return errs.E(op, errs.Expired, v.keygen[0], fmt.Errorf("making keys takes longer than %s", toMakeKeys))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s := family.Status(); !s.Success() {
		log, _ := v.read("keygen.log")
		return errs.E(op, errs.Broken, v.keygen[0], fmt.Errorf("making keys %s: %s", s, strings.TrimSpace(oneLine(string(log)))))
	}
	return nil
}

// read returns a small file of the session's directory.
func (v *visit) read(name string) ([]byte, error) {
	f, err := v.target.openRegular(v.file(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const most = 64 << 10
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(b) > most {
		err = fmt.Errorf("more than %d bytes", most)
	}
	return b, err
}

// write makes a file in the session's directory, which no other user may enter.
func (v *visit) write(name, text string) error {
	f, err := v.create(name)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Close())
}

// create makes a file in the session's directory, which is the user's.
func (v *visit) create(name string) (f *os.File, err error) {
	err = v.target.as(func() (err error) {
		f, err = v.target.Root.OpenFile(v.file(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		return err
	})
	return f, err
}

// cleanUp removes the session's directory.
func (v *visit) cleanUp() {
	if v.dir != "" {
		_ = v.target.Root.RemoveAll(v.dir)
	}
}

// exports writes an environment as a script for sh.
func exports(env []string) string {
	var b bytes.Buffer
	for _, e := range env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || !shellName(name) || name == "LD_PRELOAD" {
			continue
		}
		fmt.Fprintf(&b, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	return b.String()
}

// shellName reports whether sh can export a variable of that name.
func shellName(name string) bool {
	for i, c := range []byte(name) {
		switch {
		case c == '_', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', i > 0 && c >= '0' && c <= '9':
		default:
			return false
		}
	}
	return name != ""
}

// shellScript is what sshd runs for the owner: a shell, or the command that
// was given, as the job sees the world.
const shellScript = `. _INSERT_DIR_/env.sh
cd "${_CONDOR_JOB_IWD:-_INSERT_DIR_/..}" 2>/dev/null || cd "_INSERT_DIR_/.."
if [ -n "$SSH_ORIGINAL_COMMAND" ]; then
  eval "$SSH_ORIGINAL_COMMAND"
  exit
fi
[ -z "$_CONDOR_SLOT_NAME" ] || echo "Welcome to $_CONDOR_SLOT_NAME!"
[ -z "$_CONDOR_JOB_PIDS" ] || echo "Your condor job is running with pid(s) $_CONDOR_JOB_PIDS."
[ -z "$TMOUT" ] || echo "You will be logged out after $TMOUT seconds of inactivity."
exec "${_CONDOR_SHELL:-${SHELL:-/bin/sh}}" -l
`
