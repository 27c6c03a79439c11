// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// Files tells about files. Facts returns an error that is fs.ErrNotExist for
// one that is not there.
type Files interface {
	Facts(path string) (FileFacts, error)
}

// FileFacts are what the checks ask about a file.
type FileFacts struct {
	Dir        bool
	Executable bool // by somebody
	// OthersMay names the file or the directory above it that users other
	// than root and the one who runs this may write to; "" when there is
	// none. A directory in which only the owner of an entry may rename it
	// does not count.
	OthersMay string
}

// runsIt are the knobs whose value is a program that the EP runs.
var runsIt = pattern(`(?i)^(?:USER_JOB_WRAPPER|HIBERNATION_PLUGIN|LIBVIRT_XML_SCRIPT|VM_GAHP_SERVER|SINGULARITY|STARTER|STARTD|PROCD|KBDD|JAVA|GPU_MONITOR|` +
	`BOINC_EXECUTABLE|SSH_TO_JOB_SSHD|DOCKER_PAT_PRODUCER|LINUX_KERNEL_TUNING_SCRIPT|DEFAULT_MASTER_SHUTDOWN_SCRIPT|MASTER_SHUTDOWN_\w+|` +
	`(?:STARTD_CRON|BENCHMARKS)_\w+_EXECUTABLE|\w+_HOOK_(?:FETCH_WORK|REPLY_FETCH|EVICT_CLAIM|PREPARE_JOB_BEFORE_TRANSFER|PREPARE_JOB|UPDATE_JOB_INFO|JOB_EXIT))$`)

// programs looks at the programs that somebody named.
func (c *checker) programs() {
	if c.Files == nil {
		return
	}
	for _, s := range c.set {
		if k, ok := config.LookupKnob(s.Name); !runsIt().MatchString(bare(s.Name)) || ok && k.Mark() == config.NothingReads {
			continue // nobody runs it
		}
		path := strings.TrimSpace(s.Value)
		if !strings.HasPrefix(path, "/") && !(len(path) > 2 && path[1] == ':') {
			continue // nothing, or looked for elsewhere
		}
		c.program(s, path)
	}
}

// executeKnob is the directory in which jobs run, of all slots or of one.
var executeKnob = pattern(`(?i)^(?:SLOT[0-9]+_)?EXECUTE$`)

// directories looks at the directories that somebody named for jobs.
func (c *checker) directories() {
	if c.Files == nil {
		return
	}
	for _, s := range c.set {
		path := strings.TrimSpace(s.Value)
		if !executeKnob().MatchString(bare(s.Name)) || path == "" {
			continue
		}
		switch facts, err := c.Files.Facts(path); {
		case errors.Is(err, fs.ErrNotExist) && strings.EqualFold(bare(s.Name), "EXECUTE"):
			c.add(found(ToBeMade, s, "names a directory that does not exist; the daemon makes it", "a directory, made beforehand"))
		case errors.Is(err, fs.ErrNotExist):
			c.add(found(NoDirectory, s, "names a directory that does not exist", "a directory, made beforehand"))
		case err == nil && !facts.Dir:
			c.add(found(NoDirectory, s, "names a file, not a directory", "a directory, made beforehand"))
		}
	}
}

// daemons are the programs that condor_master knows, and those of a pool.
var daemons = [...]string{
	"MASTER", "STARTD", "SCHEDD", "COLLECTOR", "NEGOTIATOR", "KBDD", "SHARED_PORT", "CREDD", "HAD", "REPLICATION", "DEFRAG", "GANGLIAD",
	"ROOSTER", "TRANSFERER", "JOB_ROUTER", "VIEW_COLLECTOR", "DATABASE", "LEASEMANAGER", "GRIDMANAGER", "STORK", "QUILL", "PROCD", "ANNEXD", "AP_MONITOR",
	"PLACEMENTD", "LIBRARIAN",
}

// daemonList looks at the names of the daemons to start.
func (c *checker) daemonList() {
	s, ok := c.setting("DAEMON_LIST")
	if !ok {
		return
	}
	for _, name := range splitList(s.Value) {
		upper := strings.TrimSuffix(strings.ToUpper(name), "+")
		if _, has := c.isSet[strings.ToLower(upper)]; has || slices.Contains(daemons[:], upper) {
			continue
		}
		for _, d := range daemons {
			if oneApart(upper, d) {
				c.add(found(NoDaemon, s, "names "+name+", which is no daemon", d))
				break
			}
		}
	}
}

func (c *checker) program(s config.Setting, path string) {
	facts, err := c.Files.Facts(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && (c.templates(s, path) || abilities[strings.ToUpper(bare(s.Name))] == path):
	case errors.Is(err, fs.ErrNotExist):
		c.add(found(NoSuchFile, s, "names a program that does not exist", "the path of an executable file"))
	case err != nil:
		c.add(found(NoSuchFile, s, "names a program that cannot be looked at: "+err.Error(), "a file that may be read and executed"))
	case facts.Dir:
		c.add(found(NotProgram, s, "names a directory, not a program", "the path of an executable file"))
	case !facts.Executable:
		c.add(found(NotProgram, s, "names a file that nobody may execute", "chmod a+x "+path))
	case facts.OthersMay != "":
		c.add(found(OthersWrite, s, "would run as root what others may change: they can write to "+facts.OthersMay, "chmod o-w "+facts.OthersMay))
	}
}

// abilities are programs that HTCondor's packages name where they would be, be
// they installed or not. The daemon looks for them, and a machine without one
// does not offer what it is for.
var abilities = map[string]string{"SINGULARITY": "/usr/bin/singularity", "JAVA": "/usr/bin/java"}

// templates reports whether a template names a program of HTCondor's by itself:
// FEATURE:GPUs brings a monitor in, which not every machine has installed. The
// daemon says so, and goes on without. A program that was given to the template
// is its user's.
func (c *checker) templates(s config.Setting, path string) bool {
	libexec := strings.TrimSuffix(c.Config.String("LIBEXEC"), "/")
	if s.Origin.Template == "" || libexec == "" || !strings.HasPrefix(path, libexec+"/") || c.Source == nil {
		return false
	}
	text, err := c.Source(s.Origin.File)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(usesIn(s.Origin.File, string(text)), func(u use) bool {
		return u.line == s.Origin.Line && strings.Contains(u.text, path[strings.LastIndexByte(path, '/'):])
	})
}

// sources looks at the files of the configuration itself.
func (c *checker) sources() {
	if c.Files == nil {
		return
	}
	for _, path := range c.Config.Sources() {
		if strings.HasSuffix(path, "|") {
			continue
		}
		facts, err := c.Files.Facts(path)
		if err != nil || facts.OthersMay == "" {
			continue // what cannot be read was said before
		}
		c.add(Finding{Code: ConfigUnsafe, Severity: ruleOf(ConfigUnsafe).Severity, File: path,
			Message: "others may write to " + facts.OthersMay, Instead: "chmod o-w " + facts.OthersMay})
	}
}

// cron looks for jobs of the startd that never run.
func (c *checker) cron() {
	if c.Partial {
		return
	}
	list, ok := c.setting("STARTD_CRON_JOBLIST")
	if !ok {
		return
	}
	for _, job := range splitList(list.Value) {
		prefix := "STARTD_CRON_" + job + "_"
		if _, ok := c.setting(prefix + "EXECUTABLE"); !ok {
			c.add(found(CronIncomplete, list, "lists "+job+", which has no executable", prefix+"EXECUTABLE = /path/of/program"))
			continue
		}
		mode := "Periodic"
		if s, ok := c.setting(prefix + "MODE"); ok {
			mode = s.Value
		}
		if _, ok := c.setting(prefix + "PERIOD"); !ok && strings.EqualFold(mode, "Periodic") {
			c.add(found(CronIncomplete, list, "lists "+job+", which has no period and so never runs", prefix+"PERIOD = 5m"))
		}
	}
}
