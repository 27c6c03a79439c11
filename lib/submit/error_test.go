// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/errs"
)

// Each mistake: the place it is reported at and the words it is told in.
var mistakes = []struct {
	text  string
	place string // line:column
	words string
}{
	{"executable = prog\n", "2:1", "no queue statement"},
	{"", "1:1", "no queue statement"},
	{"queue\n", "1:1", "there is no executable"},
	{"executable = \nqueue\n", "2:1", "there is no executable"},
	{"executable = prog\narguments\nqueue\n", "2:1", "an equals sign and a value"},
	{"executable = prog\nargu ments = 1\nqueue\n", "2:1", "no submit command"},
	{"executable : prog\nqueue\n", "1:1", "an equals sign instead of the colon"},
	{"executable = prog\nqeue 5\n", "2:1", "is qeue a typo?"},
	{"executable = prog\narg-s = 1\nqueue\n", "2:1", "letters, digits, underscores"},
	{"include : other.sub\nqueue\n", "1:1", "not supported"},
	{"executable = prog\nx += 1\nqueue\n", "2:1", "x = $(x) value"},
	{"universe = docker\nexecutable = prog\nqueue\n", "1:12", "expected vanilla"},
	{"universe = vanilla\n\nexecutable = prog\ndocker_image = debian\nqueue\n", "4:16", "needs a container runtime"},
	{"executable = prog\nuse_oauth_services = x\nqueue\n", "2:22", "not supported"},
	// expressions
	{"executable = prog\nrequirements = (Memory > 5\nqueue\n", "2:27", "no expression"},
	{"executable = prog\nrank = Memory +* 2\nqueue\n", "2:16", "no expression"},
	{"executable = prog\n+Group = a b\nqueue\n", "2:12", "text stands in double quotes"},
	{"executable = prog\nperiodic_hold = 1 +\nqueue\n", "2:20", "periodic_hold"},
	{"executable = prog\nrequirements = Requirements && TARGET.A\nqueue\n", "2:16", "refer to themselves"},
	// values
	{"executable = prog\npriority = high\nqueue\n", "2:12", "no integer"},
	{"executable = prog\nhold = maybe\nqueue\n", "2:8", "neither true nor false"},
	{"executable = prog\nkill_sig = SIGBIG\nqueue\n", "2:12", "no signal"},
	{"executable = prog\nnotification = loud\nqueue\n", "2:16", "Never, Always"},
	{"executable = prog\nrequest_memory = -5\nqueue\n", "2:18", "negative"},
	{"executable = prog\nrequest_memory = 1G, 2G\nqueue\n", "2:18", "one amount"},
	{"executable = prog\nrequest_disk = 5 X\nqueue\n", "2:18", "no expression"},
	{"executable = prog\nimage_size = big\nqueue\n", "2:14", "no size"},
	{"executable = prog\nconcurrency_limits = a:x\nqueue\n", "2:22", "NAME:AMOUNT"},
	{"executable = prog\naccounting_group = a b\nqueue\n", "2:20", "accounting group"},
	{"executable = prog\ninitialdir = nowhere\nqueue\n", "2:14", "no such directory"},
	{"executable = prog\ninitialdir = prog\nqueue\n", "2:14", "no such directory"},
	// arguments, environment
	{"executable = prog\narguments = a \"b\"\nqueue\n", "2:15", `written \"`},
	{"executable = prog\narguments = \"a 'b\"\nqueue\n", "2:16", "not closed"},
	{"executable = prog\narguments = \"a\" b\nqueue\n", "2:17", "after the closing double quote"},
	{"executable = prog\nenvironment = A=1;B\nqueue\n", "2:19", "NAME=value"},
	{"executable = prog\narguments = 1\narguments2 = \"1\"\nqueue\n", "3:14", "one of them"},
	{"executable = prog\nenvironment2 = A=1\nqueue\n", "2:16", "double quotes"},
	// files
	{"executable = prog\nshould_transfer_files = MAYBE\nqueue\n", "2:25", "YES, NO, IF_NEEDED"},
	{"executable = prog\nshould_transfer_files = NO\ntransfer_input_files = a.dat\nqueue\n", "2:25", "no files shall be transferred"},
	{"executable = prog\nwhen_to_transfer_output = NEVER\nqueue\n", "2:27", "contradicts"},
	{"executable = prog\nshould_transfer_files = IF_NEEDED\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\nqueue\n", "3:27", "cannot be combined"},
	{"executable = prog\nshould_transfer_files = no\ntransfer_executable = true\nqueue\n", "3:23", "should_transfer_files = YES"},
	{"executable = prog\ntransfer_input_files = a.dat, http://x/y\nqueue\n", "2:24", "URLs"},
	{"executable = prog\ntransfer_output_remaps = \"a = b; c\"\nqueue\n", "2:26", "NAME = NEW"},
	// queue
	{"executable = prog\nqueue many\n", "2:7", "no number of jobs"},
	{"executable = prog\nqueue -1\n", "2:7", "out of range"},
	{"executable = prog\nqueue 1 x y\n", "2:7", "no number of jobs"},
	{"executable = prog\nqueue x in (a\nb\n", "2:12", "does not end"},
	{"executable = prog\nqueue x in (a\n) b\n", "3:2", "behind the closing parenthesis"},
	{"executable = prog\nqueue x in\n", "2:11", "items behind in"},
	{"executable = prog\nqueue x from\n", "2:13", "a file name or a list"},
	{"executable = prog\nqueue x from missing.txt\n", "2:14", "cannot be read"},
	{"executable = prog\nqueue x from sub\n", "2:14", "directory"},
	{"executable = prog\nqueue x from ls |\n", "2:14", "not supported"},
	{"executable = prog\nqueue x from table list\n", "2:14", "cannot stand here"},
	{"executable = prog\nqueue x in files (a)\n", "2:12", "cannot stand here"},
	{"executable = prog\nqueue x in [1:x] (a)\n", "2:12", "no slice"},
	{"executable = prog\nqueue x in [::0] (a)\n", "2:12", "step above 0"},
	{"executable = prog\nqueue x matching [\n", "2:18", "no slice"},
	{"executable = prog\nqueue x matching a[\n", "2:18", "pattern"},
	// macros
	{"executable = prog\nA = $(B)\nB = $(A)\narguments = $(A)\nqueue\n", "4:13", "refers to itself: A → B → A"},
	{"executable = prog\narguments = $CHOICE(5,a,b)\nqueue\n", "2:13", "below 2"},
	{"executable = prog\narguments = $INT(nonsense)\nqueue\n", "2:13", "is no integer"},
	{"executable = prog\nX = $RANDOM_INTEGER(9,1)\nqueue $(X)\n", "3:7", "minimum above its maximum"},
	{"executable = prog\nA @=end\n1\n", "2:1", "a line @end"},
	{"executable = prog\nA @=\n1\n", "2:1", "no name behind @="},
	{"executable = prog\noutput = o.$$(Cpus)\nqueue\n", "2:10", "it would need the machine"},
	// if
	{"executable = prog\nif $(x) == 3\nendif\nqueue\n", "2:4", "defined NAME"},
	{"executable = prog\nif true\nqueue\n", "2:1", "if without endif"},
	{"executable = prog\nendif\nqueue\n", "2:1", "endif without if"},
	{"executable = prog\nif 1\nelse\nelse\nendif\nqueue\n", "4:1", "else after else"},
	// too much
	{"executable = prog\na = x\n" + strings.Repeat("a = $(a)$(a)\n", 30), "20:1", "too many commands, or they are too long"},
	{"executable = prog\na0 = $(U)\n" + doubling(60) + "arguments = $(a60)\nqueue\n", "63:13", "does not end expanding"},
	{"executable = prog\n" + strings.Repeat("if 1\n", 101), "102:1", "nested too deep"},
	// positions
	{"executable = prog\n   priority   =   high\nqueue\n", "2:19", "no integer"},
	{"executable = prog\nrequirements = Memory > 5 && \\\n   Cpus >\nqueue\n", "3:10", "no expression"},
}

// doubling is n settings that each mention the one before twice.
func doubling(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d = $(a%d)$(a%d)\n", i+1, i, i)
	}
	return b.String()
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range mistakes {
		_, err := Parse("t.sub", tt.text, options())
		var ps Problems
		if !errors.As(err, &ps) || !ps.Failed() {
			t.Errorf("%q: got %v, want Problems", tt.text, err)
			continue
		}
		first := strings.SplitN(ps.Error(), "\n", 2)[0]
		if !strings.HasPrefix(first, "t.sub:"+tt.place+": ") || !strings.Contains(first, tt.words) {
			t.Errorf("%q:\ngot  %s\nwant t.sub:%s: … %s", tt.text, first, tt.place, tt.words)
		}
		if len(ps) > 2 {
			t.Errorf("%q: %d problems for one mistake:\n%v", tt.text, len(ps), ps)
		}
		if k := errs.KindOf(ps.Unwrap()[0]); k != errs.Invalid && k != errs.Unsupported {
			t.Errorf("%q: kind %v", tt.text, k)
		}
	}
}

// Texts made to take long end soon, with an error or a value.
func TestHostileMacros(t *testing.T) {
	t.Parallel()
	const n = 50000
	for _, value := range []string{
		strings.Repeat("$(", n), strings.Repeat("$(", n) + ")", strings.Repeat("$(a:", n) + strings.Repeat(")", n),
		strings.Repeat("$(a)", n), strings.Repeat("$INT(", n) + strings.Repeat(")", n), strings.Repeat("$", n), strings.Repeat("$F(", n) + ")",
	} {
		for _, name := range []string{"arguments", "a"} {
			if d, err := Parse("t.sub", "executable = prog\n"+name+" = "+value+"\nb = $(a)\narguments = $(b)\nqueue\n", options()); err == nil && d.Len() != 1 {
				t.Errorf("%.20s: %d jobs", value, d.Len())
			}
		}
	}
}

// Every mistake is told at once, in the order of the lines.
func TestAllMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]int{
		"executable = prog\npriority = high\nkill_sig = NOSUCH\nrank = (\nqueue 3\n": {2, 3, 4},
		"priority = high\nbroken line\nrank = $(x) +\nqueue many\n":                  {1, 2, 4},
	} {
		_, err := Parse("t.sub", text, options())
		var ps Problems
		var got []int
		if errors.As(err, &ps) {
			for _, p := range ps {
				got = append(got, p.Line)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: lines %v, want %v\n%v", text, got, want, err)
		}
	}
	// A mistake that only a later job makes comes with the jobs.
	d, err := Parse("t.sub", "executable = prog\npriority = $(p)\nqueue p in (1 2 x y)\n", options())
	if err != nil {
		t.Fatal(err)
	}
	if jobs, err := d.Jobs(); jobs != nil || err == nil || strings.Count(err.Error(), "\n") != 0 || !strings.Contains(err.Error(), `t.sub:2:12: priority: this is no integer (value "x"`) {
		t.Errorf("%d jobs, %v", len(jobs), err)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"executable = prog\nargments = 1\nqueue\n", `t.sub:2:1: warning: this line is not used; is it a typo? (value "argments = 1", expected arguments)`},
		{"executable = prog\nrequest_cpus = 2\nrequest_cpus = 4\nqueue\n", `t.sub:2:1: warning: request_cpus is set twice; line 3 is the one that counts (value "request_cpus = 2")`},
		{"executable = prog\nRequestCpus = 2\nrequest_cpus = 4\nqueue\n", `t.sub:2:1: warning: RequestCpus is set twice; line 3 is the one that counts`},
		{"executable = prog\nrequest_memroy = 1\nqueue\n", `request_memory, perhaps`},
		{"executable = prog\nfrobnicate = 1\nqueue\n", `t.sub:2:1: warning: this line is not used; is it a typo? (value "frobnicate = 1")`},
		{"executable = prog\narguments = $(nope)\nqueue\n", `t.sub:2:13: warning: arguments: this macro has no value here (value "$(nope)")`},
		{"executable = prog\nqueue x matching *.nothing\n", `matches nothing`},
		{"executable = prog\nqueue x in ()\n", `the list is empty`},
	} {
		d, err := Parse("t.sub", tt.text, options())
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if got := d.Warnings().Error(); !strings.Contains(got, tt.want) {
			t.Errorf("%q:\ngot  %s\nwant %s", tt.text, got, tt.want)
		}
	}
	// Where there is no job no command is looked at, and none is a typo.
	if d, err := Parse("t.sub", "executable = prog\narguments = 1\nqueue 0\n", options()); err != nil || len(d.Warnings()) > 0 {
		t.Errorf("%v, %v", d, err)
	}
	// Used through a macro, an attribute, a condition or a dotted name of one's own.
	d, err := Parse("t.sub", "executable = prog\nA = 1\nB = $(A)\n+C = $(B)\nMY.D = 2\nmine.E = 3\nF = 1\nif defined F\nendif\nG = $(A)\nG = $(G) 2\narguments = $(G)\nqueue\n", options())
	if err != nil {
		t.Fatal(err)
	}
	if w := d.Warnings(); len(w) > 0 {
		t.Errorf("%v", w)
	}
}

func FuzzParse(f *testing.F) {
	for _, m := range mistakes {
		f.Add(m.text)
	}
	lines(f, "jobs.jsonl", func(line []byte) {
		var e struct{ Job string }
		if err := json.Unmarshal(line, &e); err != nil {
			f.Fatal(err)
		}
		f.Add(e.Job)
	})
	f.Add("executable = prog\narguments = $(x:$(y)) $F(x) $ENV(HOME) $INT(2*3,%05d) $SUBSTR(x,1)\nqueue 3 x,y in [::2] (a b c)\n")
	f.Add("executable = prog\nif defined x\nelse\nendif\nA @=e\nx\n@e\nqueue x from (\n1 2\n)\n")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse("t.sub", text, options())
		if err != nil {
			var ps Problems
			if !errors.As(err, &ps) || !ps.Failed() {
				t.Fatalf("%v is no Problems", err)
			}
			for _, p := range ps {
				if p.Line < 1 || p.Column < 1 {
					t.Fatalf("no place: %v", p)
				}
			}
			return
		}
		if d.Len() > 1000 {
			return
		}
		jobs, err := d.Jobs()
		if err == nil && len(jobs) != d.Len() {
			t.Fatalf("%d jobs of %d", len(jobs), d.Len())
		}
		for _, ad := range jobs {
			if ad == nil {
				t.Fatal("no ad and no error")
			}
			if _, ok := ad.Lookup("Cmd"); !ok {
				t.Fatal("a job without Cmd")
			}
		}
	})
}
