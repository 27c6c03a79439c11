// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/transfer"
)

// silent leaves out of the defaults what a machine of a test does not have.
const silent = "UID_DOMAIN = u\nFILESYSTEM_DOMAIN = f\nBASE_CGROUP =\nFILE_TRANSFER_STATS_LOG =\nFILETRANSFER_PLUGINS =\nSTARTER_SETS_HOME_ENV = false\n" +
	"BIN =\nSTARTER_NUM_THREADS_ENV_VARS =\n"

// configured are the settings of a configuration.
func configured(t testing.TB, text string) *Settings {
	t.Helper()
	startd, err := config.Parse("text", silent+text, config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Configuration(startd, 0)
	if err != nil {
		t.Fatal(err)
	}
	set, err := SettingsFrom(c, startd, nil)
	if err != nil {
		t.Fatal(err)
	}
	if set.Pool, err = PoolSettingsFrom(c); err != nil {
		t.Fatal(err)
	}
	return set
}

// realValues are what HTCondor's condor_config_val says of testdata/settings.conf.
func realValues(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/settings.tsv")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t"); ok {
			all[name] = value
		}
	}
	if len(all) < 70 {
		t.Fatalf("there are %d knobs", len(all))
	}
	return all
}

// TestSettings holds each setting to what HTCondor's own tool says its knob is for a
// starter in a slot of type 1, and to what that text means.
func TestSettings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/settings.conf")
	if err != nil {
		t.Fatal(err)
	}
	startd, err := config.Parse("settings.conf", string(text), config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Configuration(startd, 1)
	if err != nil {
		t.Fatal(err)
	}
	real := realValues(t)
	for name, want := range real {
		if got := c.String(name); got != want {
			t.Errorf("%s is %q, to HTCondor %q", name, got, want)
		}
	}
	here, err := SettingsFrom(c, startd, []string{"License"})
	if err != nil {
		t.Fatal(err)
	}
	if here.Pool, err = PoolSettingsFrom(c); err != nil {
		t.Fatal(err)
	}
	sent, err := json.Marshal(here)
	if err != nil {
		t.Fatal(err)
	}
	var s Settings // as the starter has them
	if err := json.Unmarshal(sent, &s); err != nil {
		t.Fatal(err)
	}
	p := s.Pool
	e, n := s.Environment, p.Reach.Network
	secured, err := p.Security.Settings(securityOf())
	if err != nil {
		t.Fatal(err)
	}
	second := time.Second
	for _, row := range []struct {
		knob      string
		got, want any
	}{
		{"STARTER_INITIAL_UPDATE_INTERVAL", s.FirstUpdate, 14 * second},
		{"STARTER_UPDATE_INTERVAL", s.Update, 120 * second},
		{"CGROUP_POLLING_INTERVAL", s.Poll, 3 * second},
		{"JOB_EXECDIR_PERMISSIONS", s.Permissions, fs.FileMode(0o755)},
		{"BASE_CGROUP", s.Cgroup, "STARTER.group"},
		{"CREATE_CGROUP_WITHOUT_ROOT", s.Delegated, true},
		{"JOB_RENICE_INCREMENT", s.Nice.String(), real["JOB_RENICE_INCREMENT"]},
		{"STARTER_ALLOW_JOB_PRE_AND_POST_CMD", s.Scripts.String(), real["STARTER_ALLOW_JOB_PRE_AND_POST_CMD"]},
		{"SINGULARITY_JOB", s.Singularity.String(), real["SINGULARITY_JOB"]},
		{"USE_DEFAULT_CONTAINER", s.DefaultContainer.String(), real["USE_DEFAULT_CONTAINER"]},
		{"STARTER_JOB_ENVIRONMENT", e.Environment, real["STARTER_JOB_ENVIRONMENT"]},
		{"JOB_INHERITS_STARTER_ENVIRONMENT", e.Inherits, sandbox.Inherits{Patterns: []string{"lang", "!secret*"}}},
		{"STARTER_NUM_THREADS_ENV_VARS", e.ThreadVars, []string{"OMP_NUM_THREADS", "GOMAXPROCS"}},
		{"BIN", e.Bin, "/opt/htcondor/bin"},
		{"CHIRP_DELAYED_UPDATE_PREFIX", []any{e.ChirpPrefix, s.Chirp.Prefixes}, []any{"Own*, Site*", []string{"Own*", "Site*"}}},
		{"STARTER_SETS_HOME_ENV", e.SetsHome, false},
		{"AUTO_SET_NVIDIA_VISIBLE_DEVICES", e.Nvidia, false},
		{"ENVIRONMENT_FOR_AssignedLicense", e.Resources["license"].Variables, "LICENSES"},
		{"ENVIRONMENT_VALUE_FOR_UnAssignedLicense", e.Resources["license"].Unassigned, "none"},
		{"UID_DOMAIN", []string{p.UidDomain, p.Methods.UIDDomain, secured.UIDDomain}, []string{"starters.example.org", "starters.example.org", "starters.example.org"}},
		{"FILESYSTEM_DOMAIN", p.FileSystemDomain, "fs.example.org"},
		{"STARTER_UPLOAD_TIMEOUT", p.Wire, 77 * second},
		{"STATISTICS_WINDOW_SECONDS", p.Window, 300 * second},
		{"MEMORY_USAGE_METRIC", p.MemoryUsage, "MAX({ 5, 2 })"},
		{"CHECK_REACTIVATE_AFTER_CHECKPOINT", p.Reactivate, false},
		{"ALLOW_OUTPUT_OUTSIDE_SCRATCH", p.Outside, false},
		{"FILE_TRANSFER_STATS_LOG", p.Records, "/var/log/condor/slot_type_1.stats"},
		{"SEC_CREDENTIAL_REFRESH", []time.Duration{p.Creds.Every, s.Tokens.Every}, []time.Duration{-second, -second}},
		{"SEC_CREDENTIAL_DIRECTORY_OAUTH", s.Tokens.Dir, "/var/lib/condor/oauth"},
		{"TRUST_CREDENTIAL_DIRECTORY", s.Tokens.Trusted, true},
		{"SEC_CREDENTIAL_DIRECTORY_KRB", p.Creds.KerberosDir, "/var/lib/condor/krb.slot_type_1"},
		{"SEC_CREDENTIAL_REFRESH_INTERVAL", p.Creds.KerberosFresh, 300 * second},
		{"CREDD_POLLING_TIMEOUT", p.Creds.CredmonWait, 8 * second},
		{"ALLOW_OAUTH_WITHOUT_ENCRYPTION", p.Creds.Clear, true},
		{"DELEGATE_JOB_GSI_CREDENTIALS", p.Creds.Delegates, false},
		{"DELEGATE_JOB_GSI_CREDENTIALS_LIFETIME", p.Creds.ProxyLife, 120 * second},
		{"TESTING_COLOR_FROM_JOB_AD", p.ColorFromJob, true},
		{"ENABLE_URL_TRANSFERS", p.Plugins.URLs, true},
		{"FILETRANSFER_PLUGINS", p.Plugins.Programs, []string{"/opt/htcondor/bin/a", "/opt/htcondor/bin/b"}},
		{"MAX_FILE_TRANSFER_PLUGIN_LIFETIME", p.Plugins.Lifetime, 7200 * second},
		{"FILETRANSFER_PLUGIN_CLASSAD_TIMEOUT", p.Plugins.Query, 5 * second},
		{"MY_POPEN_KEEPALIVE_INTERVAL", p.Plugins.KeepAlive, 14 * second},
		{"RUN_FILETRANSFER_PLUGINS_WITH_ROOT", p.Plugins.WithRoot, false},
		{"LOG_FILETRANSFER_PLUGIN_STDOUT_ON_SUCCESS", p.Plugins.LogOnSuccess, transfer.LogAs{Category: "D_TEST", Verbose: true}},
		{"LOG_FILETRANSFER_PLUGIN_STDOUT_ON_FAILURE", p.Plugins.LogOnFailure, transfer.LogAs{Category: "D_ALWAYS", Verbose: true}},
		{"GUIDANCE_MUMS_THE_WORD", p.Guidance.Silent, true},
		{"STARTER_DIAGNOSTIC_send_ep_logs", p.Guidance.EPLogs, "/opt/libexec/tell"},
		{"ENABLE_CHIRP", s.Chirp.Enabled, true},
		{"ENABLE_CHIRP_IO", s.Chirp.IO, true},
		{"ENABLE_CHIRP_UPDATES", s.Chirp.Updates, false},
		{"ENABLE_CHIRP_DELAYED", s.Chirp.Delayed, false},
		{"CHIRP_DELAYED_UPDATE_MAX_ATTRS", s.Chirp.MostDelayed, 1000},
		{"ENABLE_PEEK_JOB", p.Reach.Peek.String(), real["ENABLE_PEEK_JOB"]},
		{"ENABLE_SSH_TO_JOB", p.Reach.SSH.String(), "false"},
		{"SSH_TO_JOB_SSHD", p.Reach.SSHD, "/opt/sshd"},
		{"SSH_TO_JOB_SSHD_ARGS", p.Reach.SSHDArgs, real["SSH_TO_JOB_SSHD_ARGS"]},
		{"SSH_TO_JOB_SSHD_CONFIG_TEMPLATE", p.Reach.Template, "/opt/lib/template"},
		{"SSH_TO_JOB_SSH_KEYGEN", p.Reach.Keygen, "/opt/keygen"},
		{"SSH_TO_JOB_SSH_KEYGEN_ARGS", p.Reach.KeygenArgs, real["SSH_TO_JOB_SSH_KEYGEN_ARGS"]},
		{"CONDOR_SSH_TO_JOB_FAKE_PASSWD_ENTRY", p.Reach.FakePasswd, false},
		{"LIB", p.Reach.Lib, "/opt/lib"},
		{"NETWORK_INTERFACE", n.Interface, "127.0.0.1"},
		{"BIND_ALL_INTERFACES", n.BindAll, false},
		{"PRIVATE_NETWORK_NAME", n.PrivateName, "inner.starters.example.org"},
		{"CCB_CLIENT_STREAMING", n.NoRelay, true},
		{"ALWAYS_REUSEADDR", n.Reuse, false},
		{"IN_LOWPORT IN_HIGHPORT", n.In, listen.Ports{Low: 20000, High: 20010}},
		{"OUT_LOWPORT OUT_HIGHPORT", n.Out, listen.Ports{Low: 30000, High: 30010}},
		{"TCP_FORWARDING_HOST", n.Forwarding, "far.example.org"},
		{"STARTER_USE_SHARED_PORT", n.SharedPort, false},
		{"DAEMON_SOCKET_DIR", n.SocketDir, "/run/sock"},
		{"SEC_DEFAULT_AUTHENTICATION", fmt.Sprint(p.Security.Policies[security.Read].Authentication), "REQUIRED"},
		{"SEC_DEFAULT_AUTHENTICATION_METHODS", fmt.Sprint(p.Security.Policies[security.Read].Methods), "[SSL TOKEN]"},
		{"ALLOW_READ", p.Security.Lists.Allow[security.Read].Text, "*"},
		{"ALLOW_DAEMON", p.Security.Lists.Allow[security.Daemon].Text, "alice@starters.example.org"},
		{"SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION", secured.MatchSessions, false},
		{"SEC_TCP_SESSION_TIMEOUT", secured.StepTimeout, 12 * second},
		{"TRUST_DOMAIN", p.Methods.TrustDomain, "trust.example.org"},
		{"CERTIFICATE_MAPFILE", p.Security.MapFile, "/etc/map.STARTER"},
		{"SEC_TOKEN_DIRECTORY", p.Methods.TokenDirs, []string{"/etc/tokens.slot_type_1"}},
	} {
		if !reflect.DeepEqual(row.got, row.want) {
			t.Errorf("%s is %+v, want %+v", row.knob, row.got, row.want)
		}
		for name := range strings.FieldsSeq(row.knob) {
			if _, known := real[name]; !known {
				t.Errorf("nothing is recorded of %s", name)
			}
			delete(real, name)
		}
	}
	for _, other := range []string{"LOG", "LOCK", "USE_SHARED_PORT"} { // by which others are made
		delete(real, other)
	}
	for name := range real {
		t.Errorf("no setting is held to %s", name)
	}
}

func securityOf() security.Sources {
	return security.Sources{ReadFile: func(string) ([]byte, error) { return nil, nil }}
}

// A knob that is set to nothing has its default, as with HTCondor, and a plan without
// settings all of them.
func TestDefaultSettings(t *testing.T) {
	t.Parallel()
	p := Plan{Shadow: &ShadowSide{}}
	p.Complete()
	s := p.Settings
	if s.First() != 8*time.Second || s.Update != 300*time.Second || s.Poll != 5*time.Second || s.Killing != 30*time.Second || s.FastShutdown != 300*time.Second ||
		s.Permissions != 0o700 || s.Cgroup != "htcondor" || !s.Environment.SetsHome || s.Pool.Wire != 300*time.Second || s.Pool.Creds.Every != 300*time.Second ||
		!s.Pool.Plugins.URLs || !s.Chirp.Enabled || !s.Pool.Reactivate || !s.Pool.Outside || s.Pool.Reach.SSHD != "/usr/sbin/sshd" {
		t.Errorf("%+v\n%+v", s, s.Pool)
	}
	here := Plan{}
	here.Complete()
	if here.Settings.Pool != nil {
		t.Error("a job of no pool has settings of one")
	}
	set := configured(t, "STARTER_UPLOAD_TIMEOUT =\nCGROUP_POLLING_INTERVAL = 0\nSTARTER_INITIAL_UPDATE_INTERVAL = -1\nENABLE_CHIRP =\n")
	if set.Pool.Wire != 300*time.Second || set.Poll != 5*time.Second || set.First() != set.Update || !set.Chirp.Enabled {
		t.Errorf("%+v\n%+v", set, set.Pool)
	}
	// Updates that come more often than the first would are not kept waiting for it.
	if often := configured(t, "STARTER_UPDATE_INTERVAL = 3\n"); often.First() != 3*time.Second {
		t.Errorf("the first update comes after %v", often.First())
	}
}

// What is wrong is told with its place, all of it.
func TestWrongSettings(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("text", "STARTER_UPDATE_INTERVAL = 0\nSTARTER.ENABLE_CHIRP = perhaps\nSTARTER_UPLOAD_TIMEOUT = soon\nALLOW_READ = +netgroup\nLOWPORT = 5\nHIGHPORT = 4\n", config.Options{Subsystem: "STARTER"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = SettingsFrom(c, c, nil)
	_, err2 := PoolSettingsFrom(c)
	all := fmt.Sprint(err, err2)
	for _, want := range []string{"text:1", "text:2", "text:3", "text:4", "HIGHPORT"} {
		if err == nil || err2 == nil || !strings.Contains(all, want) {
			t.Errorf("the errors do not name %s: %s", want, all)
		}
	}
}

func TestLogAs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]transfer.LogAs{
		"": {}, "no": {}, "D_ALWAYS:0": {}, "D_ALWAYS": {Category: "D_ALWAYS"}, " d_test:2 ": {Category: "D_TEST", Verbose: true},
		"D_FULLDEBUG": {Category: "D_ALWAYS", Verbose: true},
	} {
		if got := logAs(text); got != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// How files that jobs share come into sandboxes, by what the owner says.
func TestMapping(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want Mapping
	}{
		{"", MapHardlink},
		{"FORBID_HARDLINK_MAPPING = True\n", MapCopy},
		{"FORBID_COPY_MAPPING = True\n", MapHardlink},
		{"FORBID_HARDLINK_MAPPING = True\nFORBID_COPY_MAPPING = True\n", ""},
		{"STARTD_ENFORCE_DISK_LIMITS = True\n", ""},
		{"STARTD_ENFORCE_DISK_LIMITS = True\nALLOW_COMMON_FILES_ON_LVS = True\n", ""},
	} {
		if got := configured(t, tt.text).Pool.Mapping; got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

// Which accounts are for single slots.
func TestUsersBySlot(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": false, "SLOT1_USER = one\n": true, "slot1_2_user = one\n": true, "NOBODY_SLOT_USER = $(STARTER_SLOT_NAME)\n": true, "NOBODY_SLOT_USER = all\n": false,
		"SLOT_USER = one\n": false,
	} {
		s, err := config.Parse("text", text, config.Options{Subsystem: "STARTER"})
		if err != nil {
			t.Fatal(err)
		}
		if got := UsersBySlot(s); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
