// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
)

// What a startd has read is read again as its starters would, whatever became of
// the files since.
func TestAs(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"/c/root": `A = 1
STARTER.A = 2
STARTD.A = 3
slot_type_1.A = 4
STARTER.slot_type_2.A = 5
B = all
STARTER.B = $(B) of it
if $(IsStarter)
  C = a starter
elif $(IsStartd)
  C = the startd
endif
include ifexist : /c/$(SUBSYSTEM).conf
include command into /c/copy : say it
LOCAL_CONFIG_DIR = /c/d
D = $(LOCALNAME)
E = $RANDOM_INTEGER(1,1000000)
`,
		"/c/d/1":          "F = old\n",
		"/c/STARTER.conf": "G = new of a starter\n",
		"/c/STARTD.conf":  "G = of the startd\n",
	}
	ran := 0
	o := Options{
		Root: "/c/root", Subsystem: "STARTD", LocalName: "second", Env: []string{"_CONDOR_H=env"}, Facts: map[string]string{"HOSTNAME": "h"},
		Later: []Text{{Name: "later", Text: "I = $(H)!\n"}}, Overrides: []Override{{Name: "J", Value: "over"}}, Seed: 7,
		ReadFile: func(path string) ([]byte, error) {
			text, ok := files[path]
			if !ok {
				return nil, fs.ErrNotExist
			}
			return []byte(text), nil
		},
		ReadDir:    func(string) ([]string, error) { return []string{"1"}, nil },
		RunCommand: func(string) ([]byte, error) { ran++; return []byte("K = said\n"), nil },
		WriteFile:  func(path string, data []byte) error { files[path] = string(data); return nil },
	}
	startd, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	files["/c/root"], files["/c/d/1"], files["/c/copy"] = "A = broken", "F = new", "K = other\n"
	o.Facts["HOSTNAME"], o.Env[0] = "elsewhere", "_CONDOR_H=other"
	for _, c := range []struct {
		local string
		want  map[string]string
	}{
		{"", map[string]string{
			"A": "2", "B": "all of it", "C": "a starter", "D": "STARTER", "E": startd.String("E"), "F": "old", "G": "new of a starter", "H": "env", "I": "env!",
			"J": "over", "K": "said", "HOSTNAME": "h", "SUBSYSTEM": "STARTER",
		}},
		{"slot_type_1", map[string]string{"A": "4", "B": "all of it", "D": "slot_type_1"}},
		{"slot_type_2", map[string]string{"A": "5"}},
	} {
		s, err := startd.As("STARTER", c.local)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range c.want {
			if got := s.String(name); got != want {
				t.Errorf("as STARTER %q: %s is %q, want %q", c.local, name, got, want)
			}
		}
	}
	if ran != 1 {
		t.Errorf("the command ran %d times", ran)
	}
	if got := startd.String("A") + startd.String("C"); got != "3the startd" {
		t.Errorf("the startd's own are %q now", got)
	}
	if same, err := startd.As("startd", "SECOND"); same != startd || err != nil {
		t.Errorf("as itself it is another one, %v", err)
	}
}

// A text is read again too, and what is wrong for the other daemon alone is told.
func TestAsOfText(t *testing.T) {
	t.Parallel()
	s, err := Parse("text", "X = 1\nSTARTER.X = 2\nif $(IsStarter)\n  error : no starters here\nendif\n", Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.As("STARTER", ""); err == nil || !strings.Contains(err.Error(), "no starters here") {
		t.Errorf("the error is %v", err)
	}
	tool, err := s.As("TOOL", "")
	if err != nil || tool.String("X") != "1" {
		t.Errorf("%v: X is %q", err, tool.String("X"))
	}
}

// What is asked for in another's name is used.
func TestNoteUse(t *testing.T) {
	t.Parallel()
	s, err := Parse("text", "X = 1\nSTARTER.X = 2\nY = $(X)\nZ = 3\nif $(IsStarter)\n  W = 4\nendif\n", Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.As("STARTER", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Y", "W", "BASE_CGROUP"} {
		other.String(name)
	}
	s.NoteUse(other)
	var used []string
	for _, row := range s.Rows() {
		if row.Used {
			used = append(used, row.Name)
		}
	}
	if want := []string{"BASE_CGROUP", "STARTER.X", "Y"}; !slices.Equal(used, want) {
		t.Errorf("used are %q, want %q", used, want)
	}
}

func TestExpression(t *testing.T) {
	t.Parallel()
	s, err := Parse("text", "ENABLE_SSH_TO_JOB = TARGET.'my attr' == $(X:3)\nENABLE_PEEK_JOB = ((\nSINGULARITY_JOB =\n", Options{})
	if err != nil {
		t.Fatal(err)
	}
	job := classad.NewAd()
	job.SetInt("my attr", 3)
	var got []string
	for _, name := range []string{"ENABLE_SSH_TO_JOB", "ENABLE_PEEK_JOB", "SINGULARITY_JOB", "USE_DEFAULT_CONTAINER", "NO_SUCH"} {
		x, err := s.Expression(name)
		if err != nil {
			t.Fatal(err)
		}
		if x == nil {
			got = append(got, "none")
			continue
		}
		sent, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		var back Expr
		if err := json.Unmarshal(sent, &back); err != nil {
			t.Fatal(err)
		}
		yes, said := back.IsTrue(&classad.Env{My: classad.NewAd(), Target: job})
		got = append(got, back.String()+map[bool]string{true: " yes", false: " no"}[yes]+map[bool]string{true: "", false: ", not said"}[said])
	}
	if want := []string{"TARGET.'my attr' == 3 yes", "(( no, not said", "false no", "false no", "none"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Text gives a default for nothing, as the other types do.
func TestText(t *testing.T) {
	t.Parallel()
	s, err := Parse("text", "JOB_EXECDIR_PERMISSIONS =\nBASE_CGROUP =  x y \n", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"JOB_EXECDIR_PERMISSIONS": "user", "BASE_CGROUP": "x y", "SSH_TO_JOB_SSHD": "/usr/sbin/sshd", "NO_SUCH": ""} {
		if got, err := s.Text(name); got != want || err != nil {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
}
