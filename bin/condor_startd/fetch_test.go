// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/eventlog"
)

// fetching is a daemon whose slots fetch their work: the hook offers the files of the
// directory work, one after the other, and all hooks note in the directory told what
// they were given.
type fetching struct {
	*life
	owner string // as whom jobs run
}

const (
	takeWork = `dir=%[1]s
echo "fetch args=$# user=$(id -un)" >> $dir/told/calls
cat > $dir/told/fetch.in.new && mv $dir/told/fetch.in.new $dir/told/fetch.in
next=$(ls $dir/work | head -n 1)
[ -z "$next" ] && { echo "nothing to do" >&2; exit 7; }
mv $dir/work/$next $dir/told/$next.ad
cat $dir/told/$next.ad
exit 9
`
	noteReply = `dir=%[1]s
cat > $dir/told/reply.tmp.$$
name=$(sed -n 's/^JobName = "\(.*\)"/\1/p' $dir/told/reply.tmp.$$)
mv $dir/told/reply.tmp.$$ $dir/told/$name.reply
[ "$name" = awaited ] && until [ -e $dir/told/awaited.runs ]; do sleep 0.1; done
echo "reply $* $name user=$(id -un)" >> $dir/told/calls
echo "$1 for $name" >&2
sleep 600 > /dev/null 2>&1 &
echo $! > $dir/told/$name.left
`
	noteEvict = `dir=%[1]s
cat > $dir/told/evict.tmp.$$
name=$(sed -n 's/^JobName = "\(.*\)"/\1/p' $dir/told/evict.tmp.$$)
mv $dir/told/evict.tmp.$$ $dir/told/$name.evict
[ "$name" = awaited ] && until [ -e $dir/told/better.runs ]; do sleep 0.1; done
echo "evict args=$# $name user=$(id -un)" >> $dir/told/calls
`
)

func newFetching(t *testing.T, lines string) *fetching {
	t.Helper()
	s := newSite(t, strings.ReplaceAll(lines, "\t", ""))
	s.reachable()
	f := &fetching{owner: os.Getenv("USER")}
	if os.Geteuid() == 0 {
		f.owner = "nobody"
	}
	for _, dir := range []string{"work", "told", "iwd"} {
		s.must(os.Mkdir(s.path(dir), 0o755))
		s.must(os.Chmod(s.path(dir), 0o777)) // for the users of hooks and jobs
	}
	s.must(os.Mkdir(s.path("hooks"), 0o755))
	for name, text := range map[string]string{"fetch": takeWork, "reply": noteReply, "evict": noteEvict} {
		s.program("hooks/"+name, fmt.Sprintf(text, s.dir))
	}
	s.with(fmt.Sprintf("FOO_HOOK_FETCH_WORK = %[1]s/hooks/fetch\nFOO_HOOK_REPLY_FETCH = %[1]s/hooks/reply\nFOO_HOOK_EVICT_CLAIM = %[1]s/hooks/evict\n", s.dir))
	f.life = s.live()
	return f
}

// offer has the hook offer a job.
func (f *fetching) offer(name, ad string) {
	f.t.Helper()
	ad += fmt.Sprintf("JobName = %q\nOwner = %q\nUser = \"%[2]s@example.org\"\n", name, f.owner)
	f.must(os.WriteFile(f.path("new"), []byte(ad), 0o644))
	f.must(os.Rename(f.path("new"), f.path("work/"+name)))
}

// reads waits until a file has all the texts.
func (f *fetching) reads(name string, texts ...string) string {
	f.t.Helper()
	var got string
	eventually(f.t, name, func() error {
		b, err := os.ReadFile(f.path(name))
		got = string(b)
		for _, text := range texts {
			if err == nil && !strings.Contains(got, text) {
				err = fmt.Errorf("no %q in %s", text, got)
			}
		}
		if err != nil {
			err = fmt.Errorf("%w; the daemon's log:\n%s", err, f.log())
		}
		return err
	})
	return got
}

const fetchStatic = `NUM_CPUS = 1
	NUM_SLOTS = 1
	SLOT_TYPE_0_PARTITIONABLE = false
	STARTD_JOB_HOOK_KEYWORD = FOO
	FetchWorkDelay = ifThenElse(State == "Claimed" && Activity == "Idle", 0, 1)
	STARTD_DEBUG = D_FULLDEBUG
	POLLING_INTERVAL = 1
	`

// A job that the hook has offered runs with all that its ad says, as its owner, with
// its files in place; the hooks are told what they are to be told, and when there is no
// more work the claim is over and the slot goes to Owner.
//
// row: S0-308, S0-310, S0-312, S0-313, S0-314, S0-317, S0-319, S0-320, S0-321, S0-322, S0-324
func TestFetchedJob(t *testing.T) {
	t.Parallel()
	f := newFetching(t, fetchStatic+"FOO_HOOK_JOB_EXIT = $(LOCAL_DIR)/hooks/exit\n")
	f.program("hooks/exit", fmt.Sprintf("echo \"exit hook $1 user=$(id -un) $(grep -c '^JobName = .one.$')\" >> %s/told/exits\n", f.dir))
	f.must(os.WriteFile(f.path("iwd/prog"), []byte("#!/bin/sh\necho \"args=$# $1 $2 env=$COLOR $SIZE in=$(cat) pwd=$(pwd -P) user=$(id -un)\"\n"+
		"grep -i '^HookKeyword' $_CONDOR_JOB_AD\necho bad >&2\nexit 3\n"), 0o755))
	f.must(os.WriteFile(f.path("iwd/in"), []byte("input"), 0o644))
	f.offer("one", fmt.Sprintf("ClusterId = 7\nProcId = 2\nCmd = \"prog\"\nIwd = %q\nIn = \"in\"\nOut = \"out\"\nErr = \"err\"\n"+
		"Env = \"COLOR=red;SIZE=3\"\nArgs = \"a b\"\nStarterUserLog = \"log\"\n", f.path("iwd")))
	f.reads("told/one.evict", "-----\n", "ClaimId = ")
	iwd, err := filepath.EvalSymlinks(f.path("iwd"))
	f.must(err)
	out := f.reads("iwd/out", "HookKeyword = \"FOO\"")
	if want := fmt.Sprintf("args=2 a b env=red 3 in=input pwd=%s user=%s\n", iwd, f.owner); !strings.HasPrefix(out, want) {
		t.Errorf("the job has written %q, want %q", out, want)
	}
	if b, _ := os.ReadFile(f.path("iwd/err")); string(b) != "bad\n" {
		t.Errorf("standard error %q", b)
	}
	log := f.reads("iwd/log", "001 (007.002.000)", "005 (007.002.000)", "(1) Normal termination (return value 3)")
	r := eventlog.NewReader(strings.NewReader(log), eventlog.ReaderOptions{})
	for _, want := range []eventlog.Code{eventlog.CodeExecute, eventlog.CodeTerminated} {
		if rec, err := r.Next(); err != nil || rec.Event.Code() != want {
			t.Errorf("event %+v, %v; want %v", rec, err, want)
		}
	}

	// The hooks, that of the starter by the same keyword among them.
	f.reads("told/exits", "exit hook exit user="+f.owner+" 1\n")
	user := f.hookUser()
	calls := f.reads("told/calls", "fetch args=0 user="+user+"\n", "reply accept one user="+user+"\n", "evict args=0 one user="+user+"\n")
	if strings.Contains(calls, "reject") {
		t.Errorf("calls: %s", calls)
	}
	f.reads("log/StartLog", "Warning, hook "+f.path("hooks/reply")+" (pid ", ") printed to stderr: accept for one\n", "Warning, hook "+f.path("hooks/fetch")+" (pid ", ") printed to stderr: nothing to do\n", "State change: Finished fetching work successfully",
		"Changing state and activity: Claimed/Idle -> Preempting/Vacating", "-> Owner")
	left := strings.TrimSpace(f.reads("told/one.left"))
	eventually(t, "what a hook leaves behind is ended", func() error {
		if b, err := os.ReadFile("/proc/" + left + "/cmdline"); err == nil && strings.Contains(string(b), "sleep") {
			return fmt.Errorf("%s lives", left)
		}
		return nil
	})
	for _, name := range []string{"told/one.reply", "told/one.evict"} {
		text := f.reads(name)
		first, second, found := strings.Cut(text, "\n-----\n")
		job, err := classad.ParseAd(first, classad.Old)
		f.must(err)
		slot, err := classad.ParseAd(second, classad.Old)
		f.must(err)
		keyword, _ := job.EvalString("HookKeyword", nil)
		kind, _ := slot.EvalString("MyType", nil)
		id, _ := slot.EvalString("ClaimId", nil)
		if !found || keyword != "FOO" || kind != "Machine" || !strings.HasPrefix(id, "<") {
			t.Errorf("%s: keyword %q, slot's type %q, claim %q", name, keyword, kind, id)
		}
		if secret := id[strings.LastIndexByte(id, '#')+1:]; strings.Contains(f.log(), secret) {
			t.Error("the secret of a claim is in the log")
		}
	}
	told, err := classad.ParseAd(f.reads("told/fetch.in"), classad.Old)
	f.must(err)
	if name, _ := told.EvalString("Name", nil); !strings.HasPrefix(name, "slot1@here") {
		t.Errorf("the fetch hook was given the ad of %q", name)
	}
	f.end()
}

// hookUser is as whom hooks run: under root as condor, where there is one.
func (f *fetching) hookUser() string {
	f.t.Helper()
	if os.Geteuid() != 0 {
		return f.owner
	}
	if b, err := os.ReadFile("/etc/passwd"); err == nil && strings.Contains(string(b), "\ncondor:") {
		return "condor"
	}
	return "root"
}

// Jobs that cannot be run are refused, and the hook that replies is told so.
//
// row: S0-310, S0-316
func TestFetchedJobRefused(t *testing.T) {
	t.Parallel()
	f := newFetching(t, fetchStatic+"START = TARGET.Wanted =!= false\n")
	f.offer("nothing", "")
	f.reads("told/calls", "reply reject nothing ")
	f.offer("unwanted", "Cmd = \"/bin/true\"\nWanted = false\n")
	f.reads("told/calls", "reply reject unwanted ")
	f.offer("large", "Cmd = \"/bin/true\"\nRequestCpus = 5\n")
	f.reads("told/calls", "reply reject large ")
	f.offer("grid", "Cmd = \"/bin/true\"\nJobUniverse = 9\n")
	f.reads("told/calls", "reply reject grid ")
	f.must(os.WriteFile(f.path("work/bad"), []byte("Cmd = \"/bin/touch\"\nthis is no attribute\nArgs = \""+f.path("told/bad.ran")+"\"\n"), 0o644))
	f.reads("log/StartLog", "the hook has printed no job")
	if os.Geteuid() == 0 {
		f.must(os.WriteFile(f.path("work/ownerless"), []byte("Cmd = \"/bin/true\"\nJobName = \"ownerless\"\n"), 0o644))
		f.reads("told/calls", "reply reject ownerless ")
		for name, owner := range map[string]string{"superuser": "root", "stranger": "nobody-knows-me"} {
			f.must(os.WriteFile(f.path("work/"+name), []byte(fmt.Sprintf("Cmd = \"/bin/true\"\nJobName = %q\nOwner = %q\n", name, owner)), 0o644))
			f.reads("told/calls", "reply reject "+name+" ")
		}
	}
	if text := f.reads("told/large.reply"); strings.Contains(text, "ClaimId") {
		t.Error("the source of a refused job is given a claim")
	}
	if calls := f.reads("told/calls"); strings.Contains(calls, "accept") || strings.Contains(calls, "evict") {
		t.Errorf("calls: %s", calls)
	}
	f.end()
}

// What a job does not say: it begins in its sandbox, with nothing to read and to write;
// a relative Iwd is below that. Its log is in XML if it says so, and a job that is made
// to leave gets its signal.
//
// row: S0-317, S0-318, S0-320
func TestFetchedJobDefaults(t *testing.T) {
	t.Parallel()
	f := newFetching(t, fetchStatic)
	look := f.program("look", fmt.Sprintf("exec > %s/told/look.new\nreadlink /proc/$$/fd/0 /proc/$PPID/fd/1 2>&1\npwd -P\necho $_CONDOR_SCRATCH_DIR\necho $@\nmv %[1]s/told/look.new %[1]s/told/look.$1\n", f.dir))
	f.offer("a", fmt.Sprintf("Cmd = %q\nArgs = \"none\"\n", look))
	f.offer("b", fmt.Sprintf("Cmd = %q\nArgs = \"dot\"\nIwd = \".\"\n", look))
	for _, name := range []string{"none", "dot"} {
		lines := strings.Split(f.reads("told/look."+name), "\n")
		if i := slices.Index(lines, "/dev/null"); i != 0 {
			t.Errorf("%s: standard input is no /dev/null: %q", name, lines)
		}
		n := len(lines) - 4
		if n < 0 || lines[n] != lines[n+1] || !strings.HasPrefix(lines[n], f.path("execute")) {
			t.Errorf("%s: it began in %q", name, lines)
		}
	}
	for i, signal := range []struct{ ad, want string }{{"", "TERM"}, {"KillSig = \"SIGUSR1\"\n", "USR1"}, {"KillSig = 3\n", "QUIT"}} {
		name := "stays" + signal.want
		stay := f.program(name, fmt.Sprintf("for s in TERM USR1 QUIT; do trap \"echo $s > %s/told/%s.signal; exit 0\" $s; done\ntouch %[1]s/told/%[2]s.runs\nwhile :; do sleep 0.1; done\n", f.dir, name))
		f.offer(name, fmt.Sprintf("Cmd = %q\n%sStarterUserLog = %q\nStarterUserLogUseXML = true\n", stay, signal.ad, f.path("told/"+name+".log")))
		f.reads("told/" + name + ".runs")
		f.reconfigured(2*i+1, "PREEMPT = true\n")
		if got := strings.TrimSpace(f.reads("told/"+name+".signal", "\n")); got != signal.want {
			t.Errorf("%s: signal %s, want %s", name, got, signal.want)
		}
		f.reads("told/"+name+".evict", "-----\n")
		f.reconfigured(2*i+2, "PREEMPT = false\n")
		log := f.reads("told/"+name+".log", "<s>ExecuteEvent</s>", "<s>JobEvictedEvent</s>")
		for record := range strings.SplitSeq(strings.TrimSpace(log), "</c>\n") {
			if _, err := classad.ParseXML(strings.TrimSuffix(record, "</c>") + "</c>"); err != nil {
				t.Errorf("%v: %s", err, record)
			}
		}
	}
	f.end()
}

// A job whose log is a pipe that nobody reads holds nothing up.
//
// row: S0-320
func TestFetchedJobLogIsNoFile(t *testing.T) {
	t.Parallel()
	f := newFetching(t, fetchStatic)
	f.must(syscall.Mkfifo(f.path("told/pipe"), 0o666))
	f.must(os.Chmod(f.path("told/pipe"), 0o666))
	for name, more := range map[string]string{"text": "", "xml": "StarterUserLogUseXML = true\n"} {
		f.offer(name, fmt.Sprintf("Cmd = \"/bin/touch\"\nArgs = %q\nStarterUserLog = %q\n%s", f.path("told/"+name+".ran"), f.path("told/pipe"), more))
		f.reads("told/"+name+".evict", "-----\n")
		if _, err := os.Stat(f.path("told/" + name + ".ran")); err == nil {
			t.Errorf("%s: it ran without its log", name)
		}
	}
	f.reads("log/StartLog", "fetched work cannot be run", "StarterUserLog")
	f.end()
}

// Each slot has the hooks of its keyword; one whose keyword has no hook that fetches has
// none at all. A partitionable slot gives a part to a job that says what it wants.
//
// row: S0-308, S0-315, S0-316, S0-323
func TestFetchingSlots(t *testing.T) {
	t.Parallel()
	f := newFetching(t, `SLOT_TYPE_1 = cpus=2
	SLOT_TYPE_1_PARTITIONABLE = true
	NUM_SLOTS_TYPE_1 = 1
	SLOT_TYPE_2 = cpus=1
	SLOT_TYPE_2_PARTITIONABLE = false
	NUM_SLOTS_TYPE_2 = 2
	STARTD_JOB_HOOK_KEYWORD = FOO
	SLOT2_JOB_HOOK_KEYWORD = BAR
	SLOT3_JOB_HOOK_KEYWORD = BAZ
	BAR_HOOK_FETCH_WORK = $(LOCAL_DIR)/hooks/bar
	BAZ_HOOK_REPLY_FETCH = $(LOCAL_DIR)/hooks/bar
	BAZ_HOOK_EVICT_CLAIM = $(LOCAL_DIR)/hooks/bar
	FetchWorkDelay = 1
	POLLING_INTERVAL = 1
	`)
	f.program("hooks/bar", fmt.Sprintf("sed -n 's/^Name = \"\\(slot[0-9_]*\\).*/bar for \\1/p' >> %s/told/calls\n", f.dir))
	f.offer("greedy", "Cmd = \"/bin/true\"\n")
	f.reads("told/calls", "reply reject greedy ", "bar for slot2\n")
	f.offer("modest", "Cmd = \"/bin/sleep\"\nArgs = \"3\"\nRequestCpus = 1\nRequestMemory = 64\nRequestDisk = 1024\n")
	f.reads("told/calls", "reply accept modest ")
	if text := f.reads("told/modest.evict", "-----\n"); !strings.Contains(text, "\nName = \"slot1_1@") {
		t.Errorf("the claim that ended was of %s", text)
	}
	if calls := f.reads("told/calls"); strings.Contains(calls, "bar for slot1") || strings.Contains(calls, "bar for slot3") {
		t.Errorf("calls: %s", calls)
	}
	f.end()
}

// Fetched work that the machine likes better takes the slot from what runs there; what
// it likes as much does not. Hooks that are told something are not waited for: that of
// the first job ends only when it runs, and that of its end when the next one does.
//
// row: S0-309, S0-321, S0-322
func TestFetchedJobByRank(t *testing.T) {
	t.Parallel()
	f := newFetching(t, fetchStatic+"RANK = TARGET.Prio\n")
	runs := func(name string, prio int) {
		f.offer(name, fmt.Sprintf("Cmd = \"/bin/sh\"\nArguments = \"-c 'touch %s; exec sleep 600'\"\nPrio = %d\n", f.path("told/"+name+".runs"), prio))
	}
	runs("awaited", 1)
	f.reads("told/awaited.runs")
	f.shows("RemoteUser = \"" + f.owner + "@example.org\"")
	f.shows("RemoteOwner = \"" + f.owner + "\"")
	f.shows("CurrentRank = 1.0")
	runs("same", 1)
	f.reads("told/calls", "reply accept awaited ", "reply reject same ")
	runs("better", 2)
	f.reads("told/better.runs")
	f.reads("told/calls", "reply accept better ", "evict args=0 awaited ")
	f.reads("log/StartLog", "State change: preempting claim based on machine rank of fetched work.")
	if _, err := os.Stat(f.path("told/same.runs")); err == nil {
		t.Error("a job that was refused has run")
	}
	f.end() // the job's claim ends with the daemon
	if calls := f.reads("told/calls", "evict args=0 better "); strings.Contains(calls, "evict args=0 same") {
		t.Errorf("calls: %s", calls)
	}
}

// FetchWorkDelay is asked for each slot and its job, and counts from the end of the last
// call: at once when a job has ended, after two seconds otherwise.
//
// row: S0-312, S0-326, S0-327
func TestFetchDelay(t *testing.T) {
	t.Parallel()
	f := newFetching(t, strings.Replace(fetchStatic, "0, 1)", "0, 2)", 1)+"FOO_HOOK_DIR = $(LOCAL_DIR)/hooks\n")
	f.offer("a", "Cmd = \"/bin/true\"\n")
	f.offer("b", "Cmd = \"/bin/true\"\n")
	f.reads("told/calls", "evict args=0 b ")
	f.shows("NextFetchWorkDelay = 2")
	f.must(os.Rename(f.path("told/calls"), f.path("told/before")))
	f.program("hooks/late", fmt.Sprintf("date +%%s%%3N >> %s/told/times\nsleep 1\ndate +%%s%%3N >> %[1]s/told/times\n", f.dir))
	f.reconfigured(1, "FOO_HOOK_FETCH_WORK = $(LOCAL_DIR)/hooks/late\n")
	var times []int
	eventually(t, "three calls", func() error {
		b, _ := os.ReadFile(f.path("told/times"))
		times = nil
		for _, word := range strings.Fields(string(b)) {
			n, err := strconv.Atoi(word)
			f.must(err)
			times = append(times, n)
		}
		if len(times) < 6 {
			return fmt.Errorf("so far %v", times)
		}
		return nil
	})
	for i := 2; i < 6; i += 2 {
		if pause := times[i] - times[i-1]; pause < 1900 {
			t.Errorf("%d ms from the end of a call to the next, want two seconds", pause)
		}
	}
	f.reconfigured(2, "FetchWorkDelay = NoSuchAttribute\n")
	f.shows("NextFetchWorkDelay = 300")
	f.end()
}
