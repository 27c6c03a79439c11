// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package documents

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/ci/source"
)

// pages are those whose examples are run, each from top to end.
var pages = []string{"README.md", "docs/owner.md", "docs/administrator.md", "docs/job-user.md", "docs/go-programmer.md"}

// elsewhere are the commands that are not run here, by how they begin, with
// what proves them.
var elsewhere = map[string]string{
	"go test ":          "the tests cannot run themselves; ci/check does",
	"go install ":       "writes to Go's own directory",
	"sh examples/pool/": "ci/realpool's TestPool starts and uses that pool",
	"condor_startd -c ": "joins a pool: bin/condor_startd's tests and integration/pool do that",
}

// patience bounds one command.
const patience = 3 * time.Minute

// TestPages runs every example of every page.
func TestPages(t *testing.T) {
	root, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	home := open(t, "home")
	build(t, root, home)
	var mu sync.Mutex
	excused := make(map[string]bool)
	t.Run("pages", func(t *testing.T) {
		for _, page := range pages {
			t.Run(page, func(t *testing.T) {
				t.Parallel()
				text, err := os.ReadFile(filepath.Join(root, page))
				if err != nil {
					t.Fatal(err)
				}
				list, err := examples(string(text))
				if err != nil {
					t.Fatal(err)
				}
				if len(list) == 0 {
					t.Fatal("no example")
				}
				s := newSession(t, root, home)
				for _, e := range list {
					if why := excuse(e.command); why != "" {
						mu.Lock()
						excused[why] = true
						mu.Unlock()
						continue
					}
					s.run(page, e)
				}
				s.leave()
			})
		}
	})
	for _, begin := range slices.Sorted(maps.Keys(elsewhere)) {
		if begin != "go install " && !excused[begin] {
			t.Errorf("no page has a command %q: take it out of the list", begin)
		}
	}
}

// excuse is how a command begins that is not run here, "" for one that is.
func excuse(command string) string {
	for begin := range elsewhere {
		if strings.HasPrefix(command, begin) {
			return begin
		}
	}
	return ""
}

// open is a directory that other users may enter: a job may be run as one.
func open(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "execpoint-documents-"+name+"-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// build makes the programs with the command of the README, in the repository
// itself: what it compiled before need not be compiled again.
func build(t *testing.T, root, home string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	const command = "go build -o ~/bin/ ./bin/..."
	if !strings.Contains(string(text), "\n    $ "+command+"\n") {
		t.Fatalf("the README does not say %s", command)
	}
	c := exec.Command("sh", "-c", command)
	c.Dir, c.Env = root, environment(t, home)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// environment is that of a person with a home of his own, who has Go.
func environment(t *testing.T, home string) []string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOPATH").Output()
	dirs := strings.Split(string(out), "\n")
	if err != nil || len(dirs) < 3 {
		t.Fatalf("go env: %q, %v", out, err)
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "CONDOR_CONFIG=") || strings.HasPrefix(v, "_CONDOR_") || strings.HasPrefix(v, "EXECPOINT_")
	})
	return append(env, "HOME="+home, "PATH="+filepath.Join(home, "bin")+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8",
		"GOCACHE="+dirs[0], "GOMODCACHE="+dirs[1], "GOPATH="+dirs[2], "GOFLAGS=-buildvcs=false")
}

// rootsPage shows the line that root alone sees of a run, and rootsBegin is how that
// line begins.
const (
	rootsPage  = "docs/job-user.md"
	rootsBegin = "warning: the jobs run as nobody, not as root, whose directory "
)

// rootsLine is that line with … for the directory.
func rootsLine(t *testing.T, root string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, rootsPage))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n    "+rootsBegin)
	line, _, _ := strings.Cut(after, "\n")
	_, end, is := strings.Cut(line, " is; ")
	if !found || !is {
		t.Fatalf("%s does not show what root sees", rootsPage)
	}
	return rootsBegin + "… is; " + end
}

// withoutRootsLine takes out of what a run printed for root the line that nobody
// else sees, and reports how often it is there.
func withoutRootsLine(out, want string) (rest string, times int) {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if matches(want, strings.TrimRight(line, "\n")) {
			times++
			continue
		}
		b.WriteString(line)
	}
	return b.String(), times
}

// session is one person at one page.
type session struct {
	*testing.T
	rootsLine   string // "" for an ordinary user
	root, clone string
	env         []string
	machine     []string    // its names
	behind      []*exec.Cmd // commands in the background
}

func newSession(t *testing.T, root, home string) *session {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	s := &session{T: t, root: root, clone: open(t, "clone"), machine: []string{name}}
	if out, err := exec.Command("hostname", "-f").Output(); err == nil {
		s.machine = []string{strings.TrimSpace(string(out)), name} // the long one first
	}
	if os.Geteuid() == 0 {
		s.rootsLine = rootsLine(t, root)
	}
	s.env = append(environment(t, home), "EXECPOINT_RUNTIME_DIR="+open(t, "runs"), "TMPDIR="+open(t, "tmp"))
	for _, file := range tracked(t, root) {
		copyFile(t, filepath.Join(root, file), filepath.Join(s.clone, file))
	}
	return s
}

// tracked lists the files that a clone would have; of a tree without git, all.
func tracked(t *testing.T, root string) []string {
	t.Helper()
	out, err := exec.Command("git", "-c", "safe.directory=*", "-C", root, "ls-files", "-z").Output()
	if err == nil && len(out) > 0 {
		return strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	}
	var files []string
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || path == filepath.Join(root, "dist")):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		name, err := filepath.Rel(root, path) // hidden ones as well: one keeps a directory there
		files = append(files, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return // removed and not yet committed, or a link
	}
	text, err2 := os.ReadFile(from)
	if err := errors.Join(err, err2, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, info.Mode().Perm())); err != nil {
		t.Fatal(err)
	}
}

// run does one example and compares.
func (s *session) run(page string, e example) {
	s.Helper()
	if file, ok := strings.CutPrefix(e.command, "cat "); ok {
		path := filepath.Join(s.clone, file)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			if err := os.WriteFile(path, []byte(e.want+"\n"), 0o644); err != nil {
				s.Fatal(err)
			}
			return
		}
	}
	if e.background() {
		c := exec.Command("sh", "-c", strings.TrimSuffix(e.command, " &"))
		c.Dir, c.Env, c.SysProcAttr = s.clone, s.env, &syscall.SysProcAttr{Setpgid: true}
		if err := c.Start(); err != nil {
			s.Fatal(err)
		}
		s.behind = append(s.behind, c)
		return
	}
	s.check(page, e, e.want)
}

// check runs a command to its end. The first ones behind a command in the
// background may have to wait for it on a busy machine.
func (s *session) check(page string, e example, want string) {
	s.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		out, err := s.command(e.command)
		if s.rootsLine != "" {
			var times int
			out, times = withoutRootsLine(out, s.rootsLine)
			if runs := strings.HasPrefix(e.command, "condor_ep run "); times > 1 || runs && times != 1 {
				s.Errorf("%s:%d: $ %s\nroot is told %d times that the jobs are nobody's, want once\n%s", page, e.line, e.command, times, out)
			}
		}
		got := settled(strings.ReplaceAll(out, s.clone+"/", "…/"), s.machine...)
		ok := err == nil && (want == "" || matches(settled(want, s.machine...), got))
		switch {
		case ok:
			return
		case len(s.behind) > 0 && time.Now().Before(deadline):
			continue
		}
		s.Errorf("%s:%d: $ %s\n%v, printed\n%s\nthe page shows\n%s", page, e.line, e.command, err, got, want)
		return
	}
}

// leave ends what still runs in the background, as a person who has seen enough
// does: another page has the same jobs run to their end. Ctrl-C twice ends jobs
// at once.
func (s *session) leave() {
	for _, c := range s.behind {
		for range 2 {
			if err := syscall.Kill(-c.Process.Pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
				s.Error(err)
			}
		}
		var ended *exec.ExitError
		if err := c.Wait(); err != nil && !errors.As(err, &ended) {
			s.Error(err)
		}
	}
}

func (s *session) command(line string) (string, error) {
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	dir := s.clone
	// What go run would make is built already; Go itself works where the
	// repository is, where it has compiled the packages before.
	if rest, ok := strings.CutPrefix(line, "go run ./bin/"); ok {
		line = rest
	} else if strings.HasPrefix(line, "go ") {
		dir = s.root
	}
	c := exec.CommandContext(ctx, "sh", "-c", line)
	var out bytes.Buffer
	c.Dir, c.Env, c.Stdout, c.Stderr, c.WaitDelay = dir, s.env, &out, &out, 10*time.Second
	err := c.Run()
	return out.String(), err
}

// Root sees one line more than the pages show, which one of them has.
func TestRootsLine(t *testing.T) {
	t.Parallel()
	root, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	want := rootsLine(t, root)
	line := strings.Replace(want, "…", "/srv/work", 1) + "\n"
	for out, times := range map[string]int{"a\nb\n": 0, "a\n" + line + "b\n": 1, line + "a\nb\n" + line: 2} {
		if rest, n := withoutRootsLine(out, want); rest != "a\nb\n" || n != times {
			t.Errorf("%q: %q without %d, want %d", out, rest, n, times)
		}
	}
}

// The README is two screens, keeps the table of systems, and leads every kind
// of reader to a page of his own.
func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	root, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n > 100 {
		t.Errorf("%d lines, which are more than two screens", n)
	}
	for _, want := range append([]string{"\n## Where it runs\n\n| | Linux (amd64, arm64) | Windows (amd64) | macOS (arm64) |\n", "](docs/commands.md)", "sh examples/pool/up.sh -install"}, pages[1:]...) {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("no %q", want)
		}
	}
}
