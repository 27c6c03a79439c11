// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package transfer moves files by real programs: the curl plugin of an
// installed HTCondor, and plugins that are shell scripts.
package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/transfer"
)

// run is a transfer.Runner for this machine.
func run(ctx context.Context, spec transfer.PluginSpec) (transfer.PluginExit, error) {
	ctx, stop := context.WithTimeout(ctx, spec.Timeout)
	defer stop()
	cmd := exec.CommandContext(ctx, spec.Path, spec.Args[1:]...)
	cmd.Dir, cmd.Env = spec.Dir, append(os.Environ(), spec.Env...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	exit := transfer.PluginExit{Output: out, TimedOut: ctx.Err() != nil}
	var ee *exec.ExitError
	switch {
	case errors.As(err, &ee):
		if ws, ok := ee.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			exit.Signal = int(ws.Signal())
		} else {
			exit.Code = ee.ExitCode()
		}
	case err != nil && !exit.TimedOut:
		return exit, err
	}
	return exit, nil
}

func root(t testing.TB) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

type result struct {
	sent, got        transfer.Stats
	sendErr, recvErr error
}

// move moves a plan from one directory to another one, with plugins at both
// ends.
func move(t *testing.T, from, into *os.Root, plan transfer.SendPlan, p *transfer.Plugins) (r result) {
	t.Helper()
	x, y := cedartest.Pipe()
	a, b := cedar.NewConn(x, cedar.Limits{}), cedar.NewConn(y, cedar.Limits{})
	for _, c := range []*cedar.Conn{a, b} {
		if err := c.EnableAES(make([]byte, 32)); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		r.sent, r.sendErr = transfer.Send(t.Context(), transfer.Side{Conn: a}, from, plan, transfer.SendOptions{Plugins: p})
		_ = x.Close()
	})
	r.got, r.recvErr = transfer.Receive(t.Context(), transfer.Side{Conn: b}, into, transfer.ReceiveOptions{Plugins: p})
	_ = y.Close()
	wg.Wait()
	return r
}

func fetch(urls ...string) (plan transfer.SendPlan) {
	for _, u := range urls {
		plan.Items = append(plan.Items, transfer.SendItem{Source: u})
	}
	return plan
}

func failure(t *testing.T, err error) *transfer.WireFailure {
	t.Helper()
	var f *transfer.WireFailure
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a *transfer.WireFailure", err)
	}
	return f
}

// web serves one file and takes one.
func web(t *testing.T) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ok", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "body") })
	mux.HandleFunc("PUT /in", func(w http.ResponseWriter, r *http.Request) {
		if b, err := io.ReadAll(r.Body); err != nil || string(b) != "A" {
			t.Errorf("stored %q, %v", b, err)
		}
		w.WriteHeader(http.StatusCreated)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// The original's curl plugin and what is built in here give the same files,
// hold codes and counts.
//
// Not parallel: a child that is being started beside a script that is being
// written would keep the script open.
func TestCurl(t *testing.T) {
	s := web(t)
	for _, builtin := range []bool{false, true} {
		p := &transfer.Plugins{Run: run}
		if !builtin {
			one, err := transfer.Query(t.Context(), run, curl(t), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			if !one.Multi || one.Protocol < 2 || !slices.Contains(one.Methods, "https") {
				t.Errorf("the curl plugin says %+v", one)
			}
			p.List = append(p.List, one)
		}
		into := root(t)
		r := move(t, root(t), into, fetch(s.URL+"/ok", s.URL+"/ok?x=1"), p)
		if r.sendErr != nil || r.recvErr != nil {
			t.Fatal(r.sendErr, r.recvErr)
		}
		if got, err := into.ReadFile("ok"); err != nil || string(got) != "body" {
			t.Errorf("builtin %v: %q, %v", builtin, got, err)
		}
		if got := r.got.Protocols["HTTP"]; got.Files < 1 || got.Bytes < 4 {
			t.Errorf("builtin %v: %+v", builtin, r.got)
		}
		f := failure(t, move(t, root(t), root(t), fetch(s.URL+"/none"), p).recvErr)
		if f.HoldCode != transfer.HoldDownload || f.HoldSubcode <= 0 || f.HoldSubcode&0xff != 0 || f.Retry || !strings.Contains(f.Reason, "404") || !strings.Contains(f.Reason, "|Error: ") {
			t.Errorf("builtin %v: %+v", builtin, f)
		}
		from := root(t)
		if err := from.WriteFile("a", []byte("A"), 0o600); err != nil {
			t.Fatal(err)
		}
		plan := transfer.SendPlan{Final: true, Items: []transfer.SendItem{{Source: "a", URL: s.URL + "/in"}}}
		if r := move(t, from, root(t), plan, p); r.sendErr != nil || r.recvErr != nil || len(r.got.Reported) != 1 {
			t.Errorf("builtin %v: %v, %v, %v", builtin, r.sendErr, r.recvErr, r.got.Reported)
		}
	}
}

// curl finds the curl plugin of an installed HTCondor.
func curl(t *testing.T) string {
	t.Helper()
	path := realpool.Find(t).Program("curl_plugin")
	if path == "" {
		realpool.Missing(t, "this HTCondor has no curl plugin", "install an HTCondor that has curl_plugin in LIBEXEC")
	}
	return path
}

// script writes a plugin that is a shell script. In $url and $file are those
// of the only file that it is asked for, in $out where it reports.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "my_plugin.sh")
	text := `#!/bin/sh
if [ "$1" = -classad ]; then
	echo 'MultipleFileSupport = true'
	echo 'SupportedMethods = "my"'
	exit 0
fi
in=$2 out=$4
url=$(sed -n 's/.*[Uu]rl = "\([^"]*\)".*/\1/p' "$in")
file=$(sed -n 's/.*LocalFileName = "\([^"]*\)".*/\1/p' "$in")
` + body + "\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Not parallel, as above.
func TestScripts(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		realpool.Missing(t, err.Error(), "install a shell")
	}
	const well = `echo "[ TransferUrl = \"$url\"; TransferFileName = \"$file\"; TransferProtocol = \"my\"; TransferSuccess = true ]" >"$out"`
	for name, tt := range map[string]struct {
		body  string
		sub   int
		retry bool
		want  string
	}{
		"well":         {body: `echo "$url $MY_MOOD" >"$file"; ` + well},
		"exit code":    {`echo '[ TransferSuccess = false; TransferError = "no luck" ]' >"$out"; exit 5`, 5 << 8, false, "no luck"},
		"killed":       {well + `; kill -9 $$`, 9, false, "failed unexpectedly"},
		"too long":     {`exec sleep 600`, 62, false, "timed out"},
		"not a thing":  {`exit 0`, -1004, false, "no valid classads"},
		"removed list": {`rm "$out"`, 0, false, "unable to open output file"},
	} {
		t.Run(name, func(t *testing.T) {
			one, err := transfer.Query(t.Context(), run, script(t, tt.body), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			p := &transfer.Plugins{Run: run, List: []transfer.Plugin{one}, JobEnv: []string{"MY_MOOD=fine"}}
			if name == "too long" {
				p.Lifetime = 300 * time.Millisecond
			}
			into := root(t)
			r := move(t, root(t), into, fetch("my://h/file"), p)
			if tt.want == "" {
				if got, err := into.ReadFile("file"); r.recvErr != nil || err != nil || string(got) != "my://h/file fine\n" {
					t.Errorf("%q, %v, %v", got, err, r.recvErr)
				}
				if entries, err := os.ReadDir(into.Name()); err != nil || len(entries) != 1 {
					t.Errorf("%v is left, %v", entries, err)
				}
				return
			}
			if f := failure(t, r.recvErr); f.HoldCode != transfer.HoldDownload || f.HoldSubcode != tt.sub || f.Retry != tt.retry || !strings.Contains(f.Reason, tt.want) {
				t.Errorf("%+v", f)
			}
		})
	}
	missing := &transfer.Plugins{Run: run, List: []transfer.Plugin{{Path: "/nowhere/plugin", Methods: []string{"my"}, Multi: true, Protocol: 2}}}
	if f := failure(t, move(t, root(t), root(t), fetch("my://h/file"), missing).recvErr); f.HoldSubcode != -1003 || !f.Retry {
		t.Errorf("%+v", f)
	}
}
