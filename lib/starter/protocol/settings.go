// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/chirp"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/reach"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/transfer"
)

// Subsystem is whose knobs a starter has: STARTER.ENABLE_CHIRP and the like go
// before ENABLE_CHIRP.
const Subsystem = "STARTER"

// Settings are what the configuration says to the starter of one activation. The
// startd reads them, when it reads its own configuration, and sends them with the
// plan: a starter evaluates no knob. What is an expression over the job or its slot
// stays one.
type Settings struct {
	FirstUpdate time.Duration // STARTER_INITIAL_UPDATE_INTERVAL; negative is Update
	Update      time.Duration // STARTER_UPDATE_INTERVAL
	Poll        time.Duration // CGROUP_POLLING_INTERVAL

	Permissions fs.FileMode  // of the scratch directory: JOB_EXECDIR_PERMISSIONS
	Cgroup      string       // BASE_CGROUP, "" for none
	Delegated   bool         // CREATE_CGROUP_WITHOUT_ROOT
	Nice        *config.Expr // JOB_RENICE_INCREMENT, over the job alone; nil is 0
	Limits      LimitSettings
	// HoldOnOOM is STARTER_ALWAYS_HOLD_ON_OOM where the owner has written it.
	HoldOnOOM   bool
	Space       SpaceSettings
	Environment *sandbox.Settings
	Chirp       chirp.Settings
	Hooks       *hook.JobHooks `json:",omitempty"` // nil for none

	Tokens TokenSettings

	// Over the slot (MY) and the job (TARGET); nil is no.
	Scripts          *config.Expr // STARTER_ALLOW_JOB_PRE_AND_POST_CMD
	Singularity      *config.Expr // SINGULARITY_JOB
	DefaultContainer *config.Expr // USE_DEFAULT_CONTAINER

	// Killing and FastShutdown are KILLING_TIMEOUT and SHUTDOWN_FAST_TIMEOUT of the
	// startd, which acts by them on its starters.
	Killing, FastShutdown time.Duration

	// Pool is for jobs of a pool; nil is the defaults.
	Pool *PoolSettings `json:",omitempty"`
}

// PoolSettings are what the configuration says to the starter of a job of a pool.
type PoolSettings struct {
	UidDomain, FileSystemDomain string

	Wire        time.Duration // STARTER_UPLOAD_TIMEOUT
	Window      time.Duration // STATISTICS_WINDOW_SECONDS
	MemoryUsage string        // MEMORY_USAGE_METRIC, an expression over the job
	Reactivate  bool          // CHECK_REACTIVATE_AFTER_CHECKPOINT
	Outside     bool          // ALLOW_OUTPUT_OUTSIDE_SCRATCH
	Records     string        // FILE_TRANSFER_STATS_LOG, "" for none
	Creds       CredSettings
	Plugins     PluginSettings
	Guidance    GuidanceSettings
	Mapping     Mapping // FORBID_HARDLINK_MAPPING, FORBID_COPY_MAPPING

	ColorFromJob bool // TESTING_COLOR_FROM_JOB_AD

	Reach    reach.Settings
	Security *security.Knobs
	Methods  authn.Settings
}

// CredSettings are what the configuration says about the credentials that a shadow gives.
type CredSettings struct {
	Every       time.Duration // SEC_CREDENTIAL_REFRESH; 0 or less is once
	Clear       bool          // ALLOW_OAUTH_WITHOUT_ENCRYPTION
	KerberosDir string        // SEC_CREDENTIAL_DIRECTORY_KRB, "" for none
	// KerberosFresh is SEC_CREDENTIAL_REFRESH_INTERVAL, how old tickets may be that are
	// there when a job begins; negative is as old as they are. CredmonWait is
	// CREDD_POLLING_TIMEOUT.
	KerberosFresh, CredmonWait time.Duration

	Delegates bool          // DELEGATE_JOB_GSI_CREDENTIALS
	ProxyLife time.Duration // DELEGATE_JOB_GSI_CREDENTIALS_LIFETIME; 0 is without end
}

// TokenSettings are what the configuration says about the tokens of jobs whose access
// point is this machine.
type TokenSettings struct {
	Dir     string        // SEC_CREDENTIAL_DIRECTORY_OAUTH, "" for none
	Trusted bool          // TRUST_CREDENTIAL_DIRECTORY
	Every   time.Duration // SEC_CREDENTIAL_REFRESH; 0 or less is once
}

// PluginSettings are what the configuration says about moving files by URL.
type PluginSettings struct {
	URLs                       bool // ENABLE_URL_TRANSFERS
	Programs                   []string
	Lifetime, Query, KeepAlive time.Duration // 0 is transfer's own
	WithRoot                   bool          // RUN_FILETRANSFER_PLUGINS_WITH_ROOT
	LogOnSuccess, LogOnFailure transfer.LogAs
}

// GuidanceSettings are what the configuration says about asking shadows what to do.
type GuidanceSettings struct {
	Silent bool // GUIDANCE_MUMS_THE_WORD
	// EPLogs is the program that prints what a shadow is sent that wants the logs of the
	// Execution Point, STARTER_DIAGNOSTIC_send_ep_logs where something sets it; "" is the
	// starter itself.
	EPLogs string
}

// Configuration is the configuration of a startd as a starter in a slot of that type
// reads it. HTCondor's startd starts it with the local name slot_type_N, unless N is 0:
// so slot_type_1.STARTER_UPDATE_INTERVAL counts for the slots of type 1, before
// STARTER.STARTER_UPDATE_INTERVAL.
func Configuration(startd *config.Snapshot, slotType int) (*config.Snapshot, error) {
	local := ""
	if slotType != 0 {
		local = "slot_type_" + strconv.Itoa(slotType)
	}
	return startd.As(Subsystem, local)
}

// SettingsFrom reads the settings of starters from s, which Configuration has made,
// on a machine that has these custom resources. They have no Pool. It is all or
// nothing.
func SettingsFrom(s, startd *config.Snapshot, resources []string) (*Settings, error) {
	r := &reader{config.Reader{Snapshot: s}}
	of := &reader{config.Reader{Snapshot: startd}}
	set := &Settings{
		FirstUpdate: r.Duration("STARTER_INITIAL_UPDATE_INTERVAL"), Update: r.positive("STARTER_UPDATE_INTERVAL"), Poll: r.positive("CGROUP_POLLING_INTERVAL"),
		Permissions: sandbox.Mode(r.Text("JOB_EXECDIR_PERMISSIONS")), Cgroup: r.String("BASE_CGROUP"), Delegated: r.Bool("CREATE_CGROUP_WITHOUT_ROOT"),
		Nice: r.Expr("JOB_RENICE_INCREMENT"), Limits: r.limits(), Scripts: r.Expr("STARTER_ALLOW_JOB_PRE_AND_POST_CMD"),
		HoldOnOOM:   r.Bool("STARTER_ALWAYS_HOLD_ON_OOM") && r.written("STARTER_ALWAYS_HOLD_ON_OOM"),
		Singularity: r.Expr("SINGULARITY_JOB"), DefaultContainer: r.Expr("USE_DEFAULT_CONTAINER"),
		Tokens: TokenSettings{
			Dir: r.String("SEC_CREDENTIAL_DIRECTORY_OAUTH"), Trusted: r.Bool("TRUST_CREDENTIAL_DIRECTORY"), Every: r.Duration("SEC_CREDENTIAL_REFRESH"),
		},
		Space: r.space(), Killing: of.positive("KILLING_TIMEOUT"), FastShutdown: of.positive("SHUTDOWN_FAST_TIMEOUT"),
	}
	var err, chirpErr, hookErr error
	set.Environment, err = sandbox.SettingsFrom(s, resources)
	set.Chirp, chirpErr = chirp.SettingsFrom(s)
	set.Hooks, hookErr = hook.JobHooksFrom(s)
	if err = errors.Join(err, chirpErr, hookErr, r.Err(), of.Err()); err != nil {
		return nil, err
	}
	return set, nil
}

// creds reads what is said about the credentials that a shadow gives.
func (r *reader) creds() CredSettings {
	return CredSettings{
		Every: r.Duration("SEC_CREDENTIAL_REFRESH"), Clear: r.Bool("ALLOW_OAUTH_WITHOUT_ENCRYPTION"),
		KerberosDir: r.String("SEC_CREDENTIAL_DIRECTORY_KRB"), KerberosFresh: r.Duration("SEC_CREDENTIAL_REFRESH_INTERVAL"),
		CredmonWait: r.Duration("CREDD_POLLING_TIMEOUT"),
		Delegates:   r.Bool("DELEGATE_JOB_GSI_CREDENTIALS"), ProxyLife: max(r.Duration("DELEGATE_JOB_GSI_CREDENTIALS_LIFETIME"), 0),
	}
}

// PoolSettingsFrom reads from s, which Configuration has made, what the jobs of a pool
// need besides. It is all or nothing.
func PoolSettingsFrom(s *config.Snapshot) (*PoolSettings, error) {
	r := &reader{config.Reader{Snapshot: s}}
	set := &PoolSettings{
		UidDomain: r.String("UID_DOMAIN"), FileSystemDomain: r.String("FILESYSTEM_DOMAIN"),
		Wire: r.positive("STARTER_UPLOAD_TIMEOUT"), Window: r.positive("STATISTICS_WINDOW_SECONDS"), MemoryUsage: r.Text("MEMORY_USAGE_METRIC"),
		Reactivate: r.Bool("CHECK_REACTIVATE_AFTER_CHECKPOINT"), Outside: r.Bool("ALLOW_OUTPUT_OUTSIDE_SCRATCH"), Records: r.String("FILE_TRANSFER_STATS_LOG"),
		Creds: r.creds(), Plugins: r.plugins(),
		Guidance: r.guidance(), Mapping: r.mapping(),
		ColorFromJob: r.Bool("TESTING_COLOR_FROM_JOB_AD"),
	}
	var errs [3]error
	set.Reach, errs[0] = reach.SettingsFrom(s, Subsystem)
	set.Security, errs[1] = security.KnobsFrom(s, Subsystem)
	set.Methods, errs[2] = authn.SettingsFrom(s, Subsystem)
	if err := errors.Join(append(errs[:], r.Err())...); err != nil {
		return nil, err
	}
	return set, nil
}

type reader struct{ config.Reader }

func (r *reader) plugins() PluginSettings {
	return PluginSettings{
		URLs: r.Bool("ENABLE_URL_TRANSFERS"), Programs: r.List("FILETRANSFER_PLUGINS"),
		Lifetime: max(r.Duration("MAX_FILE_TRANSFER_PLUGIN_LIFETIME"), 0), Query: max(r.Duration("FILETRANSFER_PLUGIN_CLASSAD_TIMEOUT"), 0),
		KeepAlive: max(r.Duration("MY_POPEN_KEEPALIVE_INTERVAL"), 0), WithRoot: r.Bool("RUN_FILETRANSFER_PLUGINS_WITH_ROOT"),
		LogOnSuccess: logAs(r.String("LOG_FILETRANSFER_PLUGIN_STDOUT_ON_SUCCESS")), LogOnFailure: logAs(r.String("LOG_FILETRANSFER_PLUGIN_STDOUT_ON_FAILURE")),
	}
}

func (r *reader) guidance() GuidanceSettings {
	const logs = "STARTER_DIAGNOSTIC_send_ep_logs"
	g := GuidanceSettings{Silent: r.Bool("GUIDANCE_MUMS_THE_WORD")}
	if r.written(logs) {
		g.EPLogs = r.String(logs)
	}
	return g
}

// written reports whether a configuration gives a knob a value: it has not only its
// default.
func (r *reader) written(name string) bool {
	set, ok := r.Snapshot.Lookup(name)
	return ok && !set.IsDefault && set.Value != ""
}

// positive reads a time without which a starter cannot work; one below a second has
// the default.
func (r *reader) positive(name string) time.Duration {
	d := r.Duration(name)
	if d >= time.Second || r.Err() != nil {
		return d
	}
	d, err := nothing().Duration(name)
	if err != nil {
		panic("protocol: " + err.Error()) // a row of the table is wrong
	}
	return d
}

// nothing is a configuration that says nothing.
func nothing() *config.Snapshot {
	s, err := config.Parse("<no configuration>", "", config.Options{Subsystem: Subsystem})
	if err != nil {
		panic("protocol: " + err.Error()) // nothing cannot be wrong
	}
	return s
}

// Complete gives a plan without settings, or without those of a pool that it needs,
// what a configuration without a word gives.
func (p *Plan) Complete() {
	if p.Settings != nil && (p.Shadow == nil || p.Settings.Pool != nil) {
		return
	}
	s := nothing()
	set := p.Settings
	var err, poolErr error
	if set == nil {
		set, err = SettingsFrom(s, s, nil)
	}
	if p.Shadow != nil && err == nil && set.Pool == nil {
		with := *set
		with.Pool, poolErr = PoolSettingsFrom(s)
		set = &with
	}
	if err := errors.Join(err, poolErr); err != nil {
		panic("protocol: " + err.Error()) // a row of the table is wrong
	}
	p.Settings = set
}

// First is how long after the job's start its shadow is told first how it does: never
// longer than it takes between the updates that follow.
func (s *Settings) First() time.Duration {
	if s.FirstUpdate < 0 {
		return s.Update
	}
	return min(s.FirstUpdate, s.Update)
}

// Niceness evaluates JOB_RENICE_INCREMENT against the job ad alone. What is no
// number counts as 10.
func (s *Settings) Niceness(job *classad.Ad, now time.Time) int {
	if s.Nice == nil {
		return 0
	}
	n, ok := s.Nice.Eval(&classad.Env{My: job, Now: now}).AsNumber()
	if !ok || math.IsNaN(n) { // the owner of the job writes the ad that n is computed from
		return 10
	}
	return int(min(max(n, 0), 19))
}

// logAs reads a category and a verbosity: "D_ALWAYS", "D_TEST:2". An empty text,
// or what is no category, is not logged.
func logAs(text string) transfer.LogAs {
	name, level, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(text)), ":")
	if !strings.HasPrefix(name, "D_") || level == "0" {
		return transfer.LogAs{}
	}
	if name == "D_FULLDEBUG" {
		return transfer.LogAs{Category: "D_ALWAYS", Verbose: true}
	}
	return transfer.LogAs{Category: name, Verbose: level > "1"}
}
