// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"os"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/host"
)

// Settings are what the configuration says about reaching into a job. JSON gives
// them back as they were.
type Settings struct {
	Network endpoint.Network
	// Peek and SSH are ENABLE_PEEK_JOB and ENABLE_SSH_TO_JOB, over the slot (MY) and
	// the job (TARGET); nil is yes.
	Peek, SSH *config.Expr

	SSHD       string // SSH_TO_JOB_SSHD
	SSHDArgs   string // SSH_TO_JOB_SSHD_ARGS, in double quotes
	Template   string // SSH_TO_JOB_SSHD_CONFIG_TEMPLATE
	Keygen     string // SSH_TO_JOB_SSH_KEYGEN
	KeygenArgs string // SSH_TO_JOB_SSH_KEYGEN_ARGS, in double quotes
	FakePasswd bool   // CONDOR_SSH_TO_JOB_FAKE_PASSWD_ENTRY
	Lib        string // LIB, "" for none
}

// SettingsFrom reads the configuration for the starters of a subsystem, as "STARTER".
func SettingsFrom(s *config.Snapshot, subsystem string) (Settings, error) {
	r := &config.Reader{Snapshot: s}
	set := Settings{
		Peek: r.Expr("ENABLE_PEEK_JOB"), SSH: r.Expr("ENABLE_SSH_TO_JOB"),
		SSHD: r.Text("SSH_TO_JOB_SSHD"), SSHDArgs: r.Text("SSH_TO_JOB_SSHD_ARGS"), Template: r.Text("SSH_TO_JOB_SSHD_CONFIG_TEMPLATE"),
		Keygen: r.Text("SSH_TO_JOB_SSH_KEYGEN"), KeygenArgs: r.Text("SSH_TO_JOB_SSH_KEYGEN_ARGS"),
		FakePasswd: r.Bool("CONDOR_SSH_TO_JOB_FAKE_PASSWD_ENTRY"), Lib: r.String("LIB"),
	}
	var err error
	set.Network, err = endpoint.NetworkFrom(s, subsystem)
	if err = errors.Join(err, r.Err()); err != nil {
		return Settings{}, err
	}
	return set, nil
}

// Config says where a starter is reached and for whom it opens.
type Config struct {
	// Claim is the whole claim id, session info and key included. It is what
	// CREATE_JOB_OWNER_SEC_SESSION must show, and its session is let in.
	Claim claim.Secret
	// Family is the session of the daemons under this machine's condor_master,
	// which is let in from this machine where the settings of Secure have
	// FamilySession; "" for none.
	Family claim.Secret
	// Address is the public sinful of the startd: the starter is on the same
	// host and reached in the same way, at a port or endpoint of its own.
	Address string
	Job     Handler

	// Endpoint is the starter on the wire; nil is one that speaks with no broker.
	Endpoint *endpoint.Endpoint
	Settings Settings
	// SharedPort makes the named socket id below dir, which is "" where the
	// configuration names none. Nil: there is no shared port on this system,
	// USE_SHARED_PORT is not heeded.
	SharedPort func(dir, id string) (listen.NamedSocket, error)
	// Broker opens a connection to a broker for CCB_REGISTER, as
	// endpoint.Endpoint.Register does. It is used when Address has brokers and the
	// starter a port of its own; without it the address has no broker then.
	Broker func(ctx context.Context, address string) (*cedar.Conn, error)
	// Commands are taken besides those of a starter, as that of a
	// listen.Reverser whose connections come in here.
	Commands []listen.Command
	// Changed is called with the address when it becomes another one, as by a
	// broker. It must not wait. It may be nil.
	Changed func(address string)

	// Secure makes what lets others in than those with a session: what the
	// configuration's ALLOW lists and SEC_ knobs say, and who finds out who they
	// are. It is called once, when the first connection comes, and looks names of
	// hosts up until ctx ends: all connections wait for it. An error, or nil
	// as Secure, lets no peer negotiate: then only peers with a session come in.
	Secure   func(ctx context.Context) (*security.Settings, security.Authenticator, error)
	Platform string // $CondorPlatform…
}

// Handler is the activation as those who reach into it see it. Its methods are
// called from many goroutines.
type Handler interface {
	// Reconnect takes over conn, on which a shadow asks to go on with the job
	// (CA_RECONNECT_JOB with ad). It answers with ReplyReconnect; conn is then
	// the conversation. If it returns an error before it answered, the shadow
	// is told why and conn is closed.
	Reconnect(ctx context.Context, conn *cedar.Conn, ad *classad.Ad) error
	// Vacate ends the job, softly or at once. The codes tell whether it is
	// evicted or put on hold.
	Vacate(ctx context.Context, reason string, code, subcode int, soft bool) error
	// RenewProxy puts another X.509 proxy in place of the job's. The error says that it
	// has none, or why that was not done.
	RenewProxy(file []byte) error
	// Running returns the job. It is false as long as the job has not started
	// and after it ended; Target.Job is set once the ad is known all the same.
	Running() (Target, bool)
}

// Target is a running job, as far as others may see it.
type Target struct {
	Job     *classad.Ad // nil as long as it is not known
	Machine *classad.Ad // the slot, for the knobs that are expressions; may be nil
	// Root is the scratch directory and Scratch its path.
	Root    *os.Root
	Scratch string
	// As calls a function whose dealings with files are those of User, in the
	// goroutine that calls it; nil calls it as it is. Everything below Root is
	// reached in this way, for the job may have put anything there.
	As func(func() error) error
	// Stdout and Stderr are the files of the standard streams, relative to
	// Root; "" where the stream is no file there.
	Stdout, Stderr string
	// Spawn starts a process beside the job's: of the same family, under the
	// same limits and as its user, whatever the spec says of those.
	Spawn func(host.SpawnSpec) (host.Family, error)
	Env   []string       // of the job
	PIDs  []int          // of the job, for people to see
	User  *host.Identity // nil: jobs run as the starter's own user
	// Suspended and Finished say why no visitor can be let to the job now.
	Suspended, Finished bool
}

// as calls f with the rights of the job's user to files.
func (t Target) as(f func() error) error {
	if t.As != nil {
		return t.As(f)
	}
	return f()
}

// allows evaluates one of the Settings that are true or false for a job.
func (c *Config) allows(x *config.Expr, t Target) bool {
	if x == nil {
		return true
	}
	yes, _ := x.IsTrue(&classad.Env{My: t.Machine, Target: t.Job, Now: c.Endpoint.Clock.Now().Wall})
	return yes
}

// sharedPort reports whether the starter is an endpoint of the shared port that
// the startd is behind.
func (c *Config) sharedPort(startd cedar.Sinful) bool {
	return c.SharedPort != nil && startd.SockID != "" && c.Settings.Network.SharedPort
}
