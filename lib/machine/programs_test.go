// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// installed is a machine on which the programs it names can be run, by their
// command lines; every other one is not there.
type installed map[string]Outcome

// everyKind is an Execution Point that runs jobs of every kind.
func everyKind(Kind) bool { return true }

// prober returns the prober of such a machine and where it keeps what was run.
func (m installed) prober(ran *[]string) Prober {
	var mu sync.Mutex
	return Prober{UserNamespace: 4026531837, Arch: "X86_64", Runs: everyKind, Run: func(_ context.Context, argv []string) (Outcome, error) {
		line := strings.Join(argv, " ")
		mu.Lock()
		defer mu.Unlock()
		*ran = append(*ran, line)
		out, ok := m[line]
		if !ok {
			for known := range m {
				if first, _, _ := strings.Cut(known, " "); first == argv[0] {
					return Outcome{Status: 1, Stderr: []byte("FATAL:   no answer for " + line + "\n")}, nil
				}
			}
			return Outcome{}, &fs.PathError{Op: "exec", Path: argv[0], Err: fs.ErrNotExist}
		}
		return out, nil
	}}
}

func said(text string) Outcome                { return Outcome{Stdout: []byte(text)} }
func ended(status int, stderr string) Outcome { return Outcome{Status: status, Stderr: []byte(stderr)} }

func settings(t testing.TB, text string) *config.Snapshot {
	t.Helper()
	snap, err := config.Parse("ep.conf", "LIBEXEC = /libexec\n"+text, config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// java17 is what openjdk-17-jre-headless of Debian 12 prints to its standard
// error, shortened.
const java17 = `Property settings:
    awt.toolkit = sun.awt.X11.XToolkit
    java.class.path =` + " " + `
    java.library.path = /usr/java/packages/lib
        /usr/lib/x86_64-linux-gnu/jni
        java.vendor = not a property
    java.specification.version = 17
    java.vendor = Debian
    java.vendor.url = https://tracker.debian.org/openjdk-17
    java.version = 17.0.15
    line.separator = \n` + " " + `

openjdk version "17.0.15" 2025-04-15
OpenJDK Runtime Environment (build 17.0.15+6-Debian-1deb12u1)
`

func TestProbe(t *testing.T) {
	t.Parallel()
	const (
		java      = "/usr/bin/java -XshowSettings:properties -version"
		apptainer = "/libexec/apptainer"
		sandbox   = "/libexec/singularity_test_sandbox"
		sif       = "/libexec/exit_37.sif"
		docker28  = "Docker version 28.2.2, build e6534b4\n"
	)
	for _, tt := range []struct {
		name, config string
		has          installed
		want         string
		problems     []string
	}{
		{name: "a bare machine"},
		{name: "nothing wanted", config: "JAVA =\nDOCKER =\nSINGULARITY =", has: installed{java: ended(0, java17)}},
		{name: "Java", has: installed{java: ended(0, strings.Replace(java17, "        java.vendor", "        x.vendor", 1))},
			want: `HasJava = true; JavaSpecificationVersion = "17"; JavaVendor = "Debian"; JavaVersion = "17.0.15"`},
		{name: "Java with arguments of the owner", config: "JAVA = /opt/j\nJAVA_EXTRA_ARGUMENTS = \"-server '-Dx=a b'\"",
			has:  installed{"/opt/j -server -Dx=a b -XshowSettings:properties -version": said("    java.version = 9\n")},
			want: `HasJava = true; JavaVersion = "9"`},
		{name: "Java that prints nothing of use", has: installed{java: ended(0, "openjdk version \"17\"\n")}},
		{name: "Java that does not start", has: installed{java: ended(1, "\nError: Could not create the Java Virtual Machine.\nmore\n")},
			problems: []string{"exit status 1: Error: Could not create the Java Virtual Machine."}},
		{name: "arguments that cannot be read", config: "JAVA_EXTRA_ARGUMENTS = \"-x", problems: []string{"JAVA_EXTRA_ARGUMENTS"}},

		{name: "Docker without a test image",
			has: installed{"/usr/bin/docker -v": said(docker28), "/usr/bin/docker info": said("Client:\n"),
				"/usr/bin/docker load -i /libexec/htcondor_docker_test": ended(1, "open /libexec/htcondor_docker_test: no such file or directory\n")},
			want: `DockerVersion = "Docker version 28.2.2, build e6534b4"; HasContainer = true; HasDocker = true; HasDockerURL = true`},
		{name: "Docker by sudo, tested", config: "DOCKER = sudo /opt/docker\nDOCKER_TEST_IMAGE_NAME = t",
			has: installed{"/usr/bin/sudo /opt/docker -v": said(docker28), "/usr/bin/sudo /opt/docker info": {},
				"/usr/bin/sudo /opt/docker load -i /libexec/htcondor_docker_test": {},
				"/usr/bin/sudo /opt/docker run --rm=true t /exit_37":              ended(37, ""), "/usr/bin/sudo /opt/docker rmi t": {}},
			want: `DockerVersion = "Docker version 28.2.2, build e6534b4"; HasContainer = true; HasDocker = true; HasDockerURL = true`},
		{name: "Docker that fails the test",
			has: installed{"/usr/bin/docker -v": said(docker28), "/usr/bin/docker info": {}, "/usr/bin/docker load -i /libexec/htcondor_docker_test": {},
				"/usr/bin/docker run --rm=true htcondor_docker_test /exit_37": ended(125, "x")},
			problems: []string{"htcondor_docker_test", "status 37"}},
		{name: "Docker not to be tested", config: "DOCKER_PERFORM_TEST = false",
			has:  installed{"/usr/bin/docker -v": said(docker28), "/usr/bin/docker info": {}},
			want: `DockerVersion = "Docker version 28.2.2, build e6534b4"; HasContainer = true; HasDocker = true; HasDockerURL = true`},
		{name: "Docker without a server",
			has: installed{"/usr/bin/docker -v": said(docker28),
				"/usr/bin/docker info": {Status: 1, Stdout: []byte("Client:\n"), Stderr: []byte("ERROR: Cannot connect to the Docker daemon\n")}},
			problems: []string{"/usr/bin/docker info", "Cannot connect to the Docker daemon"}},
		{name: "the Docker that HTCondor refuses", config: "DOCKER_PERFORM_TEST = false",
			has:  installed{"/usr/bin/docker -v": said("Docker version 20.10.4, build x\n"), "/usr/bin/docker info": {}},
			want: `DockerOfflineReason = "Unsupported Docker Version (20.10.4) detected"; DockerVersion = "Docker version 20.10.4, build x"; HasContainer = true; HasDocker = false; HasDockerURL = true`},
		{name: "another program of that name", has: installed{"/usr/bin/docker -v": said("docker 1.5 by Ben Jansens\nSystem tray\n")},
			problems: []string{"is not Docker"}},

		{name: "Apptainer of a distribution",
			has: installed{"/usr/bin/apptainer --version": said("apptainer version 1.3.6\n"),
				"/usr/bin/apptainer exec -C " + sandbox + " /exit_37":     ended(37, ""),
				"/usr/bin/apptainer exec -C " + sif + " /exit_37":         ended(37, ""),
				"/usr/bin/apptainer exec -C " + sandbox + " /get_user_ns": {Status: 37, Stdout: []byte("4026532999\n")}},
			want: `HasContainer = true; HasDockerURL = true; HasPidNamespaces = true; HasSandboxImage = true; HasSIF = true; HasSingularity = true; SingularityUserNamespaces = true; SingularityVersion = "apptainer version 1.3.6"`},
		{name: "Singularity with setuid and without PID namespaces", config: "SINGULARITY = /s",
			has: installed{"/s --version": said("3.8\n"),
				"/s exec --contain --ipc --cleanenv " + sandbox + " /exit_37":     ended(37, ""),
				"/s exec --contain --ipc --cleanenv " + sandbox + " /get_user_ns": {Status: 37, Stdout: []byte("4026531837\n")}},
			want: `HasContainer = true; HasDockerURL = true; HasPidNamespaces = false; HasSandboxImage = true; HasSingularity = true; SingularityUserNamespaces = false; SingularityVersion = "3.8"`},
		{name: "Singularity that must have PID namespaces", config: "SINGULARITY = /s\nSINGULARITY_USE_PID_NAMESPACES = true",
			has:      installed{"/s --version": said("3.8\n"), "/s exec --contain --ipc --cleanenv " + sandbox + " /exit_37": ended(37, "")},
			want:     `HasSingularity = false; SingularityOfflineReason = "Both SIF and Sandbox tests on startup failed : FATAL:   no answer for /s exec -C /libexec/exit_37.sif /exit_37"; SingularityVersion = "3.8"`,
			problems: []string{"/s", "Both SIF and Sandbox"}},
		{name: "Apptainer that cannot say its version", has: installed{apptainer + " --version": ended(2, "bad")}, problems: []string{"exit status 2: bad"}},
		{name: "a setting that is no number", config: "SINGULARITY_TEST_SANDBOX_TIMEOUT = soon", has: installed{}, problems: []string{"SINGULARITY_TEST_SANDBOX_TIMEOUT"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var ran []string
			found, problems := tt.has.prober(&ran).Probe(t.Context(), settings(t, tt.config))
			got := strings.ReplaceAll(strings.TrimSpace(found.Text(classad.Old)), "\n", "; ")
			lines := strings.Split(tt.want, "; ")
			have := strings.Split(got, "; ")
			slices.Sort(lines)
			slices.Sort(have)
			if diff := cmp.Diff(lines, have); diff != "" {
				t.Error(diff)
			}
			err := errors.Join(problems...)
			if (err != nil) != (tt.problems != nil) {
				t.Errorf("problems: %v", err)
			}
			for _, word := range tt.problems {
				if err != nil && !strings.Contains(err.Error(), word) {
					t.Errorf("%q is not in %v", word, err)
				}
			}
			if strings.Contains(tt.config, "sudo") && !slices.Contains(ran, "/usr/bin/sudo /opt/docker rmi t") {
				t.Error("the test image was left behind")
			}
		})
	}
}

// The program of a kind of job that does not run is not tried, and nothing of it
// is published; an owner who named it is told.
func TestProbeOnlyWhatRuns(t *testing.T) {
	t.Parallel()
	has := installed{
		"/usr/bin/java -XshowSettings:properties -version": ended(0, java17), "/opt/java -XshowSettings:properties -version": ended(0, java17),
		"/usr/bin/docker -v": said("Docker version 28.2.2, build e6534b4\n"), "/usr/bin/docker info": {},
		"/usr/bin/apptainer --version": said("apptainer version 1.3.6\n"),
	}
	for _, tt := range []struct {
		config  string
		runs    []Kind
		has     string   // an attribute that is published, "" for none at all
		ran     []string // the first words of what is tried
		problem string
	}{
		{config: ""},
		{config: "JAVA = /opt/java", problem: "JAVA"},
		{config: "DOCKER = /usr/bin/docker", problem: "DOCKER"},
		{config: "SINGULARITY = /usr/bin/apptainer", problem: "SINGULARITY"},
		{config: "DOCKER =\nSINGULARITY =\nJAVA ="},
		{config: "", runs: []Kind{JavaJobs}, has: "HasJava", ran: []string{"/usr/bin/java"}},
		{config: "DOCKER_PERFORM_TEST = false", runs: []Kind{DockerJobs}, has: "HasDocker", ran: []string{"/usr/bin/docker", "/usr/bin/docker"}},
	} {
		var ran []string
		p := has.prober(&ran)
		p.Runs = func(k Kind) bool { return slices.Contains(tt.runs, k) }
		found, problems := p.Probe(t.Context(), settings(t, tt.config))
		for i, line := range ran {
			ran[i], _, _ = strings.Cut(line, " ")
		}
		if _, there := found.Lookup(tt.has); there != (tt.has != "") || tt.has == "" && found.Len() > 0 || !slices.Equal(ran, tt.ran) {
			t.Errorf("%q, %v run: tried %q, found %s", tt.config, tt.runs, ran, found.Text(classad.Old))
		}
		err := errors.Join(problems...)
		if (err != nil) != (tt.problem != "") || err != nil && (!strings.Contains(err.Error(), tt.problem) || !errs.Is(problems[0], errs.Unsupported)) {
			t.Errorf("%q: problems %v, want %q", tt.config, err, tt.problem)
		}
	}
}

// A program that never ends is ended after its time, all of them together.
func TestProbeIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := Prober{Runs: everyKind, Run: func(ctx context.Context, _ []string) (Outcome, error) {
			<-ctx.Done()
			return Outcome{}, context.Cause(ctx)
		}}
		start := time.Now()
		found, problems := p.Probe(t.Context(), settings(t, "SINGULARITY = /s\nDOCKER = /d\nJAVA = /j"))
		if took := time.Since(start); took != patience {
			t.Errorf("took %v, want %v", took, patience)
		}
		if found.Len() != 0 || len(problems) != 3 {
			t.Errorf("%s %v", found.Text(classad.Old), problems)
		}
		for _, err := range problems {
			if !errs.Is(err, errs.Expired) || !strings.Contains(err.Error(), "20s") {
				t.Errorf("%v", err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if _, problems = p.Probe(ctx, settings(t, "")); time.Since(start) != time.Second || len(problems) == 0 {
			t.Errorf("took %v, %v", time.Since(start), problems)
		}
	})
}

// What was found stands among the machine's attributes, and every name of it
// begins as ProbedAttributes says.
func TestProgramsScanner(t *testing.T) {
	t.Parallel()
	var ran []string
	has := installed{"/usr/bin/java -XshowSettings:properties -version": ended(0, java17), "/usr/bin/singularity --version": said("3.8\n")}
	snap := settings(t, "")
	inv, problems := Scan(t.Context(), time.Unix(0, 0), found{set: func(inv *Inventory) {
		inv.Attrs.SetString("StarterAbilityList", "HasFileTransfer")
	}}, Programs(has.prober(&ran), snap))
	if len(problems) != 1 || !strings.Contains(problems[0].Error(), "Both SIF and Sandbox") {
		t.Errorf("problems %v", problems)
	}
	if list, _ := inv.Attrs.EvalString("StarterAbilityList", nil); list != "HasFileTransfer,HasJava,HasSingularity" {
		t.Errorf("abilities %s", list)
	}
	for _, name := range inv.Attrs.Names() {
		if !slices.ContainsFunc(ProbedAttributes(), func(p string) bool { return strings.HasPrefix(name, p) }) {
			t.Errorf("%s is not among %q", name, ProbedAttributes())
		}
	}
	inv, _ = Scan(t.Context(), time.Unix(0, 0), Programs(installed{}.prober(&ran), snap))
	if inv.Attrs.Len() != 0 {
		t.Errorf("a bare machine shows %s", inv.Attrs.Text(classad.Old))
	}
}

func TestJoinAbilities(t *testing.T) {
	t.Parallel()
	ad := classad.NewAd()
	for _, name := range []string{"HasJava", "JavaVersion", "hasFileTransfer", "HasDocker"} {
		ad.SetBool(name, true)
	}
	for _, tt := range []struct{ list, want string }{
		{"", "HasDocker,hasFileTransfer,HasJava"},
		{"HasFileTransfer,HasJobNetworking", "HasFileTransfer,HasJobNetworking,HasDocker,HasJava"},
	} {
		got := strings.Split(JoinAbilities(tt.list, ad), ",")
		want := strings.Split(tt.want, ",")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", tt.list, got, want)
		}
	}
	if got := JoinAbilities("HasJava", classad.NewAd()); got != "HasJava" {
		t.Errorf("%q", got)
	}
}

func FuzzJavaProperties(f *testing.F) {
	f.Add(java17)
	f.Add("a = b\n  = c\nd =\n e = \x00\x1b[0m\r\n f = g = h")
	f.Fuzz(func(t *testing.T, text string) {
		for name, value := range JavaProperties([]byte(text)) {
			if name == "" || strings.ContainsAny(value, "\n\r\x00\x1b") {
				t.Errorf("%q = %q", name, value)
			}
			ad := classad.NewAd()
			ad.SetString("JavaVersion", value)
			back, err := classad.ParseAd(ad.Text(classad.Old), classad.Old)
			if err != nil {
				t.Fatalf("%q cannot be published: %v", value, err)
			}
			if got, _ := back.EvalString("JavaVersion", nil); got != value {
				t.Errorf("%q comes back as %q", value, got)
			}
		}
	})
}

func TestJavaProperties(t *testing.T) {
	t.Parallel()
	got := JavaProperties([]byte("    a = 1\n    b = \n    c = x\n        y\n    a = 2\n  two words = 3\nnot one\n"))
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "", "c": "x"}, got); diff != "" {
		t.Error(diff)
	}
	many := ""
	for i := range 5000 {
		many += fmt.Sprintf("k%d = v\n", i)
	}
	if n := len(JavaProperties([]byte(many))); n != maxWords {
		t.Errorf("%d properties", n)
	}
}
