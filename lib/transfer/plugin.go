// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// PluginSpec is one run of a plugin's program.
type PluginSpec struct {
	Path    string        // the program
	Args    []string      // the whole argument vector
	Env     []string      // what is added to the environment of the runner
	Dir     string        // working directory
	Timeout time.Duration // after which the runner ends it
	FromJob bool          // the job brought it: never with more rights than the job has
	// Waiting is called again and again, every Every, while the program runs; nil
	// is not called.
	Waiting func()
	Every   time.Duration
}

// PluginExit is how a plugin's program ended.
type PluginExit struct {
	Code     int
	Signal   int    // 0 unless a signal ended it
	TimedOut bool   // the runner ended it after Timeout
	Output   []byte // its standard output and error, or the beginning
}

// Runner runs a plugin's program to its end. An error says that it could not
// be started.
type Runner func(ctx context.Context, spec PluginSpec) (PluginExit, error)

// Plugin is one program that moves files by URL.
type Plugin struct {
	Path     string   // of the program
	Methods  []string // lower-case schemes
	Multi    bool     // it takes many files at once: MultipleFileSupport
	Protocol int      // ProtocolVersion
	FromJob  bool
	Ad       *classad.Ad // what it says of itself; nil for one of a job
}

// Plugins are the ways to move files by URL, for one job or for finding out
// what there is.
type Plugins struct {
	Disabled bool // ENABLE_URL_TRANSFERS is off
	// Programs are those of FILETRANSFER_PLUGINS, which nobody has asked yet;
	// they go before List.
	Programs []string
	List     []Plugin // the last one that has a method wins
	// Run may be called by several goroutines at a time.
	Run Runner // nil leaves only what is built in
	// Answers remembers what Programs have said; nil asks them each time.
	Answers *Answers
	// Answered is called by Load for each of Programs that has answered, or will
	// not; by several goroutines. nil is nobody.
	Answered func()
	// HTTP is used by what is built in for http, https and data; nil makes a
	// client with bounded redirects.
	HTTP *http.Client
	// NoBuiltin leaves out what is built in.
	NoBuiltin bool
	Scratch   string      // path of the scratch directory, where jobs' plugins and the lists are
	Env       []string    // added for every run: _CONDOR_JOB_AD, _CONDOR_CREDS, X509_USER_PROXY …
	JobEnv    []string    // the job's environment: variables that begin with a plugin's name are passed on
	Job       *classad.Ad // for PluginData; nil is none
	// Owner is called for the lists that a program reads and writes, so that it
	// can; nil is the hook of ReceiveOptions when receiving, else nobody.
	Owner    func(root *os.Root, name string, dir bool) error
	Lifetime time.Duration // MAX_FILE_TRANSFER_PLUGIN_LIFETIME, default 20 hours

	QueryTimeout time.Duration // FILETRANSFER_PLUGIN_CLASSAD_TIMEOUT, default 20 s
	KeepAlive    time.Duration // MY_POPEN_KEEPALIVE_INTERVAL, default 60 s

	// Privileged says that programs which are not the job's have more rights than
	// the job: they are given no file outside its directory.
	Privileged bool
	// OnSuccess and OnFailure say whether what a program prints is logged.
	OnSuccess, OnFailure LogAs

	movingEnd
}

// movingEnd is what plugins are told of the end of a transfer for which they run.
type movingEnd struct {
	errno   host.Errno
	log     *slog.Logger      // nil is none
	record  func(*classad.Ad) // nil is nobody
	outside Outside           // nil is nothing
	silent  outcome           // why programs are of no use
}

func (p *Plugins) enabled() bool { return p != nil && !p.Disabled }

// Query asks a program what it can do, by -classad.
func Query(ctx context.Context, run Runner, program string, env []string, timeout time.Duration) (Plugin, error) {
	const op = "transfer.Query"
	if timeout <= 0 {
		timeout = 20 * time.Second
	}
	exit, err := run(ctx, PluginSpec{Path: program, Args: []string{program, "-classad"}, Env: env, Timeout: timeout})
	if err != nil {
		return Plugin{}, errs.E(op, errs.NotFound, program, err)
	}
	if exit.TimedOut || len(bytes.TrimSpace(exit.Output)) == 0 {
		return Plugin{}, errs.E(op, errs.Broken, program, errors.New("no output from -classad"))
	}
	p, err := parseQuery(program, exit.Output)
	if err != nil {
		return Plugin{}, errs.E(op, errs.Invalid, program, err)
	}
	return p, nil
}

// parseQuery reads what a plugin prints for -classad: lines of an old ad.
func parseQuery(program string, output []byte) (Plugin, error) {
	ad := lines(output)
	p := Plugin{Path: program, Ad: ad, Protocol: 1}
	p.Methods = methods(text(ad, "SupportedMethods"))
	if len(p.Methods) == 0 {
		return Plugin{}, errors.New("-classad names no SupportedMethods")
	}
	p.Multi, _ = ad.EvalBool("MultipleFileSupport", nil)
	if p.Multi {
		p.Protocol = 2
	}
	if v, ok := ad.EvalInt("ProtocolVersion", nil); ok && v >= 1 && v <= 100 {
		p.Protocol = int(v)
	}
	return p, nil
}

// lines reads lines of an old ad. What is none is for people.
func lines(output []byte) *classad.Ad {
	ad := classad.NewAd()
	for line := range strings.Lines(string(output)) {
		line = strings.TrimSpace(line)
		name, expr, ok := strings.Cut(line, "=")
		if !ok || line[0] == '#' {
			continue
		}
		name = strings.TrimSpace(name)
		if name == "" || strings.ContainsAny(name, " \t\"") {
			continue
		}
		_ = ad.SetText(name, strings.TrimSpace(expr)) // as above
	}
	return ad
}

// Load asks the programs that were not asked yet what they can do, and
// returns why some of them are of no use. A transfer does it by itself, in its
// own copy, when there is a URL at all.
func (p *Plugins) Load(ctx context.Context) (unusable []error) {
	if p.Run == nil || !p.enabled() {
		return nil
	}
	// Side by side: several of HTCondor's are programs of Python, which take a
	// tenth of a second each to say what they can.
	type answer struct {
		one Plugin
		err error
	}
	answers := make([]answer, len(p.Programs))
	var all sync.WaitGroup
	for i, program := range p.Programs {
		env := p.environment(Plugin{Path: program})
		all.Go(func() {
			answers[i].one, answers[i].err = p.Answers.ask(ctx, program, func() (Plugin, error) { return Query(ctx, p.Run, program, env, p.QueryTimeout) })
			if p.Answered != nil {
				p.Answered()
			}
		})
	}
	all.Wait()
	var asked []Plugin
	for i, program := range p.Programs {
		err := answers[i].err
		if err == nil {
			asked = append(asked, answers[i].one)
			continue
		}
		unusable = append(unusable, err)
		switch errs.KindOf(err) {
		case errs.NotFound:
			_, why := errnoOf(p.errno, errors.Unwrap(err))
			p.silent.add("FILETRANSFER: Failed to execute %s -classad: %s skipping", program, why)
		case errs.Invalid:
			p.silent.add("%s -classad did not produce a valid classad, ignoring", program)
		default:
			p.silent.add("No output from %s -classad, ignoring", program)
		}
	}
	p.List = append(asked, p.List...)
	p.Programs = nil
	return unusable
}

func methods(list string) []string {
	var all []string
	for m := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		all = append(all, strings.ToLower(m))
	}
	return all
}

// JobPlugins reads TransferPlugins of a job, "method[,method]=path;…": the
// programs lie in its scratch directory under the last parts of their paths.
func JobPlugins(job *classad.Ad) ([]Plugin, error) {
	list, _ := job.EvalString("TransferPlugins", nil)
	var all []Plugin
	for part := range strings.SplitSeq(list, ";") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		names, program, ok := strings.Cut(part, "=")
		base := filepath.Base(strings.TrimSpace(program))
		if !ok || len(methods(names)) == 0 || !legalName(base) {
			return nil, errs.E("transfer.JobPlugins", errs.Invalid, "TransferPlugins", fmt.Errorf("%q, want method=path", part))
		}
		all = append(all, Plugin{Path: base, Methods: methods(names), Multi: true, Protocol: 2, FromJob: true})
	}
	return all, nil
}

// builtinMethods need no program.
var builtinMethods = [...]string{"data", "http", "https"}

// Methods returns what p can move, sorted, for HasFileTransferPluginMethods.
func (p *Plugins) Methods() []string {
	if !p.enabled() {
		return nil
	}
	var all []string
	for _, one := range p.List {
		all = append(all, one.Methods...)
	}
	if !p.NoBuiltin {
		all = append(all, builtinMethods[:]...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// find returns the plugin for a method, or that what is built in has it.
func (p *Plugins) find(method string) (one Plugin, builtin, ok bool) {
	for _, one := range slices.Backward(p.List) {
		if slices.Contains(one.Methods, method) && (p.Run != nil) {
			return one, false, true
		}
	}
	return Plugin{}, true, !p.NoBuiltin && slices.Contains(builtinMethods[:], method)
}

// urlItem is one file that is moved by URL.
type urlItem struct {
	URL  string
	Name string // below the root
}

// batch is what one plugin moves in one run.
type batch struct {
	plugin  Plugin
	builtin bool
	items   []urlItem
}

// batches divides items among plugins, in order of their first items.
func (p *Plugins) batches(items []urlItem) ([]batch, *urlItem) {
	var all []batch
	index := map[string]int{}
	for _, item := range items {
		one, builtin, ok := p.find(methodOf(item.URL))
		if !ok {
			return nil, &item
		}
		at, known := index[one.Path]
		if !known {
			at = len(all)
			index[one.Path] = at
			all = append(all, batch{plugin: one, builtin: builtin})
		}
		all[at].items = append(all[at].items, item)
	}
	return all, nil
}

// name is what a plugin's variables begin with: its file's name up to _plugin
// or the extension, in capitals.
func (p Plugin) name() string {
	if slices.Contains(p.Methods, "pelican") {
		return "PELICAN"
	}
	base := path.Base(filepath.ToSlash(p.Path))
	name, _, ok := strings.Cut(base, "_plugin")
	if !ok {
		name = strings.TrimSuffix(base, path.Ext(base))
	}
	return strings.ToUpper(name)
}
