// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/local"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter"
	"github.com/execpoint/execpoint/lib/starter/launch"
)

// Host is the operating system as a run needs it. All fields but the last are
// required.
type Host struct {
	Clock   clock.Clock
	Sampler machine.Sampler
	Spawner host.Spawner // starts starters
	Census  host.Census
	// Private is host.PrivateDirs'; nil where nobody can tell whose a directory
	// is.
	Private sandbox.Private
	// Rand fills b with bytes nobody can guess.
	Rand func(b []byte)
	// Errno is for what a directory of a slot lacks; nil where the system has no
	// such numbers.
	Errno host.Errno

	// Hangup and Terminate are the system's numbers of SIGHUP and SIGTERM, for
	// the programs of the owner; 0 for none.
	Hangup, Terminate int

	// Account finds a user of the machine whom the backfill client can run as;
	// nil where an EP can run nothing as anybody but itself.
	Account func(name string) (*host.Identity, error)
	// GroupName finds the group of the machine that has a number, which is NotFound
	// for one that no group has; nil with Account.
	GroupName func(gid uint32) (string, error)
	// Access reaches files with the rights of such a user; nil with Account.
	Access host.Access
	// Tracking says what the machine has to keep the processes of a job together, with
	// control groups at that place; nil where that is not known.
	Tracking func(host.GroupPlace) host.Tracking
	// Cores are the processors that this program may use, by their numbers; nil where
	// they are not known, and jobs cannot be kept on some.
	Cores func() []int
	// Descriptors counts those of this program; nil where they are not counted,
	// and nothing is refused for want of them.
	Descriptors func() (host.Descriptors, error)

	// Volumes gives each job a file system of its own, and Mounter takes away those
	// that others see of starters that died; nil where jobs share that of EXECUTE.
	Volumes host.Volumes
	Mounter host.Mounter

	// Rootless is how a program without the rights of root contains jobs; nil for one
	// that has them, and where nobody can tell.
	Rootless *Rootless

	// Channel makes the standard input of a starter, through which the shadow's
	// connection is passed; nil where none can be, and no job of a pool can run.
	Channel func() (child *os.File, parent launch.Channel, err error)

	// Peer names the user at the other end of a connection to the control
	// socket; nil where nobody can know.
	Peer observe.PeerOf
}

// Options says what to run and where.
type Options struct {
	Config    *config.Snapshot
	Inventory *machine.Inventory
	Host      Host
	Version   string
	// Name is what jobs and their event logs call this program where its end is
	// why they leave; "" is "the Execution Point". A member of a pool says what
	// HTCondor's startd says instead.
	Name string
	Log  *slog.Logger // the daemon log; required

	Places
	ControlSocket
	Starters
	OwnJobs
	Reloading
	Listeners

	// Serve makes the EP a member of a pool, without jobs of its own; nil has
	// it run OwnJobs and end.
	Serve *Serve
	// Interrupt asks for the end: the first value vacates the jobs, the second
	// kills them. nil never does.
	Interrupt <-chan struct{}
}

// Places are the directories of a run.
type Places struct {
	// Execute is the directory of the sandboxes, Dir what status shows as the EP's
	// place.
	Execute, Dir string
	// SlotExecutes are the directories of single slots, of SLOT<N>_EXECUTE, as
	// CheckSlotExecutes found them.
	SlotExecutes []machine.SlotExecute
	// Programs is the directory where the GPU discovery program may be if it is
	// not in LIBEXEC; "" is nowhere.
	Programs string
}

// ControlSocket is where a run is asked what it does.
type ControlSocket struct {
	// Socket is the path of the control socket, "" for none. Control is one that is
	// open already, instead; it is closed.
	Socket  string
	Control net.Listener
	// Allow says why who asks there may not ask that, which is read in
	// Request.By and Request.Ours; nil lets everybody who can reach the socket.
	Allow func(observe.Request) error
}

// Starters says how starters are started.
type Starters struct {
	// StarterPath and StarterArgs are the program of a starter and its whole
	// argument vector; StarterLog takes what starters write to standard error.
	StarterPath string
	StarterArgs []string
	// Self is the program that condor_starter executes where StarterPath leads to
	// that, perhaps by a script; "" is what condor_starter finds.
	Self string
	// Starter says which program that is under another configuration, for the
	// starters that begin later; nil keeps the first. It is called beside the
	// owner. An error refuses the configuration.
	Starter    func(*config.Snapshot) (path string, args []string, err error)
	StarterEnv []string // the starter's own environment, not the job's
	StarterLog *os.File
	// Standby is how many starters are kept ready ahead of their jobs.
	Standby int
	// Launcher is given the launcher that starts these starters, and returns the
	// one that is used: one in front of it, or another; the run closes both. nil
	// takes it as it is.
	Launcher func(own Launcher) Launcher
}

// OwnJobs are for the embedded access point.
type OwnJobs struct {
	Jobs []*classad.Ad
	User string // whose they are
	Keep bool   // leave sandboxes in place
	// RunAs is whose those jobs are: with its rights their files are moved and
	// their event logs written, and as that user they run unless they or the
	// configuration have it otherwise (RunAsOwner, STARTER_ALLOW_RUNAS_OWNER). nil
	// is who runs this. No job runs as root: root's run as SLOT<N>_USER or
	// NOBODY_SLOT_USER say, or as nobody.
	RunAs *host.Identity
}

// Reloading says how the configuration is read again.
type Reloading struct {
	// Reload asks to read the configuration again by Load, which is called
	// beside the run until that ends and returns a checked one, or refuses it for those who are told
	// by Reconfigured. What cannot be used as a whole leaves the old one in place.
	Reload <-chan struct{}
	Load   func(context.Context) (*config.Snapshot, error)
	// Probe is the scanner that asks the machine's programs what they can. It is
	// asked beside the run: for a member of a pool when its slots are there, else
	// Inventory has its findings already; and again with each configuration that was
	// read again. nil leaves what was found.
	Probe func(*config.Snapshot) machine.Scanner
	// Reconfigured is told what was taken over, by the run's own goroutine: the
	// configuration that Load returned last. It cannot refuse any more; nil for
	// nobody.
	Reconfigured func(*config.Snapshot)
}

// Listeners are told what happens; each may be nil. But for Settled and Waiting they are
// called from the run's own goroutine and must not block.
type Listeners struct {
	// Settled is told when the machine is divided and its slots are there. From
	// then on Interrupt is heeded; before, what is under way ends with ctx, and no
	// job has begun.
	Settled func()
	// Waiting is told what the start waits for, if that takes long, by another
	// goroutine and before Settled. It is logged in any case.
	Waiting func(what string)
	// Changed is told each change of a job, Counts how many jobs do what, when
	// that changed and at most ten times a second, Problem what went wrong
	// beside the jobs.
	Changed func(local.Change)
	Counts  func(time.Time, local.Counts)
	Problem func(error)
	// Leaving is told each time that the end was ordered, and how it goes on then.
	Leaving func(ep.ShutdownView)
}

// Result is how a run ended.
type Result struct {
	Counts      local.Counts
	Impossible  []local.Impossible
	Interrupted bool
	// Restart says that the EP is to be started again, as a drain asked; Ended
	// that the EP ended of itself, not by an order to the program.
	Restart, Ended bool
}

// Run starts an EP, runs the jobs on it and returns when every job has ended,
// is held or can never run, and all slots are free again; or after an
// interrupt when all jobs are gone. When ctx is cancelled the jobs are killed
// at once; before they were submitted that is an error. An error means that the EP itself could not work; bad configuration
// is of kind Invalid.
func Run(ctx context.Context, o Options) (Result, error) {
	n, err := newNode(ctx, o)
	if err != nil {
		return Result{}, err
	}
	defer n.close()
	if err := ctx.Err(); err != nil && !n.serving() {
		return Result{}, err // before any job was submitted
	}
	l := o.Control
	if o.Socket != "" {
		if l, err = net.Listen("unix", o.Socket); err != nil {
			return Result{}, errs.E("run.Run", errs.Broken, o.Socket, err)
		}
	}
	if l != nil {
		served := make(chan struct{})
		go func() {
			defer close(served)
			observe.Serve(l, o.Host.Peer, n.ask, func(err error) { o.Log.Warn("the control socket accepts nobody for the moment", "err", err) })
		}()
		defer func() {
			l.Close()
			<-served
		}()
	}
	return n.loop(ctx)
}

// Advertise adds to the machine's attributes what this program is. Jobs and
// pools compare CondorVersion, so it names the version of HTCondor whose
// behaviour is kept; ExecpointVersion is the program's own.
func Advertise(inv *machine.Inventory, version string) {
	ad := inv.Attrs
	ad.SetString("CondorVersion", fmt.Sprintf("$CondorVersion: %s execpoint-%s $", config.Version, version))
	ad.SetString("CondorPlatform", fmt.Sprintf("$CondorPlatform: %s-%s $", inv.Arch, inv.OpSysAndVer))
	ad.SetString("ExecpointVersion", version)
	starter.Advertise(ad)
}

// newEnv gives the AP's evaluations the time of the event they belong to.
func newEnv(now clock.Instant) *classad.Env { return &classad.Env{Now: now.Wall} }

// sinful is the address of this EP in event logs. Without a pool nobody can
// call it, so its port is 0.
func sinful(hostName string) string {
	return "<127.0.0.1:0?addrs=127.0.0.1-0&alias=" + hostName + ">"
}
