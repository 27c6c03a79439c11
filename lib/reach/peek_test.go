// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/classad"
)

// peekAt asks as condor_tail does, and returns the answer with what follows.
func (w *world) peekAt(session, request string) (reply *classad.Ad, files []string, count int64, err error) {
	w.t.Helper()
	conn, err := w.command(command.StarterPeek, session)
	if err != nil {
		return nil, nil, 0, err
	}
	defer conn.Close()
	if reply, err = ask(conn, mustAd(w.t, request)); err != nil {
		return nil, nil, 0, err
	}
	if ok, _ := reply.EvalBool("Result", nil); !ok {
		return reply, nil, 0, nil
	}
	names, err := listOf(reply, "TransferFiles")
	if err != nil {
		return nil, nil, 0, err
	}
	for range names {
		var b bytes.Buffer
		if _, err := conn.GetFile(w.t.Context(), &b, -1); err != nil {
			return nil, nil, 0, err
		}
		files = append(files, b.String())
	}
	if count, err = conn.Int(); err != nil {
		return nil, nil, 0, err
	}
	return reply, files, count, conn.EndOfMessage()
}

func TestPeek(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := w.ownerSession()
	w.write("_condor_stdout", "0123456789")
	w.write("_condor_stderr", "errors")
	w.write("result", "the result")
	w.write("sub/deep", "deep")
	w.write("secret", "nobody's business")
	w.write("other/up", "up")
	if err := os.Symlink("/etc/passwd", filepath.Join(w.dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(w.dir, "pipe"), 0o755); err != nil { // what is no regular file
		t.Fatal(err)
	}
	for _, c := range []struct {
		request, files, offsets string
		sent                    string
		refused                 string
	}{
		{request: "Out = true", files: "{ 0 }", offsets: "{ 0 }", sent: "0123456789"},
		{request: "Out = true\nErr = true\nMaxTransferBytes = 1024\nOutOffset = -1\nErrOffset = -1", files: "{ 0,1 }", offsets: "{ 0,0 }", sent: "0123456789|errors"},
		{request: "Out = true\nMaxTransferBytes = 4", files: "{ 0 }", offsets: "{ 6 }", sent: "6789"},
		{request: "Out = true\nOutOffset = 3\nMaxTransferBytes = 4", files: "{ 0 }", offsets: "{ 3 }", sent: "3456"},
		{request: "Out = true\nOutOffset = 8\nMaxTransferBytes = 400", files: "{ 0 }", offsets: "{ 8 }", sent: "89"},
		{request: "Out = true\nOutOffset = 99", files: "{ 0 }", offsets: "{ 10 }", sent: ""},
		{request: "Out = true\nErr = true\nMaxTransferBytes = 12", files: "{ 0,1 }", offsets: "{ 0,4 }", sent: "0123456789|rs"},
		{request: `TransferFiles = { "result", "sub/deep" }` + "\nTransferOffsets = { 4, 0 }", files: `{ "result","sub/deep" }`, offsets: "{ 4,0 }", sent: "result|deep"},
		{request: `TransferFiles = { "job.out" }`, files: `{ "job.out" }`, offsets: "{ 0 }", sent: "0123456789"},
		{request: "Out = true\n" + `TransferFiles = { "job.out" }`, files: "{ 0 }", offsets: "{ 0 }", sent: "0123456789"},
		{request: "Foo = 1", files: "{  }", offsets: "{  }"},
		{request: `TransferFiles = { "secret" }`, refused: "TransferOutput"},
		{request: `TransferFiles = { "../other/up" }`, refused: "TransferOutput"},
		{request: `TransferFiles = { "../up" }`, refused: "outside"},
		{request: `TransferFiles = { "link" }`, refused: "escapes"},
		{request: `TransferFiles = { "pipe" }`, refused: "regular"},
		{request: `TransferFiles = { "" }`, refused: "TransferOutput"},
		{request: `TransferFiles = { 7 }`, refused: "name of a file"},
		{request: `TransferFiles = "result"`, refused: "no list"},
		{request: `TransferFiles = {regexp("(.*a){500}b", "` + strings.Repeat("a", 20_000) + `") ? "x" : "result"}`, refused: "TransferFiles takes more than 100000 steps"},
		{request: "TransferFiles = {" + strings.Repeat(`"result",`, mostPeeked) + `"result"}`, refused: "at most"},
	} {
		reply, files, count, err := w.peekAt(session, c.request)
		if err != nil {
			t.Errorf("%s: %v", c.request, err)
			continue
		}
		if c.refused != "" {
			why, _ := reply.EvalString("ErrorString", nil)
			retry, _ := reply.EvalBool("Retry", nil)
			if !strings.Contains(why, c.refused) || retry {
				t.Errorf("%s: answer\n%s\nwant a refusal with %q", c.request, reply.Text(classad.Old), c.refused)
			}
			continue
		}
		text := func(name string) string {
			e, _ := reply.Lookup(name)
			return strings.ReplaceAll(strings.ReplaceAll(e.Text(classad.Old), ", ", ","), "  ", " ")
		}
		want := strings.ReplaceAll(c.files, "  ", " ")
		if got := text("TransferFiles"); got != want {
			t.Errorf("%s: files %s, want %s", c.request, got, want)
		}
		if got, want := text("TransferOffsets"), strings.ReplaceAll(c.offsets, "  ", " "); got != want {
			t.Errorf("%s: offsets %s, want %s", c.request, got, want)
		}
		if got := strings.Join(files, "|"); got != c.sent || count != int64(len(files)) {
			t.Errorf("%s: sent %q and said %d files, want %q", c.request, got, count, c.sent)
		}
	}
}

// What is shown is opened as the job's user would open it: a file that this one
// cannot read is there, and stays closed.
func TestPeekWithTheRightsOfTheUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := w.ownerSession()
	w.write("_condor_stdout", "output")
	w.write("result", "another's secret, by a second name")
	asked := 0
	w.job.set(func(j *job) {
		j.target.As = func(f func() error) error {
			if asked++; asked%4 == 0 { // the last one opens the second file
				return fs.ErrPermission
			}
			return f()
		}
	})
	_, files, count, err := w.peekAt(session, "Out = true\n"+`TransferFiles = { "result" }`)
	if err != nil || !slices.Equal(files, []string{"output", ""}) || count != 1 || asked != 4 {
		t.Errorf("%q, %d files in %d questions, %v", files, count, asked, err)
	}
}

func TestPeekBeforeAndAfterTheJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := w.ownerSession()
	for _, c := range []struct {
		name   string
		change func(*job)
		retry  bool
		why    string
	}{
		{"not started", func(j *job) { j.running = false }, true, "not started"},
		{"a file that is not there yet", func(j *job) { j.running = true }, true, "_condor_stdout"},
		{"no ad", func(j *job) { j.target.Job, j.running = nil, false }, true, "initialized"},
		{"finished", func(j *job) { j.target.Finished = true }, false, "finished"},
	} {
		w.job.set(c.change)
		reply, _, _, err := w.peekAt(session, "Out = true")
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		why, _ := reply.EvalString("ErrorString", nil)
		if retry, _ := reply.EvalBool("Retry", nil); retry != c.retry || !strings.Contains(why, c.why) {
			t.Errorf("%s: answer\n%s", c.name, reply.Text(classad.Old))
		}
	}
}

func TestPeekSwitchedOff(t *testing.T) {
	t.Parallel()
	for text, allowed := range map[string]bool{
		"false": false, "": true, "True": true, `TARGET.User == "bob@example.org"`: false, `TARGET.User == "` + owner + `"`: true, "((": false, "0": false, "(2 > 1)": true, "2 - 2": false, "yes": false,
	} {
		w := newWorld(t, func(c *Config) {
			c.Settings = settings(t, "ENABLE_PEEK_JOB", text)
		})
		w.write("_condor_stdout", "x")
		reply, files, _, err := w.peekAt(w.ownerSession(), "Out = true")
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got := len(files) == 1; got != allowed {
			t.Errorf("ENABLE_PEEK_JOB = %q: allowed %v, answer\n%s", text, got, reply.Text(classad.Old))
		}
	}
}

func TestOnlyTheOwnerPeeks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("_condor_stdout", "x")
	session := w.ownerSession()
	for _, number := range []int{command.StarterPeek, command.StartSSHD} {
		conn, err := w.command(number, claimSession())
		if err == nil {
			_, err = ask(conn, mustAd(t, "Out = true"))
		}
		if err == nil {
			t.Errorf("%d was answered to the submit side", number)
		}
		// A session that was the owner's is nobody's once the job is another's.
		w.job.set(func(j *job) { j.target.Job = mustAd(t, `User = "bob@example.org"`) })
		conn, err = w.command(number, session)
		if err == nil {
			_, err = ask(conn, mustAd(t, "Out = true"))
		}
		if err == nil {
			t.Errorf("%d was answered to another user", number)
		}
		w.job.set(func(j *job) { j.target.Job = mustAd(t, `User = "`+owner+`"`) })
	}
	for _, number := range []int{command.CACmd, command.StarterVacateJob, command.CreateJobOwnerSecSession, 60000} {
		if _, err := w.command(number, session); err == nil {
			conn, _ := w.command(number, session)
			if _, err := ask(conn, mustAd(t, `Command = "CA_RECONNECT_JOB"`)); err == nil {
				t.Errorf("the owner may give the command %d", number)
			}
		}
	}
	if got := w.job.told(); got != "" {
		t.Errorf("the job was told %q", got)
	}
}

func TestPortion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sizes, offsets []int64
		most           int64
		want           string
	}{
		{[]int64{10, 10}, []int64{-1, -1}, 15, "0+10 5+5 "},
		{[]int64{10, 10}, []int64{-5, 2}, -1, "0+10 2+8 "},
		{[]int64{10, 10}, []int64{20, -1}, 3, "10+0 7+3 "},
		{[]int64{10, 10}, []int64{0, 0}, 0, "0+0 0+0 "},
		{[]int64{0}, []int64{-1}, 5, "0+0 "},
		{[]int64{1 << 40}, []int64{1 << 39}, 1 << 50, fmt.Sprintf("%d+%d ", int64(1<<39), int64(1<<39))},
		{[]int64{1 << 62, 1 << 62}, []int64{-1 << 63, 1<<63 - 1}, 1<<63 - 1, fmt.Sprintf("0+%d %d+0 ", int64(1<<62), int64(1<<62))},
	} {
		var all []*peekedFile
		for i := range c.sizes {
			all = append(all, &peekedFile{size: c.sizes[i], offset: c.offsets[i]})
		}
		portion(all, c.most)
		got := ""
		for _, g := range all {
			got += fmt.Sprintf("%d+%d ", g.from, g.size)
		}
		if got != c.want {
			t.Errorf("%v at %v, at most %d: %s, want %s", c.sizes, c.offsets, c.most, got, c.want)
		}
	}
}

// FuzzReadPeek: whatever is asked for, nothing outside the scratch directory
// and nothing beyond what the job names is read.
func FuzzReadPeek(f *testing.F) {
	for _, s := range []string{
		"Out = true", `TransferFiles = { "result", "../up", "/etc/passwd" }`, "TransferOffsets = { 1, \"a\" }\nTransferFiles = { \"result\" }",
		"TransferFiles = TransferFiles", "TransferFiles = { TransferFiles }", "OutOffset = -9223372036854775808\nOut = true\nMaxTransferBytes = -3",
	} {
		f.Add(s)
	}
	jobAd := classad.NewAd()
	jobAd.SetString("TransferOutput", "result,../up,/etc/passwd,/scratch/x,a b")
	f.Fuzz(func(t *testing.T, text string) {
		ad, err := classad.ParseAd(text, classad.Old)
		if err != nil {
			return
		}
		all, err := readPeek(ad, Target{Job: jobAd, Scratch: "/scratch", Stdout: "_condor_stdout"})
		if err != nil {
			return
		}
		for _, g := range all {
			switch g.name {
			case "result", "x", "_condor_stdout", "a", "b", "a b":
			default:
				t.Errorf("%q is shown", g.name)
			}
		}
	})
}
