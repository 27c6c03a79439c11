// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/submit"
	"github.com/execpoint/execpoint/lib/tool/prepare"
	"github.com/execpoint/execpoint/lib/tool/progress"
	"github.com/execpoint/execpoint/lib/tool/scenario"
	"github.com/execpoint/execpoint/lib/tool/words"
	"github.com/execpoint/execpoint/platform/linux/system"
)

// runFlags are the options of condor_ep run.
type runFlags struct {
	config string
	local  string
	json   bool
	keep   bool
	job    string
}

// newFlags returns the flags of a command, which print help, and what is wrong
// with a command line, and leave the exit to the caller.
func newFlags(name string, stdout, stderr io.Writer) *commands.Flags {
	return commands.EP.Flags(name, stdout, stderr)
}

func cmdRun(args []string, stdout, stderr io.Writer) int {
	var f runFlags
	fs := newFlags("run", stdout, stderr)
	fs.StringVar(&f.config, "config", "", "")
	fs.StringVar(&f.local, "local-name", "", "")
	fs.BoolVar(&f.json, "json", false, "")
	fs.BoolVar(&f.keep, "keep", false, "")
	if err := fs.Parse(args); err != nil {
		return commands.StatusOf(err)
	}
	if fs.NArg() != 1 {
		return fs.Misuse("want one submit file, got %d", fs.NArg())
	}
	f.job = fs.Arg(0)
	// The machine is lent to jobs. One goroutine does the work here, and waking
	// a second thread for it is most of what an EP at rest would cost.
	runtime.GOMAXPROCS(1)
	res, err := runJobs(f, stdout, stderr)
	if errors.Is(err, errToldToEnd) {
		return exitSomeFailed // which was said
	}
	if err != nil {
		printError(stderr, "condor_ep run", err)
		return exitUsage
	}
	return exitStatus(res)
}

// exitStatus turns a result into the promised exit status.
func exitStatus(res run.Result) int {
	c := res.Counts
	switch {
	case res.Restart:
		return exitRestart
	case len(res.Impossible) > 0:
		return exitNever
	case c.Done == c.Total && c.Failed == 0:
		return exitOK
	}
	return exitSomeFailed
}

// printError prints every problem of a configuration on its own line, and any
// other error as one; of several, each on its own.
func printError(w io.Writer, who string, err error) {
	say := func(err error) {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintf(w, "%s: %s\n", who, words.Printable(line))
		}
	}
	var knobs config.Problems
	var commands submit.Problems
	switch {
	case errors.As(err, &knobs):
		for _, p := range knobs {
			say(p)
		}
	case errors.As(err, &commands):
		for _, p := range commands {
			say(p)
		}
	default:
		say(err)
	}
}

// runJobs sets everything up, runs the jobs and cleans up.
func runJobs(f runFlags, stdout, stderr io.Writer) (res run.Result, err error) {
	p, err := thishost.New()
	if err != nil {
		return res, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	show := reporter(f.json, stdout, p.TerminalWidth)
	begin := &beginning{show: show, cancel: cancel, step: "the start", exit: func() { os.Exit(exitSomeFailed) }}
	interrupt := begin.interrupts()
	defer func() {
		if begin.brokenOff() {
			err = errToldToEnd // and not what came of it
		}
	}()
	// Many steps that are each short may take long together.
	started := sync.OnceFunc(observe.Waiting(begin.tell))
	defer started()
	base, err := p.RunBase()
	if err != nil {
		return res, err
	}
	inv, scanErrs := machine.Scan(ctx, time.Now(), begin.watched(p.Scanners())...)
	configured := func(dir string) (snap *config.Snapshot, err error) {
		begin.during("the configuration", func() { snap, err = loadConfigBy(begin.command(ctx), f.config, f.local, dir, inv) })
		return snap, err
	}
	snap, err := scenario.Sound(configured(os.TempDir())) // nobody's machine depends on this run
	if err != nil {
		return res, err
	}
	var by prepare.Submitter
	begin.during("whose directory the submit file is in", func() { by, err = submitterOf(p, snap, f.job) })
	if err != nil {
		return res, err
	}
	who, err := currentUser(snap, inv)
	if err != nil {
		return res, err
	}
	if by.User != nil {
		_, domain, _ := strings.Cut(who, "@")
		who = by.User.Name + "@" + domain
	}

	var removed []string
	begin.during("what earlier runs left to be cleared away, below "+base, func() { removed, err = run.SweepDirs(p.Private(), base, p.Census.Alive, p.Sweep) })
	if err != nil {
		fmt.Fprintf(stderr, "warning: leftovers of earlier runs: %v\n", err)
	}
	dir, err := run.NewDir(p.Private(), base, os.TempDir(), run.Owner{Proc: p.Census.Self(), Keep: f.keep})
	if err != nil {
		return res, err
	}
	// A run that never began leaves nothing behind; one that ended leaves
	// what was asked for.
	keepDir := false
	defer func() {
		if !keepDir {
			err = errors.Join(err, dir.Remove())
		}
	}()
	if _, err := inv.Prefer(snap); err != nil {
		return res, err
	}
	if snap, err = configured(dir.Files); err != nil {
		return res, err
	}
	// LOCAL_DIR is a directory of our own unless the configuration sets it.
	if err := run.CheckPlaces(snap, true); err != nil {
		return res, err
	}
	execute := snap.String("EXECUTE")
	elsewhere, err := machine.SlotExecutes(snap)
	if err != nil {
		return res, err
	}
	owner := run.Owner{Proc: p.Census.Self(), Keep: f.keep, Execute: execute}
	for _, x := range elsewhere {
		owner.Elsewhere = append(owner.Elsewhere, x.Path)
	}
	if err := dir.WriteOwner(owner); err != nil {
		return res, err
	}

	var jobs []*classad.Ad
	var warnings []string
	begin.during("the submit file "+sourceName(f.job)+" and the files that it names", func() {
		err = by.As(func() (err error) {
			jobs, warnings, err = readJobs(f.job, p.Writable, dir.Number, who, by.Env(os.Environ()), snap, inv)
			return err
		})
	})
	if err != nil {
		return res, err
	}
	told, err := by.Told(snap, jobs)
	if err != nil {
		return res, err
	}
	begin.during("the directory "+execute+" (EXECUTE)", func() { err = run.CheckExecute(execute) })
	if err != nil {
		return res, err
	}
	if err := by.LetIn(snap, dir, execute); err != nil {
		return res, err
	}
	h, err := p.Host(execute, snap)
	if err != nil {
		return res, err
	}
	begin.during("the directories of SLOT<N>_EXECUTE", func() { elsewhere = run.CheckSlotExecutes(elsewhere, h.Errno) })
	for _, e := range inv.Apply(ctx, time.Now(), begin.watched([]machine.Scanner{p.Volume(execute, snap), machine.ConfigScanner(snap)})...) {
		if errs.Is(e, errs.Invalid) {
			return res, e
		}
		scanErrs = append(scanErrs, e)
	}
	var probe func(*config.Snapshot) machine.Scanner
	if prepare.WantsPrograms(jobs, snap) {
		probe = p.Programs
		begin.during("Java, Docker and Singularity to say what they can", func() {
			scanErrs = append(scanErrs, inv.Apply(ctx, time.Now(), p.Programs(snap))...)
		})
	}
	starterOf := func(s *config.Snapshot) (path string, args []string, err error) {
		return run.StarterProgram(s, p.Self, []string{"condor_ep", protocol.Command})
	}
	starterPath, starterArgs, err := starterOf(snap)
	if err != nil {
		return res, err
	}
	level := new(slog.LevelVar)
	level.Set(logLevel(snap))
	log, starterLog, closeLogs, err := openLogs(snap, level)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, closeLogs()) }()
	var occupied *run.Occupied
	begin.during("the locks on the directories of sandboxes", func() {
		occupied, err = occupy(ctx, p, dir, execute, elsewhere, inv.FullHostname, log)
	})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, occupied.Release()) }()
	holding, letGo := context.WithCancel(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() { occupied.Keep(holding) })
	defer keeper.Wait()
	defer letGo()
	for _, r := range removed {
		log.Info("removed what an earlier run left", "dir", r)
	}
	for _, e := range scanErrs {
		log.Warn("machine", "err", e)
	}

	var others []string
	begin.during("the list of processes", func() { others = besides(p, dir.Number) })
	if err := ctx.Err(); err != nil {
		return res, err
	}
	started()
	for _, w := range snap.Warnings() {
		show.Note(progress.Warning, warningText(&w))
	}
	for _, w := range warnings {
		show.Note(progress.Warning, w)
	}
	if told != "" {
		show.Note(progress.Warning, told)
	}
	for _, w := range others {
		show.Note(progress.Warning, w)
	}
	show.Begin(dir.Number, len(jobs), sourceName(f.job))
	began := time.Now()
	res, err = run.Run(ctx, run.Options{
		Config: snap, Inventory: inv, Host: h, Execute: execute, SlotExecutes: elsewhere, Socket: dir.Socket(), Dir: dir.Files, Version: version,
		Self: p.Self, StarterPath: starterPath, StarterArgs: starterArgs, Starter: starterOf, StarterEnv: os.Environ(), StarterLog: starterLog,
		Programs: filepath.Dir(p.Self), Standby: 1, Jobs: jobs, User: who, RunAs: by.User, Keep: f.keep, Log: log, Name: "condor_ep run",
		Interrupt: interrupt, Settled: begin.settled, Waiting: begin.waiting,
		Reload: reloads(orFromEnv(f.config)), Load: func() (*config.Snapshot, error) { return loadConfig(f.config, f.local, dir.Files, inv) },
		Probe:        probe,
		Reconfigured: func(s *config.Snapshot) { level.Set(logLevel(s)) },
		Changed:      show.Change, Counts: show.Counts, Problem: func(err error) {
			if !begin.brokenOff() { // what ends with the start is no news
				show.Note(progress.Warning, err.Error())
			}
		},
		Leaving: func(v ep.ShutdownView) { show.Leaving(progress.LeavingText(v), v) },
	})
	if err != nil {
		return res, err
	}
	kept := ""
	if keepDir = f.keep; keepDir {
		kept = dir.Files
		if err := saveConfig(snap, filepath.Join(dir.Files, "config.snapshot")); err != nil {
			return res, err
		}
	}
	show.End(res.Counts, time.Since(began), kept)
	return res, nil
}

// reporter shows a run on w. width is how wide the terminal behind a file is.
func reporter(asJSON bool, w io.Writer, width func(*os.File) (columns int, ok bool)) progress.Reporter {
	if asJSON {
		return progress.Objects(w)
	}
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return progress.Lines(w)
	}
	most, ok := width(f)
	if !ok {
		return progress.Lines(w)
	}
	return progress.Live(w, time.Now(), func() int {
		if n, ok := width(f); ok {
			most = n // a terminal that is gone has its last width
		}
		return most
	})
}

// submitterOf finds out whose the jobs of a submit file are.
func submitterOf(p *thishost.Platform, snap *config.Snapshot, file string) (prepare.Submitter, error) {
	find, files := p.Others()
	_, owners := p.Credentials()
	return prepare.SubmitterOf(prepare.Users{Find: find, Files: files, Owners: owners}, snap, file, file == standardInput)
}

// besides tells of what else gives all of this machine to its jobs.
func besides(p *thishost.Platform, number int) []string {
	_, owners := p.Credentials()
	return prepare.Machine{
		Runs:  func() ([]run.Dir, []run.Owner, error) { return recordedRuns(p) },
		Alive: p.Census.Alive, Running: p.Running, UserName: owners.UserName,
	}.Others(number)
}

// occupy keeps startds from directories of sandboxes that are not below our own
// one. Other runs may use them beside us: each clears away only what its own
// starters left.
func occupy(ctx context.Context, p *thishost.Platform, dir *run.Dir, execute string, elsewhere []machine.SlotExecute, name string, log *slog.Logger) (*run.Occupied, error) {
	paths := []string{execute}
	for _, x := range elsewhere {
		if x.Unusable == "" {
			paths = append(paths, x.Path)
		}
	}
	var places []run.Place
	for _, path := range paths {
		if path != dir.Execute() && !slices.ContainsFunc(places, func(p run.Place) bool { return p.Value == path }) {
			places = append(places, run.ExecutePlace("EXECUTE", path))
		}
	}
	return run.Occupy(ctx, run.Occupation{
		Lock: p.Lock, Share: host.Together, Log: log,
		Me: host.Holder{Program: "condor_ep run", Machine: name, Proc: p.Census.Self(), Since: time.Now()},
	}, places...)
}

// recordedRuns lists the runs of this user that are recorded on this machine.
func recordedRuns(p *thishost.Platform) ([]run.Dir, []run.Owner, error) {
	base, err := p.RunBase()
	if err != nil {
		return nil, nil, err
	}
	return run.Dirs(p.Private(), base)
}

// loadConfig reads the configuration of root, or else of CONDOR_CONFIG. Without a file all of the machine is one
// partitionable slot and any job runs. What the configuration does not say
// about places is put below dir.
func loadConfig(root, localName, dir string, inv *machine.Inventory) (*config.Snapshot, error) {
	return loadConfigBy(nil, root, localName, dir, inv)
}

// loadConfigBy is loadConfig with another way to run what the configuration
// names.
func loadConfigBy(command func(string) ([]byte, error), root, localName, dir string, inv *machine.Inventory) (*config.Snapshot, error) {
	c := system.Configuration{File: orFromEnv(root), Dir: dir, LocalName: localName, Command: command}
	return c.Read(context.Background(), inv, nil)
}

// orFromEnv is root, or where there is none what CONDOR_CONFIG names.
func orFromEnv(root string) string {
	if root == "" {
		root = os.Getenv(config.RootKnob)
	}
	if strings.EqualFold(root, "ONLY_ENV") {
		return ""
	}
	return root
}

// saveConfig writes what was configured, and what of it was used, for
// condor_config_val -snapshot.
func saveConfig(snap *config.Snapshot, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(snap.Save(f), f.Close())
}

// warningText is what a warning says, without the word itself: the line it is
// shown in begins with it.
func warningText(w error) string { return strings.Replace(w.Error(), " warning:", "", 1) }

// currentUser names who runs this as "user@domain".
func currentUser(snap *config.Snapshot, inv *machine.Inventory) (string, error) {
	u, err := user.Current()
	if err != nil {
		return "", err
	}
	domain := snap.String("UID_DOMAIN")
	if domain == "" {
		domain = inv.FullHostname
	}
	return u.Username + "@" + domain, nil
}

// openLogs opens the daemon's and the starters' logs below LOG.
func openLogs(snap *config.Snapshot, level slog.Leveler) (log *slog.Logger, starterLog *os.File, closeAll func() error, err error) {
	dir := snap.String("LOG")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, nil, fmt.Errorf("LOG: %w", err)
	}
	startd, err := os.OpenFile(filepath.Join(dir, "StartLog"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("LOG: %w", err)
	}
	starterLog, err = os.OpenFile(filepath.Join(dir, "StarterLog"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, nil, errors.Join(fmt.Errorf("LOG: %w", err), startd.Close())
	}
	closeAll = func() error { return errors.Join(startd.Close(), starterLog.Close()) }
	return slog.New(leveled{observe.NewLogHandler(startd, slog.LevelDebug), level}), starterLog, closeAll, nil
}

// leveled is a log whose level may change.
type leveled struct {
	slog.Handler
	level slog.Leveler
}

// Enabled reports whether records of a level are written at present.
func (l leveled) Enabled(_ context.Context, at slog.Level) bool { return at >= l.level.Level() }

// WithAttrs returns the same log with attributes for every record.
func (l leveled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return leveled{l.Handler.WithAttrs(attrs), l.level}
}

// WithGroup returns the same log with a name before those of attributes.
func (l leveled) WithGroup(name string) slog.Handler {
	return leveled{l.Handler.WithGroup(name), l.level}
}

// logLevel is what of the daemon's log is written: everything with D_FULLDEBUG
// or a category at level 2 in STARTD_DEBUG or ALL_DEBUG.
func logLevel(snap *config.Snapshot) slog.Level {
	for _, knob := range [...]string{"STARTD_DEBUG", "ALL_DEBUG"} {
		words := strings.FieldsFunc(snap.String(knob), func(r rune) bool { return strings.ContainsRune(" ,|\t", r) })
		for _, w := range words {
			if strings.EqualFold(w, "D_FULLDEBUG") || strings.HasSuffix(w, ":2") {
				return slog.LevelDebug
			}
		}
	}
	return slog.LevelInfo
}

// reloads turns SIGHUP into the wish to read the configuration again. Without
// a file there is nothing to read, and SIGHUP ends the run as it ends any
// program whose terminal is gone.
func reloads(file string) <-chan struct{} {
	if file == "" {
		return nil
	}
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, syscall.SIGHUP)
	out := make(chan struct{})
	go func() {
		for range sig {
			out <- struct{}{}
		}
	}()
	return out
}
